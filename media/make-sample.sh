#!/bin/sh
# make-sample.sh OUT.mp4: a lively clip of eight seconds with sound, made from nothing.
# Keeps a clip that is there.
set -eu
out=${1:?usage: make-sample.sh OUT.mp4}
[ ! -s "$out" ] || exit 0

encoder=libx264
ffmpeg -v error -h encoder=libx264 2>/dev/null | grep -q '^Encoder libx264' || encoder=mpeg4

# A fractal that zooms, a picture in it that circles, colours that turn; and a chord.
video="mandelbrot=size=640x360:rate=25:maxiter=160:end_scale=0.02:end_pts=250,
       hue=h=40*t,scale=1280:720:flags=bicubic [back];
       testsrc2=size=400x224:rate=25,format=yuv444p,eq=saturation=0.8 [front];
       [back][front] overlay=x='(W-w)/2+(W-w)/3*cos(t)':y='(H-h)/2+(H-h)/3*sin(1.3*t)',
       format=yuv420p [v];
       aevalsrc='0.1*(sin(2*PI*220*t)+sin(2*PI*277*t)+sin(2*PI*(330+20*sin(t))*t))':s=48000 [a]"

echo "Making a sample clip: $out"
ffmpeg -v error -nostdin -y -filter_complex "$(echo "$video" | tr -d '\n')" -map '[v]' -map '[a]' \
    -t 8 -c:v $encoder -b:v 6M -c:a aac -b:a 128k -metadata title='sluice sample' \
    -f mp4 "$out.part"
mv "$out.part" "$out"
