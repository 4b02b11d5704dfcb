// Raw video of a file, also in YUV4MPEG2: packets that its demuxer would only copy, as pages of the file
// (io/mapped.h).
//
// Thread-safety: one thread at a time, but for raw_is_torn().
#pragma once

#include <libavformat/avformat.h>
#include <stdbool.h>

#include "pipeline/input/io/input_io.h"

struct raw;

// Begin with a file that is open, whose packets so far the demuxer has read. NULL where it is no raw video,
// or no regular file, or without memory.
struct raw *raw_open(const AVFormatContext *format, const struct input_io *io);

// Packets stay valid. Accepts NULL behind the pointer, leaves NULL.
void raw_close(struct raw **raw);

// Read the next packet, of the same times, place and flags as the demuxer would give it, and go past it.
// False: the demuxer is to read it, as at the end, behind a seek, while it holds packets, small ones, and
// samples of 16 bits at odd places; raw_note() is told of it then.
bool raw_read(struct raw *raw, AVFormatContext *format, AVPacket *packet);
void raw_note(struct raw *raw, const AVPacket *packet);

// True if another process shortened the file, and zeros stand where packets had its pages. Any thread.
bool raw_is_torn(const struct raw *raw);
