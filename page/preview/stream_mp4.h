// Fragmented MP4, a fragment a packet, for Media Source Extensions.
//
// Thread-safety: one thread at a time.
#pragma once

#include <libavcodec/avcodec.h>

#include "base/log.h"
#include "base/status.h"
#include "page/preview/stream.h"

struct fragments;

// Fragments take this encoder's packets, whose headers are apart from them.
enum status fragments_create(const AVCodecContext *codec, const struct log *log,
                             struct fragments **fragments);
void fragments_destroy(struct fragments **fragments);

// The head, ahead of every fragment: ftyp and moov. Once; the caller's.
struct chunk *fragments_take_head(struct fragments *fragments);

// A fragment of a packet, whose times and duration are the encoder's. On success *chunk is the
// caller's.
enum status fragments_write(struct fragments *fragments, AVPacket *packet, struct chunk **chunk);
