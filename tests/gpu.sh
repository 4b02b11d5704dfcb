#!/bin/sh
# What only a machine with a GPU can show: gpu.sh BUILD MEDIA-FOLDER [quick | sanitizer | files]
# Conformance to the bit, equal hashes on real files for every backend, ring and decoder,
# compute-sanitizer; all at once, a line each. Closes with "N passed, N failed". `quick` leaves the sanitizer out,
# `sanitizer` is that alone: 16 cores take some ten minutes for each. `files` is the hashes alone.
set -u
usage='usage: gpu.sh BUILD MEDIA-FOLDER [quick | sanitizer | files]'
build=${1:?$usage}
media=${2:?$usage}
part=${3:-}
case $part in '' | quick | sanitizer | files) ;; *) echo "$usage" >&2; exit 2 ;; esac
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
    echo $status >"$to.status"
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
    # NVDEC makes other pictures of damage than the CPU's decoders.
    [ "$(cat "$at/cpu.status")" = 0 ] || return
    hash "$at/cuda" "$file" --backend cuda --device all -f "$chain"
    check "$file '$chain' on all GPUs" cmp "$at/cpu" "$at/cuda"
    hash "$at/cuda" "$file" --backend cuda -f "$chain" # NVDEC where it can
    check "$file '$chain' decoded as the driver can" cmp "$at/cpu" "$at/cuda"
}

# without_gpu COMMAND...: on the CPU, whatever would be chosen.
without_gpu() {
    CUDA_VISIBLE_DEVICES='' "$@"
}

# The example that decodes on the GPU, beside itself on the CPU, whose frames have three planes.
example_decodes() {
    at=$(mktemp -d "$work/decode.XXXXXX")
    size=$(ffprobe -v error -select_streams v:0 -show_entries stream=width,height -of csv=p=0:s=x "$1")
    "$build/examples/ffmpeg_decode" "$1" "$at/cpu" && "$build/examples/ffmpeg_decode" "$1" "$at/cuda" --cuda &&
        ffmpeg -v error -f rawvideo -pix_fmt yuv420p -s "$size" -i "$at/cpu" -pix_fmt nv12 -f rawvideo "$at/nv12" &&
        [ -s "$at/cuda" ] && cmp "$at/nv12" "$at/cuda"
}

# example NAME ARGUMENTS...: it prints on a GPU what it prints on the CPU, but for the backend's name.
example() {
    at=$(mktemp -d "$work/example.XXXXXX")
    run=$build/examples/$1
    shift
    "$run" "$@" >"$at/said" && without_gpu "$run" "$@" >"$at/cpu" &&
        sed 's/ on [a-z]*, .*//' "$at/cpu" >"$at/want" && sed 's/ on [a-z]*, .*//' "$at/said" | cmp - "$at/want" &&
        [ -s "$at/want" ]
}

all_but_sanitizer() {
    if [ -d "$build/examples" ]; then
        for file in "$media"/*.mp4; do
            found=$(ffprobe -v error -select_streams v -show_entries stream=codec_name,pix_fmt -of csv=p=0 "$file")
            [ "$found" = h264,yuv420p ] && check "example ffmpeg_decode $file" example_decodes "$file"
        done
        check 'example many_cameras' example many_cameras 8 20
        check 'many_cameras is on a GPU' sh -c "$build/examples/many_cameras 2 2 | grep -q ' on cuda'"
        check 'example take_frames' example take_frames "$media/blue-go-video.mp4" 40
    fi
    for unit in push take; do
        check "frames that callers $unit" env SLUICE_TEST_BACKEND=cuda "$build/unit_$unit"
    done
    check conformance timeout 550 "$build/conformance" --backend cuda &
    check 'filters of frames in memory' timeout 300 "$build/unit_filter_gpu" &
    # Two minutes: clocks that go apart by 20 us a second are a millisecond apart after one.
    check 'times of frames' timeout 300 env SLUICE_TEST_SECONDS=120 "$build/unit_gpu_times" &
    check 'noise in large frames' timeout 500 python3 "$(dirname "$0")/gpu_noise.py" "$build/sluice" &
    check 'frames of PyTorch' timeout 300 python3 "$(dirname "$0")/filter_gpu.py" "$build/libsluice-filter.so.1" &
    ! command -v gst-launch-1.0 >/dev/null ||
        check 'pictures of GStreamer' timeout 500 python3 "$(dirname "$0")/gstreamer_gpu.py" "$build/hosts/gstreamer" &
    check 'conformance of several GPUs' timeout 550 "$build/conformance" --backend cuda --devices 2 &
    check "conformance of another GPU's frames" timeout 550 "$build/conformance" --backend cuda --abroad --every 6 &
    # Not those whose reference takes minutes: large kernels, and wavelets of hundreds of pixels.
    check 'conformance of large pictures, wavelets' timeout 550 "$build/conformance" --backend cuda \
        --large --format yuv444p16-full --only 'wavelet=[0-9]*' --not 'wavelet=*256*' --not 'wavelet=170*' &
    check 'conformance of large pictures' timeout 550 "$build/conformance" --backend cuda \
        --large --format nv12 --every 2 --not '*convolve=@*' --not '*wavelet=*' --not 'match=t%*' --not 'gaussian=250*' &
    files
}

files() {
    for file in "$media"/*; do
        for chain in gray,gaussian=1.4,sobel,threshold=20:240 'gaussian=3,sharpen=1.5,brightness=9'; do
            hashes "$file" "$chain"
        done
    done
}

PATH=$PATH:/usr/local/cuda/bin
if [ "$part" != quick ] && [ "$part" != files ] && command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        for format in gray p010 rgba64; do
            check "$tool on $format" timeout 550 compute-sanitizer --tool $tool --error-exitcode 9 \
                "$build/conformance" --backend cuda --format $format --every 2 &
        done
        check "$tool of the tutorial" timeout 550 compute-sanitizer --tool $tool --error-exitcode 9 \
            "$build/conformance" --backend cuda --ladder &
    done
fi
case $part in
sanitizer) ;;
files) files ;;
*) all_but_sanitizer ;;
esac
wait
failed=$(grep -c ^failed "$work/results")
echo "$(grep -c ^passed "$work/results") passed, $failed failed"
[ "$failed" = 0 ]
