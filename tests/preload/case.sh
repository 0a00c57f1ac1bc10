#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs the case named, in an empty folder of its own: bash case.sh NAME.
set -euo pipefail
export LC_ALL=C
script=$(realpath "$(dirname "$0")")/cases/$1.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
bash "$script"
