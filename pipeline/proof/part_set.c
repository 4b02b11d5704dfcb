#include "pipeline/proof/part_set.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/input/part_span.h"
#include "pipeline/part/part_folder.h"

// ---- reading ----

static int64_t integer(const json_t *of, const char *name)
{
    return json_integer_value(json_object_get(of, name));
}

static int number_of(const struct part_set *set, int k)
{
    return (int)integer(set->manifest[k].identity, "part");
}

static enum status read_one(struct part_set *set, int k)
{
    char *file = part_folder_file(set->folder[k], part_file_manifest);
    enum status status =
        file ? manifest_read(file, set->request.log, &set->manifest[k]) : STATUS_MEMORY;
    free(file);
    return status;
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

// Read all manifests, which say in what order the parts are.
static enum status read_all(struct part_set *set)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < set->count && !status; k++)
        status = read_one(set, k);
    if (!status)
        sort(set);
    return status;
}

static enum status copy_names(struct part_set *set, const char *const *folders)
{
    int count = 0;
    while (folders && folders[count])
        count++;
    if (!count)
        return log_fail(set->request.log, STATUS_USAGE,
                        "no part is named; 'sluice join OUT OUT.part-*'");
    set->folder = calloc((size_t)count, sizeof *set->folder);
    set->manifest = calloc((size_t)count, sizeof *set->manifest);
    if (!set->folder || !set->manifest)
        return STATUS_MEMORY;
    set->filled = set->count = count;
    for (int k = 0; k < count; k++) {
        size_t length = strlen(folders[k]);
        while (length > 1 && folders[k][length - 1] == '/')
            length--;
        if (!(set->folder[k] = strndup(folders[k], length)))
            return STATUS_MEMORY;
    }
    return STATUS_OK;
}

// ---- checks of a part against those before it ----

static enum status check_alike(const struct part_set *set, int k)
{
    const char *what;
    if (!k || manifest_is_alike(set->manifest[0].identity, set->manifest[k].identity, &what))
        return STATUS_OK;
    return log_fail(set->request.log, STATUS_INPUT,
                    "%s is no part of the same: its %s is not that of %s", set->folder[k], what,
                    set->folder[0]);
}

static enum status refuse_gap(const struct part_set *set, int k)
{
    int parts = (int)integer(set->manifest[0].identity, "parts");
    return log_fail(set->request.log, STATUS_INPUT, "part %d of %d is missing", k + 1, parts);
}

static enum status check_number(const struct part_set *set, int k)
{
    if (k && number_of(set, k) == number_of(set, k - 1))
        return log_fail(set->request.log, STATUS_INPUT, "%s and %s are both part %d",
                        set->folder[k - 1], set->folder[k], number_of(set, k) + 1);
    return number_of(set, k) == k ? STATUS_OK : refuse_gap(set, k);
}

static enum status check_cut(const struct part_set *set, int k)
{
    const json_t *before = k ? json_object_get(set->manifest[k - 1].identity, "end") : NULL;
    const json_t *behind = json_object_get(set->manifest[k].identity, "begin");
    const char *begin = json_string_value(behind);
    if (k ? json_equal(before, behind) : begin && !strcmp(begin, "begin"))
        return STATUS_OK;
    return log_fail(set->request.log, STATUS_INPUT,
                    "%s does not begin where the part before it ends", set->folder[k]);
}

// Check that the ledger of the part says what its frames are.
static enum status check_ledger(const struct part_set *set, int k)
{
    const json_t *ledger = json_object_get(set->manifest[k].end, "ledger");
    int64_t in = integer(ledger, "frames_in"), out = integer(ledger, "frames_out");
    int64_t clock = integer(ledger, "dropped_clock");
    if (in == out + clock && in == set->manifest[k].frames)
        return STATUS_OK;
    return log_fail(set->request.log, STATUS_INPUT,
                    "%s: its ledger does not add up: %" PRId64 " frames in, %" PRId64
                    " out, %" PRId64 " hashed",
                    set->folder[k], in, out, set->manifest[k].frames);
}

// Check that both sides of a cut decode the frame behind it alike.
static enum status check_edge(const struct part_set *set, int k)
{
    int before = set->last_filled;
    if (set->filled == set->count || json_equal(json_object_get(set->manifest[before].end, "next"),
                                                json_object_get(set->manifest[k].end, "first")))
        return STATUS_OK;
    return log_fail(set->request.log, STATUS_INPUT,
                    "%s ends and %s begins with another frame: one of them was decoded "
                    "otherwise, or there is damage that the decoder does not tell of; made "
                    "with --repeatable, parts are decoded from the beginning of the file",
                    set->folder[before], set->folder[k]);
}

static int64_t cut_us(const json_t *identity, const char *name)
{
    const json_t *cut = json_object_get(identity, name);
    const char *word = json_string_value(cut);
    return !word ? json_integer_value(cut) : !strcmp(word, "begin") ? INT64_MIN : INT64_MAX;
}

// Check that the frames of the part lie between its cuts.
static enum status check_times(const struct part_set *set, int k)
{
    const struct manifest *at = &set->manifest[k];
    struct part_span span = {.begin_us = cut_us(at->identity, "begin"),
                             .end_us = cut_us(at->identity, "end")};
    AVRational base;
    bool within = manifest_ratio(at->end, "time_base", &base);
    for (int64_t n = 0; n < at->frames && within; n++)
        within = part_span_has(&span, at->frame[n].pts, base);
    return within ? STATUS_OK
                  : log_fail(set->request.log, STATUS_INPUT,
                             "%s has frames that do not lie between its cuts", set->folder[k]);
}

static enum status check_encoding(const struct part_set *set, int k)
{
    if (set->filled == set->count)
        return STATUS_OK;
    json_t *first = json_object_get(set->manifest[set->filled].end, "video");
    const json_t *video = json_object_get(set->manifest[k].end, "video");
    void *at = json_object_iter(first);
    while (at &&
           json_equal(json_object_iter_value(at), json_object_get(video, json_object_iter_key(at))))
        at = json_object_iter_next(first, at);
    return !at ? STATUS_OK
               : log_fail(set->request.log, STATUS_INPUT,
                          "%s is encoded otherwise than %s: its %s is another; were they made by "
                          "the same version of the encoder?",
                          set->folder[k], set->folder[set->filled], json_object_iter_key(at));
}

static enum status check(const struct part_set *set, int k)
{
    bool filled = set->manifest[k].frames;
    enum status status = check_alike(set, k);
    if (!status)
        status = check_number(set, k);
    if (!status)
        status = check_cut(set, k);
    if (!status)
        status = check_ledger(set, k);
    if (!status && filled)
        status = check_edge(set, k);
    if (!status && filled)
        status = check_times(set, k);
    return !status && filled ? check_encoding(set, k) : status;
}

// ---- checks of the whole ----

static enum status check_end(const struct part_set *set)
{
    int last = set->count - 1;
    const char *end = json_string_value(json_object_get(set->manifest[last].identity, "end"));
    if (integer(set->manifest[0].identity, "parts") != set->count)
        return refuse_gap(set, set->count);
    if (!end || strcmp(end, "end") != 0)
        return log_fail(set->request.log, STATUS_INPUT, "%s does not end where the source does",
                        set->folder[last]);
    if (set->filled == set->count ||
        json_is_null(json_object_get(set->manifest[set->last_filled].end, "next")))
        return STATUS_OK;
    return log_fail(set->request.log, STATUS_INPUT,
                    "behind %s the source goes on, and no part has those frames",
                    set->folder[set->last_filled]);
}

// Check that no frame was left to a part that did not see it.
static enum status check_order(const struct part_set *set)
{
    int disordered = set->count, other = set->count;
    for (int k = set->count - 1; k >= 0; k--) {
        const json_t *end = set->manifest[k].end;
        disordered = integer(end, "disorder") ? k : disordered;
        other = json_is_true(json_object_get(end, "repeatable")) ? other : k;
    }
    if (disordered == set->count || other == set->count)
        return STATUS_OK;
    return log_fail(set->request.log, STATUS_INPUT,
                    "%s has frames that came out of order, which may be another part's: make all "
                    "parts with --repeatable, %s too",
                    set->folder[disordered], set->folder[other]);
}

// ---- life ----

enum status part_set_init(const struct part_set_request *request, struct part_set *set)
{
    *set = (struct part_set){.request = *request};
    enum status status = copy_names(set, request->folders);
    return !status && !request->await ? read_all(set) : status;
}

bool part_set_await(const struct part_set *set, int part)
{
    return !set->request.await || set->request.await(set->request.opaque, part);
}

enum status part_set_need(struct part_set *set, int part)
{
    enum status status = STATUS_OK;
    for (int k = set->known; k <= part && !status; k = set->known) {
        if (!part_set_await(set, k))
            return STATUS_STOPPED;
        if (set->request.await)
            status = read_one(set, k);
        if (!status)
            status = check(set, k);
        if (status)
            break;
        set->known++;
        if (!set->manifest[k].frames)
            continue;
        set->filled = set->filled < set->count ? set->filled : k;
        set->last_filled = k;
    }
    return status;
}

enum status part_set_need_filled(struct part_set *set)
{
    enum status status = STATUS_OK;
    while (!status && set->filled == set->count && set->known < set->count)
        status = part_set_need(set, set->known);
    return status;
}

enum status part_set_finish(struct part_set *set)
{
    enum status status = part_set_need(set, set->count - 1);
    if (!status)
        status = check_end(set);
    return status ? status : check_order(set);
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
