// Part folder: the names of the files in a part's folder (part.h).
//
// Thread-safety: any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>

extern const char part_file_manifest[], part_file_video[], part_file_frames[];

// The name of the file of record number `record` of the chain, with what stands beside it where
// `suffix` (optional) is given.
enum { PART_FILE_NAME = 64 };
void part_file_report(size_t record, const char *suffix, char name[PART_FILE_NAME]);

// "DIR/.BASE.XXXXXX" of "DIR/BASE", whose end is to be filled in. The caller frees it; NULL without memory.
char *part_folder_hidden(const char *folder);

// "FOLDER/NAME". The caller frees it; NULL without memory.
char *part_folder_file(const char *folder, const char *name);
