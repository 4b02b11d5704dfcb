// Pages of a regular file as packets, where the kernel's cache has them: nothing is copied.
//
// Another process may shorten the file meanwhile, or the disk may fail. Pages are gone then, and whoever
// reads one gets SIGBUS, which would end the process. So a handler of that signal is there from the first
// file on: it puts zeros where pages of ours were, which mapped_is_torn() tells, and leaves all else to the
// handler that was there before, or to the default. systemd's journal reads its files so (sigbus.c).
#pragma once

#include <libavcodec/packet.h>
#include <stdbool.h>
#include <stdint.h>

struct mapped;

// Map the file that `fd` has open for reading, which must stay open until mapped_close(). Installs the
// process's handler of SIGBUS, once. NULL without memory.
struct mapped *mapped_open(int fd);

// Packets may outlive it. Accepts NULL behind the pointer, leaves NULL.
void mapped_close(struct mapped **mapped);

// Give an empty packet `size` bytes of the file from `at` on, which nobody may write to. Behind them are
// AV_INPUT_BUFFER_PADDING_SIZE more of the file. Waits for the disk. False: they are to be read, as the
// file is not so long, or the kernel does not map it.
//
// Thread-safety: one thread at a time; packets belong to any.
bool mapped_take(struct mapped *mapped, int64_t at, int size, AVPacket *packet);

// True if pages were gone when somebody read them. Any thread.
bool mapped_is_torn(const struct mapped *mapped);
