// The sandbox: from when it is entered, a process reaches the files that it was allowed and makes the
// system calls that some run needs, and can never leave it. What decodes hostile bytes, and loses
// to them, has nothing else.
//
//   what                  how                         since            without
//   files and folders     Landlock, an allow-list     Linux 5.19       all that the user may
//   ... truncating        Landlock                    Linux 6.2        as writing
//   ... ioctl of devices  Landlock                    Linux 6.10       of what can be opened
//   TCP                   Landlock, and seccomp       Linux 6.7        seccomp's socket families
//   signals, abstract     Landlock                    Linux 6.12       any process of the user
//   sockets of others
//   system calls          seccomp, a deny-list        any              all
//   capabilities          capset()                    any
//
// Files: folders are allowed with all below them, Landlock knows no other way. A file that is allowed by
// itself is that inode: what takes its name later is another one, so that whatever is opened again
// and again, or comes and goes as cameras do, is allowed by its folder. What is open already stays
// open. stat() and access() are not restricted.
//
// Calls: seccomp denies what no run ever needs, above all execve(); EPERM answers. An allow-list
// would be tighter, and would break with the next libc, GPU driver or SDL that calls something
// new: a sandbox that people switch off is worth nothing. Families of sockets are an allow-list.
// The list has the kernel's attack surface (namespaces, mounts, bpf, io_uring, userfaultfd, keys),
// calls that reach into other processes (ptrace, process_vm), and calls that change the user (setuid).
//
// Threads: Landlock and capabilities hold for the calling thread and those that it creates, seccomp for
// all. So it is entered ahead of every other thread.
#pragma once

#include <stdbool.h>

enum sandbox_access {
    SANDBOX_READ = 1,    // read files, list folders
    SANDBOX_CHANGE = 2,  // also write, make, rename and remove files, links to them, and folders
    SANDBOX_DEVICE = 4,  // read, write and control device nodes
    SANDBOX_LISTEN = 8,  // make sockets, remove what there is
    SANDBOX_FOLDERS = 16 // make folders, remove empty ones
};

// Sockets that may be made.
enum sandbox_sockets {
    SANDBOX_NO_SOCKETS,
    SANDBOX_LOCAL = 1,   // of this machine: AF_UNIX
    SANDBOX_NETWORK = 2, // AF_INET, AF_INET6, and AF_NETLINK, by which names are looked up
};

struct sandbox_rule {
    char *path;
    unsigned access; // of enum sandbox_access
};

// The allow-list of a process; zero allows nothing.
struct sandbox {
    struct sandbox_rule *rule;
    int rules;
    unsigned sockets; // of enum sandbox_sockets
    bool incomplete;  // memory ran out
};

// Sandboxing of this kernel: the version of Landlock's interface, 0 for none that is used here; seccomp.
struct sandbox_kernel {
    int landlock;
    bool seccomp;
};
struct sandbox_kernel sandbox_kernel(void);

// Allow what the path leads to, links followed, when the sandbox is entered; what is not there then
// is left out. The path is copied.
void sandbox_allow(struct sandbox *sandbox, const char *path, unsigned access);

// Enter with what the kernel has, for ever. 0; else errno, and the process must not go on: parts of
// it may hold already.
int sandbox_enter(const struct sandbox *sandbox);

// True if the process is in one, or in somebody else's that gains no rights either.
bool sandbox_is_entered(void);

// True if the process is in one and opening `path`, which the user might, is refused by it.
bool sandbox_refuses(const char *path);

void sandbox_finish(struct sandbox *sandbox);
