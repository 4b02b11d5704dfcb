#include "page/player.h"

#include <assert.h>
#include <libavutil/avutil.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/monitor.h"

struct player {
    struct player_request request;
    struct monitor lock;
};

enum status player_create(const struct player_request *request, const struct log *log,
                          struct player **player)
{
    assert(request->show && log);
    (void)log;
    *player = calloc(1, sizeof **player);
    if (!*player)
        return STATUS_MEMORY;
    (*player)->request = *request;
    monitor_init(&(*player)->lock);
    return STATUS_OK;
}

void player_destroy(struct player **player)
{
    if (!*player)
        return;
    monitor_finish(&(*player)->lock);
    free(*player);
    *player = NULL;
}

enum status player_join(struct player *player, const struct sluice_job *job,
                        const struct sluice_config *config)
{
    assert(player && job && config);
    (void)player, (void)job, (void)config;
    return STATUS_OK;
}

void player_leave(struct player *player)
{
    (void)player;
}

void player_packet(struct player *player, const struct packet *packet)
{
    (void)player, (void)packet;
}

void player_frame(struct player *player, const AVFrame *frame, const struct tap_frame *about)
{
    monitor_lock(&player->lock);
    player->request.show(player->request.opaque, frame, about);
    monitor_unlock(&player->lock);
}

enum status player_do(struct player *player, const struct player_order *order, char *why,
                      size_t size)
{
    (void)player, (void)order;
    snprintf(why, size, "nothing was kept yet");
    return STATUS_USAGE;
}

void player_state(struct player *player, struct player_state *state)
{
    (void)player;
    *state = (struct player_state){
        .at_us = AV_NOPTS_VALUE, .begin_us = AV_NOPTS_VALUE, .end_us = AV_NOPTS_VALUE};
}

bool player_holds(struct player *player)
{
    (void)player;
    return false;
}

bool player_await(struct player *player, double seconds)
{
    (void)player, (void)seconds;
    return true;
}
