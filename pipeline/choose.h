// Which backend a job gets.
#pragma once

#include "pipeline/sluice.h"
#include "stages/backend.h"

// Create the backend that config asks for. With SLUICE_AUTO that is the GPU where there is one,
// unless `still` says that the job is a single picture: a context on the GPU takes longer than a
// picture, and single pictures are what the CPU is quick at. `reason` gets a sentence on why the
// CPU was taken, or "". A GPU that was asked for and is not there is STATUS_DEVICE.
enum status backend_choose(const struct sluice_config *config, bool still, const struct log *log,
                           struct backend **backend, char *reason, size_t reason_size);

// How many frames to keep in flight when config does not say.
int backend_slots(const struct sluice_config *config, const struct backend *backend, bool still);

enum { SLOTS_MOST = 64 };
