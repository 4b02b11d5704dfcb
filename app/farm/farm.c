#include "app/farm/farm.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FARM_VERSION = 1, TAG = 13 };

// ---- names ----

const char *farm_file_of(const char *output)
{
    static const char *const heads[] = {"hash:", "file:"};
    for (size_t k = 0; k < sizeof heads / sizeof *heads; k++)
        if (!strncmp(output, heads[k], strlen(heads[k])))
            output += strlen(heads[k]);
    return output;
}

char *farm_path(const struct farm *farm, char to[FARM_PATH], const char *name, ...)
{
    va_list list;
    int length = snprintf(to, FARM_PATH, "%s.farm/", farm->file);
    assert(length < FARM_PATH - 64);
    va_start(list, name);
    vsnprintf(to + length, (size_t)(FARM_PATH - length), name, list);
    va_end(list);
    return to;
}

char *farm_part(const struct farm *farm, int part, char to[FARM_PATH])
{
    snprintf(to, FARM_PATH, "%s.part-%d-of-%d", farm->file, part, farm->parts);
    return to;
}

// ---- what there is in farm.json ----

// It goes into command lines as it is.
static bool is_tag(const char *text)
{
    return strlen(text) == TAG - 1 && strspn(text, "0123456789abcdef") == TAG - 1;
}

// Farms begin at other times, or by other processes.
static void make_tag(char to[TAG])
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t mixed =
        ((uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec ^ (uint64_t)getpid() << 44) *
        0x9e3779b97f4a7c15u;
    snprintf(to, TAG, "%012" PRIx64, mixed >> 16);
}

// Let the members point into the root. False: it is no farm's.
static bool read_root(struct farm *farm)
{
    json_t *words, *options;
    int version;
    bool read =
        !json_unpack(farm->root, "{si ss ss ss ss ss so so si sI si}", "sluice-farm", &version,
                     "tag", &farm->tag, "program", &farm->program, "folder", &farm->folder, "input",
                     &farm->input, "output", &farm->output, "words", &words, "options", &options,
                     "parts", &farm->parts, "samples", &farm->samples, "at_once", &farm->at_once);
    if (!read || version != FARM_VERSION || farm->parts < 1)
        return false;
    farm->words = words;
    farm->options = options;
    farm->file = farm_file_of(farm->output);
    return json_is_array(words) && json_is_array(options) && is_tag(farm->tag) && *farm->file &&
           strlen(farm->file) <= FARM_NAME;
}

// NULL without memory, and for what is no UTF-8.
static json_t *texts_json(const char *const *text)
{
    json_t *array = json_array();
    for (; array && text && *text; text++)
        if (json_array_append_new(array, json_string(*text))) {
            json_decref(array);
            array = NULL;
        }
    return array;
}

static bool is_file(const char *output)
{
    const char *file = farm_file_of(output);
    return *file && strcmp(file, "-") != 0 && !strstr(file, "://") && strcmp(file, "null:") != 0 &&
           strlen(file) <= FARM_NAME;
}

enum sluice_status farm_init(const struct farm_request *request, struct farm *farm)
{
    assert(request->parts > 0 && *request->folder == '/');
    *farm = (struct farm){0};
    if (!is_file(request->output)) {
        fprintf(stderr, "sluice: parts are made of a file, and %s is none\n", request->output);
        return SLUICE_STATUS_USAGE;
    }
    char tag[TAG];
    make_tag(tag);
    farm->root =
        json_pack("{si ss ss ss ss ss so so si sI si}", "sluice-farm", FARM_VERSION, "tag", tag,
                  "program", request->program, "folder", request->folder, "input", request->input,
                  "output", request->output, "words", texts_json(request->word), "options",
                  texts_json(request->option), "parts", request->parts, "samples",
                  (json_int_t)request->samples, "at_once", request->at_once);
    if (farm->root && read_root(farm))
        return SLUICE_STATUS_OK;
    fprintf(stderr, "sluice: a name or an option is no UTF-8, which farm.json is\n");
    return SLUICE_STATUS_USAGE;
}

void farm_finish(struct farm *farm)
{
    json_decref(farm->root);
    *farm = (struct farm){0};
}

// ---- reading ----

enum sluice_status farm_load(const char *output, struct farm *farm)
{
    char name[FARM_PATH];
    json_error_t error;
    *farm = (struct farm){.file = farm_file_of(output)};
    if (strlen(farm->file) > FARM_NAME || access(farm_path(farm, name, "farm.json"), F_OK))
        return SLUICE_STATUS_END;
    farm->root = json_load_file(name, JSON_REJECT_DUPLICATES, &error);
    if (!farm->root || !read_root(farm)) {
        fprintf(stderr, "sluice: %s is no farm of this version of sluice%s%s\n", name,
                farm->root ? "" : ": ", farm->root ? "" : error.text);
        return SLUICE_STATUS_INPUT;
    }
    if (!chdir(farm->folder))
        return SLUICE_STATUS_OK;
    fprintf(stderr, "sluice: %s: the folder in which its tasks run is not here: %s\n", name,
            farm->folder);
    return SLUICE_STATUS_INPUT;
}

// The number of parts that the name of a folder beside `base` says; 0: it is no part's.
static int parts_of(const char *name, const char *base)
{
    size_t length = strlen(base);
    int part, parts, end = 0;
    if (strncmp(name, base, length) != 0 ||
        sscanf(name + length, ".part-%d-of-%d%n", &part, &parts, &end) != 2 || name[length + end])
        return 0;
    return part >= 1 && part <= parts ? parts : 0;
}

// The number of parts that all folders beside the file have; 0: none, -1: they differ.
static int count_parts(const char *file)
{
    char folder[FARM_PATH];
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - file) + 1 : 1,
             slash ? file : ".");
    DIR *list = opendir(folder);
    const struct dirent *entry;
    int found = 0;
    while (list && (entry = readdir(list))) {
        int parts = parts_of(entry->d_name, base);
        if (parts)
            found = !found || found == parts ? parts : -1;
    }
    if (list)
        closedir(list);
    return found;
}

enum sluice_status farm_guess(const char *output, struct farm *farm)
{
    *farm = (struct farm){.output = output, .file = farm_file_of(output)};
    farm->parts = strlen(farm->file) <= FARM_NAME ? count_parts(farm->file) : 0;
    if (farm->parts > 0)
        return SLUICE_STATUS_OK;
    fprintf(stderr,
            farm->parts ? "sluice: beside %s are parts of several numbers; remove those that are "
                          "not meant\n"
                        : "sluice: no farm makes %s: there is neither its folder nor a part\n",
            farm->file);
    return SLUICE_STATUS_INPUT;
}

// ---- writing ----

enum sluice_status farm_write(const struct sluice_config *config, const char *name,
                              const char *text)
{
    struct sluice_config over = {
        .size = sizeof over, .log = config->log, .opaque = config->opaque, .overwrite = true};
    struct sluice_file *file;
    enum sluice_status status = sluice_file_create(&over, name, &file);
    if (status)
        return status;
    sluice_file_write(file, text, strlen(text));
    return sluice_file_commit(&file);
}

enum sluice_status farm_store(const struct farm *farm, const struct sluice_config *config)
{
    char name[FARM_PATH];
    char *text = json_dumps(farm->root, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    enum sluice_status status =
        text ? farm_write(config, farm_path(farm, name, "farm.json"), text) : SLUICE_STATUS_MEMORY;
    free(text);
    return status;
}
