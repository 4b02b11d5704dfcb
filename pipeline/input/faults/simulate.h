// Simulated faults: what cameras, networks and disks do, at the rate or the time that is asked for.
// Comma-separated, in any order:
//
//   loss=P%                    so many of the filtered stream's packets do not come
//   corrupt=P%                 so many of them come with some bytes changed, at least one
//   stall=DURATION@TIME        nothing comes for so long, and connections hang that are begun then
//   close@TIME                 the other side ends it: a live source is lost, a file breaks off
//   ts-jump[=DURATION]@TIME    the timestamps of all streams jump by so much, back where it is
//                              negative; by an hour
//   res-change[=WxH]@TIME      the filtered stream is another size; half as wide and high (without
//                              timestamps, from the next key frame on)
//   seed=N                     which packets and bytes the rates hit; 1
//
// TIME is seconds, [HH:]MM:SS or with a unit as in 500ms, since the first packet: of a file as its
// timestamps say, of a live source as the world's clock does. Events may be repeated, rates and the
// seed may not. The same text and file give the same faults.
//
// Faults of the connection (stall, close, ts-jump) happen where the demuxer is called, in a thread
// that the rest can only wait for: live.h notices them by the same means as real ones. Faults of
// packets happen behind that. Connections that hang may outlast the source, so that
// all of them hold this by reference.
#pragma once

#include <libavformat/avformat.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/ffmpeg/packet.h"

struct simulate;

// STATUS_USAGE with a sentence for a text that is wrong. NULL: none, and *simulate is NULL, which
// everything below takes for no faults.
enum status simulate_create(const char *text, const struct log *log, struct simulate **simulate);
struct simulate *simulate_ref(struct simulate *simulate);
void simulate_unref(struct simulate **simulate);

// ---- whoever calls the demuxer ----

// Ahead of opening a connection: wait while nothing comes. 0, or AVERROR_EXIT when `interrupt` ends
// the waiting.
int simulate_open(struct simulate *simulate, const AVIOInterruptCB *interrupt);

// av_read_frame(), and what is due by then. `stream` is the filtered one of a file, whose clock
// counts; -1 of a live source. AVERROR_EOF (live) or AVERROR(EIO) at a close; AVERROR_EXIT when the
// context's interrupt callback ends a stall; a file goes on there when it is read again.
int simulate_read(struct simulate *simulate, AVFormatContext *format, int stream, AVPacket *packet);

// ---- whoever takes packets ----

// The stream is chosen. STATUS_USAGE with a sentence if its packets cannot be treated so. All of
// these have to last as long as anyone calls what is below, or reads a file.
enum status simulate_begin(struct simulate *simulate, const AVStream *video, const char *name,
                           const struct log *log);

// Hand over *packet, of the filtered stream, which is NULL afterwards; NULL before: there are no
// more. All that there is has to be received before the next one is sent.
enum status simulate_send(struct simulate *simulate, struct packet **packet);

// Take the next packet, if there is one: *packet is the caller's then, else NULL. STATUS_EOF after
// the last.
enum status simulate_receive(struct simulate *simulate, struct packet **packet);

// Log which events of a live source happened since the last call; others are logged by themselves.
void simulate_log(struct simulate *simulate);

// ---- any thread ----

// True if timestamps jump.
bool simulate_jumps(const struct simulate *simulate);

struct simulate_figures {
    int64_t lost, corrupted; // packets
    int64_t stalls, closes, ts_jumps, res_changes;
};
void simulate_figures(struct simulate *simulate, struct simulate_figures *figures);
