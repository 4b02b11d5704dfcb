// ffmpeg's filters with a neighbourhood. They work on all planes alike, also on subsampled ones,
// which is what `sepconvolve` and `convolve` do; `box` is the same behind `gray`, and cheaper.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages/chain/aliases.h"

enum { MAX_RADIUS = 255 }; // of sepconvolve

// ---- boxes ----

static void print_ones(int radius, FILE *to)
{
    fputc('\'', to);
    for (int k = -radius; k <= radius; k++)
        fprintf(to, "%s1", k > -radius ? " " : "");
    fputc('\'', to);
}

// The mean of 2 x + 1 columns and 2 y + 1 rows.
static void print_box(const struct alias_call *call, int x, int y, const char *border)
{
    if (call->gray && x == y) {
        fprintf(call->to, "box=%d:border=%s", x, border);
        return;
    }
    fputs("sepconvolve=", call->to);
    print_ones(x, call->to);
    fputc(':', call->to);
    print_ones(y, call->to);
    fprintf(call->to, ":border=%s", border);
}

enum status alias_avgblur(struct alias_call *call)
{
    double x, y, planes;
    enum status status = alias_number(call, 0, 1, &x);
    if (!status)
        status = alias_number(call, 1, 15, &planes);
    if (!status)
        status = alias_number(call, 2, 0, &y);
    if (status)
        return status;
    y = y == 0 ? x : y;
    if (!(call->gray ? fmod(planes, 2) == 1 : planes == 15) || x < 1 || y < 1 || x != floor(x) ||
        y != floor(y) || x > MAX_RADIUS || y > MAX_RADIUS)
        return alias_differs(call);
    print_box(call, (int)x, (int)y, "replicate");
    return STATUS_OK;
}

enum { MAX_POWER = 8 };

// Rows `power` times, then columns, as ffmpeg rounds them: the same to the bit.
static void print_lines(const struct alias_call *call, int radius, int power)
{
    for (int k = 0; k < 2 * power; k++) {
        fputs(k ? "," : "", call->to);
        fputs(k < power ? "sepconvolve=" : "sepconvolve='1':", call->to);
        print_ones(radius, call->to);
        fprintf(call->to, "%s:border=reflect", k < power ? ":'1'" : "");
    }
}

enum status alias_boxblur(struct alias_call *call)
{
    double radius, power, chroma_radius, chroma_power;
    enum status status = alias_number(call, 0, 2, &radius);
    if (!status)
        status = alias_number(call, 1, 2, &power);
    if (!status)
        status = alias_number(call, 2, radius, &chroma_radius);
    if (!status)
        status = alias_number(call, 3, power, &chroma_power);
    if (status)
        return status;
    bool alike = call->gray || (radius == chroma_radius && power == chroma_power);
    if (!alike || call->value[4].begin || call->value[5].begin || radius < 0 ||
        radius >= MAX_RADIUS + 1 || power < 0 || power > MAX_POWER || power != floor(power))
        return alias_differs(call);
    if ((int)radius == 0 || power == 0)
        return alias_null(call);
    if (power == 1)
        print_box(call, (int)radius, (int)radius, "reflect");
    else
        print_lines(call, (int)radius, (int)power);
    return STATUS_OK;
}

// ---- unsharp ----

enum { MAX_SIZE = 13 }; // of ffmpeg's matrices

// Row `size` - 1 of Pascal's triangle, whose sum is 1.
static void binomial(int size, double *weight)
{
    memset(weight, 0, (size_t)size * sizeof *weight);
    weight[0] = 1;
    for (int n = 1; n < size; n++)
        for (int k = n; k >= 0; k--)
            weight[k] = (weight[k] + (k ? weight[k - 1] : 0)) / 2;
}

// x + amount * (x - binomials of x), as a kernel. ffmpeg rounds the binomials, then cuts the sum
// off: less by one half in the mean, and never by two where the amount is below two.
static void print_unsharp(int width, int height, double amount, FILE *to)
{
    double column[MAX_SIZE], row[MAX_SIZE];
    binomial(width, row);
    binomial(height, column);
    fputs("convolve='", to);
    for (int k = 0; k < width * height; k++) {
        double center = k == width * height / 2 ? 1 + amount : 0;
        fprintf(to, "%s%.9g",
                k % width ? " "
                : k       ? "/"
                          : "",
                center - amount * row[k % width] * column[k / width]);
    }
    fputs("':scale=1:bias=-0.45", to);
}

enum status alias_unsharp(struct alias_call *call)
{
    double width, height, amount;
    enum status status = alias_number(call, 0, 5, &width);
    if (!status)
        status = alias_number(call, 1, 5, &height);
    if (!status)
        status = alias_number(call, 2, 1, &amount);
    if (status)
        return status;
    bool odd = fmod(width, 2) == 1 && fmod(height, 2) == 1;
    if (!call->gray || !odd || width < 3 || height < 3 || width > MAX_SIZE || height > MAX_SIZE ||
        fabs(amount) > 1.8)
        return alias_differs(call);
    print_unsharp((int)width, (int)height, amount, call->to);
    return STATUS_OK;
}

// ---- what is not the same, with the values that were given ----

enum status alias_gblur(struct alias_call *call)
{
    double sigma;
    enum status status = alias_number(call, 0, 0.5, &sigma);
    if (status)
        return status;
    return parser_refuse(call->parser, call->filter,
                         "ffmpeg's gblur is a recursive filter that differs from a Gaussian by up "
                         "to tens of code values; write gaussian=%g",
                         fmin(fmax(sigma, 0.1), 250));
}

// Turn the numbers of a text by half a turn, into rows of as many as there are columns: ffmpeg lays
// its matrix on the picture, we convolve. Returns false if they are no square.
static bool print_turned(struct span matrix, char *buffer, size_t size)
{
    double number[49];
    int count = 0, side, used = 0;
    for (char *end; matrix.begin < matrix.end && count < 49; matrix.begin = end, count++) {
        number[count] = strtod(matrix.begin, &end);
        if (end == matrix.begin)
            break;
    }
    side = (int)lround(sqrt(count));
    if (count < 9 || side * side != count || span_trimmed(matrix).begin < matrix.end)
        return false;
    for (int k = count - 1; k >= 0 && used < (int)size; k--)
        used += snprintf(buffer + used, size - (size_t)used, "%g%s", number[k],
                         !k              ? ""
                         : k % side == 0 ? "/"
                                         : " ");
    return used < (int)size;
}

enum status alias_convolution(struct alias_call *call)
{
    char turned[256];
    if (!call->value[0].begin || !print_turned(call->value[0], turned, sizeof turned))
        return alias_differs(call);
    return parser_refuse(call->parser, call->filter,
                         "ffmpeg's convolution filters the planes that have a matrix, and goes on "
                         "beyond the left and upper edge otherwise than beyond the others; write "
                         "convolve='%s', for all planes, with border=mirror or reflect",
                         turned);
}
