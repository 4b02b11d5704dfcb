#include "app/jobs/climb.h"

#include <assert.h>
#include <stdio.h>

static const double least_growth = 1 + 1 / 12.0;

void climb_begin(struct climb *climb, int most)
{
    assert(most > 0);
    *climb = (struct climb){.most = most, .jobs = 1, .done = most == 1};
}

static const struct climb_window *best_of(const struct climb *climb)
{
    return &climb->window[climb->best];
}

static bool was_tried(const struct climb *climb, int jobs)
{
    for (int k = 0; k < climb->windows; k++)
        if (climb->window[k].jobs == jobs)
            return true;
    return false;
}

static int next_of(const struct climb *climb)
{
    int best = best_of(climb)->jobs, next = 2 * best;
    if (climb->ceiling)
        next = (best + climb->ceiling) / 2 - best > best / 8 ? (best + climb->ceiling) / 2 : best;
    return next < climb->most ? next : climb->most;
}

void climb_step(struct climb *climb, double rate)
{
    assert(!climb->done && climb->windows < CLIMB_MAX_WINDOWS);
    bool first = !climb->windows;
    climb->window[climb->windows] = (struct climb_window){climb->jobs, rate};
    bool rose = first ||
                (rate >= best_of(climb)->rate * least_growth && climb->jobs > best_of(climb)->jobs);
    if (rose)
        climb->best = climb->windows;
    else
        climb->ceiling = climb->jobs;
    climb->windows++;
    int next = next_of(climb);
    climb->done = was_tried(climb, next) || climb->windows == CLIMB_MAX_WINDOWS;
    climb->jobs = climb->done ? best_of(climb)->jobs : next;
}

void climb_end(struct climb *climb)
{
    if (climb->done)
        return;
    climb->done = true;
    if (!climb->windows)
        return;
    climb->unfinished = climb->jobs;
    climb->jobs = best_of(climb)->jobs;
}

void climb_tell(const struct climb *climb, char *to, size_t size)
{
    int length = snprintf(to, size, "%d at once", climb->jobs);
    if (climb->most == 1)
        snprintf(to, size, "1 at once: there is no room for more");
    else if (!climb->windows)
        snprintf(to, size, "%d at once: the file ended before anything could be measured",
                 climb->jobs);
    for (int k = 0; k < climb->windows && length < (int)size; k++)
        length += snprintf(to + length, size - (size_t)length, "%s%.4g fps by %d", k ? ", " : ": ",
                           climb->window[k].rate, climb->window[k].jobs);
    if (climb->unfinished && length < (int)size)
        snprintf(to + length, size - (size_t)length, "; there was no time to measure %d",
                 climb->unfinished);
    else if (climb->windows && climb->jobs == climb->most && length < (int)size)
        snprintf(to + length, size - (size_t)length, ", the most that there is room for");
}
