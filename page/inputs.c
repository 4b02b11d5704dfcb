#define _GNU_SOURCE
#include "page/inputs.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/input/io/reach.h"
#include "sluice/sluice.h"

enum { MOST_FILES = 1000, DEEPEST = 4, LONGEST_NAME = 200 };

// ---- the folder of media ----

// One step down, through no link. A pipe is not waited for.
static int open_beneath(int folder, const char *part, bool last)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    return openat(folder, part, flags | (last ? 0 : O_DIRECTORY));
}

static int open_folder(const char *folder)
{
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

// The file that the name's parts lead to, which are cut from it; -1 with errno.
static int walk(const char *folder, char *name)
{
    int at = open_folder(folder);
    for (char *part = name; at >= 0 && part;) {
        char *end = strchr(part, '/');
        if (end)
            *end = 0;
        int next = -1;
        if (!*part || *part == '.')
            errno = ENOENT;
        else
            next = open_beneath(at, part, !end);
        int error = errno;
        close(at);
        errno = error;
        at = next;
        part = end ? end + 1 : NULL;
    }
    return at;
}

static bool is_regular(int fd)
{
    struct stat about;
    return !fstat(fd, &about) && S_ISREG(about.st_mode);
}

int media_open(const char *folder, const char *name, char *why, size_t size)
{
    assert(name && why && size);
    char parts[4096];
    int fd = -1;
    errno = ENAMETOOLONG;
    if (folder && strlen(name) < sizeof parts)
        fd = walk(folder, strcpy(parts, name));
    if (fd >= 0 && is_regular(fd))
        return fd;
    const char *reason = fd >= 0                                                 ? "it is no file"
                         : errno == ENOENT || errno == ELOOP || errno == ENOTDIR ? "there is none"
                                                                                 : strerror(errno);
    if (folder)
        snprintf(why, size, "the folder of media has no file '%.200s': %s", name, reason);
    else
        snprintf(why, size, "there is no folder of media; 'sluice serve --media DIR' names one");
    if (fd >= 0)
        close(fd);
    return -1;
}

bool media_name_is_fine(const char *name)
{
    assert(name);
    size_t length = strlen(name);
    if (!length || length > LONGEST_NAME || *name == '.' || *name == '-' || strpbrk(name, "/\\"))
        return false;
    for (const char *at = name; *at; at++)
        if (iscntrl((unsigned char)*at))
            return false;
    json_t *text = json_string(name); // NULL of what is no UTF-8
    json_decref(text);
    return text;
}

static bool list_folder(json_t *list, int folder, const char *before, int depth);

// A file, or those of a folder; false without memory. `before` is the way to it, "monday/".
static bool add_entry(json_t *list, int folder, const char *before, const char *name, int depth)
{
    char path[PATH_MAX];
    struct stat about;
    int length = snprintf(path, sizeof path, "%s%s", before, name);
    if (*name == '.' || fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) ||
        length + 1 >= (int)sizeof path)
        return true;
    if (S_ISDIR(about.st_mode) && depth < DEEPEST) {
        int inner = open_beneath(folder, name, false);
        bool fine = inner < 0 || list_folder(list, inner, strcat(path, "/"), depth + 1);
        if (inner >= 0)
            close(inner);
        return fine;
    }
    if (!S_ISREG(about.st_mode))
        return true;
    json_t *file = json_pack("{s:s, s:I}", "name", path, "bytes", (json_int_t)about.st_size);
    return !file || !json_array_append_new(list, file); // a name that is no UTF-8 is left out
}

static bool list_folder(json_t *list, int folder, const char *before, int depth)
{
    struct dirent **entry = NULL;
    bool fine = true;
    int count = scandirat(folder, ".", &entry, NULL, alphasort);
    for (int k = 0; k < count; k++) {
        if (fine && json_array_size(list) < MOST_FILES)
            fine = add_entry(list, folder, before, entry[k]->d_name, depth);
        free(entry[k]);
    }
    free(entry);
    return fine;
}

json_t *media_json(const char *folder)
{
    json_t *list = json_array();
    int fd = folder && list ? open_folder(folder) : -1;
    if (fd >= 0 && !list_folder(list, fd, "", 0)) {
        json_decref(list);
        list = NULL;
    }
    if (fd >= 0)
        close(fd);
    return list;
}

// ---- cameras ----

static void add_camera(void *list, const struct sluice_device *device)
{
    json_t *camera = json_pack("{s:s, s:s}", "name", device->input, "about", device->name);
    if (camera && device->trouble)
        json_object_set_new(camera, "trouble", json_string(device->trouble));
    if (camera)
        json_array_append_new(list, camera);
}

json_t *cameras_json(void)
{
    json_t *list = json_array();
    if (list)
        sluice_devices(add_camera, list); // without drivers there are none
    return list;
}

static char *resolve_camera(const char *name, char *why, size_t size)
{
    json_t *list = cameras_json(), *camera;
    char *input = NULL;
    size_t k;
    snprintf(why, size, "there is no camera '%.200s'", name);
    json_array_foreach(list, k, camera)
    {
        const char *trouble = json_string_value(json_object_get(camera, "trouble"));
        if (strcmp(json_string_value(json_object_get(camera, "name")), name) != 0)
            continue;
        if (trouble)
            snprintf(why, size, "%s: %s", name, trouble);
        else
            input = strdup(name);
        break;
    }
    json_decref(list);
    return input;
}

// ---- choices ----

static char *resolve_media(const char *folder, const char *name, char *why, size_t size)
{
    char *path = NULL;
    int fd = media_open(folder, name, why, size);
    if (fd < 0)
        return NULL;
    close(fd);
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

// Sockets of this machine are not for visitors.
static bool is_address(const char *name)
{
    return strstr(name, "://") && strncmp(name, "unix:", 5) != 0 && reach_protocols(name) &&
           access(name, F_OK);
}

static char *resolve_address(const char *name, char *why, size_t size)
{
    if (is_address(name))
        return strdup(name);
    snprintf(why, size,
             "this is no address that can be opened; rtsp://, rtmp://, srt://, udp://, rtp://, "
             "http:// and https:// can be");
    return NULL;
}

char *input_resolve(enum input_kind kind, const char *folder, const char *name, char *why,
                    size_t size)
{
    assert(name && why && size);
    snprintf(why, size, "out of memory");
    switch (kind) {
    case INPUT_MEDIA:
        return resolve_media(folder, name, why, size);
    case INPUT_CAMERA:
        return resolve_camera(name, why, size);
    case INPUT_ADDRESS:
        return resolve_address(name, why, size);
    }
    return NULL;
}
