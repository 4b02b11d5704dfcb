// Text of parts put together: lists of hashes, and the reports of the chain. Frames are numbered on
// from part to part.
#pragma once

#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"

struct file;
struct part_set;
struct publication;

// Check that a file may be written, as file_check().
enum status join_text_check(const char *file, bool overwrite, const struct log *log);

// Write the lines that the parts have in their file `name` into one, which is the caller's in
// *made, held without its name. STATUS_INPUT, with a sentence, if one of them is not what its
// manifest says, or cannot be read.
enum status join_text(const struct part_set *set, const char *name, const char *file,
                      bool overwrite, const struct log *log, struct file **made);

// The same of the reports that the chain writes, under the names that it gives them. They are added
// to the publication. The check reads those of the parts that are known.
enum status join_reports_check(const struct part_set *set, struct publication *publication);
enum status join_reports(const struct part_set *set, struct publication *publication);
