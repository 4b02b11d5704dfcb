// Climb: how many jobs at once are best, found by measuring.
//
// A window is a stretch of time in which a number of jobs were all at work, and its rate how many
// frames they wrote in a second, all together. The climb begins with one job and doubles their
// number while the rate grows by a twelfth at least. Then it tries numbers between the best and the
// lowest that was no better, halfway each time, and stays with the best: more of them would take
// memory, and cores from others, for nothing.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { CLIMB_MAX_WINDOWS = 24 };

struct climb {
    int most; // jobs, at most
    int jobs; // of the window that runs now, or, at the end, the best
    bool done;
    int ceiling; // the lowest number that was no better than a lower one; 0: none
    int windows;
    struct climb_window {
        int jobs;
        double rate;
    } window[CLIMB_MAX_WINDOWS];
    int best;       // a window; only where there are any
    int unfinished; // jobs of a window that did not come to its end; 0: none
};

void climb_begin(struct climb *climb, int most);

// A window has ended: sets `jobs` of the next, or `done`.
void climb_step(struct climb *climb, double rate);

// Nothing more can be measured, be it that the file has ended: stay with the best so far.
void climb_end(struct climb *climb);

// The decision as a sentence.
void climb_tell(const struct climb *climb, char *to, size_t size);
