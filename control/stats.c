// Statistics of a job, as JSON.
#include "control/verbs.h"

static json_t *ledger_json(const struct sluice_progress *now)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "in",
        (json_int_t)now->ledger.frames_in, "filled", (json_int_t)now->ledger.frames_filled, "out",
        (json_int_t)now->ledger.frames_out, "dropped_range", (json_int_t)now->ledger.dropped_range,
        "dropped_stop", (json_int_t)now->ledger.dropped_stop, "dropped_clock",
        (json_int_t)now->ledger.dropped_clock, "dropped_late", (json_int_t)now->ledger.dropped_late,
        "dropped_disk", (json_int_t)now->ledger.dropped_disk, "damaged_frames",
        (json_int_t)now->ledger.frames_damaged, "damaged_packets",
        (json_int_t)now->ledger.packets_damaged, "taken_over",
        (json_int_t)now->ledger.frames_taken_over);
}

static json_t *live_json(const struct sluice_progress *now)
{
    return json_pack("{s:b, s:I, s:I, s:f, s:{s:f, s:f, s:f}, s:I}", "lost", now->lost, "losses",
                     (json_int_t)now->ledger.losses, "reconnects",
                     (json_int_t)now->ledger.reconnects, "lost_s", now->ledger.lost_seconds,
                     "latency_s", "p50", now->latency.quantile[0], "p95", now->latency.quantile[1],
                     "p99", now->latency.quantile[2], "bytes", (json_int_t)now->bytes_out);
}

json_t *stats_json(const struct sluice_job *job)
{
    struct sluice_progress progress = {.size = sizeof progress};
    sluice_job_progress(job, &progress);
    double fps = progress.seconds > 0 ? (double)progress.frames / progress.seconds : 0;
    json_t *ledger = ledger_json(&progress), *live = live_json(&progress);
    json_t *answer = json_pack(
        "{s:b, s:I, s:f, s:f, s:f, s:I}", "ok", 1, "frames", (json_int_t)progress.frames, "fps",
        fps, "wall_s", progress.seconds, "media_s", progress.media_seconds, "damaged",
        (json_int_t)(progress.ledger.frames_damaged + progress.ledger.packets_damaged));
    json_object_update(answer, ledger);
    json_object_update(answer, live);
    json_decref(ledger);
    json_decref(live);
    return answer;
}
