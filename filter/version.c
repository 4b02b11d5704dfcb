// The version as libsluice-filter tells it; libsluice names its FFmpeg, too (pipeline/doctor.c).
#include <pthread.h>
#include <stdio.h>

#include "plan/backend.h"
#include "sluice/version.h"

static char version[96]; // written once, by write_version()

static void write_version(void)
{
    snprintf(version, sizeof version, "sluice %s (%s)", SLUICE_VERSION, backend_cuda_version());
}

const char *sluice_version(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_version);
    return version;
}
