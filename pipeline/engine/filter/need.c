#include "pipeline/engine/filter/need.h"

#include <pthread.h>

#include "base/host_memory.h"
#include "plan/budget.h"

// ---- the ceiling ----

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// ---- guarded by lock ----
static int64_t claimed_by_all;
static int64_t own_before; // any of them

// Memory that was available to jobs of this process before the first of them began: what they have
// taken since is no longer available, and is theirs all the same.
static int64_t available_locked(void)
{
    int64_t own = host_memory_own(), available = budget_memory();
    if (!claimed_by_all)
        own_before = own;
    return available + (own > own_before ? own - own_before : 0);
}

// Bytes that may be taken of a device's free memory; 0: it has none of its own.
static int64_t room_of(struct backend *backend)
{
    size_t room = backend->device_room ? backend->device_room(backend) : 0;
    return (int64_t)(room - room / 16);
}

void ceiling_add_device(struct ceiling *ceiling, struct backend *backend)
{
    ceiling->device = room_of(backend);
}

void ceiling_open(int64_t mem, int64_t vram, struct backend *backend, const struct log *log,
                  struct ceiling *ceiling)
{
    int64_t room = vram ? vram : room_of(backend);
    pthread_mutex_lock(&lock);
    *ceiling = (struct ceiling){.host = mem ? mem : available_locked(),
                                .host_asked = mem,
                                .device = room,
                                .device_asked = vram};
    pthread_mutex_unlock(&lock);
    if (vram && !backend->device_room)
        log_print(log, LOG_WARNING, "--vram limits nothing: %s filters, and not a GPU (%s)",
                  backend->name, backend_cuda_version());
}

void ceiling_figures(const struct ceiling *ceiling, int64_t *host, int64_t *device)
{
    pthread_mutex_lock(&lock);
    *host = ceiling->claimed;
    *device = ceiling->device_need;
    pthread_mutex_unlock(&lock);
}

void ceiling_close(struct ceiling *ceiling)
{
    pthread_mutex_lock(&lock);
    claimed_by_all -= ceiling->claimed;
    ceiling->claimed = 0;
    pthread_mutex_unlock(&lock);
}

// ---- need against ceiling ----

static int64_t sum_of(const int64_t *part)
{
    int64_t sum = 0;
    for (int k = 0; k < NEED_PARTS; k++)
        sum += part[k];
    return sum;
}

int64_t need_host(const struct need *need)
{
    return sum_of(need->host);
}

int64_t need_device(const struct need *need)
{
    return sum_of(need->device);
}

// True if the host has it; then it is claimed, if the job claims. *others is what other jobs have of
// the ceiling.
static bool host_fits(const struct need *need, const struct need_job *job, int64_t *others)
{
    struct ceiling *ceiling = job->ceiling;
    int64_t bytes = need_host(need);
    pthread_mutex_lock(&lock);
    *others = claimed_by_all - ceiling->claimed;
    bool fits = !ceiling->host || bytes <= ceiling->host - *others;
    if (fits && job->claims && bytes > ceiling->claimed) {
        claimed_by_all += bytes - ceiling->claimed;
        ceiling->claimed = bytes;
    }
    if (fits)
        ceiling->device_need = need_device(need);
    pthread_mutex_unlock(&lock);
    return fits;
}

// ---- sentences ----

static const struct {
    const char *name, *is; // for the plan
    const char *less;      // what takes less
} parts[NEED_PARTS] = {
    [NEED_DECODER] = {"decoder", "its pictures and packets, an estimate", "a smaller picture"},
    [NEED_RING] = {"frames", "in flight, and on their way", "a smaller picture or fewer tees"},
    [NEED_STAGES] = {"stages", "what they work in",
                     "a chain with fewer scales, templates or whole-picture stages"},
    [NEED_REPORTS] = {"reports", "analyses, and records on their way to files",
                      "fewer scales, or none that are written to a file"},
    [NEED_OUTPUTS] = {"outputs", "what waits for them; encoders, an estimate",
                      "fewer outputs, or an encoder that looks less far ahead (--preset ultrafast, "
                      "--option tune=zerolatency)"},
    [NEED_PAGE] = {"page", "what it keeps to look back", "a smaller --keep"},
};

static enum need_part largest(const int64_t *part)
{
    enum need_part most = 0;
    for (int k = 1; k < NEED_PARTS; k++)
        most = part[k] > part[most] ? (enum need_part)k : most;
    return most;
}

static long long mib(int64_t bytes)
{
    return (long long)((bytes + (1 << 20) - 1) >> 20);
}

static enum status refuse_host(const struct need *need, const struct ceiling *ceiling,
                               int64_t others, const struct log *log)
{
    enum need_part most = largest(need->host);
    char taken[96] = "";
    if (others)
        snprintf(taken, sizeof taken, ", of which other jobs of this run have %lld MiB",
                 mib(others));
    return log_fail(
        log, STATUS_USAGE,
        "%d frame%s of %dx%d in flight need%s %lld MiB of memory, and %lld MiB %s%s; %lld MiB of "
        "the need are for %s: %s. Less takes %s%s%s; %s",
        need->slots, need->slots == 1 ? "" : "s", need->width, need->height,
        need->slots == 1 ? "s" : "", mib(need_host(need)), (long long)(ceiling->host >> 20),
        ceiling->host_asked ? "are what --mem allows" : "may be taken of what is free", taken,
        mib(need->host[most]), parts[most].name, parts[most].is, parts[most].less,
        need->slots > 1 ? ", or --ring 1" : "", others ? ", or fewer --jobs" : "",
        ceiling->host_asked ? "or allow more by --mem" : "--mem SIZE allows more all the same");
}

bool need_lacks_device(const struct need *need, const struct ceiling *ceiling,
                       char sentence[NEED_SENTENCE])
{
    snprintf(
        sentence, NEED_SENTENCE,
        "%d frame%s of %dx%d in flight need%s %lld MiB of the GPU's memory, and %lld MiB %s",
        need->slots, need->slots == 1 ? "" : "s", need->width, need->height,
        need->slots == 1 ? "s" : "", mib(need_device(need)), (long long)(ceiling->device >> 20),
        ceiling->device_asked ? "are what --vram allows" : "may be taken of what is free on it");
    return ceiling->device && need_device(need) > ceiling->device;
}

static enum status refuse_device(const struct need *need, const struct need_job *job,
                                 const char *lack, const struct log *log)
{
    enum need_part most = largest(need->device);
    if (job->leaves_gpu) {
        log_print(log, LOG_WARNING, "the CPU filters: %s", lack);
        return STATUS_DEVICE;
    }
    return log_fail(
        log, STATUS_DEVICE,
        "%s; %lld MiB of the need are for %s: %s. Less takes %s%s; the CPU may do it, by --backend "
        "cpu%s",
        lack, mib(need->device[most]), parts[most].name, parts[most].is, parts[most].less,
        need->slots > 1 ? ", or --ring 1" : "",
        most == NEED_DECODER ? ", and --hwdec off decodes there" : "");
}

enum status need_check(const struct need *need, const struct need_job *job, const struct log *log)
{
    int64_t others;
    char lack[NEED_SENTENCE];
    if (need_lacks_device(need, job->ceiling, lack))
        return refuse_device(need, job, lack, log);
    return host_fits(need, job, &others) ? STATUS_OK : refuse_host(need, job->ceiling, others, log);
}

static void print_parts(const int64_t *part, FILE *to)
{
    for (int k = 0; k < NEED_PARTS; k++)
        if (part[k])
            fprintf(to, "    %-8s %6lld MiB  %s\n", parts[k].name, mib(part[k]), parts[k].is);
}

void need_print(const struct need *need, const struct ceiling *ceiling, FILE *to)
{
    fprintf(to, "memory: %lld MiB with %d frame%s in flight", mib(need_host(need)), need->slots,
            need->slots == 1 ? "" : "s");
    if (ceiling->host_asked)
        fprintf(to, ", of %lld MiB that --mem allows", (long long)(ceiling->host >> 20));
    fputc('\n', to);
    print_parts(need->host, to);
    if (!need_device(need))
        return;
    fprintf(to, "memory of the GPU: %lld MiB", mib(need_device(need)));
    if (ceiling->device_asked)
        fprintf(to, ", of %lld MiB that --vram allows", (long long)(ceiling->device >> 20));
    fputc('\n', to);
    print_parts(need->device, to);
}

// ---- frames in flight ----

// How many frames in flight fit into `most` bytes, by what the need's slots and one alone take: what
// is beside the slots is the same.
static int slots_within(int64_t many, int64_t one, int slots, int64_t most)
{
    int64_t each = slots > 1 ? (many - one) / (slots - 1) : 0;
    if (!most || many <= most)
        return slots;
    return one > most || each <= 0 ? 1 : (int)(1 + (most - one) / each);
}

static int guess_slots(const struct need *many, const struct need *one,
                       const struct ceiling *ceiling)
{
    int host = slots_within(need_host(many), need_host(one), many->slots, ceiling->host);
    int device = slots_within(need_device(many), need_device(one), many->slots, ceiling->device);
    int least = host < device ? host : device;
    return least < many->slots ? least : many->slots - 1; // of which it is known
}

enum status need_fit(const struct filter_request *request, const AVFrame *frame, int *slots)
{
    const struct log silent = {0};
    struct filter_request trial = *request;
    struct need need, one;
    *slots = request->slots;
    trial.log = &silent;
    if (filter_need(&trial, frame, &need)) // the first frame will tell why
        return STATUS_OK;
    if (!need_check(&need, request->job, &silent))
        return STATUS_OK;
    trial.slots = 1;
    enum status status = filter_need(&trial, frame, &one);
    for (int n = guess_slots(&need, &one, request->job->ceiling); n > 1 && !status; n--) {
        trial.slots = *slots = n;
        status = filter_need(&trial, frame, &need);
        if (!status && !need_check(&need, request->job, &silent))
            return STATUS_OK;
    }
    *slots = 1;
    return status ? status : need_check(&one, request->job, request->log);
}
