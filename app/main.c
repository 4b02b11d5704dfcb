// sluice: the program. See include/sluice/sluice.h for what it does, options/ for how it is asked.
#include <signal.h>
#include <stdlib.h>

#include "app/app.h"
#include "app/option.h"

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
        code = sandbox_begin(&settings, command);
    }
    if (code < 0)
        code = commands[command].run(&settings);
    settings_finish(&settings);
    free(arguments);
    return finish_output(code);
}
