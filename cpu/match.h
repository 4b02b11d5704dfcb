// OP_MATCH on the CPU: what its files share. A band's sums (match_sums.c) become scores and
// candidates (match.c); from all bands' candidates one thread finds the matches (match_find.c).
#pragma once

#include "cpu/fft.h"
#include "cpu/full_frame.h"

// Sums over the window: the samples times the template's; where it has a mask, also the
// samples, and their squares, that count. Squares are 256 high + low, which takes two sums of
// bytes.
enum match_sum { SUM_PRODUCTS, SUM_SAMPLES, SUM_SQUARES, SUMS };

// The forms in which a picture's rows are kept.
enum match_part { PART_SAMPLES, PART_HIGH, PART_LOW, PARTS };

// How one sum of a template is made. Slabs are rows of the template whose sums fit 32 bits.
struct match_correlation {
    int32_t *taps; // slab by slab; NULL: by transforms
    int words, slab_rows, slabs;
    int32_t *weight; // of transforms
};

struct match_pattern {
    const struct op_template *template;
    bool narrow; // 32 bits hold the sums
    bool transforms;
    int columns, rows; // places
    struct match_correlation correlation[SUMS];
};

// A place whose score is known.
struct match_place {
    float score;
    int number; // of the template
    int x, y;
};

struct match_list {
    struct match_place *place;
    int count, room;
};

// Working memory of a band, for one thread at a time.
struct match_band {
    uint8_t *part[PARTS];
    int first; // the picture's row in the first row of the parts
    const void **row;
    int32_t *products[MATCH_ROWS];
    double *sums[SUMS];
    uint32_t *column[2], *window[2]; // of samples, of squares
    float *scores;
    struct fft **fft;        // of each pattern and sum
    struct match_list *list; // of each pattern: candidates, row by row
    enum status status;
};

struct match_full_frame {
    struct full_frame base;
    const struct op_match *op;
    const struct row_kernels *rows;
    const struct transform_library *transform_library;
    int width, height, bands;
    ptrdiff_t part_stride;
    size_t sums_stride; // numbers from one row to the next
    int sums_rows;
    struct match_pattern *pattern;
    struct match_band *band;
    uint8_t *zeros;        // a row of them
    int *row_first;        // of a list: where each row of places begins
    struct match_list all; // candidates of one template
    struct match_list best;
};

static inline const uint8_t *match_row(const struct full_frame_work *work, int y)
{
    return (const uint8_t *)work->from + y * work->from_stride;
}

// STATUS_MEMORY is the only failure; the list is then as it was.
enum status match_list_add(struct match_list *list, struct match_place place);

// The rows of places [first, end) whose windows' middle lies in a band of rows.
void match_band_places(const struct match_full_frame *self, const struct match_pattern *pattern,
                       int band, int *first, int *end);

// Lay the picture's rows that band `number` reads, as the row kernels want them.
void match_load_rows(const struct match_full_frame *self, const struct full_frame_work *work,
                     int number);

// How many rows of places are made together; make their sums, of template `number`, from row y on:
// band->products of 32 bits where sums are narrow and direct, else band->sums.
int match_rows_together(const struct match_full_frame *self, const struct match_band *band,
                        int number);
void match_make_sums(const struct match_full_frame *self, const struct full_frame_work *work,
                     struct match_band *band, int number, int y);

// Write the analysis from the candidates of all bands, where it is wanted, and set the status.
void match_find(struct match_full_frame *self, const struct full_frame_work *work);
