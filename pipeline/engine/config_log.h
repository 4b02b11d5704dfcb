// The log of a job: its caller's callback.
#pragma once

#include "base/log.h"
#include "sluice/sluice.h"

// The caller's callback behind a log.
struct config_log {
    void (*print)(void *opaque, enum sluice_log_level level, const char *sentence);
    void *opaque;
};

// A log that prints through config's callback. *target outlives the log.
struct log config_log(const struct sluice_config *config, struct config_log *target);
