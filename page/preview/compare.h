// CPU, GPU and the reference beside each other: what each makes of the present frame, and how fast.
#pragma once

#include <stddef.h>

#include "base/log.h"
#include "base/status.h"
#include "page/preview/preview.h"
#include "sluice/sluice.h"

// Filter the newest frame by the chain on every backend that there is, for up to a second each, and
// compare the pictures with those of the scalar reference. *json, malloc()ed, is
//
//   {"ok":true,"width":1280,"height":720,"chain":"gray,sobel",
//    "rows":[{"backend":"cpu","device":"2 threads, AVX2","ms":3.1,"fps":410.5,"equal":true}, ...],
//    "left_out":[{"backend":"cuda","why":"there is no GPU"}]}
//
// or {"ok":false,"error":"a sentence"}. `ms` is one picture from begin to end, the median; `fps` is
// many in flight. A reference that would take longer than two seconds is measured on a part of the
// picture, and compared there: "estimated":true. STATUS_MEMORY is the only failure.
//
// Takes up to five seconds, and processor time from the job. Any thread.
enum status compare_run(struct preview *preview, const struct sluice_config *config, char **json,
                        size_t *size);
