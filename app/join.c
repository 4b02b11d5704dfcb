// `sluice join OUT [PART...]`: parts of an output put together.
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "app/jobs/part_folders.h"

// The parts of an output beside it, where none are named. STATUS: 0, or as glob(3).
static int find_parts(const char *output, glob_t *found)
{
    const char *name = part_folder_base(output);
    size_t size = 2 * strlen(name) + sizeof ".part-*-of-*";
    char *pattern = malloc(size), *to = pattern;
    if (!pattern)
        return GLOB_NOSPACE;
    for (; *name; name++) {
        if (strchr("*?[\\", *name))
            *to++ = '\\';
        *to++ = *name;
    }
    strcpy(to, ".part-*-of-*");
    int error = glob(pattern, 0, NULL, found);
    free(pattern);
    return error;
}

int join_command(struct settings *settings)
{
    glob_t found = {0};
    if (!settings->topic) {
        fprintf(stderr, "sluice: an output is missing; 'sluice join out.mp4 out.mp4.part-*'\n");
        return EXIT_USAGE;
    }
    settings->config.output.name = settings->topic;
    if (!settings->config.output.format) // there is no INPUT, before which it could be meant
        settings->config.output.format = settings->config.input_format;
    const char *const *parts = (const char *const *)settings->word;
    if (!settings->words && !find_parts(settings->topic, &found))
        parts = (const char *const *)found.gl_pathv;
    struct sluice_joined joined = {.size = sizeof joined};
    enum sluice_status status = sluice_join(&settings->config, parts, &joined);
    globfree(&found);
    bool damaged = joined.frames_damaged || joined.packets_damaged || joined.truncated;
    if (status || !damaged)
        return exit_code_of(status);
    if (!settings->quiet)
        fprintf(stderr, "%s: %lld damaged frames, %lld damaged packets%s\n", settings->topic,
                (long long)joined.frames_damaged, (long long)joined.packets_damaged,
                joined.truncated ? "; the source ends before its time" : "");
    return settings->strict ? EXIT_OTHER : EXIT_DAMAGED;
}
