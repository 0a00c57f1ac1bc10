# SPDX-License-Identifier: MIT
# git: a repository with history, packing with threads, blame, diff, merge, fsck.
# needs: git gawk
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1 HOME="$PWD"
git init -q -b main r && cd r
i=0
while [ $i -lt 25 ]; do
    gawk -v s=$i 'BEGIN { srand(s); for (f = 0; f < 20; f++) { name = "f" f; for (k = 0; k < 200; k++) print int(rand() * (k < s * 8 ? 1e6 : 10)) > name } }'
    git add -A && git commit -q -m "c$i"
    i=$((i + 1))
done
git checkout -q -b side HEAD~5 && echo side > extra && git add extra && git commit -q -m side
git checkout -q main && git merge -q -m merge side
git rev-parse HEAD
git repack -adfq --threads=4 --depth=50 && git fsck --full --strict 2> /dev/null && echo fsck good
git log --stat --format=%H | cksum
git log -p --format=%s | cksum
git blame -w f3 | cksum
git diff HEAD~10 --patience | cksum
git grep -c 99 | cksum
git gc -q --prune=now && git count-objects -v | grep in-pack
