# SPDX-License-Identifier: MIT
# bash as an interpreter: arrays, associative arrays, string building, subshells, command substitution.
# needs: bash
cat > script.bash <<'END'
declare -A words
declare -a list
for ((i = 0; i < 20000; i++)); do
    key="k$((i * 7919 % 1013))"
    words[$key]+="${i},"
    list+=("$key")
done
total=0
for key in "${!words[@]}"; do
    total=$((total + ${#words[$key]}))
done
echo "${#words[@]} keys, $total bytes, ${#list[@]} in the list"
long=""
for ((i = 0; i < 3000; i++)); do long+="$i "; done
printf '%s' "$long" | wc -c
for i in 1 2 3 4 5 6 7 8; do
    x=$(for ((k = 0; k < 500; k++)); do echo "$((k * i))"; done | (sum=0; while read -r n; do sum=$((sum + n)); done; echo $sum))
    echo "$i $x"
done
[[ "$long" =~ ([0-9]+)\ ([0-9]+)\ $ ]] && echo "${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
END
bash script.bash
