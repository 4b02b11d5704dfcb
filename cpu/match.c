// OP_MATCH: sums of products directly or by Fourier transforms, whichever is faster for a template,
// windows' sums as they slide, scores in vectors. Each band finds its candidates, the places whose
// score is enough; then one thread finds the matches among all of them.
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "cpu/fft.h"
#include "cpu/full_frame.h"

// What is summed over the window: the samples times the template's; where it has a mask, also the
// samples, and their squares, that count. Squares are 256 high + low, which takes two sums of
// bytes.
enum sum { SUM_PRODUCTS, SUM_SAMPLES, SUM_SQUARES, SUMS };

// What a picture's rows are kept as.
enum part { PART_SAMPLES, PART_HIGH, PART_LOW, PARTS };

// Products of a sum by the direct way that cost as much as one by transforms.
enum { TRANSFORM_BYTES = 3000, TRANSFORM_WORDS = 900 };

// How one sum of a template is made. Slabs are rows of the template whose sums fit 32 bits.
struct correlation {
    int32_t *taps; // slab by slab; NULL: by transforms
    int words, slab_rows, slabs;
    int32_t *weight; // of transforms
};

struct pattern {
    const struct op_template *template;
    bool narrow; // 32 bits hold the sums
    bool transforms;
    int columns, rows; // places
    struct correlation correlation[SUMS];
};

// A place whose score is known.
struct match_place {
    float score;
    int number; // of the template
    int x, y;
};

struct list {
    struct match_place *place;
    int count, room;
};

// What a band is made with, by one thread at a time.
struct band {
    uint8_t *part[PARTS];
    int first; // the picture's row in the first row of the parts
    const void **row;
    int32_t *products[MATCH_ROWS];
    double *sums[SUMS];
    uint32_t *column[2], *window[2]; // of samples, of squares
    float *scores;
    struct fft **fft;  // of each pattern and sum
    struct list *list; // of each pattern: candidates, row by row
    enum status status;
};

enum { SCORE, FIND, PHASES };

struct match_full_frame {
    struct full_frame base;
    const struct op_match *op;
    const struct row_kernels *rows;
    int width, height, bands;
    ptrdiff_t part_stride;
    size_t sums_stride; // numbers from one row to the next
    int sums_rows;
    struct pattern *pattern;
    struct band *band;
    uint8_t *zeros;  // a row of them
    int *row_first;  // of a list: where each row of places begins
    struct list all; // candidates of one template
    struct list best;
};

// ---- lists ----

static enum status list_add(struct list *list, struct match_place place)
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

// ---- the rows of a picture ----

static const uint8_t *row_of(const struct full_frame_work *work, int y)
{
    return (const uint8_t *)work->from + y * work->from_stride;
}

// The picture's rows [first, end) that hold the windows whose middle lies in a band of rows.
static void band_places(const struct match_full_frame *self, const struct pattern *pattern,
                        int band, int *first, int *end)
{
    int middle = pattern->template->height / 2;
    *first = max_int(full_frame_band_row(self->height, band, self->bands) - middle, 0);
    *end =
        min_int(full_frame_band_row(self->height, band + 1, self->bands) - middle, pattern->rows);
    if (band == self->bands - 1)
        *end = pattern->rows;
}

static void load_squares(const uint8_t *from, uint8_t *high, uint8_t *low, int width)
{
    for (int x = 0; x < width; x++) {
        high[x] = (uint8_t)(from[x] * from[x] >> 8);
        low[x] = (uint8_t)(from[x] * from[x]);
    }
}

static void load_row(const struct match_full_frame *self, struct band *band, const uint8_t *from,
                     int row)
{
    uint8_t *at[PARTS];
    for (int p = 0; p < PARTS; p++)
        at[p] = band->part[p] ? band->part[p] + row * self->part_stride : NULL;
    self->rows->match_load(from, at[PART_SAMPLES], self->width);
    if (!at[PART_HIGH])
        return;
    uint8_t *high = (uint8_t *)band->scores, *low = high + self->width;
    load_squares(from, high, low, self->width);
    self->rows->match_load(high, at[PART_HIGH], self->width);
    self->rows->match_load(low, at[PART_LOW], self->width);
}

static void load_rows(const struct match_full_frame *self, const struct full_frame_work *work,
                      int number)
{
    struct band *band = &self->band[number];
    int first = self->height, end = 0;
    for (int k = 0; k < self->op->count; k++) {
        int begin, stop;
        band_places(self, &self->pattern[k], number, &begin, &stop);
        if (begin >= stop)
            continue;
        first = min_int(first, begin);
        end = max_int(end, stop - 1 + self->pattern[k].template->height);
    }
    band->first = first;
    for (int y = first; y < end && band->part[PART_SAMPLES]; y++)
        load_row(self, band, row_of(work, y), y - first);
}

// ---- sums of products ----

// MATCH_ROWS rows of places from y on, of one slab.
static void slab_products(const struct match_full_frame *self, struct band *band,
                          const struct pattern *pattern, enum sum sum, enum part part, int slab,
                          int y)
{
    const struct correlation *how = &pattern->correlation[sum];
    int rows = min_int(how->slab_rows, pattern->template->height - slab * how->slab_rows);
    const uint8_t *from = band->part[part];
    for (int j = 0; j < rows + MATCH_ROWS - 1; j++) {
        int row = min_int(y + slab * how->slab_rows + j, self->height - 1);
        band->row[j] = from + (row - band->first) * self->part_stride;
    }
    const int32_t *taps =
        how->taps + (ptrdiff_t)slab * (how->slab_rows + 2 * MATCH_ROWS - 2) * how->words;
    self->rows->match_products(band->row, taps, how->words, rows, band->products, pattern->columns);
}

// Add `factor` times what slabs give to rows of sums.
static void add_slabs(const struct match_full_frame *self, struct band *band,
                      const struct pattern *pattern, enum sum sum, enum part part, double factor,
                      int y)
{
    const struct correlation *how = &pattern->correlation[sum];
    for (int slab = 0; slab < how->slabs; slab++) {
        slab_products(self, band, pattern, sum, part, slab, y);
        for (int r = 0; r < MATCH_ROWS; r++) {
            double *to = band->sums[sum] + (size_t)r * self->sums_stride;
            for (int x = 0; x < pattern->columns; x++)
                to[x] += factor * band->products[r][x];
        }
    }
}

static void sum_slabs(const struct match_full_frame *self, struct band *band,
                      const struct pattern *pattern, enum sum sum, int y)
{
    memset(band->sums[sum], 0, MATCH_ROWS * self->sums_stride * sizeof *band->sums[sum]);
    if (sum == SUM_SQUARES) {
        add_slabs(self, band, pattern, sum, PART_HIGH, 256, y);
        add_slabs(self, band, pattern, sum, PART_LOW, 1, y);
    } else {
        add_slabs(self, band, pattern, sum, PART_SAMPLES, 1, y);
    }
}

// One tile of samples, or of their squares, zeros beyond the picture.
static void fill_tile(const struct match_full_frame *self, const struct full_frame_work *work,
                      struct fft *fft, bool squares, int x, int y)
{
    int columns = fft_sample_columns(fft), inside = min_int(columns, self->width - x);
    for (int j = 0; j < fft_sample_rows(fft); j++) {
        double *to = fft_sample(fft, 0, j);
        const uint8_t *from = row_of(work, y + j) + x;
        int count = y + j < self->height ? inside : 0;
        for (int i = 0; i < count; i++)
            to[i] = squares ? from[i] * from[i] : from[i];
        memset(to + count, 0, (size_t)(columns - count) * sizeof *to);
    }
}

// As many rows of sums as a tile gives, tile by tile.
static void sum_tiles(const struct match_full_frame *self, const struct full_frame_work *work,
                      struct band *band, int number, enum sum sum, int y)
{
    struct fft *fft = band->fft[number * SUMS + (int)sum];
    int columns = self->pattern[number].columns;
    for (int x = 0; x < columns; x += fft_columns(fft)) {
        fill_tile(self, work, fft, sum == SUM_SQUARES, x, y);
        fft_run(fft);
        size_t count = (size_t)min_int(fft_columns(fft), columns - x);
        for (int j = 0; j < fft_rows(fft); j++)
            memcpy(band->sums[sum] + (size_t)j * self->sums_stride + x, fft_sample(fft, 0, j),
                   count * sizeof(double));
    }
}

// How many rows of places are made together.
static int rows_together(const struct match_full_frame *self, const struct band *band, int number)
{
    const struct pattern *pattern = &self->pattern[number];
    return pattern->transforms ? fft_rows(band->fft[number * SUMS]) : MATCH_ROWS;
}

static void make_sums(const struct match_full_frame *self, const struct full_frame_work *work,
                      struct band *band, int number, int y)
{
    const struct pattern *pattern = &self->pattern[number];
    if (pattern->narrow && !pattern->transforms) {
        slab_products(self, band, pattern, SUM_PRODUCTS, PART_SAMPLES, 0, y);
        return;
    }
    for (int s = 0; s < (pattern->template->mask ? SUMS : 1); s++) {
        if (pattern->transforms)
            sum_tiles(self, work, band, number, (enum sum)s, y);
        else
            sum_slabs(self, band, pattern, (enum sum)s, y);
    }
}

// ---- scores ----

// Sums down the columns for the window that begins at row y, from those of the row before.
static void slide_columns(const struct match_full_frame *self, const struct full_frame_work *work,
                          struct band *band, const struct op_template *t, int y, bool first)
{
    if (first) {
        for (int k = 0; k < 2; k++)
            memset(band->column[k], 0, (size_t)self->width * sizeof *band->column[k]);
        for (int j = 0; j < t->height; j++)
            self->rows->match_slide(row_of(work, y + j), self->zeros, band->column[0],
                                    band->column[1], self->width);
        return;
    }
    self->rows->match_slide(row_of(work, y + t->height - 1), row_of(work, y - 1), band->column[0],
                            band->column[1], self->width);
}

static float score_narrow(const struct match_full_frame *self, struct band *band,
                          const struct pattern *pattern, int row)
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
static float score_wide(const struct match_full_frame *self, struct band *band,
                        const struct pattern *pattern, int row)
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

// Whether there is a map to draw.
static bool draws(const struct full_frame_work *work)
{
    return work->op->match.map && work->to;
}

static void draw_map(const struct full_frame_work *work, const struct pattern *pattern,
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
                        struct band *band, int number, int y, float greatest)
{
    const struct pattern *pattern = &self->pattern[number];
    float threshold = self->op->least;
    for (int x = 0; x < pattern->columns && greatest >= threshold && !band->status; x++)
        if (band->scores[x] >= threshold)
            band->status =
                list_add(&band->list[number], (struct match_place){band->scores[x], number, x, y});
    if (draws(work) && greatest > 0)
        draw_map(work, pattern, band->scores, y);
}

static void match_pattern(const struct match_full_frame *self, const struct full_frame_work *work,
                          int band_number, int number)
{
    const struct pattern *pattern = &self->pattern[number];
    struct band *band = &self->band[band_number];
    int first, end, together = rows_together(self, band, number);
    band_places(self, pattern, band_number, &first, &end);
    for (int y = first; y < end; y++) {
        int row = (y - first) % together;
        if (!row)
            make_sums(self, work, band, number, y);
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
    struct band *band = &self->band[number];
    clear_map(work, full_frame_band_row(self->height, number, self->bands),
              full_frame_band_row(self->height, number + 1, self->bands));
    band->status = STATUS_OK;
    load_rows(self, work, number);
    for (int k = 0; k < self->op->count; k++) {
        band->list[k].count = 0;
        match_pattern(self, work, number, k);
    }
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
static int find_column(const struct list *list, int first, int end, int x)
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
    const struct list *list = &self->all;
    int end = self->row_first[row + 1];
    int k = find_column(list, self->row_first[row], end, own->x - t->width / 2);
    for (; k < end && list->place[k].x <= own->x + t->width / 2; k++)
        if (is_better(&list->place[k], own))
            return true;
    return false;
}

// Nearest rows first: most places that are not the greatest lie beside a greater one.
static bool is_greatest(const struct match_full_frame *self, const struct pattern *pattern,
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
        const struct list *list = &self->band[b].list[number];
        for (int k = 0; k < list->count && !status; k++) {
            while (rows <= list->place[k].y)
                self->row_first[rows++] = self->all.count;
            status = list_add(&self->all, list->place[k]);
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
                status = list_add(&self->best, self->all.place[p]);
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
        const uint8_t *from = row_of(work, y + j) + x;
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
    const struct pattern *pattern = &self->pattern[place->number];
    const struct op_template *t = pattern->template;
    int x = place->x, y = place->y;
    double right = 0, down = 0;
    if (x > 0 && x < pattern->columns - 1)
        right = match_peak(score_at(work, t, x - 1, y), place->score, score_at(work, t, x + 1, y));
    if (y > 0 && y < pattern->rows - 1)
        down = match_peak(score_at(work, t, x, y - 1), place->score, score_at(work, t, x, y + 1));
    return (struct op_found){(float)(x + right), (float)(y + down), place->score, place->number};
}

static void find_matches(struct match_full_frame *self, const struct full_frame_work *work)
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

static void run(struct full_frame *full_frame, const struct full_frame_work *work, int phase,
                int band, int bands)
{
    struct match_full_frame *self = (struct match_full_frame *)full_frame;
    (void)bands;
    if (phase == SCORE)
        score_band(self, work, band);
    else if (band == 0)
        find_matches(self, work);
}

// ---- construction ----

static int weight_of(const struct op_template *t, enum sum sum, int k)
{
    return sum == SUM_PRODUCTS ? t->sample[k] - MATCH_BIAS : t->mask[k];
}

// Taps as words of as many as the row kernels take at once.
static enum status init_taps(const struct op_template *t, enum sum sum, int group,
                             struct correlation *how)
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

static enum status init_weights(const struct op_template *t, enum sum sum, struct correlation *how)
{
    how->weight = malloc((size_t)t->width * (size_t)t->height * sizeof *how->weight);
    for (int k = 0; how->weight && k < t->width * t->height; k++)
        how->weight[k] = weight_of(t, sum, k);
    return how->weight ? STATUS_OK : STATUS_MEMORY;
}

static enum status init_pattern(const struct match_full_frame *self, const struct op_template *t,
                                struct pattern *pattern)
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
    pattern->transforms = products > worth && pattern->rows && fft_is_there();
    for (int s = 0; s < (t->mask ? SUMS : 1) && pattern->rows && !status; s++)
        status = pattern->transforms ? init_weights(t, (enum sum)s, &pattern->correlation[s])
                                     : init_taps(t, (enum sum)s, group, &pattern->correlation[s]);
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
        const struct pattern *pattern = &self->pattern[k];
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

static bool give_sums(struct match_full_frame *self, struct band *band, const struct needs *needs)
{
    bool given = true;
    size_t bytes = (size_t)self->sums_rows * self->sums_stride * sizeof(double);
    for (int s = 0; s < SUMS && needs->sums; s++)
        given = given && give(self, (void **)&band->sums[s], bytes);
    return given;
}

static bool give_rows(struct match_full_frame *self, struct band *band, const struct needs *needs)
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
static enum status init_transforms(struct match_full_frame *self, struct band *band)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < self->op->count; k++) {
        const struct pattern *pattern = &self->pattern[k];
        const struct op_template *t = pattern->template;
        for (int s = 0; s < (t->mask ? SUMS : 1) && pattern->transforms && !status; s++) {
            struct fft **fft = &band->fft[k * SUMS + s];
            const struct op_convolve as = {
                .weight = pattern->correlation[s].weight, .width = t->width, .height = t->height};
            status = fft_create(&as, pattern->columns, fft);
            if (status)
                break;
            self->sums_rows = max_int(self->sums_rows, fft_rows(*fft));
            self->base.memory += fft_bytes(*fft);
        }
    }
    return status;
}

static enum status init_band(struct match_full_frame *self, struct band *band,
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

static void finish_band(const struct match_full_frame *self, struct band *band)
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
    struct match_full_frame *self = calloc(1, sizeof *self);
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct full_frame){PHASES, run, destroy};
    self->op = op;
    self->rows = request->rows;
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
