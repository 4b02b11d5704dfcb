// Quirks of muxers: what sets one container apart from another and AVOutputFormat does not say, a
// row a muxer or family.
#pragma once

#include <libavformat/avformat.h>
#include <stdbool.h>

// When an option that nobody has set gets its value.
enum muxer_when {
    MUXER_WHEN_ALWAYS,
    MUXER_WHEN_LIVE,    // the source is live
    MUXER_WHEN_FILM,    // it is not
    MUXER_WHEN_ADDRESS, // written to an address
    MUXER_WHEN_STILL,   // images, and the name stands for one
};

struct muxer_quirks {
    const char *containers; // libavformat's names, separated by commas

    // ---- which streams go in ----
    bool one_stream;     // the video alone
    bool attachments;    // files within the file: fonts, pictures
    bool header_decides; // by several tables, and trying it tells; avformat_query_codec() knows one
    bool mpegts_names;   // what MPEG-TS has no stream type for is stored, but nobody reads it
    bool bare_aac;       // without a header before every frame, which sources in MPEG-TS have

    // ---- video ----
    bool rotation;                     // the header says how pictures are to be rotated
    bool counts_frames;                // instead of timing them
    const enum AVPixelFormat *formats; // that its header has names for; NULL: the encoder's

    // ---- bytes ----
    bool fragments;        // by movflags, where it cannot go back or may break off
    bool images;           // one a file
    bool numbers_segments; // "out0.ts" and so on beside "out.m3u8"
    const char
        *segment_time; // the option for how long segments of a playlist are; NULL: no playlist

    struct {
        enum muxer_when when;
        const char *key, *value; // NULL: no more
    } option[4];
};

// The row of a container; one without quirks if it has none.
const struct muxer_quirks *muxer_quirks_of(const AVOutputFormat *container);
