// Packets of a stream, kept so that frames can be decoded again: should the GPU turn out unable to
// decode it, or be lost with the frames that it has decoded, software begins again at a key frame.
//
// It is limited to budget_history: of larger groups nothing is kept. It reaches back to the last key
// frame from which all frames that the rest of the pipeline may still want can be had. A key frame
// counts from where it is shown: leading pictures of an open group of HEVC come before that, and belong
// to the group before.
//
// The decode thread adds; any thread reads once it is frozen: nothing goes then, and what is added
// stands behind the rest.
#pragma once

#include <libavcodec/avcodec.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// Bytes that a packet takes beside its samples, about: itself, its buffer and its place in the list.
enum { HISTORY_BESIDE = 512 };

struct history;

// `frames`: how many of the frames that came last may still be wanted. `about`: the stream, copied.
enum status history_create(const AVCodecParameters *about, int frames, struct history **history);
void history_destroy(struct history **history);

// ---- the decode thread ----

// Add a packet; the data is shared. Until the first frame came all are kept. STATUS_MEMORY leaves the
// history as it was.
enum status history_add(struct history *history, const AVPacket *packet);

// Note that a frame came out, and forget what is too old for any that may be wanted. Frames whose
// times are not known, or fall, cannot be found again: nothing is kept until a key frame comes.
void history_note_frame(struct history *history, int64_t pts, bool is_guessed);

// Forget all, and begin with the next packet, of the stream as `about` has it. Nothing if frozen.
enum status history_restart(struct history *history, const AVCodecParameters *about);

// Another decoder gets the packets from the first on, and then those that come. Nothing is forgotten until it
// has had them, and as at the beginning all that come are kept until its first frame is noted.
void history_begin_again(struct history *history);
void history_end_again(struct history *history);

// True if half as much is kept as may be.
bool history_is_half_full(struct history *history);

// Note that the decoder refused the packet that was added last; and forget all that were noted.
void history_note_refused(struct history *history);
void history_forget_refused(struct history *history);

// True if no frame has come of as many packets as may be kept.
bool history_is_full(struct history *history);

// Keep all packets from now on; any thread.
void history_freeze(struct history *history);
bool history_is_frozen(const struct history *history);

// ---- any thread, once it is frozen ----

// A reference to packet `number`, from 0, at *packet; NULL: there are no more yet. STATUS_MEMORY.
enum status history_packet(struct history *history, int number, AVPacket **packet);

// True if packet `number` was noted as refused.
bool history_was_refused(struct history *history, int number);

// True if the frame of this time can be had from the packets; of AV_NOPTS_VALUE, if all frames can.
bool history_reaches(struct history *history, int64_t pts);

// The stream of the packets: as given, constant once frozen.
const AVCodecParameters *history_about(const struct history *history);
