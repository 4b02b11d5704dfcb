#include "stages/design/kernel.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 16 << 20 }; // bytes: 511 x 511 numbers of 60 characters

// Why a text is no kernel.
struct reason {
    char *why;
    size_t size;
    const char *file; // NULL: rows of the text itself
};

__attribute__((format(printf, 2, 3))) static bool refuse(const struct reason *reason,
                                                         const char *format, ...)
{
    size_t used = 0;
    if (reason->file)
        used = (size_t)snprintf(reason->why, reason->size, "in that file ");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason->why + used, reason->size - used, format, arguments);
    va_end(arguments);
    return false;
}

// ---- reading ----

static bool is_gap(char c)
{
    return c == ' ' || c == '\t' || c == ',' || c == ';' || c == '\r';
}

// Skip to the next number of the row, or to its end.
static const char *skip_gap(const char *at, char comment)
{
    while (is_gap(*at))
        at++;
    if (comment && *at == comment)
        at += strcspn(at, "\n");
    return at;
}

static bool append(struct kernel *kernel, int *count, double value)
{
    // Room for twice as many whenever their number is a power of two.
    if ((*count & (*count - 1)) == 0) {
        size_t room = *count ? 2 * (size_t)*count : 1;
        double *larger = realloc(kernel->weight, room * sizeof *larger);
        if (!larger)
            return false;
        kernel->weight = larger;
    }
    kernel->weight[(*count)++] = value;
    return true;
}

static bool read_number(const char **at, const char *row_end, double *value)
{
    char *end;
    *value = strtod(*at, &end);
    bool whole = end > *at && (is_gap(*end) || strchr(row_end, *end)) && isfinite(*value);
    if (whole)
        *at = end;
    return whole;
}

static bool check_row(const struct reason *reason, const struct kernel *kernel, int row, int length)
{
    if (length > KERNEL_SIDE)
        return refuse(reason, "row %d has more than %d numbers", row, KERNEL_SIDE);
    if (kernel->height && length != kernel->width)
        return refuse(reason, "row %d has %d number%s and the first has %d; all have as many", row,
                      length, length == 1 ? "" : "s", kernel->width);
    if (kernel->height == KERNEL_SIDE)
        return refuse(reason, "there are more than %d rows", KERNEL_SIDE);
    return true;
}

// Rows end at `separator`; rows without numbers count for nothing in files, whose comments begin
// with `comment`. Returns false with a reason; without one where memory ran out.
static bool read_rows(const struct reason *reason, const char *text, char separator, char comment,
                      struct kernel *kernel)
{
    const char ends[] = {separator, comment ? comment : separator, 0};
    int count = 0, row = 1, begin = 0;
    for (const char *at = text;; row++, begin = count) {
        while (*(at = skip_gap(at, comment)) && *at != separator) {
            double value;
            if (!read_number(&at, ends, &value))
                return refuse(reason, "row %d has '%.*s' where a number belongs", row,
                              (int)strcspn(at, " \t\r\n,;/#") % 40, at);
            if (fabs(value) > KERNEL_LARGEST)
                return refuse(reason, "row %d has %g; the range is %g .. %g", row, value,
                              -KERNEL_LARGEST, KERNEL_LARGEST);
            if (count - begin > KERNEL_SIDE)
                break;
            if (!append(kernel, &count, value))
                return false;
        }
        if (count > begin || !comment) {
            if (!check_row(reason, kernel, row, count - begin))
                return false;
            kernel->width = count - begin;
            kernel->height++;
        }
        if (!*at)
            return true;
        at++;
    }
}

// Open what cannot keep a job waiting: a chain may change while frames are under way.
static FILE *open_file(const struct reason *reason, const char *name)
{
    struct stat about;
    FILE *file = NULL;
    if (!stat(name, &about) && !S_ISREG(about.st_mode)) {
        refuse(reason, "are no rows: it is no regular file");
        return NULL;
    }
    file = fopen(name, "rb");
    if (!file)
        refuse(&(struct reason){reason->why, reason->size, NULL},
               "it is neither rows of numbers, such as '1 2 1/2 4 2/1 2 1', nor a file that can be "
               "read: %s",
               strerror(errno));
    return file;
}

// All of an open file, with room for a zero behind it: as much memory as there is text. A byte more
// than MAX_FILE shows that it is too large. NULL without memory.
static char *read_all(FILE *file, size_t *size)
{
    size_t room = 4096;
    char *text = malloc(room);
    *size = 0;
    while (text) {
        *size += fread(text + *size, 1, room - 1 - *size, file);
        if (*size < room - 1 || room > MAX_FILE)
            break;
        char *larger = realloc(text, room *= 2);
        if (!larger)
            free(text);
        text = larger;
    }
    return text;
}

// A file as a string. Bytes of zero are taken for what no number is.
static char *read_file(const struct reason *reason, const char *name)
{
    FILE *file = open_file(reason, name);
    if (!file)
        return NULL;
    size_t size;
    char *text = read_all(file, &size);
    bool readable = text && !ferror(file) && size <= MAX_FILE;
    if (!text)
        refuse(reason, "there is no memory for its text");
    else if (ferror(file))
        refuse(reason, "nothing can be read: %s", strerror(errno));
    else if (!readable)
        refuse(reason, "are more than %d MiB, which no kernel is", MAX_FILE >> 20);
    fclose(file);
    if (!readable) {
        free(text);
        return NULL;
    }
    for (size_t k = 0; k < size; k++)
        text[k] = text[k] ? text[k] : '?';
    text[size] = 0;
    return text;
}

static bool check_kernel(const struct reason *reason, const struct kernel *kernel)
{
    if (!kernel->height || !kernel->width)
        return refuse(reason, "there are no numbers");
    for (int k = 0; k < kernel->width * kernel->height; k++)
        if (kernel->weight[k] != 0)
            return true;
    return refuse(reason, "there are only zeros, which make a picture of nothing");
}

// True if the text can only be meant as rows: nothing but what numbers are made of.
static bool looks_like_rows(const char *text)
{
    return !text[strspn(text, "0123456789.+-eE ,;\t/\r\n")];
}

static bool read_any(const char *text, struct reason *reason, struct kernel *kernel)
{
    *kernel = (struct kernel){0};
    *reason->why = 0;
    if (looks_like_rows(text)) {
        if (read_rows(reason, text, '/', 0, kernel))
            return check_kernel(reason, kernel);
        if (access(text, F_OK))
            return false;
        kernel_free(kernel);
    }
    reason->file = text;
    char *content = read_file(reason, text);
    bool read =
        content && read_rows(reason, content, '\n', '#', kernel) && check_kernel(reason, kernel);
    free(content);
    return read;
}

// ---- writing ----

// The shortest digits that read as this number.
static void print_number(double value, FILE *to)
{
    char digits[32];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    fputs(digits, to);
}

static char *printed(const struct kernel *kernel)
{
    assert(kernel->width >= 1 && kernel->height >= 1 && kernel->weight);
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    for (int k = 0; k < kernel->width * kernel->height; k++) {
        if (k)
            fputc(k % kernel->width ? ' ' : '/', to);
        print_number(kernel->weight[k], to);
    }
    if (!fclose(to))
        return text;
    free(text);
    return NULL;
}

char *kernel_resolve(const char *text, char *why, size_t size)
{
    struct reason reason = {.why = why, .size = size};
    struct kernel kernel;
    char *resolved = read_any(text, &reason, &kernel) ? printed(&kernel) : NULL;
    kernel_free(&kernel);
    return resolved;
}

char *kernel_resolve_line(const char *text, char *why, size_t size)
{
    struct reason reason = {.why = why, .size = size};
    struct kernel kernel;
    bool read = read_any(text, &reason, &kernel);
    if (read && kernel.width > 1 && kernel.height > 1)
        read = refuse(&reason, "there are %d rows of %d numbers; one row or one column is wanted",
                      kernel.height, kernel.width);
    if (read && kernel.width == 1) {
        kernel.width = kernel.height;
        kernel.height = 1;
    }
    char *resolved = read ? printed(&kernel) : NULL;
    kernel_free(&kernel);
    return resolved;
}

enum status kernel_read(const char *text, struct kernel *kernel)
{
    char why[256];
    struct reason reason = {.why = why, .size = sizeof why};
    if (read_any(text, &reason, kernel))
        return STATUS_OK;
    kernel_free(kernel);
    return STATUS_MEMORY;
}

void kernel_free(struct kernel *kernel)
{
    free(kernel->weight);
    *kernel = (struct kernel){0};
}
