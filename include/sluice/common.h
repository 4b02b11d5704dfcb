// The interface's common words: statuses, log levels, backends, and the stages that chains are made
// of. sluice/filter.h and sluice/sluice.h include it.
//
// Structs. Zero and NULL are the default of every member. A struct that begins with `size` may grow
// in later versions: the caller sets it to sizeof, and the library reads and writes no further. A
// struct inside another keeps its size; `reserved` is room for members to come, and stays zero.
//
// Pointers. None may be NULL unless a comment says so: what is no mistake of data ends the program at
// an assertion.
//
// Strings. The library copies what it is given before the call returns, unless a comment says
// otherwise. What it returns lives as long as the object it came from. Text is UTF-8.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sluice/version.h"

#ifdef __cplusplus
extern "C" {
#endif

// The outcome of a call. Zero is success.
enum sluice_status {
    SLUICE_STATUS_OK = 0,
    SLUICE_STATUS_END,     // an index is past the last, or nothing more comes; not a failure
    SLUICE_STATUS_STOPPED, // sluice_job_stop() ended the job; the output is whole up to there
    SLUICE_STATUS_FAILED,  // none of the others
    SLUICE_STATUS_MEMORY,  // out of memory
    SLUICE_STATUS_USAGE,   // the caller asked for what does not exist or does not fit
    SLUICE_STATUS_INPUT,   // the input cannot be read or decoded
    SLUICE_STATUS_OUTPUT,  // the output cannot be encoded or written
    SLUICE_STATUS_DEVICE,  // the GPU that was required failed or is not there
    SLUICE_STATUS_AGAIN,   // 1.1: not now, or not so: the call says when or how; not a failure
};

// A status as words for a sentence. Static.
SLUICE_API const char *sluice_status_name(enum sluice_status status);

enum sluice_log_level { SLUICE_LOG_ERROR, SLUICE_LOG_WARNING, SLUICE_LOG_INFO, SLUICE_LOG_DEBUG };

// The backend, which filters: the GPU where one pays, else the CPU; or one of them by name. Most
// jobs of files that leave the choice filter the first frames on the CPU, until the GPU is ready. Scalar
// is the reference of all results, slow and exact.
enum sluice_backend {
    SLUICE_BACKEND_AUTO,
    SLUICE_BACKEND_CUDA,
    SLUICE_BACKEND_CPU,
    SLUICE_BACKEND_SCALAR,
};

// Code values of Y'CbCr and gray: as usual (of what comes in: limited for Y'CbCr and full for
// gray; of what goes out: as the chain leaves them), limited (16 to 235), or full (0 to 255).
enum sluice_range { SLUICE_RANGE_ANY, SLUICE_RANGE_LIMITED, SLUICE_RANGE_FULL };

// ---- stages ----

enum sluice_option_type {
    SLUICE_OPTION_REAL,
    SLUICE_OPTION_INT,
    SLUICE_OPTION_CHOICE,
    SLUICE_OPTION_TEXT,
};

// One option of a stage. Strings are static, here and in struct sluice_stage_info.
struct sluice_option_info {
    size_t size;
    const char *name;
    enum sluice_option_type type;
    const char *unit;    // "" for a plain number; TEXT: what the text is
    const char *choices; // CHOICE: "luma|mean"
    const char *derived; // how the default follows from other options; NULL: it does not
    bool required;
    bool many;      // of the first option: it takes all values that have no name
    double initial; // the default; CHOICE: its index
    double min, max;
    const char *help;
};

struct sluice_stage_info {
    size_t size;
    const char *name, *summary, *formula;
    const char *source; // literature; NULL: none
    int options;
    const char *alias; // a former name, which chains may use; NULL: none
};

// Stage number `index` from 0, and option `option` of it. SLUICE_STATUS_END past the last. Any
// thread.
SLUICE_API enum sluice_status sluice_stage(int index, struct sluice_stage_info *info);
SLUICE_API enum sluice_status sluice_stage_option(int index, int option,
                                                  struct sluice_option_info *info);

#ifdef __cplusplus
}
#endif
