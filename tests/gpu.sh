#!/bin/sh
# What only a machine with a GPU can show: gpu.sh BUILD MEDIA-FOLDER [quick]
# Conformance to the bit, equal hashes on real files for every backend, ring and decoder,
# compute-sanitizer; all at once, a line each. Closes with "N passed, N failed". `quick` leaves the sanitizer out.
set -u
build=${1:?usage: gpu.sh BUILD MEDIA-FOLDER [quick]}
media=${2:?usage: gpu.sh BUILD MEDIA-FOLDER [quick]}
quick=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/results"

# check NAME COMMAND...: it must succeed.
check() {
    name=$1
    log=$(mktemp "$work/log.XXXXXX")
    shift
    if "$@" >"$log" 2>&1; then
        echo "passed $name" | tee -a "$work/results"
    else
        echo "failed $name" >>"$work/results"
        { echo "FAILED $name"; tail -4 "$log"; } >&2
    fi
}

# hash TO FILE OPTIONS...: the hashes of a run, without the head that names formats.
hash() {
    to=$1 file=$2
    shift 2
    timeout 120 "$build/sluice" -q -y "$@" --frames 60 "$file" "hash:$to.all" 2>"$to.err"
    status=$?
    [ $status = 0 ] || [ $status = 3 ] || { cat "$to.err"; return 1; }
    grep -v '^#' "$to.all" >"$to"
}

hashes() {
    file=$1 chain=$2
    at=$(mktemp -d "$work/hash.XXXXXX")
    hash "$at/cpu" "$file" --backend cpu -f "$chain" --hwdec off || return
    for ring in 1 4 8; do
        hash "$at/cuda" "$file" --backend cuda --ring $ring -f "$chain" --hwdec off
        check "$file '$chain' ring $ring" cmp "$at/cpu" "$at/cuda"
    done
    hash "$at/cuda" "$file" --backend cuda --device all -f "$chain"
    check "$file '$chain' on all GPUs" cmp "$at/cpu" "$at/cuda"
    hash "$at/cuda" "$file" --backend cuda -f "$chain" # NVDEC where it can
    check "$file '$chain' decoded as the driver can" cmp "$at/cpu" "$at/cuda"
}

check conformance timeout 550 "$build/conformance" --backend cuda &
check 'filters of frames in memory' timeout 300 "$build/unit_filter_gpu" &
check 'frames of PyTorch' timeout 300 python3 "$(dirname "$0")/filter_gpu.py" "$build/libsluice-filter.so.1" &
check 'conformance of several GPUs' timeout 550 "$build/conformance" --backend cuda --devices 2 &
# Not those whose reference takes minutes: large kernels, and wavelets of hundreds of pixels.
check 'conformance of large pictures, wavelets' timeout 550 "$build/conformance" --backend cuda \
    --large --format yuv444p16-full --only 'wavelet=[0-9]*' --not 'wavelet=*256*' --not 'wavelet=170*' &
check 'conformance of large pictures' timeout 550 "$build/conformance" --backend cuda \
    --large --format nv12 --every 2 --not '*convolve=@*' --not '*wavelet=*' --not 'match=t%*' --not 'gaussian=250*' &
PATH=$PATH:/usr/local/cuda/bin
if [ "$quick" != quick ] && command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        for format in gray p010 rgba64; do
            check "$tool on $format" timeout 550 compute-sanitizer --tool $tool --error-exitcode 9 \
                "$build/conformance" --backend cuda --format $format --every 2 &
        done
        check "$tool of the tutorial" timeout 550 compute-sanitizer --tool $tool --error-exitcode 9 \
            "$build/conformance" --backend cuda --ladder &
    done
fi
for file in "$media"/*; do
    for chain in gray,gaussian=1.4,sobel,threshold=20:240 'gaussian=3,sharpen=1.5,brightness=9'; do
        hashes "$file" "$chain"
    done
done
wait
failed=$(grep -c ^failed "$work/results")
echo "$(grep -c ^passed "$work/results") passed, $failed failed"
[ "$failed" = 0 ]
