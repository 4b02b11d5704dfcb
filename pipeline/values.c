// Numbers as FFmpeg's tools take them.
#include <libavutil/eval.h>
#include <libavutil/parseutils.h>

#include "sluice/sluice.h"

enum sluice_status sluice_parse_size(const char *text, int *width, int *height)
{
    int size[2];
    if (av_parse_video_size(&size[0], &size[1], text) < 0)
        return SLUICE_STATUS_USAGE;
    *width = size[0];
    *height = size[1];
    return SLUICE_STATUS_OK;
}

enum sluice_status sluice_parse_rate(const char *text, struct sluice_rate *rate)
{
    AVRational parsed;
    if (av_parse_video_rate(&parsed, text) < 0)
        return SLUICE_STATUS_USAGE;
    *rate = (struct sluice_rate){parsed.num, parsed.den};
    return SLUICE_STATUS_OK;
}

enum sluice_status sluice_parse_bitrate(const char *text, int64_t *bitrate)
{
    char *end;
    double value = av_strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= 1e15))
        return SLUICE_STATUS_USAGE;
    *bitrate = value > 0 ? (int64_t)value : SLUICE_BITRATE_ZERO;
    return SLUICE_STATUS_OK;
}
