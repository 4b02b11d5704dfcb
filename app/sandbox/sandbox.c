#include "app/sandbox/sandbox.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "app/sandbox/parts.h"

struct sandbox_kernel sandbox_kernel(void)
{
    return (struct sandbox_kernel){.landlock = landlock_version(), .seccomp = seccomp_is_there()};
}

void sandbox_allow(struct sandbox *sandbox, const char *path, unsigned access)
{
    assert(sandbox && path && access);
    struct sandbox_rule *list =
        realloc(sandbox->rule, (size_t)(sandbox->rules + 1) * sizeof *sandbox->rule);
    if (list) {
        sandbox->rule = list;
        list[sandbox->rules] = (struct sandbox_rule){strdup(path), access};
    }
    if (list && list[sandbox->rules].path)
        sandbox->rules++;
    else
        sandbox->incomplete = true;
}

int sandbox_enter(const struct sandbox *sandbox)
{
    struct sandbox_kernel kernel = sandbox_kernel();
    int error = sandbox->incomplete ? ENOMEM : 0;
    // Both ask that nothing started from here could gain rights, if it could be started.
    if (!error && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        error = errno;
    if (!error && kernel.landlock)
        error = landlock_enter(sandbox, kernel.landlock);
    if (!error)
        error = capabilities_drop(); // ahead of seccomp, which denies it
    if (!error && kernel.seccomp)
        error = seccomp_enter(sandbox->sockets);
    return error;
}

bool sandbox_is_entered(void)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

bool sandbox_refuses(const char *path)
{
    if (!sandbox_is_entered() || access(path, R_OK))
        return false;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd < 0 && errno == EACCES;
}

void sandbox_finish(struct sandbox *sandbox)
{
    for (int k = 0; k < sandbox->rules; k++)
        free(sandbox->rule[k].path);
    free(sandbox->rule);
    *sandbox = (struct sandbox){.rules = 0};
}
