// FFmpeg's pixel formats and colour tags in the terms of plan/format.h, and back.
#pragma once

#include <libavutil/frame.h>
#include <libavutil/pixfmt.h>

#include "base/log.h"
#include "base/status.h"
#include "plan/format.h"

// The colour tags of a picture, as FFmpeg carries them.
struct color_tags {
    enum AVColorRange range;
    enum AVColorSpace matrix;
    enum AVColorPrimaries primaries;
    enum AVColorTransferCharacteristic transfer;
    enum AVChromaLocation location;
};

struct color_tags color_tags_of(const AVFrame *frame);
void color_tags_apply(const struct color_tags *tags, AVFrame *frame);

// True if a picture is of full range, by its tags and, without them, by its format.
bool pixel_is_full(const AVFrame *frame);

// Describe `pixel`, with the meaning that the tags give it. What is not tagged is taken as: limited
// range for Y'CbCr, full for the others and the yuvj formats; the matrix of BT.709 from 1280
// columns or 577 rows on, else BT.601, as players guess it; BT.601 for the luma of RGB; chroma
// sited left. Returns false for formats that sluice's loads do not know (palettes, fewer than 8
// bits, samples that share bytes, floating point, hardware frames); libswscale has to convert those
// first.
bool pixel_describe(enum AVPixelFormat pixel, const struct color_tags *tags, int width, int height,
                    struct format *format);

// Read the name that --pix-fmt was given. STATUS_USAGE, with a sentence, for what is no format of pictures
// in memory.
enum status pixel_asked_for(const char *name, const struct log *log, enum AVPixelFormat *pixel);

// The pixel format with this storage, or AV_PIX_FMT_NONE.
enum AVPixelFormat pixel_find(const struct format *format);

// The tags of a picture that was made as `format` from one of format `from` tagged `source`: those
// that the formats decide are set, the others stay.
struct color_tags pixel_tags(const struct format *from, const struct format *format,
                             const struct color_tags *source);

// Wishes of an output about pixel formats, besides being among its candidates.
struct pixel_wishes {
    bool playable;  // 4:2:0 rather than monochrome, or than 4:4:4 made from RGB
    int everywhere; // above 0: what every player of the codec decodes, Y'CbCr in 4:2:0 of up to so
                    // many bits, whatever is lost by it
    bool opaque;    // no alpha: some builds of the encoder offer it and cannot make it
    bool whole_chroma; // chroma planes that divide the picture without a rest
};

// True if a picture of this format is one of those that play everywhere; true where that is not
// wished for.
bool pixel_plays(const struct format *format, struct pixel_wishes wishes);

// Choose the format in `candidates` (ended by AV_PIX_FMT_NONE; NULL: all) into which pictures
// of format `from` and width x height go with the least loss, then the least work. AV_PIX_FMT_NONE
// if there is none that sluice can store to without losing the colours.
enum AVPixelFormat pixel_choose(const struct format *from, int width, int height,
                                const enum AVPixelFormat *candidates, struct pixel_wishes wishes);

// The nearest describable format for one that is not: what libswscale converts to.
enum AVPixelFormat pixel_nearest(enum AVPixelFormat pixel);

// Point at a frame's planes. `format` must describe the frame's pixel format and outlive the image.
struct image pixel_image(const AVFrame *frame, const struct format *format);
