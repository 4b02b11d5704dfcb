#include "cpu/fft.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/fft_library.h"
#include "cpu/row_window.h"

// ---- the choice ----

bool fft_choose(const char *name, const struct transform_library **library, const char **why)
{
    const struct fft_library *const all[] = {fft_fftw, fft_tx};
    static const char *const instead[] = {NULL, "libfftw3.so.3 is not there"};
    *library = NULL;
    *why = name ? "SLUICE_TRANSFORMS says so"
                : "neither libfftw3.so.3 nor libavutil.so.57 to 61 is there";
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        if ((name && strcmp(name, all[k]->name)) || !all[k]->is_there())
            continue;
        *library = &all[k]->about;
        *why = name ? *why : instead[k];
        return true;
    }
    return !name || !strcmp(name, "none");
}

int fft_worth(const struct transform_library *library, int products)
{
    const struct fft_library *self = (const struct fft_library *)library;
    return self ? (int)(products * self->cost) : products;
}

// ---- construction ----

static int power_above(int least)
{
    int power = 16;
    while (power < least)
        power *= 2;
    return power;
}

static void take_kernel(struct fft *fft, const struct op_convolve *op)
{
    memset(fft->tile, 0, fft_values(fft) * sizeof *fft->tile);
    for (int j = 0; j < op->height; j++)
        for (int i = 0; i < op->width; i++)
            *fft_sample(fft, i, j) = op->weight[j * op->width + i];
    fft->library->take_kernel(fft);
}

enum status fft_create(const struct transform_library *library, const struct op_convolve *op,
                       int columns, struct fft **fft)
{
    assert(library && op->rank == 0 && columns > 0);
    struct fft *made = *fft = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    int whole = power_above(columns + op->width - 1);
    made->library = (const struct fft_library *)library;
    made->width = op->width;
    made->height = op->height;
    made->columns = op_convolve_transform_side(op->width, fft_size);
    made->rows = op_convolve_transform_side(op->height, fft_size);
    if (made->columns > whole)
        made->columns = whole;
    made->tile = row_alloc(fft_values(made) * sizeof *made->tile);
    if (!made->tile || made->library->init(made)) {
        fft_destroy(fft);
        return STATUS_MEMORY;
    }
    take_kernel(made, op);
    return STATUS_OK;
}

void fft_destroy(struct fft **fft)
{
    if (!*fft)
        return;
    (*fft)->library->finish(*fft);
    free((*fft)->kernel);
    free((*fft)->tile);
    free(*fft);
    *fft = NULL;
}

size_t fft_bytes(const struct fft *fft)
{
    return sizeof *fft + fft_values(fft) * sizeof *fft->tile + fft->library->bytes(fft);
}

// ---- tiles ----

int fft_columns(const struct fft *fft)
{
    return fft->columns - fft->width + 1;
}

int fft_rows(const struct fft *fft)
{
    return fft->rows - fft->height + 1;
}

int fft_sample_columns(const struct fft *fft)
{
    return fft->columns;
}

int fft_sample_rows(const struct fft *fft)
{
    return fft->rows;
}

double *fft_sample(struct fft *fft, int column, int row)
{
    return (double *)(fft->tile + (size_t)row * (size_t)(fft->columns / 2 + 1)) + column;
}

void fft_run(struct fft *fft)
{
    fft->library->run(fft);
    for (int j = 0; j < fft_rows(fft); j++) {
        double *row = fft_sample(fft, 0, j);
        for (int i = 0; i < fft_columns(fft); i++)
            row[i] = rint(row[i]);
    }
}
