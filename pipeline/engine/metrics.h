// `--metrics ADDR`: a job's figures for Prometheus, at /metrics, as text.
//
// Everything is read from one snapshot of struct sluice_progress, so a scrape takes no lock for
// longer than it takes to copy some numbers. Names and units are Prometheus's: counters end in
// _total, times are seconds, shares are left to rate().
//
//   sluice_frames_{in,out,filled,damaged,verified}_total   the ledger
//   sluice_frames_taken_over_total
//   sluice_frames_dropped_total{reason}                    range, stop, late, clock
//   sluice_packets_damaged_total
//   sluice_source_{losses,reconnects,lost_seconds}_total, sluice_source_lost
//   sluice_latency_seconds                                 histogram, from arrival to writing
//   sluice_part_busy_seconds_total{part}                   rate() is the share it works
//   sluice_ring_slots, sluice_ring_slots_used, sluice_ring_occupancy_ratio
//   sluice_output_{frames,dropped,bytes,connects}_total{output}, sluice_output_failed{output}
//   sluice_media_seconds_total
//   sluice_build_info{version}, sluice_job_info{input,codec,backend}
//   process_*                                              as Prometheus's own libraries have them
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "sluice/sluice.h"

struct metrics;

// Listen at an address as http.h has them. While no job is there to be watched, whoever asks gets
// 503. STATUS_USAGE, STATUS_OUTPUT and STATUS_FAILED with a sentence, as http_create().
enum status metrics_create(const char *address, const struct log *log, struct metrics **metrics);

// The job is created, and stays until another one is watched, or none (NULL), or metrics_destroy().
// Questions to its predecessor are answered before the call returns. Accepts NULL for the metrics.
void metrics_watch(struct metrics *metrics, const struct sluice_job *job);

// Leaves NULL, accepts NULL behind it. Waits for no client.
void metrics_destroy(struct metrics **metrics);
