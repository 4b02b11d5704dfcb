#include "pipeline/ffmpeg/packet.h"

#include <assert.h>
#include <libavutil/avutil.h>
#include <pthread.h>
#include <stdlib.h>

enum { MAX_SPARE = 256 };

// Structs of packets that are gone, for those to come: a job makes and frees thousands a second, in
// several threads.
static struct {
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    struct packet *packet[MAX_SPARE];
    int count;
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct packet *take_spare(void)
{
    pthread_mutex_lock(&spare.lock);
    struct packet *packet = spare.count > 0 ? spare.packet[--spare.count] : NULL;
    pthread_mutex_unlock(&spare.lock);
    return packet ? packet : malloc(sizeof *packet);
}

static void keep_spare(struct packet *packet)
{
    pthread_mutex_lock(&spare.lock);
    bool room = spare.count < MAX_SPARE;
    if (room)
        spare.packet[spare.count++] = packet;
    pthread_mutex_unlock(&spare.lock);
    if (!room)
        free(packet);
}

static struct packet *wrap(AVPacket *av)
{
    struct packet *packet = av ? take_spare() : NULL;
    if (packet)
        *packet = (struct packet){.av = av, .pts_us = AV_NOPTS_VALUE};
    else
        av_packet_free(&av);
    return packet;
}

struct packet *packet_create(void)
{
    return wrap(av_packet_alloc());
}

void packet_destroy(struct packet **packet)
{
    if (!*packet)
        return;
    av_packet_free(&(*packet)->av);
    avcodec_parameters_free(&(*packet)->codec);
    keep_spare(*packet);
    *packet = NULL;
}

struct packet *packet_clone(const struct packet *packet)
{
    assert(packet->av);
    struct packet *clone = wrap(av_packet_clone(packet->av));
    if (!clone)
        return NULL;
    clone->arrived_ns = packet->arrived_ns;
    clone->pts_us = packet->pts_us;
    if (packet->restart && packet_set_restart(clone, packet->codec))
        packet_destroy(&clone);
    return clone;
}

enum status packet_set_restart(struct packet *packet, const AVCodecParameters *codec)
{
    assert(!packet->codec);
    packet->restart = true;
    if (!codec)
        return STATUS_OK;
    packet->codec = avcodec_parameters_alloc();
    return packet->codec && avcodec_parameters_copy(packet->codec, codec) >= 0 ? STATUS_OK
                                                                               : STATUS_MEMORY;
}

void packet_drop(void *packet_)
{
    struct packet *packet = packet_;
    packet_destroy(&packet);
}

int64_t packet_weigh(const void *packet)
{
    return ((const struct packet *)packet)->av->size;
}
