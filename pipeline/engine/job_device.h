// The device that a job filters on: the CPU, a GPU, or the CPU until a GPU is ready.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "plan/backend.h"
#include "sluice/sluice.h"

struct sluice_job;

// Open the device, and find out how many frames in flight there is room for. The source is open. Where a
// GPU that nobody asked for has room for none, the CPU is taken. Most files' jobs that leave the choice to
// sluice begin on the CPU, and job_device_later() says when the GPU is ready: it is taken then if it has
// room for as many frames as the CPU has.
enum status job_device_open(struct sluice_job *job, const struct sluice_config *config);

// The GPU that the job's decoder is to wait for; zeroed: none.
struct backend_later job_device_later(const struct sluice_job *job);

// True while it is not known whether the GPU will come; bytes of the host's memory that it took to make it
// ready, about. Any thread.
bool job_device_is_pending(const struct sluice_job *job);
int64_t job_device_memory(const struct sluice_job *job);

// Wait until that is known, ahead of what destroys the sink. The thread that runs or destroys the job.
void job_device_settle(struct sluice_job *job);

// Free what was opened.
void job_device_close(struct sluice_job *job);

// The backend that filters the frames which are decoded now. Any thread.
const struct backend *job_backend(const struct sluice_job *job);
