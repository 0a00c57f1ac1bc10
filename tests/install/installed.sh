#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# installed.sh BUILD VERSION: installs the library to a directory of its own, moves that away (nothing may point back), and
# builds a program with what is there: by find_package, shared and static, and by pkg-config.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$1 version=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

expect() { # WHAT COMMAND...
    local said
    said=$("${@:2}")
    [ "$said" = "$version" ] || { echo "FAILED: $1 says '$said', not '$version'"; exit 1; }
}

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix"
library=$(find "$work/prefix" -name 'libsutler.so' -printf '%h')
for name in "libsutler.so.$version" "libsutler.so.${version%%.*}" libsutler.so libsutler.a; do
    [ -e "$library/$name" ] || { echo "FAILED: $name is not installed"; exit 1; }
done

cmake -S "$here/program" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DSUTLER_WANTED="$version" >/dev/null
cmake --build "$work/build" >/dev/null
expect "the program linked to the shared library" "$work/build/shared"
expect "the program linked to the archive" "$work/build/archive"

if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$library/pkgconfig
    expect "pkg-config" pkg-config --modversion sutler
    # shellcheck disable=SC2046 # words
    cc -o "$work/program" "$here/program/main.c" $(pkg-config --cflags --libs sutler) -Wl,-rpath,"$library"
    expect "the program linked with pkg-config" "$work/program"
fi
