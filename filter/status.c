// The interface's version and the names of statuses, for both libraries.
#include "sluice/common.h"

int sluice_api_version(void)
{
    return SLUICE_API_VERSION;
}

const char *sluice_status_name(enum sluice_status status)
{
    static const char *const names[] = {
        "done",        "end",          "stopped",       "failed",        "out of memory",
        "wrong usage", "input failed", "output failed", "device failed", "not now"};
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown";
}
