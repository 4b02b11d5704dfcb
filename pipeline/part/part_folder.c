#define _GNU_SOURCE
#include "pipeline/part/part_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/output/file/folder.h"
#include "sluice/sluice.h"

const char part_file_manifest[] = "manifest", part_file_video[] = "video.nut",
           part_file_frames[] = "frames.txt";

void part_file_report(size_t record, const char *suffix, char name[PART_FILE_NAME])
{
    snprintf(name, PART_FILE_NAME, "report-%zu%s", record, suffix ? suffix : "");
}

char *part_folder_file(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *to = malloc(size);
    if (to)
        snprintf(to, size, "%s/%s", folder, name);
    return to;
}

static const char *base_of(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    return slash ? slash + 1 : folder;
}

char *part_folder_hidden(const char *folder)
{
    const char *base = base_of(folder);
    size_t size = strlen(folder) + sizeof "..XXXXXX";
    char *to = malloc(size);
    if (to)
        snprintf(to, size, "%.*s.%s.XXXXXX", (int)(base - folder), folder, base);
    return to;
}

static bool empty_and_remove(const char *folder)
{
    DIR *list = opendir(folder);
    const struct dirent *entry;
    while (list && (entry = readdir(list)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(list), entry->d_name, 0);
    if (list)
        closedir(list);
    return !rmdir(folder);
}

// Hide a folder; its new name, which the caller frees. NULL: it has its old one. Where the folder around it
// cannot be synced it is hidden all the same.
static char *hide(const char *folder)
{
    const struct log silence = {0};
    char *hidden = part_folder_hidden(folder);
    bool made = hidden && mkdtemp(hidden);
    if (made && !rename(folder, hidden)) {
        (void)folder_sync_of(folder, &silence);
        return hidden;
    }
    if (made)
        rmdir(hidden);
    free(hidden);
    return NULL;
}

bool sluice_remove_part(const char *folder)
{
    // After a power cut files may be gone before their folder: it has no visible name by then.
    char *hidden = *base_of(folder) == '.' ? NULL : hide(folder);
    bool gone = empty_and_remove(hidden ? hidden : folder);
    if (!gone && hidden)
        rename(hidden, folder); // what is left can be found
    free(hidden);
    return gone;
}
