// `sluice farm`: one output by many tasks of an engine that there is. It writes what is to be run,
// hands it over, and looks at what came of it; it schedules nothing.
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/app.h"
#include "app/farm/census.h"
#include "app/farm/script.h"

// ---- what is asked for ----

static int refuse(int code, const char *sentence)
{
    fprintf(stderr, "sluice: %s\n", sentence);
    return code;
}

static bool is_for(const struct settings *settings, const char *engine)
{
    return settings->farm.engine && !strcmp(settings->farm.engine, engine);
}

// The sluice that tasks call: this one, by its whole path, or that of an image.
static bool find_program(const struct settings *settings, char to[PATH_MAX])
{
    const char *program = settings->farm.program;
    if (!program && is_for(settings, "kubernetes"))
        program = "sluice";
    if (program)
        return snprintf(to, PATH_MAX, "%s", program) < PATH_MAX;
    ssize_t length = readlink("/proc/self/exe", to, PATH_MAX - 1);
    to[length > 0 ? length : 0] = 0;
    return length > 0;
}

// Describe the farm that the command line asks for. -1: go on; else the exit code.
static int describe(struct settings *settings, struct farm *farm)
{
    char program[PATH_MAX], folder[PATH_MAX];
    const struct sluice_config *config = &settings->config;
    *farm = (struct farm){0};
    if (!config->input || !config->output.name)
        return refuse(EXIT_USAGE, "usage: sluice farm submit INPUT OUTPUT --parts N [OPTION...] "
                                  "[-- OPTION-OF-SBATCH...]");
    if (!settings->farm.parts)
        return refuse(EXIT_USAGE, "--parts N is missing: into how many parts the input is cut");
    if (!find_program(settings, program) || !getcwd(folder, sizeof folder))
        return refuse(EXIT_OTHER, "where this program or this folder is cannot be found out");
    enum sluice_status status = sluice_chain_parse(config, &settings->parsed);
    if (status)
        return exit_code_of(status);
    struct farm_request request = {
        .program = program,
        .folder = folder,
        .input = config->input,
        .output = config->output.name,
        .word = (const char *const *)settings->farm.typed,
        .option = (const char *const *)settings->word,
        .parts = settings->farm.parts,
        .samples = settings->samples,
        .at_once = settings->farm.at_once,
    };
    status = farm_init(&request, farm);
    return status ? exit_code_of(status) : -1;
}

// Jobs of a farm that was there before would make parts of it. -1: there are none.
static int check_under_way(const struct settings *settings, const struct farm *farm)
{
    struct farm before;
    struct census census = {0};
    enum sluice_status status = farm_load(farm->output, &before);
    if (!status)
        status = census_take(&before, &settings->config, false, &census);
    int code = status == SLUICE_STATUS_FAILED ? exit_code_of(status) : -1; // squeue does not answer
    if (!status && census_is_queued(&census)) {
        fprintf(stderr, "sluice: jobs for %s are under way: cancel them, by scancel, or wait\n",
                farm->file);
        code = EXIT_OUTPUT;
    }
    census_free(&census);
    farm_finish(&before);
    if (code < 0 && chdir(farm->folder)) // farm_load() has gone to that of the one before
        code = refuse(EXIT_OTHER, "this folder is not to be found any more");
    return code;
}

// What is there already stays, unless -y says otherwise. -1: go on; else the exit code.
static int check_present(const struct settings *settings, const struct farm *farm)
{
    char name[FARM_PATH];
    if (access(settings->config.input, R_OK)) {
        fprintf(stderr, "sluice: %s cannot be read: %s\n", settings->config.input, strerror(errno));
        return EXIT_INPUT;
    }
    if (settings->config.overwrite)
        return check_under_way(settings, farm);
    if (!access(farm->file, F_OK)) {
        fprintf(stderr, "sluice: %s exists; -y replaces it when all parts are there\n", farm->file);
        return EXIT_OUTPUT;
    }
    if (!access(farm_path(farm, name, "farm.json"), F_OK)) {
        fprintf(
            stderr,
            "sluice: a farm makes %s already: 'sluice farm status' shows how it stands, 'sluice "
            "farm resume' goes on with it, -y begins anew\n",
            farm->file);
        return EXIT_OUTPUT;
    }
    return -1;
}

// ---- scripts ----

struct script {
    const char *name;
    void (*write)(const struct farm *farm, FILE *to);
};

static const struct script scripts[] = {
    {"part.sh", script_part}, {"join.sh", script_join}, {"audit.sh", script_audit}, {0}};

static enum sluice_status write_script(const struct farm *farm, const struct sluice_config *config,
                                       const struct script *script)
{
    char path[FARM_PATH], *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return SLUICE_STATUS_MEMORY;
    script->write(farm, to);
    enum sluice_status status = fclose(to) ? SLUICE_STATUS_MEMORY : SLUICE_STATUS_OK;
    if (!status)
        status = farm_write(config, farm_path(farm, path, "%s", script->name), text);
    free(text);
    return status;
}

// Make the farm's folder, with its scripts.
static enum sluice_status write_folder(const struct farm *farm, const struct sluice_config *config)
{
    char folder[FARM_PATH];
    enum sluice_status status = SLUICE_STATUS_OK;
    farm_path(farm, folder, "%s", "");
    if (mkdir(folder, 0777) && errno != EEXIST) {
        fprintf(stderr, "sluice: %s cannot be made: %s\n", folder, strerror(errno));
        return SLUICE_STATUS_OUTPUT;
    }
    for (const struct script *script = scripts; script->name && !status; script++)
        status = write_script(farm, config, script);
    return status ? status : farm_store(farm, config);
}

static void print_scripts(const struct farm *farm)
{
    char path[FARM_PATH];
    for (const struct script *script = scripts; script->name; script++) {
        printf("# ---- %s ----\n", farm_path(farm, path, "%s", script->name));
        script->write(farm, stdout);
        printf("\n");
    }
}

// ---- jobs ----

// What is to be submitted; always an audit, too.
struct round {
    char *array;  // the parts; "": none
    char *queued; // ":17_3:17_4": tasks that are under way, for which the join waits, too
    bool join;    // false: the output is joined
};

static void print_job(const char *id, const struct slurm_job *job, const char *command)
{
    printf("%s\njob %s: %s%s\n", command, id, job->array ? "parts " : job->name,
           job->array ? job->array : "");
    fflush(stdout);
}

// Submit a job, or print how that is done, its id going into a variable of the shell.
static enum sluice_status submit_job(const struct farm *farm, const struct slurm_job *job,
                                     bool dry_run, const char *variable, char id[SLURM_ID])
{
    char *command = slurm_command(farm, job);
    if (!command)
        return SLUICE_STATUS_MEMORY;
    enum sluice_status status = SLUICE_STATUS_OK;
    if (dry_run) {
        printf("%s=$(%s)\n", variable, command);
        snprintf(id, SLURM_ID, "$%s", variable);
    } else {
        status = slurm_submit(command, id);
        if (status)
            fprintf(stderr, "sluice: it was asked: %s\n%s", command,
                    job->array
                        ? "sluice: an array has less than MaxArraySize tasks, which 'scontrol "
                          "show config' says\n"
                        : "");
        else
            print_job(id, job, command);
    }
    free(command);
    return status;
}

// What scripts have said of tries before.
static void forget_exits(const struct farm *farm, const struct census *census)
{
    char path[FARM_PATH];
    remove(farm_path(farm, path, "join.exit"));
    remove(farm_path(farm, path, "audit.exit"));
    for (int k = 0; k < census->parts; k++)
        if (census->part[k].state == TASK_MISSING)
            remove(farm_path(farm, path, "part-%d.exit", k + 1));
}

static enum sluice_status submit_parts(const struct farm *farm, const struct settings *settings,
                                       const struct round *round, char depends[], size_t size)
{
    char id[SLURM_ID] = "";
    struct slurm_job job = {.name = "part", .array = round->array};
    bool dry_run = settings->farm.dry_run;
    enum sluice_status status = SLUICE_STATUS_OK;
    if (*round->array)
        status = submit_job(farm, &job, dry_run, "PARTS", id);
    snprintf(depends, size, "afterok%s%s%s", *id ? ":" : "", id, round->queued);
    return status;
}

static enum sluice_status submit_end(const struct farm *farm, const struct settings *settings,
                                     const char *name, const char *depends, char id[SLURM_ID])
{
    bool joins = !strcmp(name, "join"), dry_run = settings->farm.dry_run;
    struct slurm_job job = {.name = name, .depends = strchr(depends, ':') ? depends : NULL};
    return submit_job(farm, &job, dry_run, joins ? "JOIN" : "AUDIT", id);
}

// Submit the parts, and behind them the join and the audit.
static int submit_round(const struct farm *farm, const struct settings *settings,
                        const struct round *round)
{
    char id[SLURM_ID] = "", after[SLURM_ID + 16] = "";
    size_t size = strlen(round->queued) + SLURM_ID + 16;
    char *depends = calloc(size, 1);
    enum sluice_status status =
        depends ? submit_parts(farm, settings, round, depends, size) : SLUICE_STATUS_MEMORY;
    if (!status && round->join) {
        status = submit_end(farm, settings, "join", depends, id);
        snprintf(after, sizeof after, "afterok:%s", id);
    }
    if (!status)
        status = submit_end(farm, settings, "audit", after, id);
    free(depends);
    if (status && !settings->farm.dry_run)
        fprintf(stderr, "sluice: 'sluice farm resume %s' submits what is missing\n", farm->output);
    return exit_code_of(status);
}

// ---- parts that are there ----

// The first error of a job that looks at a part.
struct heard {
    char sentence[1024];
};

static void hear(void *heard_, enum sluice_log_level level, const char *sentence)
{
    struct heard *heard = heard_;
    if (level == SLUICE_LOG_ERROR && !*heard->sentence)
        snprintf(heard->sentence, sizeof heard->sentence, "%.*s", (int)(strcspn(sentence, ";")),
                 sentence);
}

// Move a part out of the way, into OUT.farm/refused/.
static bool move_away(const struct farm *farm, int part)
{
    char from[FARM_PATH], to[FARM_PATH];
    mkdir(farm_path(farm, to, "refused"), 0777);
    farm_part(farm, part, from);
    for (int k = 1; k < 1000; k++) {
        farm_path(farm, to, "refused/part-%d-of-%d.%d", part, farm->parts, k);
        if (access(to, F_OK) && !rename(from, to)) {
            fprintf(stderr, "sluice: it is made again; it lies in %s now\n", to);
            return true;
        }
    }
    fprintf(stderr, "sluice: %s cannot be moved to %s: %s\n", from, to, strerror(errno));
    return false;
}

// Look whether the part is the one that a run of these settings would make, as that run does.
static int check_made_of(struct sluice_config config, int part, struct task *task)
{
    struct heard heard = {""};
    struct sluice_job *job;
    config.part = part;
    config.log = hear;
    config.opaque = &heard;
    enum sluice_status status = sluice_job_create(&config, &job);
    sluice_job_destroy(&job);
    if (status == SLUICE_STATUS_OUTPUT)
        task->state = TASK_UNTRUE;
    else if (status == SLUICE_STATUS_OK)
        task->state = TASK_MISSING; // by now
    if (*heard.sentence)
        fprintf(stderr, "sluice: %s\n", heard.sentence);
    bool told = !status || status == SLUICE_STATUS_END || status == SLUICE_STATUS_OUTPUT;
    return told ? -1 : exit_code_of(status);
}

// Parts that are whole, and made of something else, are not whole for this farm.
static int check_all_made_of(const struct farm *farm, struct census *census)
{
    struct settings part;
    enum command command;
    size_t count = json_array_size(farm->words);
    char **argument = calloc(count + 2, sizeof *argument);
    if (!argument)
        return fprintf(stderr, "sluice: out of memory\n"), EXIT_OTHER;
    argument[0] = (char *)"sluice";
    for (size_t k = 0; k < count; k++)
        argument[k + 1] = (char *)json_string_value(json_array_get(farm->words, k));
    int code = settings_parse((int)count + 1, argument, &command, &part);
    assert(code >= 0 || command == COMMAND_FILTER);
    part.config.parts = farm->parts;
    for (int k = 0; code < 0 && k < census->parts; k++)
        if (census->part[k].state == TASK_DONE)
            code = check_made_of(part.config, k + 1, &census->part[k]);
    settings_finish(&part);
    free(argument);
    return code;
}

// Move what is not what it should be out of the way; then every part is done, under way or missing.
static int clear(const struct farm *farm, struct census *census, bool dry_run)
{
    int code = check_all_made_of(farm, census);
    for (int k = 0; code < 0 && k < census->parts; k++) {
        struct task *task = &census->part[k];
        if (task->state == TASK_UNTRUE && !dry_run && !move_away(farm, k + 1))
            code = EXIT_OUTPUT;
        if (task->state == TASK_UNTRUE || task->state == TASK_FAILED)
            task->state = task->queued ? TASK_PENDING : TASK_MISSING;
    }
    census_count(census);
    return code;
}

// ---- rounds ----

static bool make_round(const struct census *census, struct round *round)
{
    size_t size;
    FILE *array = open_memstream(&round->array, &size);
    FILE *queued = open_memstream(&round->queued, &size);
    if (array)
        census_list(census, TASK_MISSING, array);
    for (int k = 0; queued && k < census->parts; k++)
        if (census->part[k].queued && census->part[k].state != TASK_DONE)
            fprintf(queued, ":%s_%d", census->part[k].job, k + 1);
    bool made = array && queued;
    if (array)
        made &= !fclose(array);
    if (queued)
        made &= !fclose(queued);
    return made;
}

static int submit_missing(const struct farm *farm, const struct settings *settings,
                          const struct census *census)
{
    struct round round = {.join = true};
    int code = make_round(census, &round) ? -1 : EXIT_OTHER;
    if (code < 0 && !settings->farm.dry_run) {
        slurm_cancel(farm, "join");
        slurm_cancel(farm, "audit");
        forget_exits(farm, census);
    }
    if (code < 0)
        code = submit_round(farm, settings, &round);
    free(round.array);
    free(round.queued);
    return code;
}

static int submit_audit(const struct farm *farm, const struct settings *settings)
{
    struct round round = {.array = (char[]){""}, .queued = (char[]){""}};
    return submit_round(farm, settings, &round);
}

// ---- commands ----

static int print_plan(const struct farm *farm, const struct settings *settings)
{
    char all[32];
    snprintf(all, sizeof all, farm->parts > 1 ? "1-%d" : "%d", farm->parts);
    struct settings dry = *settings;
    dry.farm.dry_run = true;
    print_scripts(farm);
    return submit_round(farm, &dry, &(struct round){all, (char[]){""}, true});
}

// Begin: parts that are there count, if they are what they should be.
static int begin(const struct farm *farm, const struct settings *settings)
{
    struct census census;
    enum sluice_status status = write_folder(farm, &settings->config);
    if (status)
        return exit_code_of(status);
    status = census_take(farm, &settings->config, true, &census);
    int code = status ? exit_code_of(status) : clear(farm, &census, false);
    if (code < 0)
        code = submit_missing(farm, settings, &census);
    census_free(&census);
    return code;
}

static int submit(struct settings *settings)
{
    struct farm farm;
    int code = describe(settings, &farm);
    if (code < 0 && settings->farm.dry_run)
        code = print_plan(&farm, settings);
    if (code < 0)
        code = check_present(settings, &farm);
    if (code < 0)
        code = begin(&farm, settings);
    farm_finish(&farm);
    return code;
}

static int print(struct settings *settings)
{
    struct farm farm;
    int code = describe(settings, &farm);
    if (code < 0 && is_for(settings, "kubernetes"))
        script_kubernetes(&farm, settings->farm.image ? settings->farm.image : "sluice",
                          settings->farm.claim ? settings->farm.claim : "work", stdout);
    else if (code < 0 && is_for(settings, "xargs"))
        script_xargs(&farm, stdout);
    else if (code < 0)
        code = print_plan(&farm, settings);
    farm_finish(&farm);
    return code < 0 ? EXIT_WHOLE : code;
}

// The farm of the output that the command line names. -1: go on; else the exit code.
static int load(const struct settings *settings, struct farm *farm)
{
    *farm = (struct farm){0};
    if (!settings->config.input || settings->config.output.name)
        return refuse(EXIT_USAGE, "usage: sluice farm status OUTPUT, or sluice farm resume OUTPUT");
    enum sluice_status status = farm_load(settings->config.input, farm);
    if (status == SLUICE_STATUS_END && !strcmp(settings->topic, "status"))
        status = farm_guess(settings->config.input, farm);
    if (status == SLUICE_STATUS_END)
        fprintf(stderr, "sluice: there is no %s.farm: 'sluice farm submit' makes it\n",
                farm_file_of(settings->config.input));
    return status == SLUICE_STATUS_END ? EXIT_INPUT : status ? exit_code_of(status) : -1;
}

static int status(struct settings *settings)
{
    struct farm farm;
    int code = load(settings, &farm);
    if (code < 0)
        code = farm_print_status(settings, &farm);
    farm_finish(&farm);
    return code;
}

// The output is joined, and its audit is not there, or has failed.
static int resume_audit(const struct farm *farm, const struct settings *settings,
                        const struct census *census)
{
    char log[FARM_PATH];
    if (census->audit.queued)
        return printf("the audit is under way\n"), EXIT_WHOLE;
    if (census->audit.state != TASK_FAILED)
        return submit_audit(farm, settings);
    fprintf(stderr,
            "sluice: the audit has failed (%s), and every part is what its manifest says: remove "
            "the part that has the frame that it names, or %s if it has changed, and resume\n",
            farm_path(farm, log, "audit.log"), farm->file);
    return EXIT_OTHER;
}

// Go on with what the census says; every part is done, under way or missing.
static int resume_census(const struct farm *farm, const struct settings *settings,
                         const struct census *census)
{
    bool all_done = census->count[TASK_DONE] == census->parts;
    if (census->join.state == TASK_DONE && (all_done || census->audit.state != TASK_FAILED))
        return resume_audit(farm, settings, census);
    bool end_queued = census->join.queued && census->audit.queued;
    if (!census->count[TASK_MISSING] && end_queued)
        return printf("all that is missing is under way\n"), EXIT_WHOLE;
    return submit_missing(farm, settings, census);
}

static int resume_farm(const struct farm *farm, const struct settings *settings)
{
    struct census census;
    enum sluice_status status = census_take(farm, &settings->config, true, &census);
    int code = status ? exit_code_of(status) : clear(farm, &census, settings->farm.dry_run);
    if (code < 0)
        code = resume_census(farm, settings, &census);
    census_free(&census);
    return code;
}

// True if nothing is to be done, by what scripts have said.
static bool is_whole(const struct farm *farm, const struct settings *settings)
{
    struct census census;
    bool whole =
        !census_take(farm, &settings->config, false, &census) && census_exit(&census) == FARM_WHOLE;
    census_free(&census);
    return whole;
}

static int resume(struct settings *settings)
{
    struct farm farm;
    int code = load(settings, &farm);
    if (code < 0 && is_whole(&farm, settings))
        code = printf("%s is joined and audited\n", farm.file) > 0 ? EXIT_WHOLE : EXIT_OUTPUT;
    if (code < 0)
        code = resume_farm(&farm, settings);
    farm_finish(&farm);
    return code;
}

static const struct {
    const char *name; // NULL ends the table
    int (*run)(struct settings *settings);
} verbs[] = {{"submit", submit}, {"status", status}, {"resume", resume}, {"print", print}, {0}};

void farm_write_verbs(FILE *to)
{
    for (size_t k = 0; verbs[k].name; k++)
        fprintf(to, "%s%s", k ? " " : "", verbs[k].name);
}

int farm_command(struct settings *settings)
{
    for (size_t k = 0; settings->topic && verbs[k].name; k++)
        if (!strcmp(settings->topic, verbs[k].name)) {
            int code = farm_check_options(settings);
            return code < 0 ? verbs[k].run(settings) : code;
        }
    return refuse(EXIT_USAGE, "usage: sluice farm submit|status|resume|print ...; 'sluice help "
                              "farm' says more");
}
