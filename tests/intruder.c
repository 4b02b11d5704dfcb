// Preloaded: what somebody would do who took over the decoder of a run. At its first packet each
// of the attacks below is tried once, in the thread that decodes, and its outcome written to the file
// INTRUDER_REPORT as "name errno", 0 where it worked. INTRUDER_OUTSIDE is a folder that the run has nothing
// to do with, INTRUDER_OUTPUT that of its output, INTRUDER_VICTIM another process. All of them do no
// harm where they work.
// INTRUDER_ENDS: then the program is asked to end.
// LANDLOCK=N: the kernel says that it has version N of Landlock; 0: none.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char outside[4096], output[4096];
static FILE *report;
static int victim;

static const char *at(const char *folder, const char *name)
{
    static char path[2][4200];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

// ---- attacks: below 0 with errno, or what they gained ----

static long run_program(void)
{
    return execl("/bin/true", "true", (char *)NULL);
}
static long run_descriptor(void)
{
    return syscall(SYS_execveat, AT_FDCWD, "/bin/true", (char *[]){"true", NULL}, 0L, 0);
}
static long trace_victim(void)
{
    return ptrace(PTRACE_SEIZE, victim, NULL, NULL);
}
static long read_victim(void)
{
    char byte;
    const struct iovec here = {&byte, 1}, there = {(void *)environ, 1};
    return syscall(SYS_process_vm_readv, victim, &here, 1, &there, 1, 0);
}
static long open_environ(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)victim);
    return open(path, O_RDONLY);
}
static long signal_victim(void)
{
    return kill(victim, 0);
}
static long become_user(void)
{
    return setuid(getuid());
}
static long make_namespace(void)
{
    return unshare(CLONE_NEWUSER);
}
static long clone_namespace(void)
{
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0L, 0L, 0L, 0L);
    if (!child)
        _exit(0);
    return child;
}
static long mount_something(void)
{
    return mount(NULL, NULL, NULL, 0, NULL);
}
static long change_root(void)
{
    return chroot("/");
}
static long load_bpf(void)
{
    return syscall(SYS_bpf, -1, 0L, 0);
}
static long count_events(void)
{
    return syscall(SYS_perf_event_open, 0L, 0, -1, -1, 0);
}
static long make_ring(void)
{
    return syscall(425, 1, 0L);
}
static long take_keys(void)
{
    return syscall(SYS_keyctl, 0, -3, 0);
}
static long handle_faults(void)
{
    return syscall(SYS_userfaultfd, O_CLOEXEC | 1);
}
static long type_into_terminal(void)
{
    return ioctl(-1, TIOCSTI, "x");
}
static long make_device(void)
{
    unlink(at(output, "device"));
    return mknod(at(output, "device"), S_IFCHR | 0600, makedev(1, 3));
}
static long make_tcp(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}
static long make_udp(void)
{
    return socket(AF_INET6, SOCK_DGRAM, 0);
}
static long make_local(void)
{
    return socket(AF_UNIX, SOCK_STREAM, 0);
}
static long make_packet(void)
{
    return socket(AF_PACKET, SOCK_RAW, 0);
}
static long make_netlink(void)
{
    return socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
}
static long read_shadow(void)
{
    return open("/etc/shadow", O_RDONLY);
}
static long read_outside(void)
{
    return open(at(outside, "file"), O_RDONLY);
}
static long list_outside(void)
{
    return open(outside, O_RDONLY | O_DIRECTORY);
}
static long write_outside(void)
{
    return open(at(outside, "file"), O_WRONLY);
}
static long make_outside(void)
{
    return open(at(outside, "new"), O_CREAT | O_WRONLY, 0600);
}
static long make_nameless(void)
{
    return open(outside, O_TMPFILE | O_WRONLY, 0600);
}
static long truncate_outside(void)
{
    return truncate(at(outside, "file"), 5);
}
static long remove_outside(void)
{
    return unlink(at(outside, "victim"));
}
static long make_folder(void)
{
    return mkdir(at(outside, "folder"), 0700);
}
static long link_outside(void)
{
    unlink(at(output, "link"));
    return link(at(outside, "file"), at(output, "link"));
}
static long move_outside(void)
{
    return rename(at(outside, "moved"), at(output, "moved"));
}
static long make_symlink(void)
{
    unlink(at(output, "symlink"));
    return symlink("/etc/shadow", at(output, "symlink"));
}

// Every thread of the program has a filter, and can gain no rights: an errno of its own where one is
// without.
static long find_free_thread(void)
{
    char path[300], line[256];
    DIR *list = opendir("/proc/self/task");
    int unbound = 0;
    for (const struct dirent *entry; list && (entry = readdir(list));) {
        if (*entry->d_name == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *from = fopen(path, "r");
        while (from && fgets(line, sizeof line, from))
            unbound += !strcmp(line, "Seccomp:\t0\n") || !strcmp(line, "NoNewPrivs:\t0\n");
        if (from)
            fclose(from);
    }
    if (list)
        closedir(list);
    errno = ESRCH; // none is
    return list && unbound ? 0 : -1;
}

static const struct attack {
    const char *name;
    long (*try)(void);
} attacks[] = {
#define ATTACK(name) \
    {                \
#name, name  \
    }
    ATTACK(run_program),     ATTACK(run_descriptor),     ATTACK(trace_victim),
    ATTACK(read_victim),     ATTACK(open_environ),       ATTACK(signal_victim),
    ATTACK(become_user),     ATTACK(make_namespace),     ATTACK(clone_namespace),
    ATTACK(mount_something), ATTACK(change_root),        ATTACK(load_bpf),
    ATTACK(count_events),    ATTACK(make_ring),          ATTACK(take_keys),
    ATTACK(handle_faults),   ATTACK(type_into_terminal), ATTACK(make_device),
    ATTACK(make_tcp),        ATTACK(make_udp),           ATTACK(make_local),
    ATTACK(make_packet),     ATTACK(make_netlink),       ATTACK(read_shadow),
    ATTACK(read_outside),    ATTACK(list_outside),       ATTACK(write_outside),
    ATTACK(make_outside),    ATTACK(make_nameless),      ATTACK(truncate_outside),
    ATTACK(remove_outside),  ATTACK(make_folder),        ATTACK(link_outside),
    ATTACK(move_outside),    ATTACK(make_symlink),
};

// Each in a process of its own: what works stays without consequences.
static int outcome_of(const struct attack *attack)
{
    int status = 0;
    pid_t child = fork();
    if (!child)
        _exit(attack->try() < 0 ? errno : 0);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void try_all(void)
{
    for (size_t k = 0; k < sizeof attacks / sizeof *attacks; k++)
        fprintf(report, "%s %d\n", attacks[k].name, outcome_of(&attacks[k]));
    fprintf(report, "find_free_thread %d\n", find_free_thread() < 0 ? errno : 0);
    fclose(report);
    if (getenv("INTRUDER_ENDS"))
        kill(getpid(), SIGTERM);
}

// ---- what is preloaded ----

__attribute__((constructor)) static void open_report(void)
{
    const char *name = getenv("INTRUDER_REPORT");
    if (!name)
        return;
    snprintf(outside, sizeof outside, "%s", getenv("INTRUDER_OUTSIDE"));
    snprintf(output, sizeof output, "%s", getenv("INTRUDER_OUTPUT"));
    victim = atoi(getenv("INTRUDER_VICTIM"));
    report = fopen(name, "we");
    unsetenv("INTRUDER_REPORT"); // programs that are started are no intruders
}

int avcodec_send_packet(void *codec, const void *packet)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int (*real)(void *, const void *);
    *(void **)&real = dlsym(RTLD_NEXT, "avcodec_send_packet");
    if (report)
        pthread_once(&once, try_all);
    return real(codec, packet);
}

long syscall(long number, ...)
{
    enum { LANDLOCK_CREATE = 444 };
    const char *version = getenv("LANDLOCK");
    long (*real)(long, ...), argument[6];
    va_list list;
    va_start(list, number);
    for (int k = 0; k < 6; k++)
        argument[k] = va_arg(list, long);
    va_end(list);
    *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    if (version && number == LANDLOCK_CREATE && argument[2] == 1) {
        errno = EOPNOTSUPP;
        return atoi(version) ? atoi(version) : -1;
    }
    return real(number, argument[0], argument[1], argument[2], argument[3], argument[4],
                argument[5]);
}
