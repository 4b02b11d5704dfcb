#define _GNU_SOURCE
#include "page/uploads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "page/inputs.h"
#include "page/later.h"
#include "pipeline/output/file/folder.h"

// Bytes after which the disk is told to begin, so that it has little left to do at the end.
enum { AHEAD = 8 << 20 };

struct upload {
    struct uploads *of;
    int fd; // -1: none
    int64_t size;
    unsigned code; // a failure's; 0: none
    char why[512];
    char *name, *hidden, *path; // hidden: until it is whole
};

__attribute__((format(printf, 3, 4))) static void refuse(struct upload *upload, unsigned code,
                                                         const char *format, ...)
{
    va_list arguments;
    if (upload->code)
        return;
    upload->code = code;
    va_start(arguments, format);
    vsnprintf(upload->why, sizeof upload->why, format, arguments);
    va_end(arguments);
}

// The folder that files go to; NULL where it cannot be made.
static const char *find_place(struct uploads *uploads)
{
    if (uploads->media)
        return uploads->media;
    if (uploads->folder)
        return uploads->folder;
    const char *place = getenv("TMPDIR");
    if (asprintf(&uploads->folder, "%s/sluice-page-XXXXXX", place && *place ? place : "/tmp") < 0)
        uploads->folder = NULL;
    if (uploads->folder && !mkdtemp(uploads->folder)) {
        free(uploads->folder);
        uploads->folder = NULL;
    }
    return uploads->folder;
}

static void open_file(struct upload *upload, const char *folder)
{
    if (asprintf(&upload->hidden, "%s/.upload-XXXXXX", folder) < 0)
        upload->hidden = NULL;
    if (asprintf(&upload->path, "%s/%s", folder, upload->name) < 0)
        upload->path = NULL;
    upload->fd = upload->hidden && upload->path ? mkostemp(upload->hidden, O_CLOEXEC) : -1;
    if (upload->fd < 0)
        refuse(upload, 500, "the upload cannot be written: %s", strerror(errno));
}

void uploads_read_mask(struct uploads *uploads)
{
    uploads->mask = umask(077);
    umask(uploads->mask);
}

struct upload *upload_begin(struct uploads *uploads, const char *name)
{
    struct upload *upload = calloc(1, sizeof *upload);
    if (!upload)
        return NULL;
    *upload = (struct upload){.of = uploads, .fd = -1, .name = strdup(name ? name : "")};
    if (!upload->name || !media_name_is_fine(upload->name))
        refuse(upload, 400,
               "'%.100s' is no name for an upload: give a bare file name, as in ?name=film.mp4",
               name ? name : "");
    else if (uploads->running >= UPLOADS)
        refuse(upload, 503, "other uploads are running; try again when they are through");
    else if (find_place(uploads))
        open_file(upload, find_place(uploads));
    else
        refuse(upload, 500, "there is no folder for uploads: %s", strerror(errno));
    uploads->running++;
    return upload;
}

// The private folder does not outlive the program, nor a power cut.
static void write_ahead(const struct upload *upload, int64_t before)
{
    if (upload->of->media && upload->size / AHEAD > before / AHEAD)
        sync_file_range(upload->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

bool upload_take(struct upload *upload, const char *data, size_t size)
{
    int64_t before = upload->size;
    upload->size += (int64_t)size;
    if (upload->size > upload->of->max)
        refuse(upload, 413, "the upload is larger than %lld bytes; see --upload-max",
               (long long)upload->of->max);
    while (size && !upload->code) {
        ssize_t written = write(upload->fd, data, size);
        if (written < 0 && errno != EINTR)
            refuse(upload, errno == ENOSPC ? 507 : 500, "the upload cannot be written: %s",
                   strerror(errno));
        data += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    if (!upload->code)
        write_ahead(upload, before);
    return !upload->code;
}

// ---- what goes ----

static void close_file(void *opaque, const void *fd, char **text, size_t *size)
{
    (void)opaque, (void)text, (void)size;
    close(*(const int *)fd);
}

// Close a file without a name, with which its bytes go: by the worker, so that viewers do not wait.
static void close_later(const struct uploads *uploads, int fd)
{
    int *task = uploads->later ? malloc(sizeof *task) : NULL;
    if (task)
        *task = fd;
    if (!task || !later_do(uploads->later, close_file, task))
        close(fd);
}

void upload_drop(struct upload **upload)
{
    struct upload *old = *upload;
    if (!old)
        return;
    old->of->running--;
    if (old->fd >= 0) {
        unlink(old->hidden);
        close_later(old->of, old->fd);
    }
    free(old->name);
    free(old->hidden);
    free(old->path);
    free(old);
    *upload = NULL;
}

static void remove_file(const struct uploads *uploads, const char *path)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    unlink(path);
    if (fd >= 0)
        close_later(uploads, fd);
}

static bool is_either(const char *path, const char *const paths[2])
{
    return (paths[0] && !strcmp(path, paths[0])) || (paths[1] && !strcmp(path, paths[1]));
}

// Remove the files of the private folder but these.
static void empty_folder(const struct uploads *uploads, const char *const but[2])
{
    const char *folder = uploads->folder;
    char path[4096];
    struct dirent *entry;
    DIR *list = opendir(folder);
    while (list && (entry = readdir(list))) {
        int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        bool kept = is_either(path, but);
        if (!kept && entry->d_name[0] != '.' && length < (int)sizeof path)
            remove_file(uploads, path);
    }
    if (list)
        closedir(list);
}

// Name a file of the media, which others may read as those that a program makes. Nothing is replaced, and
// what the visitor is told to be there is there after a power cut. Returns an errno.
static int name_medium(const struct upload *upload)
{
    const struct log silence = {0};
    fchmod(upload->fd, 0666 & ~upload->of->mask);
    int error = fsync(upload->fd) ? errno : folder_rename_new(upload->hidden, upload->path);
    if (error || !folder_sync_of(upload->path, &silence))
        return error;
    unlink(upload->path);
    return EIO;
}

static void give_name(struct upload *upload)
{
    int error;
    if (upload->of->media) {
        error = name_medium(upload);
    } else {
        empty_folder(upload->of, upload->of->in_use);
        error = rename(upload->hidden, upload->path) ? errno : 0;
    }
    if (error == EEXIST)
        refuse(upload, 409, "there is a file %s already", upload->name);
    else if (error)
        refuse(upload, 500, "the upload cannot be written: %s", strerror(error));
}

unsigned upload_finish(struct upload **upload, char *why, size_t size)
{
    struct upload *old = *upload;
    if (!old->code && !old->size)
        refuse(old, 400, "the upload is empty");
    if (!old->code)
        give_name(old);
    unsigned code = old->code;
    snprintf(why, size, "%s", old->why);
    if (!code) {
        close(old->fd);
        old->fd = -1;
    }
    upload_drop(upload);
    return code;
}

void uploads_remove(struct uploads *uploads)
{
    if (!uploads->folder)
        return;
    uploads->later = NULL;
    empty_folder(uploads, (const char *const[2]){NULL});
    rmdir(uploads->folder);
    free(uploads->folder);
    uploads->folder = NULL;
}
