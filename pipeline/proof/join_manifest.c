#include "pipeline/proof/join_manifest.h"

#include <libavutil/avstring.h>
#include <libavutil/mem.h>

#include "pipeline/output/file/file.h"
#include "pipeline/part/manifest_writer.h"

static enum status create(const struct part_set *set, const char *name, bool overwrite,
                          const struct log *log, struct manifest_writer **writer)
{
    json_t *identity = json_copy(set->manifest[0].identity);
    if (!identity)
        return STATUS_MEMORY;
    json_t *whole =
        json_pack("{si si ss ss}", "part", 0, "parts", 1, "begin", "begin", "end", "end");
    struct manifest_writer_request request = {
        .name = name, .overwrite = overwrite, .identity = identity, .log = log};
    enum status status = manifest_add(identity, whole);
    if (!status)
        status = file_check(name, overwrite, log);
    if (!status)
        status = manifest_writer_create(&request, writer);
    json_decref(identity);
    return status;
}

enum status join_manifest_begin(const struct part_set *set, const char *output, bool overwrite,
                                const struct log *log, struct manifest_writer **writer)
{
    char *name = av_asprintf("%s.manifest", output);
    enum status status = name ? create(set, name, overwrite, log, writer) : STATUS_MEMORY;
    av_free(name);
    return status;
}

enum status join_manifest_add(const struct part_set *set, int *next, struct manifest_writer *writer)
{
    enum status status = STATUS_OK;
    for (; *next < set->known && !status; ++*next)
        for (int64_t n = 0; n < set->manifest[*next].frames && !status; n++)
            status = manifest_writer_add(writer, &set->manifest[*next].frame[n]);
    return status;
}

// The ledger of all parts, and the roots of each.
static enum status add_parts(const struct part_set *set, struct sluice_joined *joined, json_t *end)
{
    struct sluice_ledger sum = {0};
    json_t *parts = json_array();
    for (int k = 0; k < set->count; k++) {
        const json_t *part = set->manifest[k].end, *ledger = json_object_get(part, "ledger");
        sum.frames_in += json_integer_value(json_object_get(ledger, "frames_in"));
        sum.frames_out += json_integer_value(json_object_get(ledger, "frames_out"));
        sum.dropped_clock += json_integer_value(json_object_get(ledger, "dropped_clock"));
        sum.frames_damaged += json_integer_value(json_object_get(ledger, "frames_damaged"));
        joined->truncated |= json_is_true(json_object_get(part, "truncated"));
        sum.packets_damaged += json_integer_value(json_object_get(ledger, "packets_damaged"));
        json_t *about =
            json_pack("{sO? sO? sO? sO?}", "repeatable", json_object_get(part, "repeatable"),
                      "frames", json_object_get(part, "frames"), "root",
                      json_object_get(part, "root"), "made", json_object_get(part, "made"));
        if (json_array_append_new(parts, about))
            return json_decref(parts), STATUS_MEMORY;
    }
    joined->frames = sum.frames_out;
    joined->frames_damaged = sum.frames_damaged;
    joined->packets_damaged = sum.packets_damaged;
    return manifest_add(end, json_pack("{sb so so}", "truncated", joined->truncated, "ledger",
                                       manifest_of_ledger(&sum), "parts", parts));
}

// The list of hashes itself, for audits.
static enum status add_list(const struct file *list, const struct log *log, json_t *end)
{
    json_t *about;
    const char *place = file_temporary(list);
    av_strstart(place, "file:", &place);
    enum status status = manifest_of_file(place, log, &about);
    if (!status && json_object_set_new(end, "file", about))
        status = STATUS_MEMORY;
    return status;
}

enum status join_manifest_finish(const struct part_set *set,
                                 const struct join_manifest_output *output,
                                 struct sluice_joined *joined, const struct log *log,
                                 struct manifest_writer **writer, struct file **file)
{
    const json_t *first = set->manifest[set->filled].end;
    json_t *end =
        json_pack("{sO? sO? sO? sO? so sO?}", "pixel", json_object_get(first, "pixel"), "range",
                  json_object_get(first, "range"), "time_base", json_object_get(first, "time_base"),
                  "first", json_object_get(first, "first"), "next", json_null(), "made",
                  json_object_get(first, "made"));
    json_t *video = json_object_get(first, "video");
    enum status status = end ? add_parts(set, joined, end) : STATUS_MEMORY;
    if (!status && video && json_object_set(end, "video", video))
        status = STATUS_MEMORY;
    if (!status && output->others && json_object_set(end, "others", output->others))
        status = STATUS_MEMORY;
    if (!status && output->list)
        status = add_list(output->list, log, end);
    *file = NULL;
    if (status)
        manifest_writer_destroy(writer);
    else
        status = manifest_writer_finish(writer, end, file);
    json_decref(end);
    return status;
}
