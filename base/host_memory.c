#include "base/host_memory.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 4096 + 512 };

// The number behind `word` in a file of "word number" lines; -1: it is not there.
static int64_t number_of(const char *file, const char *word)
{
    char line[256];
    size_t length = strlen(word);
    long long number = -1;
    FILE *from = fopen(file, "re");
    while (from && number < 0 && fgets(line, sizeof line, from))
        if (strncmp(line, word, length) || sscanf(line + length, " %lld", &number) != 1)
            number = -1;
    if (from)
        fclose(from);
    return number;
}

// A file of one number; -1: it is not there, or "max".
static int64_t number_in(const char *folder, const char *file)
{
    char path[PATH + 64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return number_of(path, "");
}

// The names of the same in both versions of control groups.
struct version {
    const char *mount, *limit, *used, *kept;
};

static const struct version versions[] = {
    {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file"},
};

static int64_t least(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

// Bytes that the limit of one group leaves; -1: it has none.
static int64_t left_by(const struct version *version, const char *folder)
{
    char file[PATH + 64];
    int64_t limit = number_in(folder, version->limit), used = number_in(folder, version->used);
    if (limit < 0 || used < 0)
        return -1;
    snprintf(file, sizeof file, "%s/memory.stat", folder);
    int64_t kept = number_of(file, version->kept), left = limit - used + (kept > 0 ? kept : 0);
    return left > 0 ? left : 0;
}

// Bytes that a group and those above it leave. In a container its path may be the host's, which is not
// there: the folder that is mounted is the container's own then.
static int64_t left_by_all(const struct version *version, const char *root, const char *path)
{
    char folder[PATH];
    int64_t left = -1;
    snprintf(folder, sizeof folder, "%s%s%s", root, version->mount, path);
    size_t top = strlen(root) + strlen(version->mount);
    for (;;) {
        left = least(left, left_by(version, folder));
        char *end = strrchr(folder, '/');
        if (strlen(folder) <= top || !end)
            return left;
        *end = 0;
    }
}

// True if the list of controllers between the colons of a line has `memory` in it.
static bool has_memory(const char *controllers)
{
    static const char memory[] = "memory";
    const char *at = strstr(controllers, memory);
    char behind = at ? at[sizeof memory - 1] : 0;
    return at && (at == controllers || at[-1] == ',') && (!behind || behind == ',');
}

// Bytes that the control groups of this process leave; -1: they have no limit.
static int64_t left_by_groups(const char *root)
{
    char line[PATH], file[PATH];
    int64_t left = -1;
    snprintf(file, sizeof file, "%s/proc/self/cgroup", root);
    FILE *from = fopen(file, "re");
    while (from && fgets(line, sizeof line, from)) { // "0::/a/b", "4:cpu,memory:/a/b"
        char *controllers = strchr(line, ':'), *path = NULL;
        if (controllers)
            path = strchr(++controllers, ':');
        if (!path)
            continue;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        if (!*controllers)
            left = least(left, left_by_all(&versions[0], root, path));
        else if (has_memory(controllers))
            left = least(left, left_by_all(&versions[1], root, path));
    }
    if (from)
        fclose(from);
    return left;
}

int64_t host_memory_available_in(const char *root)
{
    char file[PATH];
    assert(strlen(root) < 256);
    snprintf(file, sizeof file, "%s/proc/meminfo", root);
    int64_t kib = number_of(file, "MemAvailable:");
    int64_t left = least(kib < 0 ? -1 : kib * 1024, left_by_groups(root));
    return left < 0 ? 0 : left ? left : 1;
}

int64_t host_memory_available(void)
{
    return host_memory_available_in("");
}

int64_t host_memory_ceiling(int64_t available)
{
    const int64_t least_reserve = 64 << 20;
    int64_t share = available / 16, reserve = share > least_reserve ? share : least_reserve;
    return available > 2 * reserve ? available - reserve : (available + 1) / 2;
}

// Bytes of this process's pages: all, and those of files and shared memory among them.
static bool read_pages(int64_t *all, int64_t *shared)
{
    long long pages[2];
    FILE *from = fopen("/proc/self/statm", "re");
    bool known = from && fscanf(from, "%*s %lld %lld", &pages[0], &pages[1]) == 2;
    if (from)
        fclose(from);
    *all = known ? pages[0] * sysconf(_SC_PAGESIZE) : 0;
    *shared = known ? pages[1] * sysconf(_SC_PAGESIZE) : 0;
    return known;
}

int64_t host_memory_resident(void)
{
    int64_t all, shared;
    return read_pages(&all, &shared) ? all : 0;
}

int64_t host_memory_own(void)
{
    int64_t all, shared;
    return read_pages(&all, &shared) ? all - shared : 0;
}
