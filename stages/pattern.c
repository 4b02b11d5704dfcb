#include "stages/pattern.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "plan/match.h"

static int count_names(const char *names)
{
    int count = 1;
    for (; *names; names++)
        count += *names == '\n';
    return count;
}

// True if samples that count differ.
static bool has_shades(const struct pattern *t)
{
    int first = -1;
    for (size_t k = 0; k < (size_t)t->width * (size_t)t->height; k++) {
        if (t->mask && !t->mask[k])
            continue;
        if (first >= 0 && t->sample[k] != first)
            return true;
        first = t->sample[k];
    }
    return false;
}

static enum status refuse(const char *name, const char *reason, char *why, size_t size)
{
    snprintf(why, size, "%s; %s", name, reason);
    return STATUS_USAGE;
}

static enum status measure_one(const struct picture_reader *reader, struct pattern *t, size_t *room,
                               char *why, size_t size)
{
    char reason[192] = "";
    enum status status = reader->measure(reader, t, reason, sizeof reason);
    if (status == STATUS_USAGE)
        return refuse(t->name, reason, why, size);
    if (status)
        return status;
    size_t samples = (size_t)t->width * (size_t)t->height;
    if (samples > *room)
        return refuse(t->name,
                      "with it there are more samples in templates than memory is for: "
                      "256 million in one stage",
                      why, size);
    *room -= samples;
    return STATUS_OK;
}

static enum status measure_all(const char *names, struct pattern_set *set, char *why, size_t size)
{
    size_t room = MAX_PATTERN_SAMPLES;
    enum status status = STATUS_OK;
    for (int k = 0; k < set->count && !status; k++) {
        size_t length = strcspn(names, "\n");
        set->pattern[k].name = strndup(names, length);
        status = set->pattern[k].name ? measure_one(set->reader, &set->pattern[k], &room, why, size)
                                      : STATUS_MEMORY;
        names += length + 1;
    }
    return status;
}

enum status pattern_set_read(const char *names, const struct picture_reader *reader,
                             struct pattern_set **set, char *why, size_t size)
{
    assert(reader && reader->measure && reader->load);
    int count = count_names(names);
    *set = NULL;
    if (count > MATCH_TEMPLATES) {
        snprintf(why, size, "%d files; there can be %d", count, MATCH_TEMPLATES);
        return STATUS_USAGE;
    }
    struct pattern_set *made = *set = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    atomic_init(&made->users, 1);
    made->reader = reader;
    made->pattern = calloc((size_t)count, sizeof *made->pattern);
    made->count = made->pattern ? count : 0;
    enum status status = made->pattern ? measure_all(names, made, why, size) : STATUS_MEMORY;
    if (status)
        pattern_set_unref(set);
    return status;
}

// ---- samples ----

static enum status load_one(const struct picture_reader *reader, struct pattern *t, char *why,
                            size_t size)
{
    char reason[192] = "";
    struct pattern loaded = *t;
    if (t->sample)
        return STATUS_OK;
    t->file = NULL; // load() takes it
    enum status status = reader->load(reader, &loaded, reason, sizeof reason);
    bool same = loaded.width == t->width && loaded.height == t->height;
    if (!status && same && has_shades(&loaded)) {
        assert(!loaded.file);
        *t = loaded;
        return STATUS_OK;
    }
    free(loaded.sample);
    free(loaded.mask);
    return status && status != STATUS_USAGE ? status
           : status                         ? refuse(t->name, reason, why, size)
           : same ? refuse(t->name, "it is all of one shade, to which nothing can be compared", why,
                           size)
                  : refuse(t->name, "it has changed while it was read", why, size);
}

enum status pattern_set_load(struct pattern_set *set, char *why, size_t size)
{
    assert(set->users > 0);
    int state = PATTERNS_MEASURED;
    while (!atomic_compare_exchange_strong(&set->state, &state, PATTERNS_LOADING)) {
        if (state == PATTERNS_LOADED)
            return STATUS_OK;
        thrd_yield(); // another thread is at it
        state = PATTERNS_MEASURED;
    }
    enum status status = STATUS_OK;
    for (int k = 0; k < set->count && !status; k++)
        status = load_one(set->reader, &set->pattern[k], why, size);
    atomic_store(&set->state, status ? PATTERNS_MEASURED : PATTERNS_LOADED);
    return status;
}

struct pattern_set *pattern_set_ref(struct pattern_set *set)
{
    assert(!set || set->users > 0);
    if (set)
        atomic_fetch_add(&set->users, 1);
    return set;
}

void pattern_set_unref(struct pattern_set **set)
{
    struct pattern_set *old = *set;
    assert(!old || old->users > 0);
    *set = NULL;
    if (!old || atomic_fetch_sub(&old->users, 1) > 1)
        return;
    for (int k = 0; k < old->count; k++) {
        if (old->pattern[k].file)
            old->reader->forget(&old->pattern[k].file);
        free(old->pattern[k].name);
        free(old->pattern[k].sample);
        free(old->pattern[k].mask);
    }
    free(old->pattern);
    free(old);
}
