#define _GNU_SOURCE
#include "pipeline/ffmpeg/url.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libgen.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/secrets.h"

static bool exists(const char *name)
{
    struct stat about;
    return !stat(name, &about);
}

// True if a name would be taken for something else than a file.
static bool is_special(const char *name, bool is_output)
{
    static const char *const kinds[] = {"null:", "hash:", "take:", "display:", "mjpeg:"};
    const char *format, *what;
    for (size_t k = 0; is_output && k < sizeof kinds / sizeof *kinds; k++)
        if (av_strstart(name, kinds[k], NULL))
            return true;
    return url_has_scheme(name) ||
           (!is_output && url_is_device(name, &format, &what) && what != name);
}

const char *url_plain(const char *name, bool is_output)
{
    static const char pipes[10][10] = {"/dev/fd/0", "/dev/fd/1", "/dev/fd/2", "/dev/fd/3",
                                       "/dev/fd/4", "/dev/fd/5", "/dev/fd/6", "/dev/fd/7",
                                       "/dev/fd/8", "/dev/fd/9"};
    const char *end;
    if (exists(name))
        return name;
    if (av_strstart(name, "file:", &end)) // whoever writes it wants a file and nothing else
        return !strcmp(end, "-") ? "./-" : is_special(end, is_output) ? name : end;
    if (!av_strstart(name, "pipe:", &end) || (*end && (!isdigit((unsigned char)*end) || end[1])))
        return name;
    int number = *end ? *end - '0' : is_output;
    return number == is_output ? "-" : pipes[number];
}

bool url_has_scheme(const char *name)
{
    size_t letters = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    return letters > 1 && !strncmp(name + letters, "://", 3) && !exists(name);
}

bool url_is_live(const char *name)
{
    static const char *const schemes[] = {"rtsp", "rtsps", "rtmp", "rtmps", "rtmpt", "rtmpe",
                                          "srt",  "udp",   "rtp",  "tcp",   NULL};
    size_t length = strcspn(name, ":");
    for (int k = 0; url_has_scheme(name) && schemes[k]; k++)
        if (strlen(schemes[k]) == length && !strncmp(name, schemes[k], length))
            return true;
    return false;
}

const char *url_host_trouble(const char *name, char *host, size_t size)
{
    struct addrinfo *found = NULL;
    *host = 0;
    if (url_has_scheme(name))
        av_url_split(NULL, 0, NULL, 0, host, (int)size, NULL, NULL, 0, name);
    int error = *host ? getaddrinfo(host, NULL, NULL, &found) : 0;
    if (!error && found)
        freeaddrinfo(found);
    return error == EAI_NONAME  ? "is not known"
           : error == EAI_AGAIN ? "cannot be looked up now" // a name server does not answer
                                : NULL;
}

const struct device_name device_names[] = {
    {"v4l2", "v4l2:/dev/video0"},
    {"x11grab", "x11grab::0"},
    {"lavfi", "lavfi:testsrc=size=640x480:rate=25"},
    {"fbdev", "fbdev:/dev/fb0"},
    {"decklink", "decklink:DeckLink Mini Recorder"},
    {"iec61883", "iec61883:auto"},
    {NULL, NULL},
};

// V4L2's number among the devices of Linux is 81. What is not there may still be plugged in.
static bool is_camera(const char *name)
{
    struct stat about;
    if (stat(name, &about))
        return !strncmp(name, "/dev/video", 10) || !strncmp(name, "/dev/v4l/", 9);
    return S_ISCHR(about.st_mode) && major(about.st_rdev) == 81;
}

bool url_is_device(const char *name, const char **format, const char **what)
{
    size_t length = strcspn(name, ":");
    *what = name;
    *format = is_camera(name) ? "v4l2" : NULL;
    for (int k = 0; !*format && name[length] && !exists(name) && device_names[k].format; k++) {
        const char *kind = device_names[k].format;
        if (strlen(kind) != length || strncmp(name, kind, length) != 0)
            continue;
        *format = kind;
        *what = name + length + 1;
    }
    return *format;
}

void url_without_secrets(const char *name, char *to, size_t size)
{
    secrets_copy(name, SECRETS_IN_NAME, to, size);
}

bool url_has_long_numbers(const char *name)
{
    for (const char *at = strchr(name, '%'); at; at = strchr(at, '%')) {
        if (strtol(at + 1, NULL, 10) > NAME_MAX)
            return true;
        at += at[1] == '%' ? 2 : 1;
    }
    return false;
}

int url_numbered_name(char *to, int size, const char *pattern, int number, int flags)
{
    return url_has_long_numbers(pattern) ? -1
                                         : av_get_frame_filename2(to, size, pattern, number, flags);
}

bool url_is_numbered(const char *name)
{
    char first[4096];
    return !exists(name) && url_numbered_name(first, sizeof first, name, 1, 0) >= 0;
}

bool url_is_globbed(const char *name)
{
    return !exists(name) && strpbrk(name, "*?[");
}

bool url_has_matches(const char *name)
{
    glob_t found;
    bool any = !glob(name, GLOB_NOSORT, NULL, &found);
    globfree(&found);
    return any;
}

const char *url_format(const char *format)
{
    if (format && !strcmp(format, "y4m"))
        return "yuv4mpegpipe";
    return format && !strcmp(format, "mkv") ? "matroska" : format;
}

// ---- numbers ----

// The number for which "f%04d.png" makes this file's name; -1: none.
static int number_in(const char *pattern, const char *name)
{
    char made[4096];
    size_t before = 0; // of the name, up to the number
    const char *at = pattern;
    for (; *at && (*at != '%' || at[1] == '%'); at++, before++)
        at += *at == '%';
    if (strlen(name) < before || !isdigit((unsigned char)name[before]))
        return -1;
    long number = strtol(name + before, NULL, 10);
    if (number > INT_MAX || url_numbered_name(made, sizeof made, pattern, (int)number, 0) < 0)
        return -1;
    return strcmp(made, name) ? -1 : (int)number;
}

// ---- folders ----

static bool matches(const char *pattern, const char *name)
{
    char first[4096];
    if (url_numbered_name(first, sizeof first, pattern, 1, 0) >= 0)
        return number_in(pattern, name) >= 0;
    return !fnmatch(pattern, name, FNM_PERIOD) || !strcmp(pattern, name);
}

// True if the folder holds a file that both patterns mean.
static bool share_a_file(const char *folder, const char *a, const char *b)
{
    DIR *list = opendir(folder);
    bool found = false;
    if (!list)
        return false;
    for (const struct dirent *entry; !found && (entry = readdir(list));)
        found = matches(a, entry->d_name) && matches(b, entry->d_name);
    closedir(list);
    return found;
}

// The real folder of a name, and what follows it.
struct place {
    char folder[4096], copy[4096];
    const char *base;
};

static bool find_place(const char *name, struct place *place)
{
    snprintf(place->copy, sizeof place->copy, "%s", name);
    if (!realpath(dirname(place->copy), place->folder))
        return false;
    snprintf(place->copy, sizeof place->copy, "%s", name);
    place->base = basename(place->copy);
    return true;
}

int url_first_number(const char *name, int *count)
{
    struct place place;
    int first = -1;
    *count = 0;
    DIR *list = find_place(name, &place) ? opendir(place.folder) : NULL;
    if (!list)
        return -1;
    for (const struct dirent *entry; (entry = readdir(list));) {
        int number = number_in(place.base, entry->d_name);
        if (number < 0)
            continue;
        ++*count;
        if (first < 0 || number < first)
            first = number;
    }
    closedir(list);
    return first;
}

// True if a file holds data that writing would replace: no terminal or socket that goes both ways.
static bool is_storage(const struct stat *about)
{
    return S_ISREG(about->st_mode) || S_ISBLK(about->st_mode) || S_ISFIFO(about->st_mode);
}

static bool is_one_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && is_storage(a);
}

// True if one of the files that a pattern means is this one.
static bool holds_file(const struct place *pattern, const struct stat *file)
{
    DIR *list = opendir(pattern->folder);
    bool found = false;
    if (!list)
        return false;
    for (const struct dirent *entry; !found && (entry = readdir(list));) {
        struct stat about;
        found = matches(pattern->base, entry->d_name) &&
                !fstatat(dirfd(list), entry->d_name, &about, 0) && is_one_file(&about, file);
    }
    closedir(list);
    return found;
}

bool urls_collide(const char *input, const char *output)
{
    struct stat read, written;
    bool there = !stat(output, &written);
    if (there && !stat(input, &read))
        return is_one_file(&read, &written);
    if (url_is_numbered(output) && urls_are_same(input, output))
        return true;
    struct place from, to;
    if ((!url_is_numbered(input) && !url_is_globbed(input)) || !find_place(input, &from))
        return false;
    if (there)
        return holds_file(&from, &written);
    return find_place(output, &to) && !strcmp(from.folder, to.folder) &&
           share_a_file(from.folder, from.base, to.base);
}

// Where a name's last part begins.
static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static char *folder_of(const char *name)
{
    char *folder = strndup(name, (size_t)(base_of(name) - name));
    char *real = folder ? realpath(*folder ? folder : ".", NULL) : NULL;
    free(folder);
    return real;
}

// True if the first is the second, or a pattern for it.
static bool means(const char *a, const char *b)
{
    return !strcmp(a, b) || (url_is_numbered(a) && number_in(a, b) >= 0);
}

char *url_resolve(const char *name)
{
    enum { LINKS_MAX = 40 }; // as the kernel has it
    char target[4096], *at = strdup(name);
    for (int links = 0; at; links++) {
        ssize_t length = readlink(at, target, sizeof target - 1);
        char *next = NULL;
        if (length < 0)
            return at;
        target[length] = 0;
        int folder = *target == '/' ? 0 : (int)(base_of(at) - at);
        if (links == LINKS_MAX)
            errno = ELOOP;
        else if (asprintf(&next, "%.*s%s", folder, at, target) < 0)
            next = NULL;
        free(at);
        at = next;
    }
    return NULL;
}

static bool are_same_followed(const char *a, const char *b)
{
    if (!means(base_of(a), base_of(b)) && !means(base_of(b), base_of(a)))
        return false;
    char *folder = folder_of(a), *other = folder_of(b);
    bool same = folder && other && !strcmp(folder, other);
    free(folder);
    free(other);
    return same;
}

bool urls_are_same(const char *a, const char *b)
{
    if (!strcmp(a, b))
        return true;
    if (strstr(a, "://") || strstr(b, "://"))
        return false;
    char *one = url_resolve(a), *other = url_resolve(b);
    bool same = one && other && are_same_followed(one, other);
    free(one);
    free(other);
    return same;
}
