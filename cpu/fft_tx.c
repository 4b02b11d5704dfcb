// libavutil's transforms (libavutil/tx.h), which are of lines: of rows, two real ones as one of
// complex values, then of columns. A column goes forth, through the product and back at once.
//
// What is declared here of its interface is the same in the headers of libavutil 57, 58, 59, 60 and
// 61 (FFmpeg 5.1 to 9): av_tx_init(), av_tx_uninit(), the function that transforms, and 2 for
// AV_TX_DOUBLE_FFT. 57 to 60 were run, 61 was read. Others are not opened, and each has to give the
// roots of unity before it is used.
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cpu/fft_library.h"
#include "cpu/row_window.h"

enum { FIRST_MAJOR = 57, LAST_MAJOR = 61 };
enum { DOUBLE_FFT = 2 };

typedef void transform(void *context, void *to, void *from, ptrdiff_t stride);

// Its functions, found when the program runs. Lengths of split radix end at 131072.
struct functions {
    int (*init)(void **context, transform **function, int type, int inverse, int length,
                const void *scale, uint64_t flags);
    void (*uninit)(void **context);
};

// A transform of lines.
struct lines {
    void *context;
    transform *function;
};

enum { FORTH, BACK, WAYS };

struct work {
    struct lines row[WAYS], column[WAYS];
    size_t stride;           // values from one column of the spectrum to the next
    complex_value *spectrum; // column by column; all is twice what it is
    complex_value *line[2];  // as long as a row or a column
};

static struct functions functions;
static char name[32];
static bool there;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

// ---- the library ----

static bool init_lines(struct lines *lines, int way, int length)
{
    return functions.init(&lines->context, &lines->function, DOUBLE_FFT, way == BACK, length, NULL,
                          0) >= 0;
}

static void transform_line(const struct lines *lines, complex_value *from, complex_value *to)
{
    lines->function(lines->context, to, from, sizeof *to);
}

// A dot beside the first place becomes the roots of unity, clockwise on the way forth: that is the
// type, the direction, the order and the precision at once.
static bool makes_roots(int way)
{
    enum { LENGTH = 256 };
    _Alignas(ROW_ALIGNMENT) complex_value from[LENGTH] = {[1] = {1, 0}}, to[LENGTH] = {{0}};
    struct lines lines = {NULL, NULL};
    if (!init_lines(&lines, way, LENGTH))
        return false;
    transform_line(&lines, from, to);
    functions.uninit(&lines.context);
    double worst = 0, turn = acos(-1) / (way == FORTH ? -LENGTH / 2 : LENGTH / 2);
    for (int k = 0; k < LENGTH; k++)
        worst = fmax(worst, hypot(to[k][0] - cos(k * turn), to[k][1] - sin(k * turn)));
    return worst < ldexp(1, -49);
}

static bool open_major(int major, int flags)
{
    char file[32];
    snprintf(file, sizeof file, "libavutil.so.%d", major);
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | flags);
    if (!handle)
        return false;
    *(void **)&functions.init = dlsym(handle, "av_tx_init");
    *(void **)&functions.uninit = dlsym(handle, "av_tx_uninit");
    snprintf(name, sizeof name, "libavutil %d", major);
    return functions.init && functions.uninit && makes_roots(FORTH) && makes_roots(BACK);
}

// The one that the process has anyway, else the newest.
static void load(void)
{
    for (int flags = RTLD_NOLOAD; !there; flags = 0) {
        for (int major = LAST_MAJOR; major >= FIRST_MAJOR && !there; major--)
            there = open_major(major, flags);
        if (!flags)
            return;
    }
}

static bool is_there(void)
{
    pthread_once(&loaded, load);
    return there;
}

// ---- two real rows as one of complex values ----

static void pack(const double *upper, const double *lower, int length, complex_value *to)
{
    for (int i = 0; i < length; i++) {
        to[i][0] = upper[i];
        to[i][1] = lower[i];
    }
}

// Twice the spectra of the two rows, A = (Z[k] + conj Z[-k]) / 2 and B = (Z[k] - conj Z[-k]) / 2i,
// side by side, and `stride` values on for the next k.
static void split(complex_value *from, int length, complex_value *to, size_t stride)
{
    to[0][0] = 2 * from[0][0];
    to[1][0] = 2 * from[0][1];
    to[0][1] = to[1][1] = 0;
    for (int k = 1; k <= length / 2; k++) {
        const double *here = from[k], *opposite = from[length - k];
        to += stride;
        to[0][0] = here[0] + opposite[0];
        to[0][1] = here[1] - opposite[1];
        to[1][0] = here[1] + opposite[1];
        to[1][1] = opposite[0] - here[0];
    }
}

// The other way: A + iB. Values that are real but for errors are taken as real.
static void join(complex_value *from, size_t stride, int length, complex_value *to)
{
    to[0][0] = from[0][0];
    to[0][1] = from[1][0];
    for (int k = 1; k < length / 2; k++) {
        from += stride;
        to[k][0] = from[0][0] - from[1][1];
        to[k][1] = from[0][1] + from[1][0];
        to[length - k][0] = from[0][0] + from[1][1];
        to[length - k][1] = from[1][0] - from[0][1];
    }
    from += stride;
    to[length / 2][0] = from[0][0];
    to[length / 2][1] = from[1][0];
}

static void unpack(complex_value *from, int length, double *upper, double *lower)
{
    for (int i = 0; i < length; i++) {
        upper[i] = from[i][0];
        lower[i] = from[i][1];
    }
}

// ---- tiles ----

static void rows_forth(struct fft *fft)
{
    const struct work *work = fft->work;
    for (int j = 0; j < fft->rows; j += 2) {
        pack(fft_sample(fft, 0, j), fft_sample(fft, 0, j + 1), fft->columns, work->line[0]);
        transform_line(&work->row[FORTH], work->line[0], work->line[1]);
        split(work->line[1], fft->columns, work->spectrum + j, work->stride);
    }
}

// As many rows as there are results.
static void rows_back(struct fft *fft)
{
    const struct work *work = fft->work;
    for (int j = 0; j < fft_rows(fft); j += 2) {
        join(work->spectrum + j, work->stride, fft->columns, work->line[0]);
        transform_line(&work->row[BACK], work->line[0], work->line[1]);
        unpack(work->line[1], fft->columns, fft_sample(fft, 0, j), fft_sample(fft, 0, j + 1));
    }
}

static void take_kernel(struct fft *fft)
{
    const struct work *work = fft->work;
    double scale = 0.25 / fft->rows / fft->columns; // both spectra are twice what they are
    rows_forth(fft);
    for (int i = 0; i <= fft->columns / 2; i++) {
        complex_value *kernel = fft->kernel + (size_t)i * work->stride;
        transform_line(&work->column[FORTH], work->spectrum + (size_t)i * work->stride, kernel);
        for (int j = 0; j < fft->rows; j++) {
            kernel[j][0] *= scale;
            kernel[j][1] *= -scale;
        }
    }
}

static void run(struct fft *fft)
{
    const struct work *work = fft->work;
    complex_value *line = work->line[0];
    rows_forth(fft);
    for (int i = 0; i <= fft->columns / 2; i++) {
        complex_value *column = work->spectrum + (size_t)i * work->stride;
        complex_value *kernel = fft->kernel + (size_t)i * work->stride;
        transform_line(&work->column[FORTH], column, line);
        for (int j = 0; j < fft->rows; j++) {
            double re = line[j][0], im = line[j][1];
            line[j][0] = re * kernel[j][0] - im * kernel[j][1];
            line[j][1] = re * kernel[j][1] + im * kernel[j][0];
        }
        transform_line(&work->column[BACK], line, column);
    }
    rows_back(fft);
}

// ---- construction ----

// Columns are apart by a line of the cache more than a power of two, which would share few sets.
static enum status init(struct fft *fft)
{
    struct work *work = fft->work = calloc(1, sizeof *work);
    if (!work)
        return STATUS_MEMORY;
    work->stride = (size_t)fft->rows + ROW_ALIGNMENT / sizeof(complex_value);
    size_t values = (size_t)(fft->columns / 2 + 1) * work->stride;
    size_t longest = (size_t)(fft->rows > fft->columns ? fft->rows : fft->columns);
    work->spectrum = row_alloc(values * sizeof *work->spectrum);
    fft->kernel = row_alloc(values * sizeof *fft->kernel);
    bool made = work->spectrum && fft->kernel;
    for (int k = 0; k < 2; k++) {
        work->line[k] = row_alloc(longest * sizeof *work->line[k]);
        made = made && work->line[k];
    }
    for (int way = FORTH; way < WAYS; way++)
        made = made && init_lines(&work->row[way], way, fft->columns) &&
               init_lines(&work->column[way], way, fft->rows);
    return made ? STATUS_OK : STATUS_MEMORY;
}

static void finish(struct fft *fft)
{
    struct work *work = fft->work;
    if (!work)
        return;
    for (int way = FORTH; way < WAYS; way++) {
        functions.uninit(&work->row[way].context);
        functions.uninit(&work->column[way].context);
    }
    free(work->spectrum);
    free(work->line[0]);
    free(work->line[1]);
    free(work);
}

static size_t bytes(const struct fft *fft)
{
    const struct work *work = fft->work;
    return 2 * (size_t)(fft->columns / 2 + 1) * work->stride * sizeof *fft->kernel;
}

static const struct fft_library library = {
    .about = {.name = name, .factor_error = 4, .products = 0.5, .additions = 1, .most = 131072},
    .name = "libavutil",
    .cost = 1.5,
    .is_there = is_there,
    .init = init,
    .finish = finish,
    .take_kernel = take_kernel,
    .run = run,
    .bytes = bytes};
const struct fft_library *const fft_tx = &library;
