#define _GNU_SOURCE
#include "app/jobs/part_folders.h"

#include <dirent.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *part_folder_base(const char *output)
{
    if (!strncmp(output, "hash:", 5))
        return output + 5;
    return strncmp(output, "file:", 5) ? output : output + 5;
}

char *part_folder_name(const char *output, int part, int parts)
{
    char *name;
    return asprintf(&name, "%s.part-%d-of-%d", part_folder_base(output), part, parts) < 0 ? NULL
                                                                                          : name;
}

char **part_folder_names(const char *output, int parts)
{
    char **list = calloc((size_t)parts + 1, sizeof *list);
    for (int k = 0; list && k < parts; k++) {
        list[k] = part_folder_name(output, k + 1, parts);
        if (!list[k])
            part_folder_names_free(&list);
    }
    return list;
}

void part_folder_names_free(char ***list)
{
    for (int k = 0; *list && (*list)[k]; k++)
        free((*list)[k]);
    free(*list);
    *list = NULL;
}

// ---- finding ----

enum { MAX_PARTS = 100000, MAX_DIVISIONS = 64 };

// The divisions that there are parts of.
struct divisions {
    struct division {
        int parts, there;
    } list[MAX_DIVISIONS];
    int count;
};

static void note(struct divisions *divisions, int parts)
{
    int k = 0;
    while (k < divisions->count && divisions->list[k].parts != parts)
        k++;
    if (k == MAX_DIVISIONS)
        return;
    if (k == divisions->count)
        divisions->list[divisions->count++] = (struct division){parts, 0};
    divisions->list[k].there++;
}

// Read the number of parts out of "BASE.part-I-of-N"; 0: it is no such name.
static int parts_of(const char *name, const char *base)
{
    size_t length = strlen(base);
    int part, parts, end = 0;
    if (strncmp(name, base, length) != 0)
        return 0;
    if (sscanf(name + length, ".part-%d-of-%d%n", &part, &parts, &end) != 2 || !end ||
        name[length + (size_t)end])
        return 0;
    return part >= 1 && part <= parts && parts <= MAX_PARTS ? parts : 0;
}

static void find(const char *folder, const char *base, struct divisions *divisions)
{
    DIR *list = opendir(folder);
    const struct dirent *entry;
    while (list && (entry = readdir(list))) {
        int parts = parts_of(entry->d_name, base);
        if (parts)
            note(divisions, parts);
    }
    if (list)
        closedir(list);
}

void part_folders_find(const char *output, struct part_folders *found)
{
    struct divisions divisions = {.count = 0};
    const char *file = part_folder_base(output), *slash = strrchr(file, '/');
    char *folder = slash ? strndup(file, (size_t)(slash - file) + 1) : strdup(".");
    int all = 0;
    *found = (struct part_folders){0};
    if (folder)
        find(folder, slash ? slash + 1 : file, &divisions);
    free(folder);
    for (int k = 0; k < divisions.count; k++) {
        const struct division *division = &divisions.list[k];
        all += division->there;
        if (division->there > found->there)
            *found = (struct part_folders){division->parts, division->there, 0};
    }
    found->others = all - found->there;
}

// ---- one of them ----

// Read the file's last line; NULL: there is none. The caller frees it.
static char *last_line(const char *file)
{
    enum { MOST = 1 << 20 };
    char *text = malloc(MOST + 1), *line = NULL;
    FILE *from = text ? fopen(file, "re") : NULL;
    if (from && fseek(from, -MOST, SEEK_END))
        rewind(from); // it is shorter
    size_t length = from ? fread(text, 1, MOST, from) : 0;
    if (from)
        fclose(from);
    while (length && text[length - 1] == '\n')
        length--;
    if (length) {
        text[length] = 0;
        char *before = strrchr(text, '\n');
        line = strdup(before ? before + 1 : text);
    }
    free(text);
    return line;
}

static int64_t count_of(const json_t *ledger, const char *name)
{
    return json_integer_value(json_object_get(ledger, name));
}

bool part_folder_ledger(const char *folder, struct sluice_ledger *ledger)
{
    char *file, *line = NULL;
    *ledger = (struct sluice_ledger){0};
    if (asprintf(&file, "%s/manifest", folder) >= 0) {
        line = last_line(file);
        free(file);
    }
    json_t *end = line ? json_loads(line, 0, NULL) : NULL;
    const json_t *counts = json_object_get(end, "ledger");
    ledger->frames_in = count_of(counts, "frames_in");
    ledger->frames_out = count_of(counts, "frames_out");
    ledger->dropped_clock = count_of(counts, "dropped_clock");
    ledger->frames_damaged = count_of(counts, "frames_damaged");
    ledger->packets_damaged = count_of(counts, "packets_damaged");
    bool read = counts;
    json_decref(end);
    free(line);
    return read;
}

void part_folder_reports(const char *folder, void (*tell)(void *opaque, const char *file),
                         void *opaque)
{
    char path[PATH_MAX], *line = NULL;
    size_t room = 0, k;
    json_t *report;
    snprintf(path, sizeof path, "%s/manifest", folder);
    FILE *file = fopen(path, "re");
    json_t *identity = file && getline(&line, &room, file) > 0 ? json_loads(line, 0, NULL) : NULL;
    json_array_foreach(json_object_get(identity, "reports"), k, report)
    {
        const char *name = json_string_value(json_object_get(report, "file"));
        if (name)
            tell(opaque, name);
    }
    json_decref(identity);
    free(line);
    if (file)
        fclose(file);
}
