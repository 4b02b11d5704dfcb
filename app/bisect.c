// `sluice bisect A B`: where two outputs of one source begin to differ.
#include <stdlib.h>

#include "app/app.h"

int bisect_command(struct settings *settings)
{
    char *text;
    if (!settings->topic || settings->words != 1) {
        fprintf(stderr, "sluice: two outputs are compared; 'sluice bisect a.mp4 b.mp4'\n");
        return EXIT_USAGE;
    }
    enum sluice_status status =
        sluice_bisect(&settings->config, settings->topic, settings->word[0], &text);
    if (text)
        fputs(text, stdout);
    free(text);
    return exit_code_of(status);
}
