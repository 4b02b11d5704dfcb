#include "app/jobs/division.h"

#include <assert.h>
#include <math.h>

int division_parts(int jobs, double seconds, bool on_gpu)
{
    const double least_seconds = 4, least_seconds_on_gpu = 65;
    const int most_each = 4;
    assert(jobs > 0);
    if (on_gpu) { // as many for each
        double each = fmax(1, floor(seconds / (least_seconds_on_gpu * jobs * jobs)));
        return jobs * (int)fmin(each, most_each);
    }
    return (int)fmin(fmax(floor(seconds / least_seconds), jobs), most_each * jobs);
}
