#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs the restartable sections of aarch64 under a real kernel: Debian's for arm64, booted by qemu-system-aarch64 with
# nothing but the tests in memory.  (qemu-user, which the aarch64 tests of the ordinary set run under, has no rseq.)
#
#   tests/machine/aarch64.sh [BUILD_DIRECTORY]     default build/aarch64, made by `cmake --preset aarch64`
#
# Needs the Debian packages qemu-system-arm and gcc-aarch64-linux-gnu; gets the kernel by apt-get download.  Takes about
# ten minutes: every instruction is emulated.
set -eu
tree=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$tree/build/aarch64}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { echo "machine: $*" >&2; }

for program in qemu-system-aarch64 aarch64-linux-gnu-gcc cpio apt-get; do
    command -v $program > /dev/null || { say "$program is missing: apt-get install qemu-system-arm gcc-aarch64-linux-gnu cpio"; exit 77; }
done
[ -e "$build/libsutler.so" ] || { say "no build in $build: cmake --preset aarch64 && cmake --build --preset aarch64"; exit 1; }

say "getting Debian's kernel for arm64"
cd "$work"
dpkg --print-foreign-architectures | grep -qx arm64 || { dpkg --add-architecture arm64 && apt-get -qq update; }
kernel=$(apt-cache search --names-only '^linux-image-6.*-cloud-arm64-unsigned$' | cut -d' ' -f1 | sort -V | tail -1)
[ -n "$kernel" ] || { say "apt offers no kernel for arm64"; exit 77; }
apt-get -qq download "$kernel:arm64" 2> /dev/null
dpkg-deb -x "$kernel"_*.deb kernel

say "packing the tests"
mkdir -p root/proc root/sys root/dev root/tmp root/lib root/bin
libraries=/usr/aarch64-linux-gnu/lib
cp $libraries/ld-linux-aarch64.so.1 $libraries/libc.so.6 $libraries/libm.so.6 $libraries/libgcc_s.so.1 root/lib/
cp "$build/libsutler.so" root/lib/
aarch64-linux-gnu-gcc -static -O2 -Wall -o root/init "$tree/tests/machine/init.c"
rcs="SUTLER_SYNC=rcs TEST_LIBRARY=/lib/libsutler.so"
preload="$rcs LD_PRELOAD=/lib/libsutler.so TEST_EXPECT_SUTLER=1"
# Unit tests look into the heap: without a manager it holds still.
while read -r environment program arguments; do
    case $environment in unit) rest="$rcs SUTLER_MANAGER=off" ;; *) rest=$preload ;; esac
    cp "$build/tests/$environment/$program" root/bin/
    echo "$rest /bin/$program $arguments"
done > root/tests << END
unit unit_rcs_primitive --ms 5000
unit unit_rcs_storm --ms 40000
unit unit_rcs_storm_purged --ms 40000 --purge 1
unit unit_takeover
unit unit_mailbox
unit unit_heap_groups
stress test_stress_handoff --ops 200000
stress test_stress_swap --ops 100000
stress test_stress_migrate --ms 20000
stress test_stress_storm --ms 30000
model test_model_single --ops 200000
fork test_fork_storm --forks 200
END
(cd root && find . | cpio -o -H newc --quiet | gzip -1) > initrd

say "booting $kernel"
qemu-system-aarch64 -machine virt -cpu max -smp 4 -m 3072 -nographic -nic none -no-reboot -kernel kernel/boot/vmlinuz-* \
    -initrd initrd -append "console=ttyAMA0 loglevel=4 panic=-1 rdinit=/init" < /dev/null | sed -u 's|\r||g' | tee log
grep -q '^machine: [0-9]* passed, 0 failed$' log
