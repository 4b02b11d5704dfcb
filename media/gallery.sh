#!/bin/sh
# gallery.sh SLUICE OUT.jpg: one frame of the sample clip through a dozen chains, four in a row.
set -eu
sluice=${1:?usage: gallery.sh SLUICE OUT.jpg}
out=${2:?usage: gallery.sh SLUICE OUT.jpg}
folder=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0

tile() { # CHAIN: the frame at four seconds through it
    number=$((number + 1))
    "$sluice" -q -y "$work/sample.mp4" "$work/$(printf %02d $number).png" --start 4 --frames 1 -f "$1"
}

sh "$folder/make-sample.sh" "$work/sample.mp4"
tile null
ffmpeg -v error -i "$work/01.png" -vf crop=112:48:492:236 "$work/squares.png"
tile 'convolve=-1 -1 -1/-1 9 -1/-1 -1 -1'
tile dog=2:5:scale=6
tile log=3:scale=60:sign=signed
tile wavelet=4:show=signed
tile wavelet=2:4:8:16:32
tile wavelet=1:2:4:8:16:show=scale
tile "match='$work/squares.png':min=0.9"
tile "match='$work/squares.png':draw=map"
"$sluice" -q -y "$work/sample.mp4" "$work/11.png" --start 4 --frames 1 \
    -f "brightness=40,tap='$work/10.png',gray=mean,sobel=l1:border=zero,threshold=20:240"
number=11
tile sepconvolve="'1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1':1"
for file in "$work"/[01]?.png; do # of one format: tile takes no other
    ffmpeg -v error -i "$file" -vf scale=320:180,format=rgb24 "$work/small-$(basename "$file")"
done
ffmpeg -v error -y -i "$work/small-%02d.png" -vf tile=4x3:padding=4:color=white -frames:v 1 -q:v 6 \
    "$out"
