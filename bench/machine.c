#include "bench/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "sluice/sluice.h"

// The kernel's name of the processor: of x86 its "model name"; elsewhere there may be none.
static bool read_model(char *to, size_t size)
{
    char line[512], *value = NULL;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !value && fgets(line, sizeof line, file)) {
        bool names = !strncmp(line, "model name", 10) || !strncmp(line, "Model", 5);
        value = names ? strchr(line, ':') : NULL;
    }
    if (file)
        fclose(file);
    if (!value)
        return false;
    value += 1 + strspn(value + 1, " \t");
    value[strcspn(value, "\n")] = 0;
    snprintf(to, size, "%s", value);
    return *to;
}

void machine_processor(char *to, size_t size)
{
    struct utsname about;
    if (!read_model(to, size))
        snprintf(to, size, "%s processor", uname(&about) ? "unknown" : about.machine);
}

void machine_about(char *to, size_t size, const char *device)
{
    char processor[128];
    const char *version = sluice_version();
    machine_processor(processor, sizeof processor);
    const char *libraries = strstr(version, " (");
    int length = libraries ? (int)(libraries - version) : (int)strlen(version);
    snprintf(to, size, "%.*s; %s; %s", length, version, processor, device);
}
