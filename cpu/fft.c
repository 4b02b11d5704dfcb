#include "cpu/fft.h"

#include <assert.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// FFTW 3's fftw_complex, fftw_plan and FFTW_ESTIMATE: its interface has not changed since
// 2003.
typedef double complex_value[2];
enum { ESTIMATE = 1 << 6 };
struct fftw_plan_s;

// Its functions, found when the program runs.
struct library {
    struct fftw_plan_s *(*plan_forward)(int rows, int columns, double *from, complex_value *to,
                                        unsigned flags);
    struct fftw_plan_s *(*plan_backward)(int rows, int columns, complex_value *from, double *to,
                                         unsigned flags);
    void (*execute)(const struct fftw_plan_s *plan);
    void (*destroy_plan)(struct fftw_plan_s *plan);
    complex_value *(*alloc)(size_t count);
    void (*free)(void *memory);
};

struct fft {
    int columns, rows; // of the transform
    int width, height; // of the kernel
    complex_value *tile;
    complex_value *kernel; // its spectrum, conjugate, over the number of samples
    struct fftw_plan_s *forward, *backward;
};

static struct library library;
static bool is_there;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER; // FFTW plans one at a time

static void load(void)
{
    void *handle = dlopen("libfftw3.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return;
    *(void **)&library.plan_forward = dlsym(handle, "fftw_plan_dft_r2c_2d");
    *(void **)&library.plan_backward = dlsym(handle, "fftw_plan_dft_c2r_2d");
    *(void **)&library.execute = dlsym(handle, "fftw_execute");
    *(void **)&library.destroy_plan = dlsym(handle, "fftw_destroy_plan");
    *(void **)&library.alloc = dlsym(handle, "fftw_alloc_complex");
    *(void **)&library.free = dlsym(handle, "fftw_free");
    is_there = library.plan_forward && library.plan_backward && library.execute &&
               library.destroy_plan && library.alloc && library.free;
}

bool fft_is_there(void)
{
    pthread_once(&loaded, load);
    return is_there;
}

// Values of the spectrum of real samples, and so the room that they take with their margin.
static size_t values(const struct fft *fft)
{
    return (size_t)fft->rows * (size_t)(fft->columns / 2 + 1);
}

static enum status make_plans(struct fft *fft)
{
    pthread_mutex_lock(&planner);
    fft->forward =
        library.plan_forward(fft->rows, fft->columns, (double *)fft->tile, fft->tile, ESTIMATE);
    fft->backward =
        library.plan_backward(fft->rows, fft->columns, fft->tile, (double *)fft->tile, ESTIMATE);
    pthread_mutex_unlock(&planner);
    return fft->forward && fft->backward ? STATUS_OK : STATUS_MEMORY;
}

static void transform_kernel(struct fft *fft, const struct op_convolve *op)
{
    double scale = 1.0 / fft->rows / fft->columns;
    memset(fft->tile, 0, values(fft) * sizeof *fft->tile);
    for (int j = 0; j < op->height; j++)
        for (int i = 0; i < op->width; i++)
            *fft_sample(fft, i, j) = op->weight[j * op->width + i];
    library.execute(fft->forward);
    for (size_t k = 0; k < values(fft); k++) {
        fft->kernel[k][0] = fft->tile[k][0] * scale;
        fft->kernel[k][1] = -fft->tile[k][1] * scale;
    }
}

static int power_above(int least)
{
    int power = 1;
    while (power < least)
        power *= 2;
    return power;
}

enum status fft_create(const struct op_convolve *op, int columns, struct fft **fft)
{
    assert(fft_is_there() && op->rank == 0 && columns > 0);
    struct fft *made = *fft = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    int whole = power_above(columns + op->width - 1);
    made->width = op->width;
    made->height = op->height;
    made->columns = op_convolve_transform_side(op->width, fft_size);
    made->rows = op_convolve_transform_side(op->height, fft_size);
    if (made->columns > whole)
        made->columns = whole;
    made->tile = library.alloc(values(made));
    made->kernel = library.alloc(values(made));
    if (!made->tile || !made->kernel || make_plans(made)) {
        fft_destroy(fft);
        return STATUS_MEMORY;
    }
    transform_kernel(made, op);
    return STATUS_OK;
}

void fft_destroy(struct fft **fft)
{
    if (!*fft)
        return;
    pthread_mutex_lock(&planner);
    if ((*fft)->forward)
        library.destroy_plan((*fft)->forward);
    if ((*fft)->backward)
        library.destroy_plan((*fft)->backward);
    pthread_mutex_unlock(&planner);
    library.free((*fft)->tile);
    library.free((*fft)->kernel);
    free(*fft);
    *fft = NULL;
}

size_t fft_bytes(const struct fft *fft)
{
    return sizeof *fft + 2 * values(fft) * sizeof *fft->tile;
}

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
    library.execute(fft->forward);
    for (size_t k = 0; k < values(fft); k++) {
        double re = fft->tile[k][0], im = fft->tile[k][1];
        fft->tile[k][0] = re * fft->kernel[k][0] - im * fft->kernel[k][1];
        fft->tile[k][1] = re * fft->kernel[k][1] + im * fft->kernel[k][0];
    }
    library.execute(fft->backward);
    for (int j = 0; j < fft_rows(fft); j++) {
        double *row = fft_sample(fft, 0, j);
        for (int i = 0; i < fft_columns(fft); i++)
            row[i] = rint(row[i]);
    }
}
