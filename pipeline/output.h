// The output container: which streams go in, the header, packets, the end.
//
// Every file that the muxer opens (one, or one per image of a sequence) is a struct file: whole or
// absent. Those of live sources are there from the first packet of video on instead, in fragments
// or clusters of a second: whatever ends the program, what is there plays up to a second before.
#pragma once

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stdbool.h>

#include "pipeline/source.h"
#include "pipeline/stop.h"
#include "stages/log.h"
#include "stages/status.h"

// The muxer that `format` names or that the file's extension suggests. NULL with a sentence.
const AVOutputFormat *output_find(const char *format, const char *file, const struct log *log);

// Whether the muxer by itself, or by generic options, knows this option.
bool output_has_option(const AVOutputFormat *muxer, const char *key);

// Whether the muxer writes images, one a file, and whether this name stands for several.
bool output_is_images(const AVOutputFormat *muxer);
bool output_is_sequence(const char *file);

// Whether the container says how a picture is to be turned for showing.
bool output_carries_rotation(const AVOutputFormat *muxer);

struct output;

enum status output_create(const AVOutputFormat *muxer, const char *file, bool overwrite,
                          const struct log *log, const struct stop *stop, struct output **output);

// Add a stream for every one of the source that the container takes, in the source's order, the
// filtered one described by `codec`; say which are left out and why. Copies chapters, metadata,
// dispositions, rotation and HDR data; `first` (a filtered frame) has the latter where only the
// bitstream did. Timestamps will be moved back by `shift` microseconds; `end` is where the output
// ends before that, INT64_MAX if it is not known.
enum status output_add_streams(struct output *output, const struct source *source,
                               const AVCodecContext *codec, const AVFrame *first, int64_t shift,
                               int64_t end, bool upright);

// Write the header. *options (av_dict) holds what output_has_option() knows.
enum status output_begin(struct output *output, AVDictionary **options);

// Whether packets of this stream of the source go into the output.
bool output_wants(const struct output *output, int stream);

// Write one packet: of the encoder (`stream` the filtered one's index, time base that of `codec`)
// or copied from the source. Takes the packet's data in either case.
//
// Thread-safety: one thread from output_begin() to output_finish().
enum status output_write(struct output *output, AVPacket *packet, int stream);

// Write the trailer and give the file its name.
enum status output_finish(struct output *output);

// Free it; a file that was not finished is removed. Accepts NULL behind the pointer.
void output_destroy(struct output **output);

// Bytes written. Any thread.
int64_t output_size(const struct output *output);
