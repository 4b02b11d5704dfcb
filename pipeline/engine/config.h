// A configuration, read: requests of the source and the sink, and the backend it gets.
#pragma once

#include "pipeline/engine/config_log.h"
#include "pipeline/engine/filter/multi_gpu.h"
#include "pipeline/engine/filter/schedule.h"
#include "pipeline/input/source.h"
#include "pipeline/output/sink.h"
#include "sluice/sluice.h"
#include "stages/chain.h"

// Log to the caller that there was no memory to begin with.
enum sluice_status config_memory(const struct sluice_config *given);

// Read a caller's configuration into *config, with zero in members that the caller does not know,
// and make the log. STATUS_USAGE with a sentence if the caller's `size` is not set, or a member is
// that this version does not know.
enum status config_read(const struct sluice_config *given, struct sluice_config *config,
                        struct config_log *target, struct log *log);

// The pixels that a picture may have.
int64_t config_max_pixels(const struct sluice_config *config);

// The input and the outputs that config names. They point at its strings. `requests` has room for
// MAX_OUTPUTS; returns how many there are, one more than that if there are too many.
struct source_request config_source(const struct sluice_config *config);
int config_sinks(const struct sluice_config *config, struct sink_request *requests);

// Add those of the chain's tees to `count` of them. Returns how many there are then, up to
// MAX_OUTPUTS; more if there are too many. Names are the chain's.
int config_add_tees(const struct sluice_config *config, const struct chain *chain,
                    struct sink_request *requests, int count);

// The chains of config: a copy of what config->parsed is where that was made of them, else read now,
// with a sentence in the log where one is none. The caller frees them, also on failure.
enum status config_schedule(const struct sluice_config *config, const struct log *log,
                            struct schedule *schedule);

// The GPUs that "0", "0,1" or "all" names. NULL: the first.
struct devices {
    int device[MAX_GPUS];
    int count;
    bool all; // `count` is unknown yet
};

// Read such a text. STATUS_USAGE with a sentence if it is none.
enum status config_devices(const char *text, const struct log *log, struct devices *devices);

// Whether config asks for the GPU, rather than for whatever is there: who names a device does.
bool config_wants_gpu(const struct sluice_config *config);

// Create the backend that config asks for. With SLUICE_BACKEND_AUTO that is the GPU where there is
// one, or several as one, unless `still` says that the job is a single picture: a context on the
// GPU takes longer than a picture, and single pictures are what the CPU is quick at. `reason` gets a
// sentence on why the CPU was taken, or "". A GPU that was asked for and is not there is
// STATUS_DEVICE. Filters that are no job's may take what a job might.
enum status config_backend(const struct sluice_config *config, bool still, const struct log *log,
                           struct backend **backend, char *reason, size_t reason_size);

// Create the first GPU's backend for a job that leaves the choice to sluice. STATUS_DEVICE with `reason`,
// and a warning where there is a GPU: the CPU has to work.
enum status config_gpu(const struct sluice_config *config, const struct log *log,
                       struct backend **backend, char *reason, size_t reason_size);

// How many frames of `source` (NULL: of one that does not end) to keep in flight when config does
// not say. Where their rate is known they take up to half of the time that config's limit of
// latency allows.
int config_slots(const struct sluice_config *config, const struct backend *backend,
                 const struct source *source);

enum { MAX_SLOTS = 64 };
