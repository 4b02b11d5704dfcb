// Verdict: what set the pace of several jobs, in words.
#pragma once

#include <stddef.h>

struct figures;

// `jobs` ran at once at most, and had no part to make in the share `idle` of their time. One or two
// sentences.
void verdict_of_jobs(const struct figures *figures, int jobs, double idle, char *to, size_t size);
