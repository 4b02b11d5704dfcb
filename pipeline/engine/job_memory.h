// Memory of a job: estimated before it is taken, and reported once all is open.
#pragma once

#include "pipeline/engine/config.h"
#include "pipeline/engine/filter/need.h"

enum {
    PACKETS_QUEUED = 32,
    FRAMES_QUEUED = 2,
};

struct sluice_job;

// Whether a GPU is likely to decode the source, if there is one.
bool memory_gpu_decodes(const struct sluice_config *config, const struct source *source);

// Make *need what a job of this source and sink (optional) takes beside its stages. The GPU decodes
// where it is likely to.
void memory_of_job(const struct sluice_config *config, const struct source *source,
                   const struct backend *backend, const struct sink *sink, struct ceiling *ceiling,
                   struct need_job *need);

// Give `frame`, which has no samples, the shape of the source's pictures (NULL: 4:2:0 of 1920x1080),
// as far as that is known before decoding: false if it is not.
bool memory_shape(const struct source *source, AVFrame *frame);

// Choose how many frames are in flight, job->slots: those that the configuration says, or less where
// they would not stay within the ceiling, which is set here. STATUS_USAGE or STATUS_DEVICE with a
// sentence where one does not, before anything is taken. STATUS_DEVICE of a job that asked for no GPU
// (config_wants_gpu()): it has to be done on the CPU.
enum status job_memory_fit(struct sluice_job *job, const struct sluice_config *config);

// Work out what the job may take at most, job->max_memory, once all is open; it is said of live
// sources, as files end.
void job_memory_report(struct sluice_job *job, int64_t frame_bytes);
