// Inputs that visitors of the page may choose: files of the folder of media by name, cameras from
// the list of devices, addresses by the rule of inputs (pipeline/input/io/reach.h). Names come from
// the network.
//
// Thread-safety: any thread.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum input_kind { INPUT_MEDIA, INPUT_CAMERA, INPUT_ADDRESS };

// Open a regular file of the folder for reading: "film.mp4", "monday/film.mp4". Never one outside:
// no part of the name may be a link, "..", ".", hidden or empty, so that nothing above the folder
// is reached whatever stands in it. Returns the descriptor, which is the caller's; -1 with a
// sentence in `why`. Neither waits for a pipe nor opens a device.
int media_open(const char *folder, const char *name, char *why, size_t size);

// True if a new file of the folder may be called so, an upload or a recording: a bare name of up to
// 200 bytes of UTF-8 without control characters, "/" and "\", that begins with neither "." nor "-".
bool media_name_is_fine(const char *name);

// The files of the folder and of those in it, up to four deep, in the order of their names, 1000 at
// most: [{"name":"monday/film.mp4","bytes":1234}]. Links and hidden files are left out. An empty
// list where there is no folder (NULL); NULL without memory. Blocks while the disk answers.
json_t *media_json(const char *folder);

// The capture devices: [{"name":"/dev/video0","about":"Integrated Camera"}], with "trouble" where
// one cannot be used. Blocks while drivers answer; NULL without memory.
json_t *cameras_json(void);

// The value of config->input for such a choice, in memory of malloc(); NULL with a sentence in
// `why` if there is none. `folder` (optional) is that of the media. Blocks as cameras_json() for a
// camera.
char *input_resolve(enum input_kind kind, const char *folder, const char *name, char *why,
                    size_t size);
