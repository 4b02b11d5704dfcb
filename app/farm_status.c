// `sluice farm status`: how a farm stands, in a few lines, or as JSON.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "app/farm/census.h"

enum { SHOWN = 10 }; // parts that are told one by one

// ---- lines ----

static void print_counts(const struct farm *farm, const struct census *census)
{
    const char *between = ":";
    printf("%s  %d parts", farm->file, census->parts);
    for (enum task_state state = 0; state < TASK_STATES; state++) {
        if (!census->count[state])
            continue;
        printf("%s %d %s", between, census->count[state], task_state_name(state));
        between = ",";
    }
    printf("\n");
}

static void print_lists(const struct census *census)
{
    for (enum task_state state = TASK_DONE + 1; state < TASK_STATES; state++) {
        bool needed = state != TASK_MISSING || census->join.state != TASK_DONE;
        if (!census->count[state] || !needed)
            continue;
        printf("%-9s ", task_state_name(state));
        census_list(census, state, stdout);
        printf("\n");
    }
}

static void print_code(const struct farm *farm, const struct task *task, const char *name)
{
    char log[FARM_PATH];
    if (task->code)
        printf(": exit code %d", task->code);
    if (!access(farm_path(farm, log, "%s.log", name), F_OK)) // else it has not begun
        printf(", see %s", log);
    printf("\n");
}

static void print_failures(const struct farm *farm, const struct census *census)
{
    char name[32];
    for (int k = 0, shown = 0; farm->root && k < census->parts && shown < SHOWN; k++) {
        if (census->part[k].state != TASK_FAILED)
            continue;
        snprintf(name, sizeof name, "part-%d", k + 1);
        printf("part %d failed", k + 1);
        print_code(farm, &census->part[k], name);
        shown++;
    }
}

static void print_end(const struct farm *farm, const struct task *task, const char *name)
{
    printf("%-9s %s", name, task_state_name(task->state));
    if (task->state == TASK_FAILED)
        print_code(farm, task, name);
    else
        printf("%s%s\n", *task->reason ? " " : "", task->reason);
}

static void print_lines(const struct farm *farm, const struct census *census)
{
    print_counts(farm, census);
    print_lists(census);
    print_failures(farm, census);
    print_end(farm, &census->join, "join");
    if (census->audit_known)
        print_end(farm, &census->audit, "audit");
    if (!census->queue_known && census_exit(census) != FARM_WHOLE)
        printf("Slurm is not asked: %s\n",
               farm->root ? "squeue is not here" : "these parts were not given to it");
}

// ---- JSON ----

static json_t *task_json(const struct task *task)
{
    return json_pack("{ss ss si ss}", "state", task_state_name(task->state), "job", task->job,
                     "exit", task->code, "reason", task->reason);
}

static bool write_status(const struct settings *settings, const struct farm *farm,
                         const struct census *census)
{
    json_t *parts = json_array();
    for (int k = 0; k < census->parts; k++)
        array_add(&parts, task_json(&census->part[k]));
    json_t *root = json_pack("{ss si si so so so sb}", "output", farm->file, "exit",
                             census_exit(census), "done", census->count[TASK_DONE], "parts", parts,
                             "join", task_json(&census->join), "audit", task_json(&census->audit),
                             "queue_known", census->queue_known);
    return dump_json(&root, settings);
}

int farm_print_status(const struct settings *settings, const struct farm *farm)
{
    struct census census;
    enum sluice_status status = census_take(farm, &settings->config, false, &census);
    int code = status ? exit_code_of(status) : (int)census_exit(&census);
    bool to_stdout = settings->json && !strcmp(settings->json, "-");
    if (!status && !to_stdout)
        print_lines(farm, &census);
    if (!status && settings->json && !write_status(settings, farm, &census))
        code = EXIT_OUTPUT;
    census_free(&census);
    return code;
}
