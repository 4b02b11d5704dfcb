#!/bin/sh
# side-by-side.sh BEFORE AFTER OUT.png: the frame at four seconds of both videos, beside each other.
set -eu
before=${1:?usage: side-by-side.sh BEFORE AFTER OUT.png}
after=$2
out=$3
ffmpeg -v error -nostdin -y -ss 4 -i "$before" -ss 4 -i "$after" -filter_complex \
    '[0:v]scale=640:-2,format=rgb24[a];[1:v]scale=640:-2:in_range=full,format=rgb24[b];[a][b]hstack' \
    -frames:v 1 "$out"
