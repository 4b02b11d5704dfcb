// Encryption: whether the video can be decoded by those only who have a key.
#include <libavutil/avstring.h>
#include <string.h>

#include "pipeline/ffmpeg/compat.h"
#include "pipeline/input/io/mpegts.h"
#include "pipeline/input/source_open.h"

// Tags by which demuxers mark an encryption that they leave as it is.
static const struct {
    const char *reader, *key;
    bool of_stream;
} encryption_tags[] = {
    {"asf", "ASF_Protection_Type", false}, // the content encryption object: Windows Media DRM
    {"asf", "encryption", false},          // the extended one: PlayReady
    {"matroska", "enc_key_id", true},
};

static bool has_encryption_tag(const AVFormatContext *format, const AVStream *stream)
{
    for (size_t k = 0; k < sizeof encryption_tags / sizeof *encryption_tags; k++) {
        const AVDictionary *tags =
            encryption_tags[k].of_stream ? stream->metadata : format->metadata;
        if (av_match_name(encryption_tags[k].reader, format->iformat->name) &&
            av_dict_get(tags, encryption_tags[k].key, NULL, AV_DICT_MATCH_CASE))
            return true;
    }
    return false;
}

// Codec tags of MP4 for video that FairPlay, or any scheme, encrypts.
static bool has_encryption_codec(const AVStream *stream)
{
    uint32_t code = stream->codecpar->codec_tag;
    return code == MKTAG('d', 'r', 'm', 'i') || code == MKTAG('e', 'n', 'c', 'v');
}

bool source_is_encrypted(const struct source *source)
{
    const AVStream *video = source_video(source);
    return stream_data(video, AV_PKT_DATA_ENCRYPTION_INIT_INFO) || has_encryption_codec(video) ||
           has_encryption_tag(source->format, video);
}

bool source_is_scrambled(const struct source *source)
{
    const struct mpegts_place place = {source->io, 0, source_video(source)->id};
    return source_is_mpegts(source) && mpegts_is_scrambled(&place);
}
