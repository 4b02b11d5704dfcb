#include "page/history.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void drop_oldest(struct history *history)
{
    history->bytes -= strlen(history->text[0]);
    free(history->text[0]);
    history->count--;
    memmove(history->text, history->text + 1, (size_t)history->count * sizeof *history->text);
}

void history_push(struct history *history, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return;
    size_t size = strlen(copy);
    while (history->count &&
           (history->count == HISTORY_TEXTS || history->bytes + size > HISTORY_BYTES))
        drop_oldest(history);
    history->text[history->count++] = copy;
    history->bytes += size;
}

const char *history_top(const struct history *history)
{
    return history->count ? history->text[history->count - 1] : NULL;
}

void history_pop(struct history *history)
{
    assert(history->count);
    char *top = history->text[--history->count];
    history->bytes -= strlen(top);
    free(top);
}

void history_clear(struct history *history)
{
    while (history->count)
        history_pop(history);
}
