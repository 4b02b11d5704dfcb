#include "app/jobs/verdict.h"

#include <stdio.h>

#include "app/jobs/figures.h"

static enum sluice_part busiest(const struct sluice_summary *summary)
{
    enum sluice_part most = SLUICE_PART_DEMUX;
    for (int part = 0; part < SLUICE_PART_COUNT; part++)
        if (summary->busy[part] > summary->busy[most])
            most = (enum sluice_part)part;
    return most;
}

void verdict_of_jobs(const struct figures *figures, int jobs, double idle, char *to, size_t size)
{
    const struct sluice_summary *summary = &figures->summary;
    enum sluice_part most = busiest(summary);
    const char *name = sluice_part_name(most), *advice = sluice_part_advice(most);
    double share = 100 * summary->busy[most];
    char who[32];
    snprintf(who, sizeof who, "%d job%s", jobs, jobs == 1 ? "" : "s");
    if (idle >= 0.25 && jobs > 1)
        snprintf(to, size,
                 "%s had no part to make for %.0f %% of their time: the file has few places to be "
                 "cut at, or is short; fewer jobs would do",
                 who, 100 * idle);
    else if (summary->cores_busy >= 0.85)
        snprintf(to, size,
                 "the processor set the pace: %s kept its cores busy %.0f %% of the time, and %s "
                 "took the longest; %s would help",
                 who, 100 * summary->cores_busy, name, advice);
    else if (share >= 50)
        snprintf(to, size,
                 "%s set the pace of %s, busy %.0f %% of the time, while %.0f %% of the processor "
                 "was idle; more jobs, or %s would help",
                 name, who, share, 100 * (1 - summary->cores_busy), advice);
    else
        snprintf(to, size,
                 "no part of %s was busy for even half of the time: the file is too short to say "
                 "what sets the pace",
                 who);
}
