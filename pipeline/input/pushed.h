// Frames that the program pushes, as a source: raw video in packets, without a container.
//
//   pushing thread                       demux thread
//   copy, packet ==> queue, two frames ==> source_read()
//
// A packet's samples lie in memory of the backend, and the decoder of raw video lets its frames
// refer to them: a pushed frame is copied once.
#pragma once

#include "pipeline/input/source.h"

struct backend;
struct pushed;

// Make `source`, which has nothing yet, one of pushed frames. STATUS_USAGE, with a sentence, if the
// request's format is none.
enum status pushed_open(struct source *source, const struct source_request *request);
void pushed_close(struct pushed **pushed);

// The backend from which frames get their memory, and which outlives them. Once, before the first.
enum status pushed_bind(struct pushed *pushed, struct backend *backend);

// The next packet, as source_read() gives it; waits until one comes.
enum status pushed_read(struct source *source, struct packet **packet);

// ---- the pushing thread ----

// Copy a frame for the source, waiting while two are there. STATUS_USAGE with a sentence, and
// nothing happened: the frame is wrong. STATUS_EOF: the end was pushed, the source was cancelled, or
// the job stopped.
enum status pushed_push(struct source *source, const struct sluice_frame *frame);

// There are no more frames. May be called again.
void pushed_end(struct pushed *pushed);
