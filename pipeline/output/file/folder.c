#define _GNU_SOURCE
#include "pipeline/output/file/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/ffmpeg/url.h"

void folder_of(const char *name, char *folder, size_t size)
{
    char copy[4096];
    snprintf(copy, sizeof copy, "%s", name);
    snprintf(folder, size, "%s", dirname(copy));
}

// Of the errors of open() and fsync().
static bool is_failure(int error)
{
    return error != EINVAL && error != ENOTSUP && error != ENOSYS && error != EROFS &&
           error != EACCES && error != EPERM;
}

enum status folder_sync(const char *folder, const struct log *log)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 || fsync(fd) ? errno : 0;
    if (fd >= 0)
        close(fd);
    return error && is_failure(error)
               ? log_fail(log, STATUS_OUTPUT, "%s could not be synced: %s", folder, strerror(error))
               : STATUS_OK;
}

enum status folder_sync_of(const char *name, const struct log *log)
{
    char folder[4096];
    folder_of(name, folder, sizeof folder);
    return folder_sync(folder, log);
}

enum status folder_make(const char *folder, const struct log *log)
{
    return mkdir(folder, 0777) ? STATUS_OK : folder_sync_of(folder, log);
}

int folder_rename_new(const char *from, const char *to)
{
    if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    // Some file systems do not know the flag.
    if (link(from, to))
        return errno;
    unlink(from);
    return 0;
}

enum status folder_remove(const char *name, const struct log *log)
{
    struct stat about;
    if (stat(name, &about) || !S_ISREG(about.st_mode))
        return STATUS_OK;
    char *place = url_resolve(name);
    bool removed = place && !unlink(place);
    enum status status =
        removed ? folder_sync_of(place, log)
                : log_fail(log, STATUS_OUTPUT, "%s cannot be replaced: %s", name, strerror(errno));
    free(place);
    return status;
}
