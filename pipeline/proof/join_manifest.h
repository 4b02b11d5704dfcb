// Join manifest: what the manifest of a whole says, from those of its parts.
//
// Thread-safety: one thread.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "pipeline/proof/part_set.h"
#include "sluice/sluice.h"

struct file;
struct manifest_writer;

// Begin the manifest of an output that stands under this name. Fails as file_check() and
// file_create().
enum status join_manifest_begin(const struct part_set *set, const char *output, bool overwrite,
                                const struct log *log, struct manifest_writer **writer);

// Write the frames of the parts that are known, from part *next on, which becomes the one behind
// them. All come ahead of the packets. STATUS_OUTPUT, with a sentence, if they cannot be written.
enum status join_manifest_add(const struct part_set *set, int *next,
                              struct manifest_writer *writer);

// What has been written.
struct join_manifest_output {
    const struct file *list; // (optional) the list of hashes that the output is, held
    json_t *others;          // (optional) other streams (other_streams.h)
};

// Write the end, with the ledger of all parts, which *joined gets, too. The manifest is the caller's
// in *file, held. Frees the writer in any case.
enum status join_manifest_finish(const struct part_set *set,
                                 const struct join_manifest_output *output,
                                 struct sluice_joined *joined, const struct log *log,
                                 struct manifest_writer **writer, struct file **file);
