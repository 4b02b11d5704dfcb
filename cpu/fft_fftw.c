// FFTW 3's transforms, in place.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "cpu/fft_library.h"
#include "cpu/row_window.h"

// FFTW 3's fftw_plan and FFTW_ESTIMATE: its interface has not changed since 2003.
enum { ESTIMATE = 1 << 6 };
struct fftw_plan_s;

// Its functions, found when the program runs.
struct functions {
    struct fftw_plan_s *(*plan_forward)(int rows, int columns, double *from, complex_value *to,
                                        unsigned flags);
    struct fftw_plan_s *(*plan_backward)(int rows, int columns, complex_value *from, double *to,
                                         unsigned flags);
    void (*execute)(const struct fftw_plan_s *plan);
    void (*destroy_plan)(struct fftw_plan_s *plan);
};

struct plans {
    struct fftw_plan_s *forward, *backward;
};

static struct functions functions;
static bool there;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER; // FFTW plans one at a time

static void load(void)
{
    void *handle = dlopen("libfftw3.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return;
    *(void **)&functions.plan_forward = dlsym(handle, "fftw_plan_dft_r2c_2d");
    *(void **)&functions.plan_backward = dlsym(handle, "fftw_plan_dft_c2r_2d");
    *(void **)&functions.execute = dlsym(handle, "fftw_execute");
    *(void **)&functions.destroy_plan = dlsym(handle, "fftw_destroy_plan");
    there = functions.plan_forward && functions.plan_backward && functions.execute &&
            functions.destroy_plan;
}

static bool is_there(void)
{
    pthread_once(&loaded, load);
    return there;
}

static enum status init(struct fft *fft)
{
    struct plans *plans = fft->work = calloc(1, sizeof *plans);
    fft->kernel = row_alloc(fft_values(fft) * sizeof *fft->kernel);
    if (!plans || !fft->kernel)
        return STATUS_MEMORY;
    pthread_mutex_lock(&planner);
    plans->forward =
        functions.plan_forward(fft->rows, fft->columns, (double *)fft->tile, fft->tile, ESTIMATE);
    plans->backward =
        functions.plan_backward(fft->rows, fft->columns, fft->tile, (double *)fft->tile, ESTIMATE);
    pthread_mutex_unlock(&planner);
    return plans->forward && plans->backward ? STATUS_OK : STATUS_MEMORY;
}

static void finish(struct fft *fft)
{
    struct plans *plans = fft->work;
    if (!plans)
        return;
    pthread_mutex_lock(&planner);
    if (plans->forward)
        functions.destroy_plan(plans->forward);
    if (plans->backward)
        functions.destroy_plan(plans->backward);
    pthread_mutex_unlock(&planner);
    free(plans);
}

static void take_kernel(struct fft *fft)
{
    const struct plans *plans = fft->work;
    double scale = 1.0 / fft->rows / fft->columns;
    functions.execute(plans->forward);
    for (size_t k = 0; k < fft_values(fft); k++) {
        fft->kernel[k][0] = fft->tile[k][0] * scale;
        fft->kernel[k][1] = -fft->tile[k][1] * scale;
    }
}

static void run(struct fft *fft)
{
    const struct plans *plans = fft->work;
    functions.execute(plans->forward);
    for (size_t k = 0; k < fft_values(fft); k++) {
        double re = fft->tile[k][0], im = fft->tile[k][1];
        fft->tile[k][0] = re * fft->kernel[k][0] - im * fft->kernel[k][1];
        fft->tile[k][1] = re * fft->kernel[k][1] + im * fft->kernel[k][0];
    }
    functions.execute(plans->backward);
}

static size_t bytes(const struct fft *fft)
{
    return fft_values(fft) * sizeof *fft->kernel;
}

static const struct fft_library library = {
    .about = {.name = "FFTW", .factor_error = 1, .products = 1},
    .name = "fftw",
    .cost = 1,
    .is_there = is_there,
    .init = init,
    .finish = finish,
    .take_kernel = take_kernel,
    .run = run,
    .bytes = bytes};
const struct fft_library *const fft_fftw = &library;
