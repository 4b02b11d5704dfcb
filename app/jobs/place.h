// Place: the NUMA node on which a job runs, its threads and its memory.
//
// A job whose threads stand on one node and whose memory lies on another fetches every frame across
// the link between them; bound to a node it does not, and jobs on several nodes use all of them. A
// thread hands its processors and its memory's policy on to the threads that it creates: the job
// needs no word of it.
//
// The system's own interface does it, /sys and two system calls. libnuma would widen a mask that
// was set by taskset, and knows no GPUs; hwloc knows them and is larger than what asks it.
#pragma once

#include <stddef.h>

enum { PLACE_MAX_NODES = 64, PLACE_MAX_GPUS = 64, PLACE_NOWHERE = -1 };

// What the machine is like, as far as places depend on it.
struct place_machine {
    int nodes;
    int node[PLACE_MAX_NODES];  // numbers of nodes that have processors for this process
    int cores[PLACE_MAX_NODES]; // how many of them each has
    int gpus;
    int gpu_node[PLACE_MAX_GPUS]; // the node of each GPU that jobs take in turn; PLACE_NOWHERE:
                                  // it is not known
};

// The node of job number `job` from 0: that of its GPU where jobs have GPUs, else the nodes in turn.
// PLACE_NOWHERE, which is no place, on a machine of one node and for a GPU whose node is not known.
int place_of_job(const struct place_machine *machine, int job);

// How many threads each of `jobs` jobs may take so that together they take every core once, 1 at
// least.
int place_threads(const struct place_machine *machine, int jobs);

// Read the machine: its nodes, and those of these GPUs, by CUDA's numbers.
void place_read(const int *gpu, int gpus, struct place_machine *machine);

// Bind the calling thread, and those that it creates from now on, to a node; PLACE_NOWHERE: nothing
// happens. What the system refuses stays as it was.
void place_bind(int node);

// ---- texts of /sys, apart for tests ----

// Read "0-3,8,10-11" into *set, a bit for each of the first `bits` numbers. Returns how many.
int place_read_list(const char *text, unsigned char *set, int bits);

// The position of GPU `device` among all of the machine, in a process with this
// CUDA_VISIBLE_DEVICES (NULL: not set); PLACE_NOWHERE where it does not give numbers.
int place_physical_gpu(const char *visible, int device);
