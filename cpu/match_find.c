// Matches of OP_MATCH: the greatest of the candidates around each, the best of them all, refined.
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "cpu/match.h"

// ---- lists ----

enum status match_list_add(struct match_list *list, struct match_place place)
{
    if (list->count == list->room) {
        int room = list->room ? 2 * list->room : 256;
        struct match_place *larger = realloc(list->place, (size_t)room * sizeof *larger);
        if (!larger)
            return STATUS_MEMORY;
        list->place = larger;
        list->room = room;
    }
    list->place[list->count++] = place;
    return STATUS_OK;
}

// ---- matches ----

static bool is_better(const struct match_place *a, const struct match_place *b)
{
    if (a->score != b->score)
        return a->score > b->score;
    if (a->number != b->number)
        return a->number < b->number;
    return a->y != b->y ? a->y < b->y : a->x < b->x;
}

static int compare(const void *a, const void *b)
{
    return is_better(a, b) ? -1 : is_better(b, a);
}

// The first of a list's places [first, end), which lie in one row, from column x on.
static int find_column(const struct match_list *list, int first, int end, int x)
{
    while (first < end) {
        int middle = first + (end - first) / 2;
        if (list->place[middle].x < x)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

static bool row_has_better(const struct match_full_frame *self, const struct op_template *t,
                           int row, const struct match_place *own)
{
    const struct match_list *list = &self->all;
    int end = self->row_first[row + 1];
    int k = find_column(list, self->row_first[row], end, own->x - t->width / 2);
    for (; k < end && list->place[k].x <= own->x + t->width / 2; k++)
        if (is_better(&list->place[k], own))
            return true;
    return false;
}

// Nearest rows first: most places that are not the greatest lie beside a greater one.
static bool is_greatest(const struct match_full_frame *self, const struct match_pattern *pattern,
                        const struct match_place *own)
{
    const struct op_template *t = pattern->template;
    for (int far = 0; far <= t->height / 2; far++) {
        if (own->y - far >= 0 && row_has_better(self, t, own->y - far, own))
            return false;
        if (own->y + far < pattern->rows && row_has_better(self, t, own->y + far, own))
            return false;
    }
    return true;
}

// All candidates of a template, and where their rows begin.
static enum status gather(struct match_full_frame *self, int number)
{
    enum status status = STATUS_OK;
    int rows = 0;
    self->all.count = 0;
    for (int b = 0; b < self->bands; b++) {
        const struct match_list *list = &self->band[b].list[number];
        for (int k = 0; k < list->count && !status; k++) {
            while (rows <= list->place[k].y)
                self->row_first[rows++] = self->all.count;
            status = match_list_add(&self->all, list->place[k]);
        }
    }
    while (rows <= self->pattern[number].rows)
        self->row_first[rows++] = self->all.count;
    return status;
}

static enum status find_best(struct match_full_frame *self)
{
    enum status status = STATUS_OK;
    self->best.count = 0;
    for (int k = 0; k < self->op->count && !status; k++) {
        status = gather(self, k);
        for (int p = 0; p < self->all.count && !status; p++)
            if (is_greatest(self, &self->pattern[k], &self->all.place[p]))
                status = match_list_add(&self->best, self->all.place[p]);
    }
    if (self->best.count)
        qsort(self->best.place, (size_t)self->best.count, sizeof *self->best.place, compare);
    return status;
}

// The score at a place, sample by sample.
static float score_at(const struct full_frame_work *work, const struct op_template *t, int x, int y)
{
    int64_t products = 0, samples = 0, squares = 0;
    for (int j = 0; j < t->height; j++) {
        const uint8_t *from = match_row(work, y + j) + x;
        const uint8_t *sample = t->sample + (ptrdiff_t)j * t->width;
        const uint8_t *mask = t->mask ? t->mask + (ptrdiff_t)j * t->width : NULL;
        for (int i = 0; i < t->width; i++) {
            int f = mask && !mask[i] ? 0 : from[i];
            products += f * (sample[i] - MATCH_BIAS);
            samples += f;
            squares += f * f;
        }
    }
    return match_score(t->count, t->sum, t->norm, products, samples, squares);
}

static struct op_found refined(const struct match_full_frame *self,
                               const struct full_frame_work *work, const struct match_place *place)
{
    const struct match_pattern *pattern = &self->pattern[place->number];
    const struct op_template *t = pattern->template;
    int x = place->x, y = place->y;
    double right = 0, down = 0;
    if (x > 0 && x < pattern->columns - 1)
        right = match_peak(score_at(work, t, x - 1, y), place->score, score_at(work, t, x + 1, y));
    if (y > 0 && y < pattern->rows - 1)
        down = match_peak(score_at(work, t, x, y - 1), place->score, score_at(work, t, x, y + 1));
    return (struct op_found){(float)(x + right), (float)(y + down), place->score, place->number};
}

void match_find(struct match_full_frame *self, const struct full_frame_work *work)
{
    struct op_matches *matches = work->analysis;
    enum status status = STATUS_OK;
    self->base.status = STATUS_OK;
    if (!matches)
        return;
    for (int b = 0; b < self->bands; b++)
        status = status_join(status, self->band[b].status);
    if (!status)
        status = find_best(self);
    self->base.status = status;
    memset(matches, 0, match_analysis_bytes(self->op));
    matches->count = status ? 0 : min_int(self->best.count, self->op->most);
    matches->line = match_line(self->width, self->height);
    for (int k = 0; k < matches->count; k++)
        matches->found[k] = refined(self, work, &self->best.place[k]);
}
