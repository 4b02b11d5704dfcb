// Which thread a part of a job belongs to, for assertions at its border.
//
// Until its thread runs a part belongs to whoever prepares the job; the thread takes it for good.
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct owner {
    pthread_t thread;
    bool taken;
};

static inline void owner_take(struct owner *owner)
{
    owner->thread = pthread_self();
    owner->taken = true;
}

static inline bool owner_is_me(const struct owner *owner)
{
    return !owner->taken || pthread_equal(owner->thread, pthread_self());
}
