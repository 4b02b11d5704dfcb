// A job that makes a part of its output: what that refuses, where the part is cut, its folder.
#pragma once

#include "base/status.h"
#include "pipeline/output/sink.h"
#include "sluice/sluice.h"

struct sluice_job;

// Where the configuration asks for a part: find its cuts, and turn the request for its output, and
// the chain's records, into files of the part's folder. The strings of the request are the job's.
// STATUS_USAGE, with a sentence, for what is not made in parts; STATUS_EOF: it is there already.
enum status job_part_begin(struct sluice_job *job, const struct sluice_config *config,
                           struct sink_request *outputs, int count);

// Make the part's folder, and check that the sink may write into it: behind all that may take long.
enum status job_part_open(struct sluice_job *job);

// True if there was damage, and another run might have decoded it otherwise.
bool job_part_is_doubtful(const struct sluice_job *job);

// The part's output and records are whole: give it its name. `sink` is NULL where the part has no
// frames.
enum status job_part_commit(struct sluice_job *job, const struct sink *sink);

// Free what job_part_begin() made; a part that was not committed leaves nothing.
void job_part_end(struct sluice_job *job);
