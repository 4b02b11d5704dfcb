// Attacked: the command line, an argument a line: what settings_parse() takes, before anything runs.
//
// Must hold: it is taken, or refused with one of the exit codes; no memory or descriptor is left
// behind. Lines that name files elsewhere, or ask for devices, are not tried.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_ARGUMENTS = 40 };

// Files are looked for in an empty folder.
static void leave_for_nowhere(void)
{
    static bool gone;
    char folder[] = "/tmp/sluice-fuzz-XXXXXX";
    FUZZ_REQUIRE(gone || (mkdtemp(folder) && !chdir(folder) && !rmdir(folder)));
    gone = true;
}

static bool reaches_out(const char *text)
{
    return strstr(text, "/dev") || strstr(text, "/proc") || strstr(text, "..") ||
           strstr(text, "list") || strstr(text, "//");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[] = "sluice", *argument[MAX_ARGUMENTS + 1] = {name};
    char *text = fuzz_text(data, size), *rest = text;
    int count = 1, descriptor = fuzz_next_descriptor();
    leave_for_nowhere();
    while (*rest && count < MAX_ARGUMENTS)
        argument[count++] = fuzz_line(&rest);
    bool outwards = false;
    for (int k = 1; k < count; k++)
        outwards |= reaches_out(argument[k]);
    char **taken = outwards ? NULL : arguments_take(count, argument);
    if (taken) {
        struct settings settings;
        enum command command;
        int code = settings_parse(count, taken, &command, &settings);
        FUZZ_REQUIRE(code >= -1 && code <= EXIT_DEVICE);
        settings_finish(&settings);
    }
    free(taken);
    free(text);
    FUZZ_REQUIRE(descriptor == fuzz_next_descriptor());
    return 0;
}
