#!/bin/sh
# An FFmpeg for `make test-tsan`: the distribution's sources, built with ThreadSanitizer into a folder.
#
#     tests/tsan/ffmpeg.sh build-tsan/ffmpeg
#
# ThreadSanitizer knows of no order that code makes that it has not instrumented: FFmpeg's counts of
# references would pass for races, and real ones within its calls for none. Assembly is left out, which is
# not instrumented either, and what the tests do not use. A second call finds it made.
set -eu
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
[ ! -e "$prefix/made" ] || exit 0
cd "$prefix"

if ! apt-get source --print-uris ffmpeg >/dev/null 2>&1; then
    if [ -e /etc/apt/sources.list.d/debian.sources ]; then
        sed 's/^Types:.*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources \
            > /etc/apt/sources.list.d/sluice-tsan.sources
    else
        sed 's/^deb /deb-src /' /etc/apt/sources.list > /etc/apt/sources.list.d/sluice-tsan.list
    fi
    apt-get update -qq
fi
apt-get install -qq -y dpkg-dev libx264-dev >/dev/null
apt-get source -qq --download-only ffmpeg
rm -rf source
dpkg-source -x --no-check ./*.dsc source >/dev/null
cd source

decoders=h264,hevc,vp8,vp9,mpeg4,mpeg2video,mpeg1video,mjpeg,png,apng,rawvideo,wrapped_avframe,ffv1,theora,prores
decoders=$decoders,gif,webp,bmp,ppm,pgm,pam,pbm,pgmyuv,aac,ac3,mp2,mp3,pcm_s16le,pcm_s16be,pcm_u8,opus,vorbis,flac
decoders=$decoders,subrip,ass,mov_text,webvtt,srt,dvvideo,huffyuv,utvideo,tiff
encoders=libx264,ffv1,mpeg4,mpeg2video,mjpeg,png,apng,rawvideo,wrapped_avframe,prores,prores_ks,gif,bmp,ppm,pgm,pam
encoders=$encoders,aac,ac3,mp2,pcm_s16le,pcm_s16be,pcm_u8,flac,subrip,ass,mov_text,webvtt,srt,huffyuv,utvideo,tiff
filters=testsrc,testsrc2,color,sine,anullsrc,smptebars,smptehdbars,rgbtestsrc,yuvtestsrc,mandelbrot,life,cellauto
filters=$filters,format,aformat,scale,null,anull,noise,geq,fps,setpts,select,trim,split,hue,rotate,aevalsrc,nullsrc
filters=$filters,allrgb,gradients,drawbox,pad,crop,realtime,loop
./configure --toolchain=gcc-tsan --prefix="$prefix" --enable-shared --disable-static --disable-programs \
    --disable-doc --disable-asm --disable-autodetect --enable-gpl --enable-libx264 --enable-zlib \
    --disable-stripping --disable-everything --enable-decoder="$decoders" --enable-encoder="$encoders" --enable-muxers \
    --enable-demuxers --enable-parsers --enable-bsfs --enable-protocols --enable-indev=lavfi \
    --enable-filter="$filters" > configure.log
make -j"$(nproc)" > make.log 2>&1
make install >> make.log 2>&1
cd ..
rm -rf source ./*.tar.* ./*.dsc
touch made
