// A bounded pile of texts, for undo and redo: the newest is on top, the oldest goes first.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { HISTORY_TEXTS = 200, HISTORY_BYTES = 16 << 20 };

// Zeroed: empty.
struct history {
    char *text[HISTORY_TEXTS];
    int count;
    size_t bytes;
};

// Put a copy of a text on top; older ones go where there are too many, or too many bytes. Without
// memory nothing happens.
void history_push(struct history *history, const char *text);

// The text on top; NULL: there is none. The history's.
const char *history_top(const struct history *history);

// Take the top away.
void history_pop(struct history *history);

void history_clear(struct history *history);
