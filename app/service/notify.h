// Notifications of a running job to systemd, the datagrams of sd_notify(3):
//
//   READY=1      the first frame is out; a server listens; parts are begun
//   STATUS=...   a line for `systemctl status`, at most every five seconds
//   WATCHDOG=1   twice in WATCHDOG_USEC, but only after something moved: a frame came in, went out
//                or was dropped, or a lost source is being connected again
//   STOPPING=1   nothing more comes; from here on systemd counts its time for stopping
//
// So a job that hangs, wherever it does, is restarted by systemd, and one whose camera is away is
// not.
#pragma once

#include "sluice/sluice.h"

// Notify systemd of readiness, progress and stopping, from a thread of its own; NULL without
// NOTIFY_SOCKET. `job` is NULL for a server, and for a run of parts, which are ready now.
struct notify;
struct notify *notify_start(const struct sluice_job *job);
void notify_stop(struct notify **notify);
