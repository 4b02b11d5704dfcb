// Hints: answers to command lines that sluice does not understand, and to those that ffmpeg would.
#pragma once

#include <stdbool.h>

// True if `text` is an option of ffmpeg that sluice lacks, or one that it spells otherwise, `next`
// (optional) being the argument behind it; if so, say how sluice does the same.
bool hint_at_ffmpeg_option(const char *text, const char *next);

// True if a chain that cannot be read was meant as the name of a format, as ffmpeg's -f takes it;
// if so, say what names formats here.
bool hint_at_format(const char *chain);

// True if `text` ("-qy") is a group of options of one letter each, none of them unknown, up to the
// first that takes a value. `letters` is getopt's string.
bool is_letter_group(const char *text, const char *letters);

// Say that there is no stage `name`, and which is spelled nearly so.
void refuse_stage(const char *name);

// Say that `sluice help` knows no `topic`, and which is spelled nearly so.
void refuse_topic(const char *topic);

// Say that there is no option `text`, and which of `names` (ended by NULL) is spelled nearly so.
void refuse_option(const char *text, const char *const *names);
