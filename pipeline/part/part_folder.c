#include "pipeline/part/part_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

bool sluice_remove_part(const char *folder)
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
