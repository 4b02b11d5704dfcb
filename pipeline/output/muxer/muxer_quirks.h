// Muxer quirks: differences between containers that AVOutputFormat does not describe, a row a muxer
// or family.
#pragma once

#include <libavformat/avformat.h>
#include <stdbool.h>

// When an option that the user has not set gets its value.
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
    bool header_decides; // a trial header; avformat_query_codec() knows one of several tables
    bool mpegts_names;   // codecs without a stream type of MPEG-TS are left out: nobody reads them
    const char *inner;   // a playlist's segments are in this container; NULL: MPEG-TS, or it varies
    struct {
        const char *key, *value, *container; // with this option in that one; NULL: with none
    } inner_with;
    bool bare_aac; // AAC without ADTS headers, which sources in MPEG-TS have

    // ---- video ----
    bool rotation;                     // the header has a display matrix
    bool counts_frames;                // frames have numbers instead of times
    const enum AVPixelFormat *formats; // that the header can name; NULL: the encoder's

    // ---- bytes ----
    bool fragments;           // movflags for fragments, where it cannot seek or may break off
    bool images;              // one a file
    bool numbers_segments;    // "out0.ts" and so on beside "out.m3u8"
    const char *segment_time; // the option for a playlist's segment length; NULL: no playlist

    struct {
        enum muxer_when when;
        const char *key, *value; // NULL: no more
    } option[4];
};

// The row of a container; an empty one if it has no quirks.
const struct muxer_quirks *muxer_quirks_of(const AVOutputFormat *container);

// The container of a playlist's segments with these options; NULL: MPEG-TS, or it varies, or there are none.
const char *muxer_inner(const struct muxer_quirks *quirks, const AVDictionary *options);
