// OP_MATCH: sums of products directly or by Fourier transforms, whichever is faster for a template,
// windows' sums as they slide, scores in vectors. Each band finds its candidates, the places whose
// score is enough; then one thread finds the matches among all of them.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "cpu/match.h"

// Products of a sum by the direct way that cost as much as one by transforms of FFTW.
enum { TRANSFORM_BYTES = 3000, TRANSFORM_WORDS = 900 };

enum { SCORE, FIND, PHASES };

// ---- scores ----

// Sums down the columns for the window that begins at row y, from those of the row before.
static void slide_columns(const struct match_full_frame *self, const struct full_frame_work *work,
                          struct match_band *band, const struct op_template *t, int y, bool first)
{
    if (first) {
        for (int k = 0; k < 2; k++)
            memset(band->column[k], 0, (size_t)self->width * sizeof *band->column[k]);
        for (int j = 0; j < t->height; j++)
            self->rows->match_slide(match_row(work, y + j), self->zeros, band->column[0],
                                    band->column[1], self->width);
        return;
    }
    self->rows->match_slide(match_row(work, y + t->height - 1), match_row(work, y - 1),
                            band->column[0], band->column[1], self->width);
}

static float score_narrow(const struct match_full_frame *self, struct match_band *band,
                          const struct match_pattern *pattern, int row)
{
    const struct op_template *t = pattern->template;
    const int32_t *products = band->products[pattern->transforms ? 0 : row];
    if (pattern->transforms)
        self->rows->match_round(band->sums[SUM_PRODUCTS] + (size_t)row * self->sums_stride,
                                band->products[0], pattern->columns);
    for (int k = 0; k < 2; k++)
        self->rows->match_window(band->column[k], t->width, band->window[k], pattern->columns);
    return self->rows->match_scores(t->count, t->sum, t->norm, products, band->window[0],
                                    band->window[1], band->scores, pattern->columns);
}

// Sums of more than 32 bits, and of templates with a mask.
static float score_wide(const struct match_full_frame *self, struct match_band *band,
                        const struct match_pattern *pattern, int row)
{
    const struct op_template *t = pattern->template;
    const double *sums[SUMS];
    for (int s = 0; s < SUMS; s++)
        sums[s] = band->sums[s] + (size_t)row * self->sums_stride;
    int64_t samples = 0, squares = 0;
    for (int x = 0; x < t->width - 1 && !t->mask; x++) {
        samples += band->column[0][x];
        squares += band->column[1][x];
    }
    float greatest = 0;
    for (int x = 0; x < pattern->columns; x++) {
        if (t->mask) {
            samples = (int64_t)sums[SUM_SAMPLES][x];
            squares = (int64_t)sums[SUM_SQUARES][x];
        } else {
            samples += band->column[0][x + t->width - 1];
            squares += band->column[1][x + t->width - 1];
        }
        float score = match_score(t->count, t->sum, t->norm, (int64_t)sums[SUM_PRODUCTS][x],
                                  samples, squares);
        band->scores[x] = score;
        greatest = score > greatest ? score : greatest;
        if (!t->mask) {
            samples -= band->column[0][x];
            squares -= band->column[1][x];
        }
    }
    return greatest;
}

// True if there is a map to draw.
static bool draws(const struct full_frame_work *work)
{
    return work->op->match.map && work->to;
}

static void draw_map(const struct full_frame_work *work, const struct match_pattern *pattern,
                     const float *scores, int y)
{
    const struct op_template *t = pattern->template;
    int white = work->op->match.white, left = t->width / 2;
    void *row = (uint8_t *)work->to + (y + t->height / 2) * work->to_stride;
    uint8_t *bytes = row;
    uint16_t *words = row;
    for (int x = 0; x < pattern->columns; x++) {
        int shade = match_shade(scores[x], white);
        if (white < 256)
            bytes[left + x] = (uint8_t)max_int(bytes[left + x], shade);
        else
            words[left + x] = (uint16_t)max_int(words[left + x], shade);
    }
}

static void clear_map(const struct full_frame_work *work, int first, int end)
{
    size_t bytes = (size_t)work->width * (work->op->match.white < 256 ? 1 : 2);
    for (int y = first; y < end && draws(work); y++)
        memset((uint8_t *)work->to + y * work->to_stride, 0, bytes);
}

static void take_scores(const struct match_full_frame *self, const struct full_frame_work *work,
                        struct match_band *band, int number, int y, float greatest)
{
    const struct match_pattern *pattern = &self->pattern[number];
    float threshold = self->op->least;
    for (int x = 0; x < pattern->columns && greatest >= threshold && !band->status; x++)
        if (band->scores[x] >= threshold)
            band->status = match_list_add(&band->list[number],
                                          (struct match_place){band->scores[x], number, x, y});
    if (draws(work) && greatest > 0)
        draw_map(work, pattern, band->scores, y);
}

static void score_pattern(const struct match_full_frame *self, const struct full_frame_work *work,
                          int band_number, int number)
{
    const struct match_pattern *pattern = &self->pattern[number];
    struct match_band *band = &self->band[band_number];
    int first, end, together = match_rows_together(self, band, number);
    match_band_places(self, pattern, band_number, &first, &end);
    for (int y = first; y < end; y++) {
        int row = (y - first) % together;
        if (!row)
            match_make_sums(self, work, band, number, y);
        if (!pattern->template->mask)
            slide_columns(self, work, band, pattern->template, y, y == first);
        take_scores(self, work, band, number, y,
                    pattern->narrow ? score_narrow(self, band, pattern, row)
                                    : score_wide(self, band, pattern, row));
    }
}

static void score_band(struct match_full_frame *self, const struct full_frame_work *work,
                       int number)
{
    struct match_band *band = &self->band[number];
    clear_map(work, full_frame_band_row(self->height, number, self->bands),
              full_frame_band_row(self->height, number + 1, self->bands));
    band->status = STATUS_OK;
    match_load_rows(self, work, number);
    for (int k = 0; k < self->op->count; k++) {
        band->list[k].count = 0;
        score_pattern(self, work, number, k);
    }
}

static void run(struct full_frame *full_frame, const struct full_frame_work *work, int phase,
                int band, int bands)
{
    struct match_full_frame *self = (struct match_full_frame *)full_frame;
    (void)bands;
    if (phase == SCORE)
        score_band(self, work, band);
    else if (band == 0)
        match_find(self, work);
}

// ---- construction ----

static int weight_of(const struct op_template *t, enum match_sum sum, int k)
{
    return sum == SUM_PRODUCTS ? t->sample[k] - MATCH_BIAS : t->mask[k];
}

// Taps as words of as many as the row kernels take at once.
static enum status init_taps(const struct op_template *t, enum match_sum sum, int group,
                             struct match_correlation *how)
{
    how->words = (t->width + group - 1) / group;
    how->slab_rows = max_int(min_int(MATCH_NARROW / t->width, t->height), 1);
    how->slabs = (t->height + how->slab_rows - 1) / how->slab_rows;
    size_t slab = (size_t)(how->slab_rows + 2 * MATCH_ROWS - 2) * (size_t)how->words;
    how->taps = calloc(slab * (size_t)how->slabs, sizeof *how->taps);
    if (!how->taps)
        return STATUS_MEMORY;
    int bits = 32 / group;
    for (int y = 0; y < t->height; y++) {
        int32_t *row = how->taps + slab * (size_t)(y / how->slab_rows) +
                       (size_t)(y % how->slab_rows + MATCH_ROWS - 1) * (size_t)how->words;
        for (int x = 0; x < t->width; x++) {
            uint32_t tap = (uint32_t)weight_of(t, sum, y * t->width + x);
            row[x / group] |= (int32_t)((tap & (0xffffffffu >> (32 - bits))) << x % group * bits);
        }
    }
    return STATUS_OK;
}

static enum status init_weights(const struct op_template *t, enum match_sum sum,
                                struct match_correlation *how)
{
    how->weight = malloc((size_t)t->width * (size_t)t->height * sizeof *how->weight);
    for (int k = 0; how->weight && k < t->width * t->height; k++)
        how->weight[k] = weight_of(t, sum, k);
    return how->weight ? STATUS_OK : STATUS_MEMORY;
}

// Keep the weights of transforms where these pay and are exact: of samples, and of their squares,
// which are as 9 and 17 bits about the middle of their range.
static enum status init_transform(const struct match_full_frame *self, const struct op_template *t,
                                  struct match_pattern *pattern)
{
    enum status status = STATUS_OK;
    pattern->transforms = true;
    for (int s = 0; s < (t->mask ? SUMS : 1) && !status; s++) {
        struct match_correlation *how = &pattern->correlation[s];
        status = init_weights(t, (enum match_sum)s, how);
        const struct op_convolve as = {
            .weight = how->weight, .width = t->width, .height = t->height};
        if (!status && !op_convolve_transform_is_exact(&as, fft_size, self->transform_library,
                                                       s == SUM_SQUARES ? 17 : 9))
            pattern->transforms = false;
    }
    for (int s = 0; s < SUMS && !pattern->transforms; s++) {
        free(pattern->correlation[s].weight);
        pattern->correlation[s].weight = NULL;
    }
    return status;
}

static enum status init_pattern(const struct match_full_frame *self, const struct op_template *t,
                                struct match_pattern *pattern)
{
    int group = self->rows->match_group, products = t->width * t->height;
    int worth = group == 4 ? TRANSFORM_BYTES : TRANSFORM_WORDS;
    enum status status = STATUS_OK;
    pattern->template = t;
    pattern->columns = match_places(self->width, t->width);
    pattern->rows = match_places(self->height, t->height);
    if (!pattern->columns || !pattern->rows)
        pattern->columns = pattern->rows = 0;
    pattern->narrow = products <= MATCH_NARROW && !t->mask;
    if (self->transform_library && products > fft_worth(self->transform_library, worth) &&
        pattern->rows)
        status = init_transform(self, t, pattern);
    for (int s = 0; s < (t->mask ? SUMS : 1) && pattern->rows && !pattern->transforms && !status;
         s++)
        status = init_taps(t, (enum match_sum)s, group, &pattern->correlation[s]);
    return status;
}

// Room for the largest of what the templates need.
struct needs {
    int rows;     // of a band's parts
    int tallest;  // template
    int together; // rows of sums
    bool direct, squares, sums;
};

static struct needs needs_of(const struct match_full_frame *self)
{
    struct needs needs = {.together = MATCH_ROWS};
    for (int k = 0; k < self->op->count; k++) {
        const struct match_pattern *pattern = &self->pattern[k];
        needs.tallest = max_int(needs.tallest, pattern->template->height);
        needs.direct |= !pattern->transforms;
        needs.squares |= !pattern->transforms && pattern->template->mask;
        needs.sums |= pattern->transforms || !pattern->narrow;
    }
    int band = (self->height + self->bands - 1) / self->bands;
    needs.rows = min_int(self->height, band + 2 * needs.tallest + 2 * MATCH_ROWS);
    return needs;
}

static bool give(struct match_full_frame *self, void **memory, size_t bytes)
{
    *memory = calloc(1, bytes + 64);
    self->base.memory += bytes;
    return *memory != NULL;
}

static bool give_sums(struct match_full_frame *self, struct match_band *band,
                      const struct needs *needs)
{
    bool given = true;
    size_t bytes = (size_t)self->sums_rows * self->sums_stride * sizeof(double);
    for (int s = 0; s < SUMS && needs->sums; s++)
        given = given && give(self, (void **)&band->sums[s], bytes);
    return given;
}

static bool give_rows(struct match_full_frame *self, struct match_band *band,
                      const struct needs *needs)
{
    size_t columns = (size_t)self->width + MATCH_MARGIN;
    bool given =
        give(self, (void **)&band->row, sizeof *band->row * (size_t)(needs->tallest + MATCH_ROWS));
    for (int p = 0; p < (needs->squares ? PARTS : 1) && needs->direct; p++)
        given = given && give(self, (void **)&band->part[p],
                              (size_t)needs->rows * (size_t)self->part_stride);
    for (int r = 0; r < MATCH_ROWS; r++)
        given = given && give(self, (void **)&band->products[r], columns * sizeof(int32_t));
    for (int k = 0; k < 2; k++)
        given = given && give(self, (void **)&band->column[k], columns * sizeof(uint32_t)) &&
                give(self, (void **)&band->window[k], columns * sizeof(uint32_t));
    return given && give(self, (void **)&band->scores, columns * sizeof(float));
}

// The transforms of a band; the rows that they make together count in sums_rows.
static enum status init_transforms(struct match_full_frame *self, struct match_band *band)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < self->op->count; k++) {
        const struct match_pattern *pattern = &self->pattern[k];
        const struct op_template *t = pattern->template;
        for (int s = 0; s < (t->mask ? SUMS : 1) && pattern->transforms && !status; s++) {
            struct fft **fft = &band->fft[k * SUMS + s];
            const struct op_convolve as = {
                .weight = pattern->correlation[s].weight, .width = t->width, .height = t->height};
            status = fft_create(self->transform_library, &as, pattern->columns, fft);
            if (status)
                break;
            self->sums_rows = max_int(self->sums_rows, fft_rows(*fft));
            self->base.memory += fft_bytes(*fft);
        }
    }
    return status;
}

static enum status init_band(struct match_full_frame *self, struct match_band *band,
                             const struct needs *needs)
{
    size_t count = (size_t)self->op->count;
    band->fft = calloc(count * SUMS, sizeof(struct fft *));
    band->list = calloc(count, sizeof *band->list);
    if (!band->fft || !band->list)
        return STATUS_MEMORY;
    enum status status = init_transforms(self, band);
    if (!status && (!give_rows(self, band, needs) || !give_sums(self, band, needs)))
        status = STATUS_MEMORY;
    return status;
}

static enum status init(struct match_full_frame *self)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < self->op->count && !status; k++)
        status = init_pattern(self, &self->op->templates[k], &self->pattern[k]);
    struct needs needs = needs_of(self);
    for (int b = 0; b < self->bands && !status; b++)
        status = init_band(self, &self->band[b], &needs);
    return status;
}

static void finish_band(const struct match_full_frame *self, struct match_band *band)
{
    for (int p = 0; p < PARTS; p++)
        free(band->part[p]);
    for (int r = 0; r < MATCH_ROWS; r++)
        free(band->products[r]);
    for (int k = 0; k < 2; k++) {
        free(band->column[k]);
        free(band->window[k]);
    }
    for (int s = 0; s < SUMS; s++)
        free(band->sums[s]);
    for (int k = 0; k < self->op->count; k++) {
        for (int s = 0; s < SUMS && band->fft; s++)
            fft_destroy(&band->fft[k * SUMS + s]);
        if (band->list)
            free(band->list[k].place);
    }
    free(band->row);
    free(band->scores);
    free(band->fft);
    free(band->list);
}

static void destroy(struct full_frame **full_frame)
{
    struct match_full_frame *old = (struct match_full_frame *)*full_frame;
    for (int b = 0; b < old->bands && old->band; b++)
        finish_band(old, &old->band[b]);
    for (int k = 0; k < old->op->count && old->pattern; k++)
        for (int s = 0; s < SUMS; s++) {
            free(old->pattern[k].correlation[s].taps);
            free(old->pattern[k].correlation[s].weight);
        }
    free(old->pattern);
    free(old->band);
    free(old->zeros);
    free(old->row_first);
    free(old->all.place);
    free(old->best.place);
    free(old);
    *full_frame = NULL;
}

enum status match_create(const struct full_frame_request *request, struct full_frame **full_frame)
{
    const struct op_match *op = &request->op->match;
    assert(op->count > 0 && op->count <= MATCH_TEMPLATES && op->least > 0 && request->depth == 8);
    struct match_full_frame *self = calloc(1, sizeof *self);
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct full_frame){PHASES, run, destroy};
    self->op = op;
    self->rows = request->rows;
    self->transform_library = request->transform_library;
    self->width = request->width;
    self->height = request->height;
    self->bands = request->bands;
    int sample = 4 / request->rows->match_group;
    self->part_stride = ((self->width + MATCH_MARGIN) * sample + 63) / 64 * 64;
    self->sums_stride = (size_t)self->width + MATCH_MARGIN;
    self->sums_rows = MATCH_ROWS;
    self->pattern = calloc((size_t)op->count, sizeof *self->pattern);
    self->band = calloc((size_t)self->bands, sizeof *self->band);
    self->zeros = calloc((size_t)self->width + 64, 1);
    self->row_first = calloc((size_t)self->height + 2, sizeof *self->row_first);
    *full_frame = &self->base;
    enum status status = STATUS_MEMORY;
    if (self->pattern && self->band && self->zeros && self->row_first)
        status = init(self);
    if (status)
        destroy(full_frame);
    return status;
}
