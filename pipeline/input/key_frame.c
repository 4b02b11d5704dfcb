#include "pipeline/input/key_frame.h"

// True if the packet has a slice of an IDR picture of H.264: behind it nothing refers to what was
// before. Units begin with their length, as in MP4, or with a start code.
static bool has_idr(const AVPacket *av, const AVCodecParameters *codec)
{
    enum { IDR = 5, MASK = 31 };
    const uint8_t *at = av->data, *end = av->data + av->size;
    bool sized = codec->extradata_size > 4 && codec->extradata[0] == 1;
    size_t room = sized ? (codec->extradata[4] & 3) + 1u : 3, length;
    for (; (size_t)(end - at) > room; at += sized ? room + length : 1) {
        length = 0;
        for (size_t k = 0; k < room; k++)
            length = length << 8 | at[k];
        if ((sized || length == 1) && (at[room] & MASK) == IDR)
            return true;
        if (sized && length >= (size_t)(end - at) - room)
            return false;
    }
    return false;
}

bool key_frame_is_weak(const AVPacket *packet, const AVCodecParameters *codec)
{
    return codec->codec_id == AV_CODEC_ID_H264 && !has_idr(packet, codec);
}
