// Whether the video is to be seen by those only who have a key.
#include <libavutil/avstring.h>
#include <string.h>

#include "pipeline/ffmpeg/compat.h"
#include "pipeline/input/io/mpegts.h"
#include "pipeline/input/source_open.h"

// Tags by which readers tell of an encryption that they leave as it is.
static const struct {
    const char *reader, *key;
    bool of_stream;
} telling[] = {
    {"asf", "ASF_Protection_Type", false}, // the content encryption object: Windows Media DRM
    {"asf", "encryption", false},          // the extended one: PlayReady
    {"matroska", "enc_key_id", true},
};

static bool has_telling_tag(const AVFormatContext *format, const AVStream *stream)
{
    for (size_t k = 0; k < sizeof telling / sizeof *telling; k++) {
        const AVDictionary *tags = telling[k].of_stream ? stream->metadata : format->metadata;
        if (av_match_name(telling[k].reader, format->iformat->name) &&
            av_dict_get(tags, telling[k].key, NULL, AV_DICT_MATCH_CASE))
            return true;
    }
    return false;
}

// What MP4 calls its video when FairPlay, or any scheme, encrypts it.
static bool has_telling_code(const AVStream *stream)
{
    uint32_t code = stream->codecpar->codec_tag;
    return code == MKTAG('d', 'r', 'm', 'i') || code == MKTAG('e', 'n', 'c', 'v');
}

bool source_is_encrypted(const struct source *source)
{
    const AVStream *video = source_video(source);
    return stream_data(video, AV_PKT_DATA_ENCRYPTION_INIT_INFO) || has_telling_code(video) ||
           has_telling_tag(source->format, video);
}

bool source_is_scrambled(const struct source *source)
{
    const struct mpegts_place place = {source->io, 0, source_video(source)->id};
    return source_is_mpegts(source) && mpegts_is_scrambled(&place);
}
