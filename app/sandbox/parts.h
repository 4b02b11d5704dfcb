// The sandbox's parts, a file each. Each call returns 0 or errno.
#pragma once

#include "app/sandbox/sandbox.h"

// Landlock: files, TCP, signals. The version of the kernel's interface, 0 for none.
int landlock_version(void);
int landlock_enter(const struct sandbox *sandbox, int version);

// seccomp: system calls, for all threads.
bool seccomp_is_there(void);
int seccomp_enter(unsigned sockets);

// Give up the capabilities that no run needs, where there are any.
int capabilities_drop(void);
