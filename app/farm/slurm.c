#include "app/farm/slurm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "control/shell.h"

// ---- sbatch ----

// Options of sbatch about GPUs, which joins and audits do not need.
static const char *const gpu_options[] = {
    "--gres",
    "--gpus",
    "-G",
    "--gpus-per-node",
    "--gpus-per-task",
    "--gpu-bind",
    "--gpus-per-socket",
    "--gpu-freq",
    "--cpus-per-gpu",
    "--mem-per-gpu",
    "--gres-flags",
};

// How many words of an option about GPUs begin with `word`; 0: it is another.
static int gpu_words(const char *word)
{
    size_t length = strcspn(word, "=");
    if (!strncmp(word, "-G", 2))
        return word[2] ? 1 : 2;
    for (size_t k = 0; k < sizeof gpu_options / sizeof *gpu_options; k++)
        if (strlen(gpu_options[k]) == length && !strncmp(gpu_options[k], word, length))
            return word[length] ? 1 : 2;
    return 0;
}

static void write_options(const struct farm *farm, bool gpu, FILE *to)
{
    size_t count = json_array_size(farm->options);
    for (size_t k = 0; k < count; k++) {
        const char *word = json_string_value(json_array_get(farm->options, k));
        int skipped = gpu ? 0 : gpu_words(word);
        if (skipped) {
            k += (size_t)skipped - 1;
            continue;
        }
        fputc(' ', to);
        shell_word(to, word);
    }
}

// The log's name, as sbatch reads it: "%" stands for a number.
static void write_log(const struct farm *farm, const struct slurm_job *job, FILE *to)
{
    char path[FARM_PATH], name[2 * FARM_PATH];
    size_t length = 0;
    farm_path(farm, path, "%s", job->name);
    for (const char *at = path; *at; at++) {
        if (*at == '%')
            name[length++] = '%';
        name[length++] = *at;
    }
    snprintf(name + length, sizeof name - length, "%s.log", job->array ? "-%a" : "");
    fputs(" --output=", to);
    shell_word(to, name);
}

static void write_command(const struct farm *farm, const struct slurm_job *job, FILE *to)
{
    char script[FARM_PATH];
    fputs("sbatch --requeue --open-mode=append --chdir=", to);
    shell_word(to, farm->folder);
    write_log(farm, job, to);
    write_options(farm, job->array, to);
    fprintf(to, " --job-name=sluice-%s-%s --parsable", job->name, farm->tag);
    if (job->array)
        fprintf(to, " --array=%s", job->array);
    if (job->array && farm->at_once)
        fprintf(to, "%%%d", farm->at_once);
    if (job->depends)
        fprintf(to, " --dependency=%s --kill-on-invalid-dep=yes", job->depends);
    fputc(' ', to);
    shell_word(to, farm_path(farm, script, "%s.sh", job->name));
}

char *slurm_command(const struct farm *farm, const struct slurm_job *job)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    write_command(farm, job, to);
    fclose(to);
    return text;
}

enum sluice_status slurm_submit(const char *command, char id[SLURM_ID])
{
    char line[256] = "";
    FILE *from = popen(command, "re");
    if (from && !fgets(line, sizeof line, from))
        *line = 0;
    int status = from ? pclose(from) : -1;
    size_t length = strspn(line, "0123456789");
    if (!status && length && length < SLURM_ID) {
        snprintf(id, SLURM_ID, "%.*s", (int)length, line);
        return SLUICE_STATUS_OK;
    }
    fprintf(stderr, "sluice: sbatch has taken no job%s\n",
            WIFEXITED(status) && WEXITSTATUS(status) == 127
                ? ": it is not on this machine; 'sluice farm print --as xargs' needs none"
                : ", and says why above");
    return SLUICE_STATUS_FAILED;
}

void slurm_cancel(const struct farm *farm, const char *name)
{
    char command[128];
    snprintf(command, sizeof command, "scancel --quiet --state=PENDING --name=sluice-%s-%s", name,
             farm->tag);
    FILE *from = popen(command, "re");
    if (from)
        pclose(from);
}

// ---- squeue ----

// The state of a job, by its code there.
static enum slurm_state state_of(const char *code)
{
    static const struct {
        const char *codes;
        enum slurm_state state;
    } states[] = {
        {" CD ", SLURM_COMPLETED},
        {" CA F TO NF OOM BF DL PR RV ", SLURM_FAILED},
        {" R CG CF S ST SI SO ", SLURM_RUNNING},
    };
    char wanted[16];
    snprintf(wanted, sizeof wanted, " %.8s ", code);
    for (size_t k = 0; k < sizeof states / sizeof *states; k++)
        if (strstr(states[k].codes, wanted))
            return states[k].state;
    return SLURM_PENDING; // also where it is held, or was requeued
}

static void read_row(const char *line, void (*note)(void *, const struct slurm_task *),
                     void *opaque)
{
    struct slurm_task task = {.task = -1};
    char index[16], code[16];
    if (sscanf(line, "sluice-%7[a-z]-%*[^|]|%31[0-9]|%15[^|]|%15[^|]|%95[^\n]", task.name, task.id,
               index, code, task.reason) < 4)
        return;
    if (sscanf(index, "%d", &task.task) != 1)
        task.task = -1;
    task.state = state_of(code);
    note(opaque, &task);
}

enum sluice_status slurm_queue(const struct farm *farm,
                               void (*note)(void *opaque, const struct slurm_task *task),
                               void *opaque)
{
    char command[256], line[512];
    snprintf(command, sizeof command,
             "squeue --noheader --array --states=all --format='%%j|%%F|%%K|%%t|%%R' "
             "--name=sluice-part-%s,sluice-join-%s,sluice-audit-%s",
             farm->tag, farm->tag, farm->tag);
    if (system("command -v squeue >/dev/null"))
        return SLUICE_STATUS_END;
    FILE *from = popen(command, "re");
    while (from && fgets(line, sizeof line, from))
        read_row(line, note, opaque);
    if (from && !pclose(from))
        return SLUICE_STATUS_OK;
    fprintf(stderr, "sluice: squeue does not answer; what runs is not known\n");
    return SLUICE_STATUS_FAILED;
}
