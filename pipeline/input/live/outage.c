#include "pipeline/input/live/outage.h"

#include <assert.h>

#include "base/meter.h"

void outage_init(struct outage *outage)
{
    *outage = (struct outage){0};
    pthread_mutex_init(&outage->lock, NULL);
}

void outage_finish(struct outage *outage)
{
    pthread_mutex_destroy(&outage->lock);
}

void outage_begin(struct outage *outage)
{
    pthread_mutex_lock(&outage->lock);
    assert(!outage->since_ns);
    outage->losses++;
    outage->since_ns = meter_now_ns();
    pthread_mutex_unlock(&outage->lock);
}

int64_t outage_end(struct outage *outage)
{
    pthread_mutex_lock(&outage->lock);
    assert(outage->since_ns);
    int64_t length_ns = meter_now_ns() - outage->since_ns;
    outage->reconnects++;
    outage->lost_for_ns += length_ns;
    outage->since_ns = 0;
    pthread_mutex_unlock(&outage->lock);
    return length_ns;
}

void outage_figures(const struct outage *outage, struct live_figures *figures)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&outage->lock;
    pthread_mutex_lock(lock);
    int64_t since_ns = outage->since_ns;
    *figures = (struct live_figures){
        .losses = outage->losses,
        .reconnects = outage->reconnects,
        .lost_us = (outage->lost_for_ns + (since_ns ? meter_now_ns() - since_ns : 0)) / 1000,
        .lost = since_ns != 0,
        .connecting = since_ns != 0,
    };
    pthread_mutex_unlock(lock);
}
