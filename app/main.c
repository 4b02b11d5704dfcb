// sluice: the program. See include/sluice/sluice.h for what it does, options/ for how it is asked.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "app/options/option.h"

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

int main(int argc, char **argv)
{
    struct settings settings;
    enum command command;
    // Writes that fail say so themselves.
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    sluice_ffmpeg_log(-8);
    char **arguments = arguments_take(argc, argv);
    if (!arguments) {
        fprintf(stderr, "sluice: out of memory\n");
        return EXIT_OTHER;
    }
    int code = settings_parse(argc, arguments, &command, &settings);
    if (code < 0) {
        if (settings.verbose)
            sluice_ffmpeg_log(16);
        code = commands[command].run(&settings);
    }
    settings_finish(&settings);
    free(arguments);
    return finish_output(code);
}
