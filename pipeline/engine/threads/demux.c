#include "pipeline/engine/threads/demux.h"

#include <assert.h>
#include <libavutil/mathematics.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/meter.h"
#include "base/queue.h"
#include "pipeline/engine/threads/latency.h"
#include "pipeline/engine/threads/owner.h"
#include "pipeline/engine/threads/selection.h"
#include "pipeline/engine/threads/tap.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/source.h"
#include "pipeline/output/sink.h"
#include "pipeline/report/trace.h"

// Limits of what other streams may bring before the first frame of video, and of what is read
// beyond it to probe them.
static const int64_t max_preroll_bytes = 256 << 20, max_probe_bytes = 8 << 20;

struct demux {
    struct demux_ports ports;
    struct owner owner;
    struct packet **preroll; // packets read before the thread began and not dealt with yet
    int preroll_count;
    int64_t preroll_bytes;
    struct meter busy;
};

enum status demux_create(const struct demux_ports *ports, struct demux **demux)
{
    *demux = calloc(1, sizeof **demux);
    if (!*demux)
        return STATUS_MEMORY;
    assert(ports->source && ports->sink && ports->packets && ports->selection && ports->tap);
    (*demux)->ports = *ports;
    return STATUS_OK;
}

void demux_destroy(struct demux **demux)
{
    if (!*demux)
        return;
    for (int k = 0; k < (*demux)->preroll_count; k++)
        packet_destroy(&(*demux)->preroll[k]);
    free((*demux)->preroll);
    free(*demux);
    *demux = NULL;
}

int64_t demux_busy_ns(const struct demux *demux)
{
    return demux->busy.busy_ns;
}

// Show a packet of the filtered stream to who watches.
static void show(const struct demux *demux, const struct packet *packet)
{
    const struct tap *tap = demux->ports.tap;
    if (tap->packet)
        tap->packet(tap->opaque, packet);
}

// ---- preroll ----

static enum status keep(struct demux *demux, struct packet **packet)
{
    demux->preroll_bytes += (*packet)->av->size;
    if (demux->preroll_bytes > max_preroll_bytes)
        return log_fail(demux->ports.log, STATUS_INPUT,
                        "%s has no frame of video within its first %lld MiB of other streams",
                        demux->ports.source->name, (long long)max_preroll_bytes >> 20);
    struct packet **list =
        realloc(demux->preroll, (size_t)(demux->preroll_count + 1) * sizeof *list);
    if (!list)
        return STATUS_MEMORY;
    demux->preroll = list;
    list[demux->preroll_count++] = *packet;
    *packet = NULL;
    return STATUS_OK;
}

enum status demux_preroll(struct demux *demux, struct packet **packet)
{
    assert(owner_is_me(&demux->owner));
    *packet = NULL;
    struct packet *next = NULL;
    enum status status = source_read(demux->ports.source, &next);
    if (!status && next->av->stream_index == demux->ports.source->video)
        show(demux, next), *packet = next, next = NULL;
    else if (!status && demux->ports.sink->accepts_streams)
        status = keep(demux, &next);
    packet_destroy(&next);
    return status;
}

static enum status probe_next(struct demux *demux)
{
    struct packet *packet = NULL;
    enum status status = source_read(demux->ports.source, &packet);
    if (!status)
        status = source_probe(demux->ports.source, packet->av);
    if (!status)
        status = keep(demux, &packet);
    packet_destroy(&packet);
    return status;
}

enum status demux_probe(struct demux *demux)
{
    assert(owner_is_me(&demux->owner));
    const struct demux_ports *ports = &demux->ports;
    enum status status = STATUS_OK;
    int64_t most = demux->preroll_bytes + max_probe_bytes;
    for (int k = 0; k < demux->preroll_count && !status; k++)
        status = source_probe(ports->source, demux->preroll[k]->av);
    while (!status && ports->sink->accepts_streams && !source_is_probed(ports->source) &&
           demux->preroll_bytes < most)
        status = probe_next(demux);
    return status == STATUS_EOF ? STATUS_OK : status;
}

// ---- the thread ----

// The time of a packet: its dts where it has no pts.
static int64_t packet_us(const struct demux *demux, const struct packet *packet)
{
    if (packet->pts_us != AV_NOPTS_VALUE || packet->av->dts == AV_NOPTS_VALUE)
        return packet->pts_us;
    AVRational base = demux->ports.source->format->streams[packet->av->stream_index]->time_base;
    return av_rescale_q(packet->av->dts, base, AV_TIME_BASE_Q);
}

// True if a packet of another stream goes along: the output takes it, and it lies within.
static bool goes_along(const struct demux *demux, const struct packet *packet)
{
    const struct selection *selection = demux->ports.selection;
    if (!passthrough_accepts(&demux->ports.sink->passthrough, packet->av->stream_index))
        return false;
    int64_t at = packet_us(demux, packet);
    bool before = selection->begin_us != AV_NOPTS_VALUE && at < selection->begin_us;
    return at == AV_NOPTS_VALUE || (!before && at < selection_end_us(selection));
}

// Streams are interleaved to about a second: once the video is so far past the end, so are they.
static bool is_long_past_end(const struct demux *demux, const struct packet *packet)
{
    int64_t at = packet_us(demux, packet);
    const struct selection *selection = demux->ports.selection;
    return selection->complete &&
           (at == AV_NOPTS_VALUE || at > selection_end_us(selection) + AV_TIME_BASE);
}

static enum status route(struct demux *demux, struct packet **packet)
{
    const struct demux_ports *ports = &demux->ports;
    if ((*packet)->av->stream_index != ports->source->video)
        return goes_along(demux, *packet) ? ports->sink->write_packet(ports->sink, *packet)
                                          : STATUS_OK;
    if (ports->latency && (*packet)->pts_us != AV_NOPTS_VALUE)
        latency_note_arrival(ports->latency, (*packet)->pts_us, (*packet)->arrived_ns);
    if (ports->selection->complete) // the decoder has had enough; audio may still be to come
        return is_long_past_end(demux, *packet) || ports->selection->video_only ? STATUS_EOF
                                                                                : STATUS_OK;
    show(demux, *packet);
    enum status status = queue_push(ports->packets, packet);
    return status == STATUS_EOF && ports->selection->complete ? STATUS_OK : status;
}

static enum status read_and_route(struct demux *demux)
{
    const struct demux_ports *ports = &demux->ports;
    struct packet *packet = NULL;
    int64_t begin_ns = meter_now_ns();
    enum status status = source_read(ports->source, &packet);
    if (!source_is_live(ports->source) &&
        !ports->source->pushed) // to wait for what has not happened yet is no work
        trace_busy(ports->trace, &demux->busy, TRACE_DEMUX, "read", begin_ns, -1);
    if (!status)
        status = route(demux, &packet);
    packet_destroy(&packet);
    return status;
}

enum status demux_run(void *demux_)
{
    struct demux *demux = demux_;
    const struct selection *selection = demux->ports.selection;
    enum status status = STATUS_OK;
    owner_take(&demux->owner);
    for (int k = 0; k < demux->preroll_count && !status; k++)
        status = route(demux, &demux->preroll[k]);
    while (!status && !(selection->complete && selection->video_only))
        status = read_and_route(demux);
    queue_finish(demux->ports.packets);
    return status;
}

void demux_skip(void *demux)
{
    queue_finish(((struct demux *)demux)->ports.packets);
}
