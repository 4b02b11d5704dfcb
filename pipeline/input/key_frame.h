// Key frames: at which of them decoding may begin.
#pragma once

#include <libavcodec/avcodec.h>
#include <stdbool.h>

// True if decoding must begin a group earlier to give what it gives when all was seen: at a key
// frame of H.264 that is no IDR picture frames recover over a group's length (intra refresh), and
// where the first ones refer to the group before, libavcodec may lose others (FFmpeg 5.1).
bool key_frame_is_weak(const AVPacket *packet, const AVCodecParameters *codec);
