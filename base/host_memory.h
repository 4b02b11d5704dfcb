// How much of the host's memory this process may still take.
#pragma once

#include <stdint.h>

// Bytes that can be taken without ending somebody: what the system says is available, or what the
// control groups of this process (version 1 or 2, each with those above it) leave of their limits,
// whichever is less. Files that the kernel keeps in memory count as free, as it gives them up first.
// 0: nobody says; 1: nothing is left.
int64_t host_memory_available(void);

// The same of a system whose /proc and /sys are below `root`.
int64_t host_memory_available_in(const char *root);

// Share of available bytes that may be planned for: all but a sixteenth, or 64 MiB where that is more, for
// the rest of the machine and for what no estimate has in it.
int64_t host_memory_ceiling(int64_t available);

// The process's memory now; 0 where the system does not say.
int64_t host_memory_resident(void);

// Resident bytes that are not pages of files, which the kernel can take back.
int64_t host_memory_own(void);
