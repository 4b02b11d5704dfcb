// Notifications of a running job to systemd, the datagrams of sd_notify(3):
//
//   READY=1      the first frame is out; a server listens
//   STATUS=...   a line for `systemctl status`, at most every five seconds
//   WATCHDOG=1   twice in WATCHDOG_USEC, but only after something moved: a frame came in, went out
//                or was dropped, a part was finished, parts are joined, or a lost source is being
//                connected again
//   STOPPING=1   nothing more comes; from here on systemd counts its time for stopping
//
// So a job that hangs, wherever it does, is restarted by systemd, and one whose camera is away is
// not.
#pragma once

#include <stdbool.h>

#include "sluice/sluice.h"

// How a run goes.
struct notify_state {
    struct sluice_progress progress;
    int parts_done; // 0 in a run that is one job
    bool joining;
};

typedef void notify_read(const void *run, struct notify_state *now);

// The same of one job: `run` is a struct sluice_job.
notify_read notify_read_job;

// Notify systemd of readiness, progress and stopping, from a thread of its own; NULL without
// NOTIFY_SOCKET. `read` tells how `run` goes; NULL: a server, which is ready now. `ends`: the program is about to, and
// does not begin the run anew.
struct notify;
struct notify *notify_start(notify_read *read, const void *run);
void notify_stop(struct notify **notify, bool ends);
