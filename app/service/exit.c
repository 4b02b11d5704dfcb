#include "app/service/exit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int exit_code_of(enum sluice_status status)
{
    switch (status) {
    case SLUICE_STATUS_OK:
        return EXIT_WHOLE;
    case SLUICE_STATUS_USAGE:
        return EXIT_USAGE;
    case SLUICE_STATUS_INPUT:
        return EXIT_INPUT;
    case SLUICE_STATUS_OUTPUT:
        return EXIT_OUTPUT;
    case SLUICE_STATUS_DEVICE:
        return EXIT_DEVICE;
    default:
        return EXIT_OTHER;
    }
}

int finish_output(int code)
{
    bool failed = fflush(stdout) || ferror(stdout);
    if (failed && errno != EPIPE)
        fprintf(stderr, "sluice: standard output could not be written: %s\n", strerror(errno));
    return failed && code == EXIT_WHOLE ? EXIT_OUTPUT : code;
}
