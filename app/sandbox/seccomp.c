// seccomp: a filter of system calls, written by hand. It is one comparison a call that is denied, the
// same whatever libraries a distribution has; libseccomp would be one more of them to be there, for
// what is a loop here. Denied are whole calls, and four by an argument.
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "app/sandbox/parts.h"

#if defined(__x86_64__) && !defined(__ILP32__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && !defined(__ILP32__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#else
#define ARCHITECTURE 0 // its numbers and its ways of making sockets were never looked at
#endif

// Not in every distribution's headers; the same number on every architecture.
enum { CALL_CLONE3 = 435, X32_BIT = 0x40000000 };

static const int denied[] = {
    // Other programs, and other processes.
    SYS_execve,
    SYS_execveat,
#ifndef __SANITIZE_ADDRESS__ // LeakSanitizer stops threads by it
    SYS_ptrace,
#endif
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    438, // pidfd_getfd
    440, // process_madvise
    // Another user, another root, other namespaces.
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setfsuid,
    SYS_setfsgid,
    SYS_setgroups,
    SYS_capset,
    SYS_personality,
    SYS_unshare,
    SYS_setns,
    SYS_chroot,
    SYS_pivot_root,
    SYS_mount,
    SYS_umount2,
    428, // open_tree
    429, // move_mount
    430, // fsopen
    431, // fsconfig
    432, // fsmount
    433, // fspick
    442, // mount_setattr
    467, // open_tree_attr
    // Interfaces that the kernel has had its holes in.
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    425, // io_uring_setup
    426, // io_uring_enter
    427, // io_uring_register
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    SYS_vmsplice,
    // The machine.
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    443, // quotactl_fd
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_vhangup,
    SYS_nfsservctl,
    SYS_lookup_dcookie,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef __x86_64__
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_uselib,
    SYS_ustat,
    SYS_sysfs,
    SYS__sysctl,
#endif
};

// ---- the filter ----

enum { CALLS = sizeof denied / sizeof *denied, ROOM = 2 * CALLS + 48 };

struct program {
    struct sock_filter code[ROOM];
    unsigned short length;
};

static void add(struct program *program, struct sock_filter code)
{
    assert(program->length < ROOM);
    program->code[program->length++] = code;
}

static void load(struct program *program, size_t offset)
{
    add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

// The lower half of an argument, which is all that the calls here look at.
static void load_argument(struct program *program, int number)
{
    const int little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    load(program,
         offsetof(struct seccomp_data, args) + (size_t)number * 8 + (size_t)(little ? 0 : 4));
}

static void answer(struct program *program, unsigned how)
{
    add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, how));
}

static void fail(struct program *program, int error)
{
    answer(program, SECCOMP_RET_ERRNO | (unsigned)error);
}

// Go on with the next instruction if what was loaded compares so, else behind `skipped` of them.
static void unless(struct program *program, int comparison, unsigned value, unsigned skipped)
{
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_K | (unsigned short)comparison, value,
                                              0, (unsigned char)skipped));
}

// A program for another architecture, of which numbers mean something else.
static void refuse_others(struct program *program)
{
    load(program, offsetof(struct seccomp_data, arch));
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    answer(program, SECCOMP_RET_KILL_PROCESS);
    load(program, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    unless(program, BPF_JGE, X32_BIT, 1);
    fail(program, ENOSYS);
#endif
}

static void refuse_calls(struct program *program)
{
    for (int k = 0; k < CALLS; k++) {
        unless(program, BPF_JEQ, (unsigned)denied[k], 1);
        fail(program, EPERM);
    }
    // Its flags are behind a pointer, where a filter cannot look; libc then uses clone().
    unless(program, BPF_JEQ, CALL_CLONE3, 1);
    fail(program, ENOSYS);
}

// New namespaces are denied to clone() as to unshare().
static void refuse_namespaces(struct program *program)
{
    const unsigned spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                            CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
    unless(program, BPF_JEQ, SYS_clone, 4);
    load_argument(program, 0);
    unless(program, BPF_JSET, spaces, 1);
    fail(program, EPERM);
    load(program, offsetof(struct seccomp_data, nr));
}

// Typing into the terminal that we were started from.
static void refuse_typing(struct program *program)
{
    const unsigned requests[] = {TIOCSTI, TIOCLINUX};
    for (int k = 0; k < 2; k++) {
        unless(program, BPF_JEQ, SYS_ioctl, 4);
        load_argument(program, 1);
        unless(program, BPF_JEQ, requests[k], 1);
        fail(program, EPERM);
        load(program, offsetof(struct seccomp_data, nr));
    }
}

static void allow_family(struct program *program, int family)
{
    unless(program, BPF_JEQ, (unsigned)family, 1);
    answer(program, SECCOMP_RET_ALLOW);
}

// Last: behind it every call is allowed. EACCES is what a firewall would say.
static void refuse_sockets(struct program *program, unsigned sockets)
{
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0));
    answer(program, SECCOMP_RET_ALLOW);
    load_argument(program, 0);
    if (sockets & (SANDBOX_LOCAL | SANDBOX_NETWORK)) // name servers' caches are local
        allow_family(program, AF_UNIX);
    if (sockets & SANDBOX_NETWORK) {
        allow_family(program, AF_INET);
        allow_family(program, AF_INET6);
        allow_family(program, AF_NETLINK);
    }
    fail(program, EACCES);
}

bool seccomp_is_there(void)
{
    unsigned action = SECCOMP_RET_ERRNO;
    return ARCHITECTURE && !syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
}

int seccomp_enter(unsigned sockets)
{
    struct program program = {.length = 0};
    refuse_others(&program);
    refuse_calls(&program);
    refuse_namespaces(&program);
    refuse_typing(&program);
    refuse_sockets(&program, sockets);
    const struct sock_fprog filter = {program.length, program.code};
    // Kernels before 5.16 slow down every memory access of whoever has a filter (a mitigation of
    // Spectre 4 for code that a sandbox runs, as browsers do) unless they are told not to.
    const unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    long error = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
    return error < 0 ? errno : error ? ESRCH : 0; // a thread that could not follow
}
