#include "app/farm/script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "control/shell.h"

enum { XARGS_AT_ONCE = 4 };

// ---- commands ----

// The command of the part whose number the shell's word `part` stands for.
static void write_part(const struct farm *farm, const char *part, FILE *to)
{
    shell_word(to, farm->program);
    for (size_t k = 0; k < json_array_size(farm->words); k++) {
        fputc(' ', to);
        shell_word(to, json_string_value(json_array_get(farm->words, k)));
    }
    fprintf(to, " --shard \"%s/%d\"", part, farm->parts);
}

// Options of the container, which joining makes: those behind INPUT; and what the sandbox is to allow.
static void write_join_options(const struct farm *farm, FILE *to)
{
    bool behind = false;
    for (size_t k = 0; k + 1 < json_array_size(farm->words); k++) {
        const char *word = json_string_value(json_array_get(farm->words, k));
        bool container =
            !strcmp(word, "-F") || !strcmp(word, "--format") || !strcmp(word, "--option");
        behind |= !strcmp(word, farm->input);
        if (!(behind && container) && strcmp(word, "--allow") != 0)
            continue;
        fprintf(to, " %s ", word);
        shell_word(to, json_string_value(json_array_get(farm->words, ++k)));
    }
}

// The join may run twice, as any task: it replaces its own output. That there was no other has been
// looked at before.
// Damaged input is no failure: what is joined of it is whole.
static void write_join(const struct farm *farm, FILE *to)
{
    fputs("{ ", to);
    shell_word(to, farm->program);
    fputs(" join ", to);
    shell_word(to, farm->output);
    fputc(' ', to);
    shell_word(to, farm->file);
    fprintf(to, ".part-*-of-%d --source ", farm->parts);
    shell_word(to, farm->input);
    write_join_options(farm, to);
    fputs(" -y || { code=$?; [ $code = 3 ] || (exit $code); }; }", to);
}

static void write_audit(const struct farm *farm, FILE *to)
{
    shell_word(to, farm->program);
    fputs(" audit ", to);
    shell_word(to, farm->output);
    fputs(" --source ", to);
    shell_word(to, farm->input);
    fprintf(to, " --samples %" JSON_INTEGER_FORMAT, farm->samples);
}

// What a function writes, as text; NULL without memory. The caller frees it.
static char *text_of(const struct farm *farm, void (*write)(const struct farm *, FILE *))
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    write(farm, to);
    fclose(to);
    return text;
}

// ---- Slurm ----

static void write_head(const struct farm *farm, const char *about, FILE *to)
{
    fprintf(to, "#!/bin/sh\n# %s\ncd ", about);
    shell_word(to, farm->folder);
    fputs(" || exit 4\n", to);
}

void script_part(const struct farm *farm, FILE *to)
{
    char exit_file[FARM_PATH];
    write_head(farm, "Make part $1, or part $SLURM_ARRAY_TASK_ID, which may be there already.", to);
    fputs("part=${1:-$SLURM_ARRAY_TASK_ID}\n", to);
    write_part(farm, "$part", to);
    fputs("\ncode=$?\n[ $code != 3 ] || code=0 # damaged input: the part is whole\nfailed=", to);
    shell_word(to, farm_path(farm, exit_file, "part-"));
    fputs("$part.exit\nif [ $code = 0 ]; then rm -f \"$failed\"; else echo $code >\"$failed\"; fi\n"
          "exit $code\n",
          to);
}

static void write_tail(const struct farm *farm, const char *name, FILE *to)
{
    char exit_file[FARM_PATH];
    fputs("\ncode=$?\necho $code >", to);
    shell_word(to, farm_path(farm, exit_file, "%s.exit", name));
    fputs("\nexit $code\n", to);
}

void script_join(const struct farm *farm, FILE *to)
{
    write_head(farm, "Put the parts together, and prove that they are the whole.", to);
    write_join(farm, to);
    write_tail(farm, "join", to);
}

void script_audit(const struct farm *farm, FILE *to)
{
    write_head(farm, "Compute random frames again from the source, and compare.", to);
    write_audit(farm, to);
    write_tail(farm, "audit", to);
}

// ---- xargs ----

// A task of xargs: $0 is the number.
static void write_task(const struct farm *farm, FILE *to)
{
    write_part(farm, "$0", to);
    fputs(" || [ $? = 3 ]", to);
}

void script_xargs(const struct farm *farm, FILE *to)
{
    char *task = text_of(farm, write_task);
    fputs("cd ", to);
    shell_word(to, farm->folder);
    fprintf(to, " && seq %d | xargs -P %d -n 1 sh -c ", farm->parts,
            farm->at_once ? farm->at_once : XARGS_AT_ONCE);
    shell_quote(to, task ? task : "exit 1");
    fputs(" && ", to);
    write_join(farm, to);
    fputs(" && ", to);
    write_audit(farm, to);
    fputc('\n', to);
    free(task);
}

// ---- Kubernetes ----

// "sluice-out-mp4" of "films/Out.mp4": what names may be there.
static void write_name(const struct farm *farm, FILE *to)
{
    const char *slash = strrchr(farm->file, '/');
    const char *base = slash ? slash + 1 : farm->file;
    fputs("sluice", to);
    bool gap = true;
    for (int k = 0, length = 0; base[k] && length < 40; k++) {
        bool fine = isascii(base[k]) && isalnum((unsigned char)base[k]);
        if (fine && gap)
            fputc('-', to);
        if (fine)
            fputc(tolower((unsigned char)base[k]), to);
        length += fine + gap;
        gap = !fine;
    }
}

// A YAML string, in quotes.
static void write_string(const char *text, FILE *to)
{
    json_t *string = json_string(text);
    json_dumpf(string, to, JSON_ENCODE_ANY);
    json_decref(string);
}

// A line for a shell, in whose place Kubernetes puts nothing: it reads $$ as $.
static void write_command(const char *line, FILE *to)
{
    char *text = NULL;
    size_t size;
    FILE *doubled = open_memstream(&text, &size);
    if (!doubled)
        return;
    for (const char *at = line; *at; at++)
        fprintf(doubled, *at == '$' ? "$$" : "%c", *at);
    fclose(doubled);
    fputs("        command: [\"/bin/sh\", \"-c\", ", to);
    write_string(text ? text : "exit 1", to);
    fputs("]\n", to);
    free(text);
}

static void write_pod(const struct farm *farm, const char *image, const char *claim,
                      const char *line, FILE *to)
{
    fputs("  template:\n    spec:\n      restartPolicy: Never\n      containers:\n"
          "      - name: sluice\n        image: ",
          to);
    write_string(image, to);
    fputs("\n        workingDir: ", to);
    write_string(farm->folder, to);
    fputc('\n', to);
    write_command(line, to);
    fputs("        volumeMounts:\n        - name: work\n          mountPath: ", to);
    write_string(farm->folder, to);
    fputs("\n      volumes:\n      - name: work\n        persistentVolumeClaim:\n"
          "          claimName: ",
          to);
    write_string(claim, to);
    fputc('\n', to);
}

static void write_job(const struct farm *farm, const char *suffix, FILE *to)
{
    fputs("apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: ", to);
    write_name(farm, to);
    fprintf(to, "-%s\nspec:\n", suffix);
}

// An index is counted from 0. Usage and input (2, 4) fail alike everywhere: trying again is vain.
static void write_parts_job(const struct farm *farm, FILE *to)
{
    write_job(farm, "parts", to);
    fprintf(to,
            "  completionMode: Indexed\n  completions: %d\n  parallelism: %d\n"
            "  backoffLimitPerIndex: 4\n"
            "  podFailurePolicy:\n    rules:\n"
            "    - action: Ignore\n      onPodConditions:\n      - type: DisruptionTarget\n"
            "        status: \"True\"\n"
            "    - action: FailIndex\n      onExitCodes:\n        operator: In\n"
            "        values: [2, 4]\n",
            farm->parts, farm->at_once ? farm->at_once : farm->parts);
}

static void write_index_task(const struct farm *farm, FILE *to)
{
    write_part(farm, "$((JOB_COMPLETION_INDEX + 1))", to);
    fputs(" || { code=$?; [ $code = 3 ] || exit $code; }", to);
}

static void write_close_task(const struct farm *farm, FILE *to)
{
    write_join(farm, to);
    fputs(" && ", to);
    write_audit(farm, to);
}

void script_kubernetes(const struct farm *farm, const char *image, const char *claim, FILE *to)
{
    char *part = text_of(farm, write_index_task), *close = text_of(farm, write_close_task);
    fputs("# kubectl apply -f THIS; then, when all parts are there, let them be joined:\n"
          "# kubectl wait --for=condition=Complete --timeout=-1s job/",
          to);
    write_name(farm, to);
    fputs("-parts\n# kubectl patch job/", to);
    write_name(farm, to);
    fputs("-join --type=merge -p '{\"spec\":{\"suspend\":false}}'\n", to);
    write_parts_job(farm, to);
    write_pod(farm, image, claim, part ? part : "exit 1", to);
    fputs("---\n", to);
    write_job(farm, "join", to);
    fputs("  suspend: true\n  backoffLimit: 4\n", to);
    write_pod(farm, image, claim, close ? close : "exit 1", to);
    free(part);
    free(close);
}
