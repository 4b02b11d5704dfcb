#include "pipeline/proof/join_text.h"

#include <errno.h>
#include <inttypes.h>
#include <libavutil/avstring.h>
#include <libavutil/mem.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/output/file/file.h"
#include "pipeline/part/part_folder.h"
#include "pipeline/proof/part_set.h"
#include "pipeline/proof/publication.h"

// Lines put together. Those of a frame begin with `mark` and its number; those before the first of
// them are a heading, which all parts have, and those behind the last are the end.
struct lines {
    const struct log *log;
    struct file *to;
    const char *name; // of the file that is made
    const char *mark;
    bool list;      // frames are elements of a JSON list, one a line
    int64_t frames; // of the parts before
    int64_t offset; // bytes of the file beside, of the parts before
    int64_t written;
    char *heading; // of the first part
    char *end;     // likewise
};

// ---- parts' files ----

// Open a file of a part, when it is what the manifest says.
static enum status open_file(const struct part_set *set, int k, const char *name,
                             const struct log *log, FILE **file)
{
    const json_t *files = json_object_get(set->manifest[k].end, "files");
    char *path = av_asprintf("%s/%s", set->folder[k], name);
    json_t *about = NULL;
    enum status status = path ? manifest_of_file(path, log, &about) : STATUS_MEMORY;
    if (!status && !json_equal(about, json_object_get(files, name)))
        status = log_fail(log, STATUS_INPUT,
                          "%s has changed since it was made; make that part again, with -y", path);
    *file = status ? NULL : fopen(path, "re");
    if (!status && !*file)
        status = log_fail(log, STATUS_INPUT, "%s cannot be read: %s", path, strerror(errno));
    json_decref(about);
    av_free(path);
    return status;
}

static int64_t bytes_of(const struct part_set *set, int k, const char *name)
{
    const json_t *files = json_object_get(set->manifest[k].end, "files");
    return json_integer_value(json_object_get(json_object_get(files, name), "bytes"));
}

// ---- lines ----

static void put(struct lines *lines, const char *text, size_t size)
{
    avio_write(file_io(lines->to), (const unsigned char *)text, (int)size);
}

// Write a frame's line with its number in the whole, and its offset.
static void put_frame(struct lines *lines, char *line)
{
    char *number = line + strlen(lines->mark), *rest, text[32];
    int64_t frame = strtoll(number, &rest, 10) + lines->frames;
    char *offset = lines->list ? strstr(rest, "\"offset\": ") : NULL;
    if (lines->list) {
        rest[strcspn(rest, "\n")] = 0;
        size_t length = strlen(rest);
        if (length && rest[length - 1] == ',')
            rest[length - 1] = 0;
        put(lines, lines->written ? ",\n" : "", lines->written ? 2 : 0);
    }
    put(lines, line, (size_t)(number - line));
    put(lines, text, (size_t)snprintf(text, sizeof text, "%" PRId64, frame));
    if (offset) {
        offset += strlen("\"offset\": ");
        put(lines, rest, (size_t)(offset - rest));
        int64_t at = strtoll(offset, &rest, 10) + lines->offset;
        put(lines, text, (size_t)snprintf(text, sizeof text, "%" PRId64, at));
    }
    put(lines, rest, strlen(rest));
    lines->written++;
}

// A line of no frame: of the heading, or of the end.
static enum status add_other(char **to, const char *line)
{
    char *longer = av_asprintf("%s%s", *to ? *to : "", line);
    av_free(*to);
    *to = longer;
    return longer ? STATUS_OK : STATUS_MEMORY;
}

// Write the heading of the first part; the others have the same.
static enum status put_heading(struct lines *lines, char **heading)
{
    bool first = !lines->heading, same = first || !strcmp(lines->heading, *heading);
    if (first) {
        put(lines, *heading, strlen(*heading));
        lines->heading = *heading;
        *heading = NULL;
    }
    av_freep(heading);
    return same ? STATUS_OK
                : log_fail(lines->log, STATUS_INPUT,
                           "%s: the parts have different headings, as their pictures change",
                           lines->name);
}

static enum status copy_lines(struct lines *lines, FILE *from)
{
    char *line = NULL, *heading = av_strdup(""), *end = NULL;
    size_t room = 0;
    bool begun = false;
    enum status status = heading ? STATUS_OK : STATUS_MEMORY;
    while (!status && getline(&line, &room, from) > 0) {
        bool frame = *lines->mark ? av_strstart(line, lines->mark, NULL) : *line != '#';
        if (frame && !begun)
            status = put_heading(lines, &heading);
        begun |= frame;
        if (frame && !status)
            put_frame(lines, line);
        else if (!status)
            status = add_other(begun ? &end : &heading, line);
    }
    if (!begun && !status)
        status = put_heading(lines, &heading);
    if (!lines->end)
        lines->end = end, end = NULL;
    av_free(heading);
    av_free(end);
    free(line);
    return status;
}

// ---- all parts ----

static void copy_bytes(struct lines *lines, FILE *from)
{
    char room[1 << 16];
    size_t got;
    while ((got = fread(room, 1, sizeof room, from)) > 0)
        put(lines, room, got);
}

// Check that a part's file was read to its end, as its manifest has it.
static enum status check_end(const struct lines *lines, const struct part_set *set, int k,
                             const char *name, FILE *from)
{
    bool whole = !ferror(from) && ftello(from) == bytes_of(set, k, name);
    return whole ? STATUS_OK
                 : log_fail(lines->log, STATUS_INPUT, "%s/%s could not be read to its end",
                            set->folder[k], name);
}

static enum status copy_part(struct lines *lines, const struct part_set *set, int k,
                             const char *name, bool bytes)
{
    FILE *from;
    enum status status = open_file(set, k, name, lines->log, &from);
    if (status)
        return status;
    if (bytes)
        copy_bytes(lines, from);
    else
        status = copy_lines(lines, from);
    if (!status)
        status = check_end(lines, set, k, name, from);
    fclose(from);
    return status;
}

static enum status copy_parts(struct lines *lines, const struct part_set *set, const char *name,
                              const char *beside, bool bytes)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < set->count && !status; k++) {
        if (set->manifest[k].frames)
            status = copy_part(lines, set, k, name, bytes);
        lines->frames += set->manifest[k].frames;
        lines->offset += beside ? bytes_of(set, k, beside) : 0;
    }
    if (lines->list)
        put(lines, "\n", 1);
    if (lines->end)
        put(lines, lines->end, strlen(lines->end));
    return status;
}

// A file of the parts, as one.
struct kind {
    const char *name;   // in the parts
    const char *file;   // that is made
    const char *mark;   // NULL: of lists of hashes
    bool list, bytes;   // see struct lines; bytes are not lines
    const char *beside; // the file that offsets are of
};

static enum status make_file(const struct part_set *set, const struct kind *kind, bool overwrite,
                             const struct log *log, struct file **file)
{
    struct lines lines = {.log = log,
                          .name = kind->file,
                          .mark = kind->mark ? kind->mark : "", // a number begins the line
                          .list = kind->list};
    enum status status = file_create(kind->file, overwrite, log, NULL, &lines.to);
    if (status)
        return status;
    status = copy_parts(&lines, set, kind->name, kind->beside, kind->bytes);
    avio_flush(file_io(lines.to));
    if (!status && file_error(lines.to))
        status = log_fail(log, STATUS_OUTPUT, "%s could not be written: %s", kind->file,
                          strerror(file_error(lines.to)));
    if (!status)
        status = file_hold(lines.to);
    if (status)
        file_discard(&lines.to);
    *file = lines.to;
    av_free(lines.heading);
    av_free(lines.end);
    return status;
}

enum status join_text_check(const char *file, bool overwrite, const struct log *log)
{
    return file_check(file, overwrite, log);
}

enum status join_text(const struct part_set *set, const char *name, const char *file,
                      bool overwrite, const struct log *log, struct file **made)
{
    const struct kind kind = {.name = name, .file = file};
    *made = NULL;
    return make_file(set, &kind, overwrite, log, made);
}

// ---- reports ----

// Check that the files of the parts that are known are what they were, and that theirs may be written.
static enum status check_kind(const struct part_set *set, const struct kind *kind, bool overwrite,
                              const struct log *log)
{
    enum status status = file_check(kind->file, overwrite, log);
    for (int k = 0; k < set->known && !status; k++) {
        FILE *file = NULL;
        if (set->manifest[k].frames)
            status = open_file(set, k, kind->name, log, &file);
        if (file)
            fclose(file);
    }
    return status;
}

static enum status add_report(const struct part_set *set, const struct kind *kind,
                              struct publication *to)
{
    struct file *file = NULL;
    enum status status = make_file(set, kind, to->overwrite, to->log, &file);
    if (!status)
        status = publication_add(to, &file);
    file_discard(&file);
    return status;
}

static enum status check_report(const struct part_set *set, const struct kind *kind,
                                struct publication *to)
{
    return check_kind(set, kind, to->overwrite, to->log);
}

// Do something with each file that reports are made of.
static enum status for_reports(const struct part_set *set, struct publication *to,
                               enum status (*act)(const struct part_set *set,
                                                  const struct kind *kind, struct publication *to))
{
    const json_t *reports = json_object_get(set->manifest[0].identity, "reports");
    enum status status = STATUS_OK;
    for (size_t k = 0; k < json_array_size(reports) && !status; k++) {
        const json_t *report = json_array_get(reports, k);
        const char *file = json_string_value(json_object_get(report, "file"));
        const char *suffix = json_string_value(json_object_get(report, "beside"));
        if (!file)
            continue;
        char name[PART_FILE_NAME], beside[PART_FILE_NAME];
        part_file_report(k, NULL, name);
        part_file_report(k, suffix, beside);
        char *second = av_asprintf("%s%s", file, suffix ? suffix : "");
        struct kind kind = {.name = name, .file = file, .mark = "{\"frame\": ", .bytes = suffix};
        struct kind other = {
            .name = beside, .file = second, .mark = kind.mark, .list = true, .beside = name};
        status = second ? act(set, &kind, to) : STATUS_MEMORY;
        if (!status && suffix)
            status = act(set, &other, to);
        av_free(second);
    }
    return status;
}

enum status join_reports_check(const struct part_set *set, struct publication *publication)
{
    return for_reports(set, publication, check_report);
}

enum status join_reports(const struct part_set *set, struct publication *publication)
{
    return for_reports(set, publication, add_report);
}
