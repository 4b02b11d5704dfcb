#include "app/farm/census.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- exit codes that scripts have left ----

// The exit code in OUT.farm/NAME.exit; -1: there is none.
static int exit_code(const struct farm *farm, const char *name)
{
    char path[FARM_PATH];
    int code = -1;
    FILE *from = fopen(farm_path(farm, path, "%s.exit", name), "re");
    if (from && fscanf(from, "%d", &code) != 1)
        code = -1;
    if (from)
        fclose(from);
    return code;
}

static int part_exit_code(const struct farm *farm, int part)
{
    char name[32];
    snprintf(name, sizeof name, "part-%d", part);
    return exit_code(farm, name);
}

// ---- what Slurm knows ----

struct asked {
    const struct farm *farm;
    struct census *census;
};

static struct task *task_of(const struct asked *asked, const struct slurm_task *told)
{
    if (!strcmp(told->name, "join"))
        return &asked->census->join;
    if (!strcmp(told->name, "audit"))
        return &asked->census->audit;
    bool part = told->task >= 1 && told->task <= asked->farm->parts;
    return part ? &asked->census->part[told->task - 1] : NULL;
}

// A task may be known several times, by the jobs of submit and of resume: what may still make it
// counts.
static void note_task(void *asked_, const struct slurm_task *told)
{
    static const enum task_state states[] = {
        [SLURM_PENDING] = TASK_PENDING,
        [SLURM_RUNNING] = TASK_RUNNING,
        [SLURM_FAILED] = TASK_FAILED,
        [SLURM_COMPLETED] = TASK_MISSING, // what it made has gone since
    };
    struct task *task = task_of(asked_, told);
    if (!task || task->queued)
        return;
    task->state = states[told->state];
    task->queued = told->state == SLURM_PENDING || told->state == SLURM_RUNNING;
    snprintf(task->job, sizeof task->job, "%s", told->id);
    snprintf(task->reason, sizeof task->reason, "%s",
             told->state == SLURM_PENDING ? told->reason : "");
}

// ---- what there is ----

static void look_at_part(const struct farm *farm, const struct sluice_config *config, bool files,
                         int part, struct task *task)
{
    char folder[FARM_PATH];
    int code = part_exit_code(farm, part);
    if (!access(farm_part(farm, part, folder), F_OK)) {
        bool whole = !sluice_check_part(config, folder, files);
        task->state = whole ? TASK_DONE : TASK_UNTRUE;
    } else if (code > 0 && !task->queued) {
        task->state = TASK_FAILED;
        task->code = code;
    }
}

// The join and the audit: done if their scripts say so.
static void look_at_end(const struct farm *farm, const char *name, bool there, struct task *task)
{
    int code = exit_code(farm, name);
    if (!code && there) {
        task->state = TASK_DONE;
    } else if (code > 0 && !task->queued) {
        task->state = TASK_FAILED;
        task->code = code;
    }
}

static bool is_joined(const struct farm *farm)
{
    char manifest[FARM_PATH];
    snprintf(manifest, sizeof manifest, "%s.manifest", farm->file);
    return !access(farm->file, F_OK) && !access(manifest, F_OK);
}

void census_count(struct census *census)
{
    memset(census->count, 0, sizeof census->count);
    for (int k = 0; k < census->parts; k++)
        census->count[census->part[k].state]++;
}

static void look(const struct farm *farm, const struct sluice_config *config, bool files,
                 struct census *census)
{
    bool joined = is_joined(farm);
    for (int k = 0; k < census->parts; k++)
        look_at_part(farm, config, files, k + 1, &census->part[k]);
    look_at_end(farm, "join", joined, &census->join);
    look_at_end(farm, "audit", joined, &census->audit);
    if (!farm->root && joined) // there is no script that would say so
        census->join.state = TASK_DONE;
}

enum sluice_status census_take(const struct farm *farm, const struct sluice_config *config,
                               bool files, struct census *census)
{
    assert(farm->parts > 0);
    *census = (struct census){.parts = farm->parts,
                              .part = calloc((size_t)farm->parts, sizeof *census->part),
                              .join.state = TASK_MISSING,
                              .audit.state = TASK_MISSING};
    if (!census->part)
        return SLUICE_STATUS_MEMORY;
    for (int k = 0; k < census->parts; k++)
        census->part[k].state = TASK_MISSING;
    struct asked asked = {farm, census};
    enum sluice_status status =
        farm->root ? slurm_queue(farm, note_task, &asked) : SLUICE_STATUS_END;
    census->queue_known = !status;
    census->audit_known = farm->root;
    look(farm, config, files, census);
    census_count(census);
    return status == SLUICE_STATUS_END ? SLUICE_STATUS_OK : status;
}

void census_free(struct census *census)
{
    free(census->part);
    *census = (struct census){0};
}

// ---- told ----

void census_list(const struct census *census, enum task_state state, FILE *to)
{
    const char *between = "";
    for (int first = 0, next; first < census->parts; first = next) {
        next = first + 1;
        if (census->part[first].state != state)
            continue;
        while (next < census->parts && census->part[next].state == state)
            next++;
        fprintf(to, "%s%d", between, first + 1);
        if (next - first > 1)
            fprintf(to, "-%d", next);
        between = ",";
    }
}

const char *task_state_name(enum task_state state)
{
    static const char *const names[TASK_STATES] = {
        [TASK_DONE] = "done",       [TASK_UNTRUE] = "not whole", [TASK_RUNNING] = "running",
        [TASK_PENDING] = "pending", [TASK_FAILED] = "failed",    [TASK_MISSING] = "missing",
    };
    return names[state];
}

bool census_is_queued(const struct census *census)
{
    bool queued = census->join.queued || census->audit.queued;
    for (int k = 0; k < census->parts; k++)
        queued = queued || census->part[k].queued;
    return queued;
}

enum farm_exit census_exit(const struct census *census)
{
    const int *count = census->count;
    enum task_state join = census->join.state, audit = census->audit.state;
    if (join == TASK_DONE && (audit == TASK_DONE || !census->audit_known))
        return FARM_WHOLE;
    if (count[TASK_FAILED] || count[TASK_UNTRUE] || join == TASK_FAILED || audit == TASK_FAILED)
        return FARM_FAILED;
    bool under_way =
        count[TASK_RUNNING] || count[TASK_PENDING] || census->join.queued || census->audit.queued;
    return under_way || !census->queue_known ? FARM_UNFINISHED : FARM_FAILED;
}
