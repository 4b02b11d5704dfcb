// A tap on a job; its calls are described in pipeline/engine/threads/tap.h.
#pragma once

#include "pipeline/engine/threads/tap.h"

struct sluice_job;

// Tap a job, between sluice_job_create() and sluice_job_run(). *tap is copied; what it points to
// outlives sluice_job_run(). References to frames are given back before sluice_job_destroy(): their
// memory is the job's. A job has one tap.
void job_tap(struct sluice_job *job, const struct tap *tap);
