#include "pipeline/output/muxer/muxer_quirks.h"

#include <libavutil/avstring.h>
#include <string.h>

static const enum AVPixelFormat y4m_formats[] = {
    AV_PIX_FMT_GRAY8,     AV_PIX_FMT_GRAY9,     AV_PIX_FMT_GRAY10,    AV_PIX_FMT_GRAY12,
    AV_PIX_FMT_GRAY16,    AV_PIX_FMT_YUV411P,   AV_PIX_FMT_YUV420P,   AV_PIX_FMT_YUV422P,
    AV_PIX_FMT_YUV444P,   AV_PIX_FMT_YUV420P9,  AV_PIX_FMT_YUV422P9,  AV_PIX_FMT_YUV444P9,
    AV_PIX_FMT_YUV420P10, AV_PIX_FMT_YUV422P10, AV_PIX_FMT_YUV444P10, AV_PIX_FMT_YUV420P12,
    AV_PIX_FMT_YUV422P12, AV_PIX_FMT_YUV444P12, AV_PIX_FMT_YUV420P14, AV_PIX_FMT_YUV422P14,
    AV_PIX_FMT_YUV444P14, AV_PIX_FMT_YUV420P16, AV_PIX_FMT_YUV422P16, AV_PIX_FMT_YUV444P16,
    AV_PIX_FMT_NONE,
};

static const struct muxer_quirks quirks[] = {
    {
        .containers = "mp4,mov,ipod,3gp,3g2,psp,ismv,f4v",
        .header_decides = true,
        .bare_aac = true, // the muxer strips the headers itself, but not in fragments
        .rotation = true,
        .fragments = true,
        .option = {{MUXER_WHEN_LIVE, "frag_duration", "1000000"}}, // microseconds; DASH's: seconds
    },
    {
        .containers = "matroska",
        .attachments = true,
        .header_decides = true,
        .bare_aac = true, // the muxer strips them, but spoils its own header (until FFmpeg 7.1)
        .option = {{MUXER_WHEN_LIVE, "cluster_time_limit", "1000"}},
    },
    {
        .containers = "webm",
        .header_decides = true,
        .option = {{MUXER_WHEN_LIVE, "cluster_time_limit", "1000"}},
    },
    {
        .containers = "mpegts",
        .mpegts_names = true,
        // Without it all timestamps move by the buffering delay.
        .option = {{MUXER_WHEN_ALWAYS, "mpegts_copyts", "1"}},
    },
    {
        .containers = "hls",
        .mpegts_names = true,
        .numbers_segments = true,
        .segment_time = "hls_time",
        .inner_with = {"hls_segment_type", "fmp4", "mp4"},
        .option = {{MUXER_WHEN_LIVE, "hls_list_size", "6"},
                   {MUXER_WHEN_LIVE, "hls_flags", "delete_segments"},
                   {MUXER_WHEN_FILM, "hls_list_size", "0"}},
    },
    {.containers = "dash", .inner = "mp4", .segment_time = "seg_duration"},
    {
        .containers = "image2",
        .one_stream = true,
        .images = true,
        .option = {{MUXER_WHEN_STILL, "update", "1"}},
    },
    {.containers = "rtp,mjpeg", .one_stream = true},
    {.containers = "rtsp", .option = {{MUXER_WHEN_ADDRESS, "rtsp_transport", "tcp"}}},
    {.containers = "flv", .option = {{MUXER_WHEN_ADDRESS, "flvflags", "no_duration_filesize"}}},
    {.containers = "avi,dv,gxf,mxf,mxf_d10,mxf_opatom,roq,swf", .counts_frames = true},
    {.containers = "yuv4mpegpipe", .counts_frames = true, .formats = y4m_formats},
};

const struct muxer_quirks *muxer_quirks_of(const AVOutputFormat *container)
{
    static const struct muxer_quirks none = {0};
    for (size_t k = 0; k < sizeof quirks / sizeof *quirks; k++)
        if (av_match_name(container->name, quirks[k].containers))
            return &quirks[k];
    return &none;
}

const char *muxer_inner(const struct muxer_quirks *row, const AVDictionary *options)
{
    const char *key = row->inner_with.key;
    const AVDictionaryEntry *given = key ? av_dict_get(options, key, NULL, 0) : NULL;
    bool with = given && !strcmp(given->value, row->inner_with.value);
    return with ? row->inner_with.container : row->inner;
}
