// Landlock by its system calls, which no libc has. Numbers and structures are the kernel's
// interface (include/uapi/linux/landlock.h of Linux 6.12): headers of distributions lack parts.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "app/sandbox/parts.h"

enum { CALL_CREATE = 444, CALL_ADD = 445, CALL_RESTRICT = 446 }; // on every architecture
enum { CREATE_VERSION = 1, RULE_PATH_BENEATH = 1 };

enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_REMOVE_DIR = 1 << 4,
    FS_REMOVE_FILE = 1 << 5,
    FS_MAKE_DIR = 1 << 7,
    FS_MAKE_REG = 1 << 8,
    FS_MAKE_SOCK = 1 << 9,
    FS_REFER = 1 << 13,
    FS_TRUNCATE = 1 << 14,
    FS_IOCTL_DEV = 1 << 15,

    FS_ALL_OF_2 = FS_TRUNCATE - 1, // version 2, which is the least, and so on
    FS_ALL_OF_3 = FS_IOCTL_DEV - 1,
    FS_ALL_OF_5 = (FS_IOCTL_DEV << 1) - 1,
    FS_OF_FILES = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
};
enum { NET_BIND_TCP = 1 << 0, NET_CONNECT_TCP = 1 << 1 };
enum { SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0, SCOPE_SIGNAL = 1 << 1 };
enum { OLDEST = 2, WITH_TRUNCATE = 3, WITH_TCP = 4, WITH_IOCTL = 5, WITH_SCOPE = 6 };

struct ruleset {
    uint64_t fs, net, scoped; // handled: denied unless a rule allows it
};

struct path_beneath {
    uint64_t access;
    int32_t fd;
} __attribute__((packed));

int landlock_version(void)
{
    long version = syscall(CALL_CREATE, 0L, 0, CREATE_VERSION);
    return version < OLDEST ? 0 : (int)version; // the first one lets nobody rename across folders
}

static uint64_t rights_of(unsigned access)
{
    static const struct {
        unsigned access;
        uint64_t rights;
    } table[] = {
        {SANDBOX_READ, FS_READ_FILE | FS_READ_DIR},
        {SANDBOX_CHANGE, FS_READ_FILE | FS_READ_DIR | FS_WRITE_FILE | FS_TRUNCATE | FS_MAKE_REG |
                             FS_REMOVE_FILE | FS_MAKE_DIR | FS_REMOVE_DIR | FS_REFER},
        {SANDBOX_DEVICE, FS_READ_FILE | FS_READ_DIR | FS_WRITE_FILE | FS_IOCTL_DEV},
        {SANDBOX_LISTEN, FS_MAKE_SOCK | FS_REMOVE_FILE},
        {SANDBOX_FOLDERS, FS_MAKE_DIR | FS_REMOVE_DIR},
    };
    uint64_t rights = 0;
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        rights |= access & table[k].access ? table[k].rights : 0;
    return rights;
}

// A name that cannot be opened, or is no file of a file system (a pipe), is left out.
static int add_rule(int ruleset, const struct sandbox_rule *rule, uint64_t handled)
{
    struct stat about;
    int fd = open(rule->path, O_PATH | O_CLOEXEC), error = 0;
    if (fd < 0 || fstat(fd, &about)) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    uint64_t mask = S_ISDIR(about.st_mode) ? handled : handled & FS_OF_FILES;
    const struct path_beneath beneath = {rights_of(rule->access) & mask, fd};
    if (beneath.access && syscall(CALL_ADD, ruleset, RULE_PATH_BENEATH, &beneath, 0))
        error = errno == EBADFD ? 0 : errno;
    close(fd);
    return error;
}

int landlock_enter(const struct sandbox *sandbox, int version)
{
    bool network = sandbox->sockets & SANDBOX_NETWORK;
    const struct ruleset handled = {
        .fs = version >= WITH_IOCTL      ? FS_ALL_OF_5
              : version >= WITH_TRUNCATE ? FS_ALL_OF_3
                                         : FS_ALL_OF_2,
        .net = version >= WITH_TCP && !network ? NET_BIND_TCP | NET_CONNECT_TCP : 0,
        .scoped = version < WITH_SCOPE ? 0
                  : sandbox->sockets   ? SCOPE_SIGNAL // X11 and systemd listen on abstract ones
                                       : SCOPE_SIGNAL | SCOPE_ABSTRACT_UNIX_SOCKET,
    };
    int error = 0, ruleset = (int)syscall(CALL_CREATE, &handled, sizeof handled, 0);
    if (ruleset < 0)
        return errno;
    for (int k = 0; k < sandbox->rules && !error; k++)
        error = add_rule(ruleset, &sandbox->rule[k], handled.fs);
    if (!error && syscall(CALL_RESTRICT, ruleset, 0))
        error = errno;
    close(ruleset);
    return error;
}
