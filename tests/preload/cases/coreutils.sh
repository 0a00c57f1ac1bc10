# SPDX-License-Identifier: MIT
# Many short processes: what start-up and exit cost in correctness. Shell utilities on generated files.
# needs: find xargs tar gzip sed
mkdir d
i=0
while [ $i -lt 120 ]; do
    seq $i $((i + 200)) > d/f$i
    i=$((i + 1))
done
find d -type f | sort | xargs -n 7 -P 4 cat | sort -n | md5sum
find d -name 'f*' -exec wc -l {} + | tail -1
tar -C d --sort=name --mtime=@0 --owner=0 --group=0 -cf - . | gzip -n | md5sum
sed -n '5,10s/1/one/gp' d/f1 d/f50 | md5sum
ls -la d | awk '{ s += $5 } END { print s }'
find d -type f | sort | head -40 | while read -r f; do sum "$f"; done | md5sum
