// Probing: the parameters of streams from their packets, within limits.
#pragma once

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stdbool.h>
#include <stdint.h>

// avformat_find_stream_info(), which decodes, but no picture of more than about `max_pixels`.
// Returns its error. A call on an address may block; the format's interrupt callback ends it.
int probe_streams(AVFormatContext *format, int64_t max_pixels);

// The size of the picture in a packet, as its decoder finds it ahead of decoding. False: the packet
// does not say.
bool probe_picture(const AVCodecParameters *about, const AVPacket *packet, int *width, int *height);

// The value of AVCodecContext.max_pixels with which pictures of `max_pixels` may be shown: decoders
// count what they code, whole blocks to 64x64.
static inline int64_t coded_pixels(int64_t max_pixels)
{
    return max_pixels + INT64_C(64) * (2 * 65536 + 64);
}
