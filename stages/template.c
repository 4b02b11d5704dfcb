#include "stages/template.h"

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

// Whether samples that count differ.
static bool has_shades(const struct template *t)
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

static enum status measure_one(struct template *t, size_t *room, char *why, size_t size)
{
    char reason[192] = "";
    enum status status = template_measure(t->name, t, reason, sizeof reason);
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

static enum status measure_all(const char *names, struct template_set *set, char *why, size_t size)
{
    size_t room = MAX_PATTERNS;
    enum status status = STATUS_OK;
    for (int k = 0; k < set->count && !status; k++) {
        size_t length = strcspn(names, "\n");
        set->template[k].name = strndup(names, length);
        status = set->template[k].name ? measure_one(&set->template[k], &room, why, size)
                                       : STATUS_MEMORY;
        names += length + 1;
    }
    return status;
}

enum status template_set_read(const char *names, struct template_set **set, char *why, size_t size)
{
    int count = count_names(names);
    *set = NULL;
    if (count > MATCH_TEMPLATES) {
        snprintf(why, size, "%d files; there can be %d", count, MATCH_TEMPLATES);
        return STATUS_USAGE;
    }
    struct template_set *made = *set = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    atomic_init(&made->users, 1);
    made->template = calloc((size_t)count, sizeof *made->template);
    made->count = made->template ? count : 0;
    enum status status = made->template ? measure_all(names, made, why, size) : STATUS_MEMORY;
    if (status)
        template_set_unref(set);
    return status;
}

// ---- samples ----

static enum status load_one(struct template *t, char *why, size_t size)
{
    char reason[192] = "";
    struct template loaded = *t;
    if (t->sample)
        return STATUS_OK;
    enum status status = template_load(t->name, &loaded, reason, sizeof reason);
    bool same = loaded.width == t->width && loaded.height == t->height;
    if (!status && same && has_shades(&loaded)) {
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

enum status template_set_load(struct template_set *set, char *why, size_t size)
{
    int state = TEMPLATES_MEASURED;
    while (!atomic_compare_exchange_strong(&set->state, &state, TEMPLATES_LOADING)) {
        if (state == TEMPLATES_LOADED)
            return STATUS_OK;
        thrd_yield(); // another thread is at it
        state = TEMPLATES_MEASURED;
    }
    enum status status = STATUS_OK;
    for (int k = 0; k < set->count && !status; k++)
        status = load_one(&set->template[k], why, size);
    atomic_store(&set->state, status ? TEMPLATES_MEASURED : TEMPLATES_LOADED);
    return status;
}

struct template_set *template_set_ref(struct template_set *set)
{
    if (set)
        atomic_fetch_add(&set->users, 1);
    return set;
}

void template_set_unref(struct template_set **set)
{
    struct template_set *old = *set;
    *set = NULL;
    if (!old || atomic_fetch_sub(&old->users, 1) > 1)
        return;
    for (int k = 0; k < old->count; k++) {
        free(old->template[k].name);
        free(old->template[k].sample);
        free(old->template[k].mask);
    }
    free(old->template);
    free(old);
}
