#include "plan/budget.h"

#include <stdio.h>
#include <unistd.h>

#include "base/host_memory.h"

int64_t budget_memory(void)
{
    int64_t available = host_memory_available();
    return available ? host_memory_ceiling(available)
                     : (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

// The bytes of all frames' analysis; *most is the operation that has the most of them.
static size_t analysis_bytes(const struct budget_request *request, const struct op **most)
{
    const struct program *program = request->plan->program;
    size_t bytes = 0, largest = 0;
    for (int k = 0; k < program->analyses && !request->without_analyses; k++) {
        size_t its = program_analysis_bytes(program, k, request->width, request->height);
        if (its > largest)
            *most = &program->op[program->analysis[k]];
        largest = its > largest ? its : largest;
        bytes += its;
    }
    return bytes * (size_t)(request->seats ? request->seats : request->slots);
}

enum status budget_measure(const struct budget_request *request, struct budget_need *need)
{
    struct backend *backend = request->backend;
    *need = (struct budget_need){0};
    need->analysis = analysis_bytes(request, &need->most);
    return !backend->executor_measure
               ? STATUS_OK
               : backend->executor_measure(backend, request->plan, request->width, request->height,
                                           request->slots, request->frames_in_flight,
                                           &need->stages);
}

static enum status refuse(const struct budget_request *request, const struct budget_need *need)
{
    char part[96] = "";
    size_t slots = (size_t)request->slots, all = need->analysis + need->stages.host;
    if (need->most)
        snprintf(part, sizeof part, ", %zu of them for the analysis of %s",
                 need->analysis / slots >> 20, op_name(need->most));
    log_print(request->log, LOG_ERROR,
              "each of %zu frames of %dx%d in flight takes %zu MiB%s; that is %zu MiB, and %zu MiB "
              "of memory may be taken. Fewer scales or templates, a smaller picture or %s take "
              "less",
              slots, request->width, request->height, all / slots >> 20, part, all >> 20,
              request->backend->memory_limit >> 20, request->fewer ? request->fewer : "--ring 1");
    return STATUS_USAGE;
}

enum status budget_check(const struct budget_request *request)
{
    size_t limit = request->backend->memory_limit;
    struct budget_need need;
    if (!limit)
        return STATUS_OK;
    enum status status = budget_measure(request, &need);
    return status                                     ? status
           : need.analysis + need.stages.host > limit ? refuse(request, &need)
                                                      : STATUS_OK;
}
