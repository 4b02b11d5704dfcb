// The demux thread: packets of the filtered stream to the decoder, those of others to the sink.
//
// It owns the source: nobody else reads from it.
#pragma once

#include <stdint.h>

#include "base/status.h"

struct latency;
struct log;
struct packet;
struct queue;
struct selection;
struct sink;
struct source;
struct tap;
struct trace;

struct demux;

// All outlive the thread.
struct demux_ports {
    struct source *source;
    struct sink *sink;                 // in: packets of other streams
    struct queue *packets;             // out: struct packet, of the filtered stream
    const struct selection *selection; // once it is complete the thread ends
    struct latency *latency;           // (optional) notes when packets arrived
    struct trace *trace;               // (optional)
    const struct tap *tap;             // sees the packets of the filtered stream (tap.h)
    const struct log *log;
};

enum status demux_create(const struct demux_ports *ports, struct demux **demux);
void demux_destroy(struct demux **demux);

// ---- preroll: the thread that prepares the job ----

// Read one packet. One of the filtered stream is *packet, the caller's; else *packet is NULL, and a
// packet that the sink may want waits for demux_run(). STATUS_EOF at the end; STATUS_INPUT with a
// sentence if there is no end to the packets of other streams.
enum status demux_preroll(struct demux *demux, struct packet **packet);

// Probe the other streams for parameters that only their packets have: the packets that came
// already, then as many more as it takes, which wait for demux_run().
enum status demux_probe(struct demux *demux);

// ---- the demux thread ----

// The thread's body. Returns its failure, STATUS_OK or STATUS_EOF; `packets` is finished.
enum status demux_run(void *demux);

// Finish `packets` instead, where the thread could not be started.
void demux_skip(void *demux);

// ---- any thread ----

int64_t demux_busy_ns(const struct demux *demux);
