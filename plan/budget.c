#include "plan/budget.h"

#include <stdio.h>
#include <unistd.h>

int64_t budget_memory(void)
{
    return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
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

static enum status refuse(const struct budget_request *request, size_t analysis, size_t work,
                          const struct op *most)
{
    char part[96] = "";
    size_t slots = (size_t)request->slots, all = analysis + work;
    if (most)
        snprintf(part, sizeof part, ", %zu of them for the analysis of %s", analysis / slots >> 20,
                 op_name(most));
    log_print(request->log, LOG_ERROR,
              "each of %zu frames of %dx%d in flight takes %zu MiB%s; that is %zu MiB, and half "
              "of this machine's memory may be taken, %zu MiB. Fewer scales or templates, a "
              "smaller picture or %s take less",
              slots, request->width, request->height, all / slots >> 20, part, all >> 20,
              request->backend->memory_limit >> 20, request->fewer ? request->fewer : "--ring 1");
    return STATUS_USAGE;
}

enum status budget_check(const struct budget_request *request)
{
    struct backend *backend = request->backend;
    size_t limit = backend->memory_limit, work = 0;
    const struct op *most = NULL;
    size_t analysis = analysis_bytes(request, &most);
    enum status status = STATUS_OK;
    if (limit && analysis <= limit && backend->executor_measure)
        status = backend->executor_measure(backend, request->plan, request->width, request->height,
                                           request->slots, request->frames_in_flight, &work);
    return status                             ? status
           : limit && analysis + work > limit ? refuse(request, analysis, work, most)
                                              : STATUS_OK;
}
