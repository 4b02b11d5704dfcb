// The outcome of every function that can fail, in all layers.
#pragma once

// Zero is success. A status says who has to act; the sentence that says what happened was logged
// where the trouble was found, once, and everyone above only passes the status on.
enum status {
    STATUS_OK = 0,
    STATUS_EOF,     // the end, not a failure: no more frames, or the other side has gone
    STATUS_STOPPED, // a stop was asked for
    STATUS_FAILED,  // none of the others: a library refused, or one of our own bugs
    STATUS_MEMORY,  // an allocation failed
    STATUS_USAGE,   // the caller asked for something that does not exist or does not fit
    STATUS_INPUT,   // the input cannot be read, understood or decoded
    STATUS_OUTPUT,  // the output cannot be encoded or written
    STATUS_DEVICE,  // the GPU or its driver failed, or is not there
    STATUS_AGAIN,   // it has to be begun again, in another way, which the function says
};

static inline int status_is_failure(enum status status)
{
    return status > STATUS_STOPPED;
}

// The status that a join of two threads reports: a real failure outranks a stop, a stop outranks
// the end, and of two failures the first wins.
static inline enum status status_join(enum status first, enum status second)
{
    if (status_is_failure(first))
        return first;
    return second > first ? second : first;
}
