// Converter: brings filtered frames to what an encoder takes, rotation, pixel format, range and
// size.
//
// The first frame decides what the encoder is opened for; later frames are brought to that.
//
// Thread-safety: one thread.
#pragma once

#include <libavutil/frame.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/ffmpeg/scaler.h"
#include "pipeline/output/sink.h"
#include "plan/rotation.h"

// Zeros but for the first four, which must outlive it.
struct converter {
    const struct log *log;
    const struct sink_formats *formats; // that the encoder takes
    const char *encoder, *container;    // for messages
    bool silent;                        // changes are logged by another output
    struct rotation rotation;           // of every frame
    int width, height;                  // the encoder's
    enum AVPixelFormat pixel;           // likewise
    bool full;                          // of full range
    struct scaler *scaler;
    bool logged_scaled;
};

void converter_finish(struct converter *converter);

// Rotate all frames as a display matrix asks, and `shown`, a view of the first, with them. Where
// that cannot be done a warning says so.
void converter_set_rotation(struct converter *converter, const int32_t matrix[9], AVFrame *shown);

// Make `shown`, a view of a frame, what the encoder would be opened for. True if libswscale has to convert
// frames for that; false, too, where the encoder takes nothing like it.
bool converter_adapt(const struct converter *converter, AVFrame *shown);

// Choose what the encoder is to be opened for, in `shown`, a view of a frame. STATUS_OUTPUT with a
// sentence where the encoder takes nothing like it.
enum status converter_choose(const struct converter *converter, AVFrame *shown);

// Note that the encoder has been opened for frames like this.
void converter_set_encoder(struct converter *converter, const AVFrame *frame);

// The encoder's pixel format for frames like this; NONE: it has none.
enum AVPixelFormat converter_pixel(const struct converter *converter, const AVFrame *frame);

// True if the encoder takes the frame as it is.
bool converter_fits(const struct converter *converter, const AVFrame *frame);

// True if such an encoder could be opened for the frame as it is.
bool converter_could_fit(const struct converter *converter, const AVFrame *frame);

// Rotate a frame into `to`, an empty one.
enum status converter_rotate(const struct converter *converter, const AVFrame *frame, AVFrame *to);

// Scale a frame to the encoder's size, pixel format and range, into `to`, an empty one.
// STATUS_OUTPUT with a sentence where libswscale cannot.
enum status converter_scale(struct converter *converter, const AVFrame *frame, AVFrame *to);
