// The reference of OP_MATCH and OP_MARK: loops over plan/match.h as it is written.
#include "cpu/reference/scalar_op.h"

#include <stdlib.h>
#include <string.h>

// ---- scores ----

static float score_at(const struct op_template *t, const struct plane *from, int x, int y)
{
    int64_t products = 0, samples = 0, squares = 0;
    for (int j = 0; j < t->height; j++)
        for (int i = 0; i < t->width; i++) {
            if (t->mask && !t->mask[j * t->width + i])
                continue;
            int64_t f = *plane_at(from, x + i, y + j);
            products += f * (t->sample[j * t->width + i] - MATCH_BIAS);
            samples += f;
            squares += f * f;
        }
    return match_score(t->count, t->sum, t->norm, products, samples, squares);
}

// Scores of one template at all its places.
struct scores {
    float *value;
    int columns, rows;
};

static float score_of(const struct scores *scores, int x, int y)
{
    return scores->value[(size_t)y * (size_t)scores->columns + (size_t)x];
}

static void make_scores(const struct op_template *t, const struct plane *from,
                        struct scores *scores)
{
    scores->columns = match_places(from->width, t->width);
    scores->rows = match_places(from->height, t->height);
    for (int y = 0; y < scores->rows; y++)
        for (int x = 0; x < scores->columns; x++)
            scores->value[(size_t)y * (size_t)scores->columns + (size_t)x] =
                score_at(t, from, x, y);
}

static void draw_map(const struct op_template *t, const struct scores *scores,
                     const struct plane *map, int white)
{
    for (int y = 0; y < scores->rows; y++)
        for (int x = 0; x < scores->columns; x++) {
            size_t at =
                (size_t)(y + t->height / 2) * (size_t)map->width + (size_t)(x + t->width / 2);
            int shade = match_shade(score_of(scores, x, y), white);
            if (shade > map->sample[at])
                map->sample[at] = (uint16_t)shade;
        }
}

// ---- matches ----

// True if no place within half a template is greater, or equal and earlier.
static bool is_greatest(const struct op_template *t, const struct scores *scores, int x, int y)
{
    float own = score_of(scores, x, y);
    for (int j = y - t->height / 2; j <= y + t->height / 2; j++)
        for (int i = x - t->width / 2; i <= x + t->width / 2; i++) {
            if (i < 0 || i >= scores->columns || j < 0 || j >= scores->rows)
                continue;
            float other = score_of(scores, i, j);
            if (other > own || (other == own && (j < y || (j == y && i < x))))
                return false;
        }
    return true;
}

static struct op_found refined(const struct scores *scores, int number, int x, int y)
{
    float score = score_of(scores, x, y);
    double right = 0, down = 0;
    if (x > 0 && x < scores->columns - 1)
        right = match_peak(score_of(scores, x - 1, y), score, score_of(scores, x + 1, y));
    if (y > 0 && y < scores->rows - 1)
        down = match_peak(score_of(scores, x, y - 1), score, score_of(scores, x, y + 1));
    return (struct op_found){(float)(x + right), (float)(y + down), score, number};
}

// A match where it was found, which decides its rank.
struct candidate {
    struct op_found found;
    int x, y;
};

static int compare(const void *a_, const void *b_)
{
    const struct candidate *a = a_, *b = b_;
    if (a->found.score != b->found.score)
        return a->found.score > b->found.score ? -1 : 1;
    if (a->found.number != b->found.number)
        return a->found.number < b->found.number ? -1 : 1;
    if (a->y != b->y)
        return a->y < b->y ? -1 : 1;
    return a->x < b->x ? -1 : a->x > b->x;
}

// Add the matches of one template to `best`, which has room for one more than are kept.
static void add_matches(const struct op_match *f, int number, const struct scores *scores,
                        struct candidate *best, int *count)
{
    const struct op_template *t = &f->templates[number];
    for (int y = 0; y < scores->rows; y++)
        for (int x = 0; x < scores->columns; x++) {
            if (score_of(scores, x, y) < f->least || !is_greatest(t, scores, x, y))
                continue;
            best[*count] = (struct candidate){refined(scores, number, x, y), x, y};
            qsort(best, (size_t)++ * count, sizeof *best, compare);
            *count = *count > f->most ? f->most : *count;
        }
}

enum status match_scalar(const struct scalar_work *work)
{
    const struct op_match *f = &work->op->match;
    struct op_matches *matches = work->analysis;
    size_t places = (size_t)work->from->width * (size_t)work->from->height;
    struct scores scores = {.value = malloc(places * sizeof *scores.value)};
    struct candidate *best = calloc((size_t)f->most + 1, sizeof *best);
    enum status status = scores.value && best ? STATUS_OK : STATUS_MEMORY;
    int count = 0;
    memset(work->to->sample, 0, places * sizeof *work->to->sample);
    for (int k = 0; k < f->count && !status; k++) {
        make_scores(&f->templates[k], work->from, &scores);
        add_matches(f, k, &scores, best, &count);
        if (f->map)
            draw_map(&f->templates[k], &scores, work->to, f->white);
    }
    memset(matches, 0, match_analysis_bytes(f));
    matches->count = count;
    matches->line = match_line(work->from->width, work->from->height);
    for (int k = 0; k < count; k++)
        matches->found[k] = best[k].found;
    free(scores.value);
    free(best);
    return status;
}

// ---- marks ----

static int marked(const struct op_mark *f, const struct op_matches *matches, int x, int y,
                  int sample)
{
    for (int k = 0; k < matches->count; k++) {
        const struct op_found *found = &matches->found[k];
        const struct op_template *t = &f->templates[found->number];
        if (match_is_framed(match_box_of(found, t->width, t->height), matches->line, x, y,
                            f->shift_x, f->shift_y))
            return f->value[found->number];
    }
    return sample;
}

enum status mark_scalar(const struct scalar_work *work)
{
    for (int y = 0; y < work->to->height; y++)
        for (int x = 0; x < work->to->width; x++)
            *plane_at(work->to, x, y) =
                (uint16_t)marked(&work->op->mark, work->reads, x, y, *plane_at(work->from, x, y));
    return STATUS_OK;
}
