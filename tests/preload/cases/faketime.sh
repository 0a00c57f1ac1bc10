# SPDX-License-Identifier: MIT
# libfaketime, whose clock_gettime is C code with locks and memory of its own, called by whichever thread asks for the
# time: both builds of it, preloaded before this library and after, and by its own command.
# needs: faketime python3
# needs-file: /usr/lib/*/faketime/libfaketimeMT.so.1
export PYTHONMALLOC=malloc SUTLER_MANAGER=on
cat > script.py <<'END_SCRIPT'
import datetime, os, subprocess, sys
sys.path.insert(0, os.environ["CASE_DIRECTORY"])
import grown

blocks = grown.grow()
print(datetime.datetime.now().strftime("%Y-%m-%d %H"), grown.threads())
print(grown.churn(blocks))
print(datetime.datetime.now().strftime("%Y-%m-%d %H"), subprocess.run(["date", "+%F %H"], capture_output=True, text=True).stdout.strip())
END_SCRIPT
faketime '2008-12-24 08:05:42' python3 script.py
faketime -m '2008-12-24 08:05:42' python3 script.py
for build in libfaketime libfaketimeMT; do
    fake=$(ls /usr/lib/*/faketime/$build.so.1 | head -n 1)
    for order in "$fake:$CASE_LIBRARY" "$CASE_LIBRARY:$fake"; do
        LD_PRELOAD="$order" FAKETIME='@2009-01-24 08:05:42' CASE_LIBRARY="$CASE_LIBRARY" python3 script.py
    done
done
