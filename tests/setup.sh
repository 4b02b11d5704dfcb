#!/bin/sh
# setup.sh [--list] NEED...: install what is missing, or list it. Each need is "test|package": the
# Debian package is wanted when the shell test fails.
set -u
list=
[ "${1-}" != --list ] || { list=1; shift; }

missing=
for need in "$@"; do
    sh -c "${need%%|*}" >/dev/null 2>&1 || missing="$missing ${need##*|}"
done
[ -z "$list" ] || { echo "${missing# }"; exit 0; }
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "sluice needs packages that this system calls by names of its own; in Debian they are:"
    echo "   $missing"
    exit 1
fi

sudo=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "As root: apt-get install$missing"; exit 1; }
    sudo=sudo
fi
echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq || echo "apt-get update failed; trying with the lists there are"
# shellcheck disable=SC2086
$sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
