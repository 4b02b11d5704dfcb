#!/bin/sh
# What only a machine with a GPU can show: gpu.sh BUILD MEDIA-FOLDER [quick]
# Conformance to the bit, equal hashes on real files for every backend, ring and decoder,
# compute-sanitizer. Closes with "N passed, N failed". `quick` leaves the sanitizer out.
set -u
build=${1:?usage: gpu.sh BUILD MEDIA-FOLDER [quick]}
media=${2:?usage: gpu.sh BUILD MEDIA-FOLDER [quick]}
quick=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# check NAME COMMAND...: it must succeed.
check() {
    name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $name"
        tail -4 "$work/log"
    fi
}

# hash NAME FILE OPTIONS...: the hashes of a run, without the head that names formats.
hash() {
    out=$1 file=$2
    shift 2
    timeout 120 "$build/sluice" -q -y "$@" --frames 60 "$file" "hash:$work/all" 2>"$work/err"
    status=$?
    [ $status = 0 ] || [ $status = 3 ] || { cat "$work/err"; return 1; }
    grep -v '^#' "$work/all" >"$work/$out"
}

same() { cmp "$work/$1" "$work/$2"; }

check conformance timeout 500 "$build/conformance" --backend cuda
check 'conformance of several GPUs' timeout 500 "$build/conformance" --backend cuda --devices 2
check 'conformance of large pictures' timeout 300 "$build/conformance" --backend cuda --large --first 1500 --cases 100

for file in "$media"/*; do
    for chain in gray,gaussian=1.4,sobel,threshold=20:240 'gaussian=3,sharpen=1.5,brightness=9'; do
        if ! hash cpu "$file" --backend cpu -f "$chain" --hwdec off; then continue; fi
        for ring in 1 4 8; do
            hash cuda "$file" --backend cuda --ring $ring -f "$chain" --hwdec off
            check "$file '$chain' ring $ring" same cpu cuda
        done
        hash cuda "$file" --backend cuda --device all -f "$chain"
        check "$file '$chain' on all GPUs" same cpu cuda
        hash cuda "$file" --backend cuda -f "$chain" # NVDEC where it can
        check "$file '$chain' decoded as the driver can" same cpu cuda
    done
done

if [ "$quick" != quick ] && command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        for first in 0 1400 2000; do
            check "$tool from case $first" timeout 300 compute-sanitizer --tool $tool --error-exitcode 9 \
                "$build/conformance" --backend cuda --first $first --cases 80
        done
        check "$tool of the ladder" timeout 300 compute-sanitizer --tool $tool --error-exitcode 9 \
            "$build/conformance" --backend cuda --ladder
    done
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
