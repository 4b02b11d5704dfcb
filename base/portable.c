#include "base/portable.h"

#include <assert.h>
#include <math.h>

// By the series about a multiple of log 2.
double portable_exp(double x)
{
    // The upper part times a multiple up to 2000 is exact.
    const double log_2 = 0x1.62e42fee00000p-1, log_2_rest = 0x1.a39ef35793c76p-33;
    assert(x <= 0);
    if (x < -745)
        return 0;
    double times = floor(x / log_2 + 0.5), rest = x - times * log_2 - times * log_2_rest, sum = 1;
    for (int k = 14; k > 0; k--)
        sum = 1 + sum * rest / k;
    return ldexp(sum, (int)times);
}

double portable_cos(double x)
{
    double sum = 1, square = x * x;
    assert(fabs(x) < 3.1416);
    for (int k = 30; k > 0; k -= 2)
        sum = 1 - sum * square / (k * (k - 1));
    return sum;
}
