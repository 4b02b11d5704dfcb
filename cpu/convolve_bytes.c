#include "cpu/convolve_bytes.h"

#include <math.h>
#include <stdlib.h>

// Products of bytes with weights of at most this in all fit 16 bits, signed.
enum { MOST_WEIGHTS = 127 };

// Add taps by twos, as `multiple` has their weights in the order of the kernel's, 0: none. Returns
// false if they are too many.
static bool add_pairs(const struct op_convolve *f, const int *multiple, struct convolve_bytes *form)
{
    struct convolve_pair *open = NULL;
    int all = 0;
    for (int k = 0; k < f->width * f->height; k++) {
        if (!multiple[k])
            continue;
        all += abs(multiple[k]);
        if (all > MOST_WEIGHTS)
            return false;
        struct convolve_pair *pair = open ? open : &form->pair[form->pairs++];
        int place = open ? 1 : 0, row = k / f->width, column = k % f->width - f->origin_x;
        // Until there is another, a tap of no weight is beside it.
        for (int i = place; i < 2; i++) {
            pair->row[i] = row;
            pair->column[i] = column;
            pair->weight[i] = 0;
        }
        pair->weight[place] = (int8_t)multiple[k];
        open = open ? NULL : pair;
    }
    return true;
}

// The sums themselves.
static bool find_plain(const struct op_convolve *f, const int *weight, struct convolve_bytes *form)
{
    int64_t all = 0;
    for (int k = 0; k < f->width * f->height; k++)
        all += abs(weight[k]);
    form->bits = f->bits;
    form->offset = (int)f->offset;
    return all <= MOST_WEIGHTS && 255 * all + llabs(f->offset) <= INT16_MAX &&
           add_pairs(f, weight, form);
}

// Sums of multiples of `unit`, from the least to the most, and how far the weights' own lie beside them.
struct multiples {
    int64_t unit;
    int least, most;
    int64_t below, above;
};

static bool find_multiples(const struct op_convolve *f, int *multiple, struct multiples *sums)
{
    int64_t least = INT64_MAX, most = 0;
    for (int k = 0; k < f->width * f->height; k++) {
        int64_t weight = llabs(f->weight[k]);
        if (!(weight & ((INT64_C(1) << f->bits) - 1)))
            continue; // whole
        least = weight < least ? weight : least;
        most = weight > most ? weight : most;
    }
    if (!most || most / least > MOST_WEIGHTS)
        return false;
    double times = round((double)most / (double)least);
    *sums = (struct multiples){.unit = llround((double)most / times)};
    for (int k = 0; k < f->width * f->height; k++) {
        bool whole = !(f->weight[k] & ((INT64_C(1) << f->bits) - 1));
        int n = whole ? 0 : (int)lround((double)f->weight[k] / (double)sums->unit);
        int64_t rest = whole ? 0 : f->weight[k] - n * sums->unit;
        multiple[k] = n;
        *(n < 0 ? &sums->least : &sums->most) += 255 * n;
        *(rest < 0 ? &sums->below : &sums->above) += 255 * rest;
    }
    return sums->least >= INT16_MIN && sums->most <= INT16_MAX;
}

// True if every sum of multiples gives what every sum of weights does that it stands for.
static bool is_exact(const struct op_convolve *f, const struct multiples *sums,
                     const struct convolve_bytes *form, int room)
{
    for (int s = sums->least; s <= sums->most; s++) {
        int64_t low = (s * sums->unit + sums->below + f->offset) >> f->bits;
        int64_t high = (s * sums->unit + sums->above + f->offset) >> f->bits;
        int64_t y = ((int64_t)s * form->scale + form->offset) >> form->bits;
        if (low != y || high != y || llabs(y) > room)
            return false;
    }
    return true;
}

// The largest scale and fraction with which products and their sum fit 32 bits.
static bool set_scale(const struct op_convolve *f, const struct multiples *sums,
                      struct convolve_bytes *form)
{
    int reach = -sums->least > sums->most ? -sums->least : sums->most, more = 0;
    form->step = 0;
    while (form->step < 14 && reach << (form->step + 1) <= INT16_MAX)
        form->step++;
    double scale = (double)sums->unit, most = ldexp(1, 15 + form->step) - 1;
    while (f->bits + more < 29 && ldexp(scale, more + 1) < most)
        more++;
    while (ldexp(scale, more) >= most)
        more--;
    form->bits = f->bits + more;
    form->scale = (int)lround(ldexp(scale, more));
    double offset = floor(ldexp((double)f->offset, more));
    if (form->bits < 1 || fabs(offset) >= 1 << 30)
        return false;
    form->offset = (int)offset;
    return true;
}

// Multiples of one number, and whole weights.
static bool find_scaled(const struct op_convolve *f, int *multiple, struct convolve_bytes *form)
{
    struct multiples sums;
    if (f->absolute || f->bits > 29 || !find_multiples(f, multiple, &sums) ||
        !set_scale(f, &sums, form) || !add_pairs(f, multiple, form))
        return false;
    int64_t whole = 0;
    form->scaled = form->pairs;
    for (int k = 0; k < f->width * f->height; k++) {
        multiple[k] = multiple[k] ? 0 : f->weight[k] >> f->bits;
        whole += abs(multiple[k]);
    }
    return whole <= MOST_WEIGHTS && add_pairs(f, multiple, form) &&
           is_exact(f, &sums, form, INT16_MAX - (int)(255 * whole));
}

bool convolve_bytes_find(const struct op_convolve *f, struct convolve_bytes *form)
{
    int multiple[CONVOLVE_BYTES_SIDE * CONVOLVE_BYTES_SIDE], count = f->width * f->height;
    if (f->width > CONVOLVE_BYTES_SIDE || f->height > CONVOLVE_BYTES_SIDE)
        return false;
    *form = (struct convolve_bytes){
        .base = f->base, .low = f->low, .high = f->high, .absolute = f->absolute};
    for (int k = 0; k < count; k++)
        multiple[k] = f->weight[k];
    if (find_plain(f, multiple, form))
        return true;
    form->pairs = 0;
    return find_scaled(f, multiple, form);
}
