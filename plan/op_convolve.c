// Two-dimensional convolutions: how large sums become, and when Fourier transforms make them.
#include "plan/op_info.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "plan/plan.h"

static struct op_reach reach(const struct op *op)
{
    const struct op_convolve *f = &op->convolve;
    return (struct op_reach){.left = f->origin_x,
                             .right = f->width - 1 - f->origin_x,
                             .above = f->origin_y,
                             .below = f->height - 1 - f->origin_y};
}

static bool same(const struct op *a, const struct op *b)
{
    const struct op_convolve *f = &a->convolve, *g = &b->convolve;
    bool alike = f->rank == g->rank && f->column_shift == g->column_shift && f->words == g->words &&
                 f->width == g->width && f->height == g->height && f->origin_x == g->origin_x &&
                 f->origin_y == g->origin_y && f->bits == g->bits && f->offset == g->offset &&
                 f->absolute == g->absolute && f->base == g->base && f->low == g->low &&
                 f->high == g->high;
    if (alike && !f->rank)
        return op_same_numbers(f->weight, g->weight, f->width * f->height);
    for (int r = 0; alike && r < f->rank; r++)
        alike = op_same_numbers(f->line_x[r], g->line_x[r], f->width) &&
                op_same_numbers(f->line_y[r], g->line_y[r], f->height);
    return alike;
}

static int64_t sum_of_sizes(const int32_t *weight, int count)
{
    int64_t sum = 0;
    for (int k = 0; k < count; k++)
        sum += llabs((long long)weight[k]);
    return sum;
}

// How large a sum of columns may become, with what rounds it.
static int64_t max_of_columns(const struct op_convolve *op, int r, int depth)
{
    return sum_of_sizes(op->line_y[r], op->height) * ((1 << depth) - 1) +
           (INT64_C(1) << op->column_shift >> 1);
}

int64_t op_convolve_max(const struct op_convolve *op, int depth)
{
    assert(op->rank >= 0 && op->rank <= 2 && depth >= 8 && depth <= 16);
    int64_t sum = 0, columns = 0;
    if (!op->rank)
        sum = sum_of_sizes(op->weight, op->width * op->height) * ((1 << depth) - 1);
    for (int r = 0; r < op->rank; r++) {
        int64_t t = max_of_columns(op, r, depth);
        columns = t > columns ? t : columns;
        sum += sum_of_sizes(op->line_x[r], op->width) * (t >> op->column_shift);
    }
    sum += llabs(op->offset);
    return sum > columns ? sum : columns;
}

static bool fits_words(const int32_t *line, int count)
{
    for (int k = 0; k < count; k++)
        if (llabs((long long)line[k]) > INT16_MAX)
            return false;
    return true;
}

// How large |s| may become: by what both pairs of lines are together, and half of what each tap makes
// of a t that is rounded.
static int64_t max_of_lines(const struct op_convolve *op, int depth)
{
    int64_t above = 0, below = 0, sizes = 0;
    for (int k = 0; k < op->width * op->height; k++) {
        int64_t weight = 0;
        for (int r = 0; r < op->rank; r++)
            weight += (int64_t)op->line_y[r][k / op->width] * op->line_x[r][k % op->width];
        *(weight < 0 ? &below : &above) += llabs(weight);
    }
    for (int r = 0; r < op->rank && op->column_shift; r++)
        sizes += sum_of_sizes(op->line_x[r], op->width);
    int64_t most = above > below ? above : below;
    return ((most * ((1 << depth) - 1)) >> op->column_shift) + sizes / 2 + 1;
}

bool op_convolve_in_words(const struct op_convolve *op, int depth)
{
    for (int r = 0; r < op->rank; r++)
        if (!fits_words(op->line_x[r], op->width) || !fits_words(op->line_y[r], op->height) ||
            max_of_columns(op, r, depth) > INT32_MAX ||
            max_of_columns(op, r, depth) >> op->column_shift > INT16_MAX)
            return false;
    return op->rank && max_of_lines(op, depth) + llabs(op->offset) <= INT32_MAX;
}

int op_convolve_products(const struct op_convolve *op)
{
    return op->rank ? op->rank * (op->width + op->height) : op->width * op->height;
}

int op_convolve_transform_side(int side, struct transform_size size)
{
    int power = 64;
    while (power < size.times * side && (power < size.most || power < 2 * side))
        power *= 2;
    return power;
}

double op_convolve_transform_error(const struct op_convolve *op, struct transform_size size,
                                   const struct transform_library *library, int depth)
{
    double samples = (double)op_convolve_transform_side(op->width, size) *
                     op_convolve_transform_side(op->height, size);
    double n = log2(samples), e = ldexp(1, -53), squares = 0;
    for (int k = 0; k < op->width * op->height; k++)
        squares += (double)op->weight[k] * op->weight[k];
    double products = 3 * n * library->products;
    double each =
        expm1(3 * (n + library->additions) * log1p(e) + (products + 1) * log1p(e * sqrt(5)) +
              products * log1p(e * library->factor_error));
    return ldexp(1, depth - 1) * sqrt(samples) * sqrt(squares) * each;
}

bool op_convolve_transform_is_exact(const struct op_convolve *op, struct transform_size size,
                                    const struct transform_library *library, int depth)
{
    int longer = op->width > op->height ? op->width : op->height;
    return (!library->most || op_convolve_transform_side(longer, size) <= library->most) &&
           op_convolve_transform_error(op, size, library, depth) < 0.45;
}

// True if transforms cost less than products.
static bool transforms_pay(const struct op_convolve *f, const struct plan_limits *limits)
{
    return limits->transform && !f->rank && op_convolve_products(f) >= limits->transform;
}

static bool transforms(const struct op *op, const struct plan_limits *limits, int depth)
{
    const struct op_convolve *f = &op->convolve;
    return transforms_pay(f, limits) && limits->transform_library &&
           op_convolve_transform_is_exact(f, limits->transform_size, limits->transform_library,
                                          depth);
}

static void print_transform(const struct plan_limits *limits, const struct plan_step *step,
                            FILE *to)
{
    const struct op_convolve *f = &step->stencil->convolve;
    const struct transform_library *library = limits->transform_library;
    struct transform_size size = limits->transform_size;
    fprintf(to,
            " by Fourier transforms of up to %dx%d instead of %d products, exact: errors stay "
            "below %.2g of a sum's last bit; by %s",
            op_convolve_transform_side(f->width, size), op_convolve_transform_side(f->height, size),
            op_convolve_products(f), op_convolve_transform_error(f, size, library, step->depth_in),
            library->name);
    if (limits->transform_why)
        fprintf(to, ", as %s", limits->transform_why);
}

// Why products are not made by transforms that would cost less.
static void print_no_transform(const struct plan_limits *limits, const struct plan_step *step,
                               FILE *to)
{
    const struct transform_library *library = limits->transform_library;
    if (library)
        fprintf(to, "; Fourier transforms by %s could err by %.2g of a sum's last bit",
                library->name,
                op_convolve_transform_error(&step->stencil->convolve, limits->transform_size,
                                            library, step->depth_in));
    else if (limits->transform_why)
        fprintf(to, "; no Fourier transforms, as %s", limits->transform_why);
}

static void print(const struct plan *plan, const struct plan_step *step, FILE *to)
{
    const struct op_convolve *f = &step->stencil->convolve;
    int products = op_convolve_products(f);
    if (step->transform) {
        print_transform(&plan->limits, step, to);
        return;
    }
    if (f->rank)
        fprintf(to, " of rank %d: %d instead of %d products", f->rank, products,
                f->width * f->height);
    else
        fprintf(to, ": %d products", products);
    if (f->why)
        fprintf(to, ", %s", f->why);
    if (transforms_pay(f, &plan->limits))
        print_no_transform(&plan->limits, step, to);
}

const struct op_info op_convolve_info = {.name = "convolve",
                                         .family = OP_FAMILY_STENCIL,
                                         .reach = reach,
                                         .transforms = transforms,
                                         .same = same,
                                         .print = print};
