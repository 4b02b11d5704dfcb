#include "pipeline/proof/part_set.h"

#include <inttypes.h>
#include <libavutil/parseutils.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/input/part_span.h"
#include "pipeline/part/part_folder.h"

// ---- reading ----

static enum status read_one(struct part_set *set, const char *folder, const struct log *log)
{
    int k = set->count;
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    set->folder[k] = strndup(folder, length);
    char *file = set->folder[k] ? part_folder_file(set->folder[k], part_file_manifest) : NULL;
    set->count++;
    enum status status = file ? manifest_read(file, log, &set->manifest[k]) : STATUS_MEMORY;
    free(file);
    return status;
}

static enum status read_all(struct part_set *set, const char *const *folders, const struct log *log)
{
    int count = 0;
    while (folders && folders[count])
        count++;
    if (!count)
        return log_fail(log, STATUS_USAGE, "no part is named; 'sluice join OUT OUT.part-*'");
    set->folder = calloc((size_t)count, sizeof *set->folder);
    set->manifest = calloc((size_t)count, sizeof *set->manifest);
    enum status status = set->folder && set->manifest ? STATUS_OK : STATUS_MEMORY;
    for (int k = 0; k < count && !status; k++)
        status = read_one(set, folders[k], log);
    return status;
}

static int64_t integer(const json_t *of, const char *name)
{
    return json_integer_value(json_object_get(of, name));
}

static int number_of(const struct part_set *set, int k)
{
    return (int)integer(set->manifest[k].identity, "part");
}

// Bring them into their order.
static void sort(struct part_set *set)
{
    for (int k = 1; k < set->count; k++) {
        struct manifest manifest = set->manifest[k];
        char *folder = set->folder[k];
        int n = k;
        for (; n > 0 && number_of(set, n - 1) > integer(manifest.identity, "part"); n--) {
            set->manifest[n] = set->manifest[n - 1];
            set->folder[n] = set->folder[n - 1];
        }
        set->manifest[n] = manifest;
        set->folder[n] = folder;
    }
}

// ---- checks ----

static enum status check_alike(const struct part_set *set, const struct log *log)
{
    const char *what;
    for (int k = 1; k < set->count; k++)
        if (!manifest_is_alike(set->manifest[0].identity, set->manifest[k].identity, &what))
            return log_fail(log, STATUS_INPUT,
                            "%s is no part of the same: its %s is not that of %s", set->folder[k],
                            what, set->folder[0]);
    return STATUS_OK;
}

static enum status check_numbers(const struct part_set *set, const struct log *log)
{
    int parts = (int)integer(set->manifest[0].identity, "parts");
    for (int k = 0; k < set->count; k++) {
        if (k && number_of(set, k) == number_of(set, k - 1))
            return log_fail(log, STATUS_INPUT, "%s and %s are both part %d", set->folder[k - 1],
                            set->folder[k], number_of(set, k) + 1);
        if (number_of(set, k) != k)
            return log_fail(log, STATUS_INPUT, "part %d of %d is missing", k + 1, parts);
    }
    if (set->count != parts)
        return log_fail(log, STATUS_INPUT, "part %d of %d is missing", set->count + 1, parts);
    return STATUS_OK;
}

static enum status check_cuts(const struct part_set *set, const struct log *log)
{
    for (int k = 0; k <= set->count; k++) {
        json_t *before = k ? json_object_get(set->manifest[k - 1].identity, "end") : NULL;
        json_t *behind =
            k < set->count ? json_object_get(set->manifest[k].identity, "begin") : NULL;
        const char *end = json_string_value(before), *begin = json_string_value(behind);
        bool meets = k == 0            ? begin && !strcmp(begin, "begin")
                     : k == set->count ? end && !strcmp(end, "end")
                                       : json_equal(before, behind);
        if (!meets && k < set->count)
            return log_fail(log, STATUS_INPUT, "%s does not begin where the part before it ends",
                            set->folder[k]);
        if (!meets)
            return log_fail(log, STATUS_INPUT, "%s does not end where the source does",
                            set->folder[k - 1]);
    }
    return STATUS_OK;
}

// Check that the ledger of each part says what its frames are.
static enum status check_ledgers(const struct part_set *set, const struct log *log)
{
    for (int k = 0; k < set->count; k++) {
        const json_t *ledger = json_object_get(set->manifest[k].end, "ledger");
        int64_t in = integer(ledger, "frames_in"), out = integer(ledger, "frames_out");
        int64_t clock = integer(ledger, "dropped_clock");
        if (in != out + clock || in != set->manifest[k].frames)
            return log_fail(log, STATUS_INPUT,
                            "%s: its ledger does not add up: %" PRId64 " frames in, %" PRId64
                            " out, %" PRId64 " hashed",
                            set->folder[k], in, out, set->manifest[k].frames);
    }
    return STATUS_OK;
}

// The part behind k that has frames; `count`: none.
static int next_filled(const struct part_set *set, int k)
{
    do
        k++;
    while (k < set->count && !set->manifest[k].frames);
    return k;
}

// Check that both sides of each cut decode the frame behind it alike.
static enum status check_edges(const struct part_set *set, const struct log *log)
{
    for (int k = set->filled; k < set->count; k = next_filled(set, k)) {
        int behind = next_filled(set, k);
        const json_t *next = json_object_get(set->manifest[k].end, "next");
        const json_t *first =
            behind < set->count ? json_object_get(set->manifest[behind].end, "first") : json_null();
        if (json_equal(next, first))
            continue;
        if (behind == set->count)
            return log_fail(log, STATUS_INPUT,
                            "behind %s the source goes on, and no part has those frames",
                            set->folder[k]);
        return log_fail(log, STATUS_INPUT,
                        "%s ends and %s begins with another frame: one of them was decoded "
                        "otherwise, or there is damage that the decoder does not tell of; made "
                        "with --repeatable, parts are decoded from the beginning of the file",
                        set->folder[k], set->folder[behind]);
    }
    return STATUS_OK;
}

static int64_t cut_us(const json_t *identity, const char *name)
{
    const json_t *cut = json_object_get(identity, name);
    const char *word = json_string_value(cut);
    return !word ? json_integer_value(cut) : !strcmp(word, "begin") ? INT64_MIN : INT64_MAX;
}

// Check that the frames of each part lie between its cuts.
static enum status check_times(const struct part_set *set, const struct log *log)
{
    for (int k = set->filled; k < set->count; k = next_filled(set, k)) {
        const struct manifest *at = &set->manifest[k];
        const char *text = json_string_value(json_object_get(at->end, "time_base"));
        struct part_span span = {.begin_us = cut_us(at->identity, "begin"),
                                 .end_us = cut_us(at->identity, "end")};
        AVRational base = {0, 1};
        bool within = text && av_parse_ratio(&base, text, INT32_MAX, 0, NULL) >= 0;
        for (int64_t n = 0; n < at->frames && within; n++)
            within = part_span_has(&span, at->frame[n].pts, base);
        if (!within)
            return log_fail(log, STATUS_INPUT, "%s has frames that do not lie between its cuts",
                            set->folder[k]);
    }
    return STATUS_OK;
}

// Check that no frame was left to a part that did not see it.
static enum status check_order(const struct part_set *set, const struct log *log)
{
    int disordered = set->count, other = set->count;
    for (int k = set->count - 1; k >= 0; k--) {
        const json_t *end = set->manifest[k].end;
        disordered = integer(end, "disorder") ? k : disordered;
        other = json_is_true(json_object_get(end, "repeatable")) ? other : k;
    }
    if (disordered == set->count || other == set->count)
        return STATUS_OK;
    return log_fail(log, STATUS_INPUT,
                    "%s has frames that came out of order, which may be another part's: make all "
                    "parts with --repeatable, %s too",
                    set->folder[disordered], set->folder[other]);
}

static enum status check_encoding(const struct part_set *set, const struct log *log)
{
    if (set->filled == set->count)
        return STATUS_OK;
    const json_t *first = json_object_get(set->manifest[set->filled].end, "video");
    for (int k = set->filled; k < set->count; k = next_filled(set, k)) {
        const json_t *video = json_object_get(set->manifest[k].end, "video");
        const char *name;
        json_t *value;
        json_object_foreach((json_t *)first, name, value) if (
            !json_equal(
                value,
                json_object_get(
                    video, name))) return log_fail(log, STATUS_INPUT,
                                                   "%s is encoded otherwise than %s: its %s is "
                                                   "another; were they "
                                                   "made by the same version of the encoder?",
                                                   set->folder[k], set->folder[set->filled], name);
    }
    return STATUS_OK;
}

static enum status check(const struct part_set *set, const struct log *log)
{
    enum status status = check_alike(set, log);
    if (!status)
        status = check_numbers(set, log);
    if (!status)
        status = check_cuts(set, log);
    if (!status)
        status = check_ledgers(set, log);
    if (!status)
        status = check_edges(set, log);
    if (!status)
        status = check_times(set, log);
    if (!status)
        status = check_order(set, log);
    return status ? status : check_encoding(set, log);
}

enum status part_set_read(const char *const *folders, const struct log *log, struct part_set *set)
{
    *set = (struct part_set){0};
    enum status status = read_all(set, folders, log);
    if (status)
        return status;
    sort(set);
    for (int k = 0; k < set->count; k++)
        set->frames += set->manifest[k].frames;
    set->filled = next_filled(set, -1);
    return check(set, log);
}

void part_set_free(struct part_set *set)
{
    for (int k = 0; k < set->count; k++) {
        manifest_free(&set->manifest[k]);
        free(set->folder[k]);
    }
    free(set->folder);
    free(set->manifest);
    *set = (struct part_set){0};
}
