#include "pipeline/engine/filter/schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/input/picture.h"

static int count_changes(const struct sluice_change *changes)
{
    int count = 0;
    while (changes && changes[count].chain)
        count++;
    return count;
}

static enum status allocate(struct schedule *schedule, int count)
{
    *schedule = (struct schedule){.chain = calloc((size_t)count, sizeof *schedule->chain),
                                  .text = calloc((size_t)count, sizeof *schedule->text),
                                  .pts_us = calloc((size_t)count, sizeof *schedule->pts_us)};
    return schedule->chain && schedule->text && schedule->pts_us ? STATUS_OK : STATUS_MEMORY;
}

// Parse the next chain.
static enum status add(const char *text, int64_t pts_us, const struct log *log,
                       struct schedule *schedule)
{
    struct chain_error error;
    int at = schedule->count;
    schedule->pts_us[at] = pts_us;
    schedule->text[at] = strdup(text);
    if (!schedule->text[at])
        return STATUS_MEMORY;
    schedule->count++;
    const struct chain_source source = {
        .reader = &picture_reader, .others = schedule->chain, .count = at};
    enum status status = chain_parse_from(text, &source, &schedule->chain[at], &error);
    if (status)
        chain_error_log(&error, text, log);
    return status;
}

enum status schedule_read(const char *first, const struct sluice_change *changes,
                          const struct log *log, struct schedule *schedule)
{
    int count = count_changes(changes);
    assert(first);
    enum status status = allocate(schedule, 1 + count);
    if (!status)
        status = add(first, 0, log, schedule);
    for (int k = 0; k < count && !status; k++)
        status = add(changes[k].chain, changes[k].pts_us, log, schedule);
    return status;
}

enum status schedule_copy(const struct schedule *schedule, struct schedule *to)
{
    assert(schedule->count && schedule != to);
    enum status status = allocate(to, schedule->count);
    for (int k = 0; k < schedule->count && !status; k++) {
        to->count++;
        to->pts_us[k] = schedule->pts_us[k];
        to->text[k] = strdup(schedule->text[k]);
        status = to->text[k] ? chain_copy(&schedule->chain[k], &to->chain[k]) : STATUS_MEMORY;
    }
    return status;
}

void schedule_free(struct schedule *schedule)
{
    for (int k = 0; k < schedule->count; k++) {
        chain_free(&schedule->chain[k]);
        free(schedule->text[k]);
    }
    free(schedule->chain);
    free(schedule->text);
    free(schedule->pts_us);
    *schedule = (struct schedule){0};
}

bool schedule_is_of(const struct schedule *schedule, const char *first,
                    const struct sluice_change *changes)
{
    bool same = schedule->count == 1 + count_changes(changes) && !strcmp(schedule->text[0], first);
    for (int k = 1; k < schedule->count && same; k++)
        same = schedule->pts_us[k] == changes[k - 1].pts_us &&
               !strcmp(schedule->text[k], changes[k - 1].chain);
    return same;
}
