// Rules of the sandbox, from the command line of a run, and entering it.
//
// By command, in the sandbox from before anything that it names is opened:
//
//   sluice INPUT OUTPUT, serve          reads what is named: inputs, templates, certificates; changes
//                                       the folders of what it writes
//   plan                                reads anything, since its chain is not read yet
//   join, audit, bisect                 read anything, since manifests name their sources; change
//                                       the output's folder; no sockets
//   the first two where a Jetson's or   none, unless it was asked for: what their drivers do is not
//   WSL's GPU may work                  tried yet
//   others                              none: they decode nothing (stages, help, ctl), start
//                                       programs (farm), or look at the machine (doctor, bench)
//
// By what is named, besides:
//
//   a file that may come later          its folder: where patterns lead, where nothing is yet
//   --control                           the working folder, the folders of what is named: changes
//                                       that come later name files in them
//   an address, --metrics, --page,      the network, what looks up names, certificates
//   mjpeg:
//   a camera, a screen, serve           all devices that the user may open: what is plugged in again
//                                       is a new node
//   a GPU, display:                     devices, the driver's caches and settings
//   --media, uploads                    those folders
//   --allow FOLDER                      that folder
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/app.h"
#include "app/jobs/part_folders.h"
#include "app/sandbox/sandbox.h"
#include "control/verbs.h"

// Everything below one path each.
static const char *const system_read[] = {
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/opengl-driver",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/fonts",
    "/var/cache/fontconfig",
    "/proc", // processes outside of the sandbox show no more than `ps` does
    "/sys",
    NULL,
};
static const char *const system_devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                             "/dev/random", "/dev/urandom", NULL};
// Names of hosts, certificates. What /etc/resolv.conf leads to is written anew while we run.
static const char *const network_read[] = {
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/nsswitch.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/gnutls",
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    NULL,
};
static const char *const gpu_read[] = {"/run",        "/etc/nvidia", "/etc/nv_tegra_release",
                                       "/etc/vulkan", "/etc/OpenCL", NULL};

// A run for which rules are made.
struct reach {
    struct settings *settings;
    struct sandbox sandbox;
    bool later; // files are named later, too
    bool devices, gpu, display;
    bool untried; // the GPU's driver
};

static void allow_all(struct reach *reach, const char *const *path, unsigned access)
{
    for (; *path; path++)
        sandbox_allow(&reach->sandbox, *path, access);
}

// ---- names ----

// The folder of a name, or the nearest above that is there, without links followed in its last part.
static void folder_of(const char *name, char *folder, size_t size)
{
    struct stat about;
    snprintf(folder, size, "%s%s", *name == '/' ? "" : "./", name);
    do {
        char *slash = strrchr(folder, '/');
        slash[slash == folder] = 0;
    } while (strcmp(folder, "/") && strcmp(folder, ".") &&
             (stat(folder, &about) || !S_ISDIR(about.st_mode)));
}

static void allow_folder_of(struct reach *reach, const char *name, unsigned access)
{
    char folder[PATH_MAX];
    folder_of(name, folder, sizeof folder);
    sandbox_allow(&reach->sandbox, folder, access);
}

// True if the name is an address, and so asks for the network.
static bool is_address(struct reach *reach, const char *name)
{
    bool address = strstr(name, "://") && strncmp(name, "file:", 5) && access(name, F_OK);
    if (address)
        reach->sandbox.sockets |= SANDBOX_NETWORK;
    return address;
}

static const char *without(const char *prefix, const char *name)
{
    size_t length = strlen(prefix);
    return !strncmp(name, prefix, length) && access(name, F_OK) ? name + length : name;
}

static void allow_read(struct reach *reach, const char *name)
{
    struct stat about;
    if (!name || is_address(reach, name))
        return;
    name = without("file:", name);
    bool there = !stat(name, &about);
    if (there)
        sandbox_allow(&reach->sandbox, name, SANDBOX_READ);
    if (!there || reach->later)
        allow_folder_of(reach, name, SANDBOX_READ);
}

// Allow a file to be written: beside the file that its links lead to.
static void allow_change(struct reach *reach, const char *name)
{
    char at[PATH_MAX], folder[PATH_MAX], target[PATH_MAX];
    if (!name || !strcmp(name, "-") || is_address(reach, name))
        return;
    snprintf(at, sizeof at, "%s", without("hash:", without("file:", name)));
    sandbox_allow(&reach->sandbox, at, SANDBOX_CHANGE | SANDBOX_DEVICE);
    for (int links = 0; links < 40; links++) {
        allow_folder_of(reach, at, SANDBOX_CHANGE);
        ssize_t length = readlink(at, target, sizeof target - 1);
        if (length < 0)
            break;
        target[length] = 0;
        folder_of(at, folder, sizeof folder);
        if (*target == '/')
            strcpy(at, target);
        else if (snprintf(at, sizeof at, "%s/%s", folder, target) >= (int)sizeof at)
            break;
    }
}

// ---- inputs and outputs ----

// "KIND:WHAT" of libavdevice; the program's lists of them say no more than this.
static bool is_device(const char *name)
{
    static const char *const kinds[] = {
        "v4l2:", "x11grab:", "lavfi:", "fbdev:", "decklink:", "iec61883:", "/dev/", NULL};
    struct stat about;
    if (!stat(name, &about))
        return S_ISCHR(about.st_mode);
    for (int k = 0; kinds[k]; k++)
        if (!strncmp(name, kinds[k], strlen(kinds[k])))
            return true;
    return false;
}

static void allow_input(struct reach *reach, const char *name)
{
    if (!name || !strcmp(name, "-"))
        return;
    if (!is_device(name) || !strncmp(name, "/dev/fd/", 8)) {
        allow_read(reach, name);
        return;
    }
    if (!strncmp(name, "x11grab:", 8)) {
        reach->sandbox.sockets |= SANDBOX_NETWORK | SANDBOX_LOCAL; // screens of other machines, too
        reach->display = true;
    }
    reach->devices |= strncmp(name, "lavfi:", 6) != 0;
}

static void allow_output(struct reach *reach, const char *name)
{
    if (!name || !strncmp(name, "null:", 5))
        return;
    if (!strncmp(name, "display", 7) && (!name[7] || name[7] == ':'))
        reach->display = true;
    else if (!strncmp(name, "mjpeg:", 6))
        reach->sandbox.sockets |= SANDBOX_NETWORK;
    else
        allow_change(reach, name);
}

static void allow_chain_file(void *reach_, const char *name, bool is_written)
{
    struct reach *reach = reach_;
    if (is_written)
        allow_output(reach, name);
    else
        allow_read(reach, name);
}

static void allow_outputs(struct reach *reach)
{
    const struct settings *settings = reach->settings;
    const struct sluice_config *config = &settings->config;
    allow_output(reach, config->output.name);
    for (int k = 0; k < settings->output_count - 1; k++)
        allow_output(reach, config->more_outputs[k].name);
    const char *const files[] = {settings->json, settings->journal, config->trace};
    for (size_t k = 0; k < sizeof files / sizeof *files; k++)
        allow_change(reach, files[k]);
}

static void allow_report(void *reach, const char *name)
{
    allow_change(reach, name);
}

// Allow the output that parts are joined to, and the reports that their manifests name.
static void allow_joined(struct reach *reach)
{
    const struct settings *settings = reach->settings;
    struct part_folders found = {0};
    allow_change(reach, settings->topic);
    if (settings->words)
        part_folder_reports(settings->word[0], allow_report, reach);
    else if (settings->topic)
        part_folders_find(settings->topic, &found);
    for (int k = 1; k <= found.parts; k++) {
        char *folder = part_folder_name(settings->topic, k, found.parts);
        if (folder)
            part_folder_reports(folder, allow_report, reach);
        free(folder);
    }
}

static void allow_inputs(struct reach *reach)
{
    const struct settings *settings = reach->settings;
    const char *const files[] = {settings->config.ca_file, settings->tls_cert, settings->tls_key};
    allow_input(reach, settings->config.input);
    for (size_t k = 0; k < sizeof files / sizeof *files; k++)
        allow_read(reach, files[k]);
    if (settings->parsed)
        sluice_chain_files(settings->parsed, allow_chain_file, reach);
}

// ---- what runs need besides ----

static void allow_home(struct reach *reach, const char *below, unsigned access)
{
    char path[PATH_MAX];
    const char *home = getenv("HOME");
    if (home && *home == '/' && snprintf(path, sizeof path, "%s/%s", home, below) < PATH_MAX)
        sandbox_allow(&reach->sandbox, path, access);
}

static void allow_variable(struct reach *reach, const char *name, unsigned access)
{
    const char *path = getenv(name);
    if (path && *path == '/')
        sandbox_allow(&reach->sandbox, path, access);
}

// The folders that the loader looks in, for libraries that are loaded later.
static void allow_libraries(struct reach *reach)
{
    const char *paths = getenv("LD_LIBRARY_PATH");
    char *copy = paths ? strdup(paths) : NULL, *rest = copy;
    for (char *path; (path = strsep(&rest, ":;"));)
        if (*path)
            sandbox_allow(&reach->sandbox, path, SANDBOX_READ);
    free(copy);
}

static bool is_one_there(const char *const *path)
{
    while (*path && access(*path, F_OK))
        path++;
    return *path;
}

// Find whether the run may use a GPU, and whether its driver was seen to work in the sandbox: that of
// graphics cards was, those of Jetsons and of WSL were not.
static void look_for_gpu(struct reach *reach)
{
    static const char *const cards[] = {"/proc/driver/nvidia/version", "/dev/nvidiactl", NULL};
    static const char *const others[] = {"/dev/nvmap", "/dev/dxg", NULL};
    enum sluice_backend backend = reach->settings->config.backend;
    if (backend == SLUICE_BACKEND_CPU || backend == SLUICE_BACKEND_SCALAR)
        return;
    reach->untried = is_one_there(others);
    reach->gpu = reach->untried || is_one_there(cards);
}

// The driver names its threads by writing to /proc/self/task/NUMBER/comm, and works without it in no
// way. A rule is of an inode, and that of a folder of /proc goes when nobody has it open: this one
// stays open.
static void allow_thread_names(struct reach *reach)
{
    static int held = -1;
    if (held < 0)
        held = open("/proc/self/task", O_PATH | O_DIRECTORY | O_CLOEXEC);
    sandbox_allow(&reach->sandbox, "/proc/self/task", SANDBOX_CHANGE);
}

// A driver makes its nodes by a program of its own when it is first asked, which the sandbox
// would not start.
static void allow_gpu(struct reach *reach)
{
    if (access("/dev/nvidia-uvm", F_OK))
        sluice_gpus();
    reach->devices = true;
    reach->sandbox.sockets |= SANDBOX_LOCAL;
    allow_thread_names(reach);
    allow_all(reach, gpu_read, SANDBOX_READ);
    allow_home(reach, ".nv", SANDBOX_CHANGE);
    allow_variable(reach, "CUDA_CACHE_PATH", SANDBOX_CHANGE);
    allow_variable(reach, "CUDA_MPS_PIPE_DIRECTORY", SANDBOX_CHANGE | SANDBOX_LISTEN);
    sandbox_allow(&reach->sandbox, "/tmp/nvidia-mps", SANDBOX_CHANGE | SANDBOX_LISTEN);
    sandbox_allow(&reach->sandbox, "/dev/shm", SANDBOX_CHANGE);
}

// Allow the settings of libraries, and /etc/resolv.conf, which others replace while we run. Secrets in
// /etc are root's: whoever is not may read all of it.
static void allow_settings(struct reach *reach)
{
    if (geteuid())
        sandbox_allow(&reach->sandbox, "/etc", SANDBOX_READ);
}

static void allow_display(struct reach *reach)
{
    reach->devices = true;
    reach->sandbox.sockets |= SANDBOX_LOCAL;
    allow_home(reach, ".Xauthority", SANDBOX_READ);
    allow_variable(reach, "XAUTHORITY", SANDBOX_READ);
    allow_variable(reach, "XDG_RUNTIME_DIR", SANDBOX_CHANGE);
    sandbox_allow(&reach->sandbox, "/dev/shm", SANDBOX_CHANGE);
    allow_settings(reach);
}

static void allow_network(struct reach *reach)
{
    allow_settings(reach);
    allow_all(reach, network_read, SANDBOX_READ);
}

// The folder of uploads is made now, since no rule comes later; it goes with the page.
static void allow_uploads(struct reach *reach)
{
    struct settings *settings = reach->settings;
    const char *place = getenv("TMPDIR");
    place = place && *place ? place : "/tmp";
    if (asprintf(&settings->uploads, "%s/sluice-page-XXXXXX", place) < 0)
        settings->uploads = NULL;
    if (settings->uploads && !mkdtemp(settings->uploads)) {
        free(settings->uploads);
        settings->uploads = NULL;
    }
    if (settings->uploads)
        sandbox_allow(&reach->sandbox, settings->uploads, SANDBOX_CHANGE);
    sandbox_allow(&reach->sandbox, place, SANDBOX_FOLDERS);
}

static void allow_control(struct reach *reach)
{
    const char *socket = reach->settings->control;
    reach->sandbox.sockets |= SANDBOX_LOCAL;
    allow_folder_of(reach, socket, SANDBOX_LISTEN);
    sandbox_allow(&reach->sandbox, ".", SANDBOX_CHANGE);
}

// ---- commands ----

static void allow_run(struct reach *reach, enum command command)
{
    const struct settings *settings = reach->settings;
    bool serves = command == COMMAND_SERVE;
    reach->later = settings->control;
    reach->devices = serves;
    look_for_gpu(reach);
    allow_inputs(reach);
    allow_outputs(reach);
    if (settings->media)
        sandbox_allow(&reach->sandbox, settings->media, SANDBOX_CHANGE);
    else if (serves)
        allow_uploads(reach);
    if (settings->control)
        allow_control(reach);
    if (serves || settings->page_address || settings->config.metrics)
        reach->sandbox.sockets |= SANDBOX_NETWORK;
    if (getenv("NOTIFY_SOCKET"))
        reach->sandbox.sockets |= SANDBOX_LOCAL;
}

static void allow_system(struct reach *reach)
{
    allow_all(reach, system_read, SANDBOX_READ);
    allow_all(reach, system_devices, SANDBOX_DEVICE);
    allow_libraries(reach);
    if (reach->gpu)
        allow_gpu(reach);
    if (reach->display)
        allow_display(reach);
    if (reach->sandbox.sockets & SANDBOX_NETWORK)
        allow_network(reach);
    if (reach->devices)
        sandbox_allow(&reach->sandbox, "/dev", SANDBOX_DEVICE);
}

static bool is_confined(enum command command)
{
    return command == COMMAND_FILTER || command == COMMAND_SERVE || command == COMMAND_PLAN ||
           command == COMMAND_JOIN || command == COMMAND_AUDIT || command == COMMAND_BISECT;
}

// ---- entering ----

// A word of the sentence is a file, or in a folder, that the sandbox keeps from us. Drivers do not say
// what they could not do.
const char *sandbox_explain(const char *sentence)
{
    char copy[4300], *rest = copy, folder[PATH_MAX];
    if (strstr(sentence, "the NVIDIA driver does not work") && sandbox_is_entered())
        return "the sandbox may be the reason, if this driver wants more than it allows: --sandbox "
               "off goes without";
    if (!strstr(sentence, strerror(EACCES)))
        return NULL;
    snprintf(copy, sizeof copy, "%s", sentence);
    for (char *word; (word = strsep(&rest, " "));) {
        word += strspn(word, "'\"(");
        word[strcspn(word, "'\":;,)")] = 0;
        if (!strchr(word, '/'))
            continue;
        folder_of(word, folder, sizeof folder);
        if (sandbox_refuses(access(word, F_OK) ? folder : word))
            return "it is the sandbox that forbids it: a run opens what its command line names, "
                   "and --allow FOLDER adds a folder";
    }
    return NULL;
}

void sandbox_print(FILE *to)
{
    struct sandbox_kernel kernel = sandbox_kernel();
    char landlock[64];
    snprintf(landlock, sizeof landlock, "Landlock %d for files", kernel.landlock);
    fprintf(to, "sandbox   %s, %s\n",
            kernel.landlock ? landlock
                            : "no Landlock in this kernel: files are not kept from a run",
            kernel.seccomp ? "seccomp for system calls" : "no seccomp for system calls");
}

static int refuse(const char *what)
{
    fprintf(stderr, "sluice: the sandbox cannot be entered: %s; --sandbox off goes without\n",
            what);
    return EXIT_OTHER;
}

static int enter(struct settings *settings, struct reach *reach)
{
    struct sandbox_kernel kernel = sandbox_kernel();
    bool wanted = settings->sandbox == SANDBOX_ON;
    if (wanted && !kernel.landlock)
        return refuse("this kernel has no Landlock (Linux 5.19, and in its list lsm=)");
    if (wanted && !kernel.seccomp)
        return refuse("this kernel has no filters of system calls (seccomp)");
    int error = sandbox_enter(&reach->sandbox);
    if (error)
        return refuse(strerror(error));
    verbs_explain = sandbox_explain;
    return -1;
}

// The option, or where it is not given the environment: of wrappers that need what it forbids.
static enum sandbox_mode mode_of(const struct settings *settings)
{
    const char *name = getenv("SLUICE_SANDBOX");
    if (settings->sandbox || !name)
        return settings->sandbox;
    return !strcmp(name, "off") ? SANDBOX_OFF : !strcmp(name, "on") ? SANDBOX_ON : SANDBOX_AUTO;
}

int sandbox_begin(struct settings *settings, enum command command)
{
    struct reach reach = {.settings = settings};
    settings->sandbox = mode_of(settings);
    if (settings->sandbox == SANDBOX_OFF || !is_confined(command))
        return -1;
    if (command == COMMAND_FILTER || command == COMMAND_SERVE || command == COMMAND_PLAN)
        allow_run(&reach, command);
    if (command != COMMAND_FILTER && command != COMMAND_SERVE)
        sandbox_allow(&reach.sandbox, "/", SANDBOX_READ);
    if (command == COMMAND_JOIN)
        allow_joined(&reach);
    if (command == COMMAND_AUDIT)
        allow_change(&reach, settings->json);
    for (int k = 0; k < settings->allowed_count; k++)
        sandbox_allow(&reach.sandbox, settings->allowed[k], SANDBOX_CHANGE);
    allow_system(&reach);
    bool entered = settings->sandbox == SANDBOX_ON || !reach.untried;
    int code = entered ? enter(settings, &reach) : -1;
    sandbox_finish(&reach.sandbox);
    return code;
}
