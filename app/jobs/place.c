#define _GNU_SOURCE
#include "app/jobs/place.h"

#include <assert.h>
#include <dirent.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// ---- what follows from what is known ----

int place_of_job(const struct place_machine *machine, int job)
{
    assert(job >= 0);
    if (machine->nodes < 2)
        return PLACE_NOWHERE;
    return machine->gpus ? machine->gpu_node[job % machine->gpus]
                         : machine->node[job % machine->nodes];
}

int place_threads(const struct place_machine *machine, int jobs)
{
    assert(jobs > 0);
    int cores = 0;
    for (int k = 0; k < machine->nodes; k++)
        cores += machine->cores[k];
    return cores > jobs ? cores / jobs : 1;
}

int place_read_list(const char *text, unsigned char *set, int bits)
{
    int count = 0;
    memset(set, 0, (size_t)bits);
    while (*text >= '0' && *text <= '9') {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long k = first; k <= last && k < bits; k++)
            count += !set[k], set[k] = 1;
        text = *end == ',' ? end + 1 : "";
    }
    return count;
}

int place_physical_gpu(const char *visible, int device)
{
    for (int k = 0; visible; k++) {
        char *end;
        long number = strtol(visible, &end, 10);
        if (*visible < '0' || *visible > '9' || (*end && *end != ','))
            return PLACE_NOWHERE;
        if (k == device)
            return (int)number;
        visible = *end ? end + 1 : "";
    }
    return device;
}

// ---- the machine ----

enum { TEXT = 4096 };

// "" where there is no such file.
static void read_text(const char *file, char *to)
{
    FILE *from = fopen(file, "re");
    size_t length = from ? fread(to, 1, TEXT - 1, from) : 0;
    to[length] = 0;
    if (from)
        fclose(from);
}

// The processors of a node that this thread may use. Returns how many.
static int usable_of_node(int node, cpu_set_t *usable)
{
    char file[64], text[TEXT];
    unsigned char set[CPU_SETSIZE];
    cpu_set_t allowed;
    CPU_ZERO(usable);
    snprintf(file, sizeof file, "/sys/devices/system/node/node%d/cpulist", node);
    read_text(file, text);
    place_read_list(text, set, CPU_SETSIZE);
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return 0;
    for (int k = 0; k < CPU_SETSIZE; k++)
        if (set[k] && CPU_ISSET(k, &allowed))
            CPU_SET(k, usable);
    return CPU_COUNT(usable);
}

static void read_nodes(struct place_machine *machine)
{
    char text[TEXT];
    unsigned char set[1024];
    cpu_set_t usable;
    read_text("/sys/devices/system/node/online", text);
    place_read_list(text, set, sizeof set);
    for (int k = 0; k < (int)sizeof set && machine->nodes < PLACE_MAX_NODES; k++) {
        int cores = set[k] ? usable_of_node(k, &usable) : 0;
        if (!cores)
            continue;
        machine->node[machine->nodes] = k;
        machine->cores[machine->nodes++] = cores;
    }
    if (machine->nodes)
        return;
    machine->nodes = 1; // a system without NUMA
    machine->cores[0] = sched_getaffinity(0, sizeof usable, &usable) ? 1 : CPU_COUNT(&usable);
}

// Addresses of GPUs, in CUDA's order: that of the bus.
static int is_address(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int node_of_gpu(int device)
{
    struct dirent **list;
    int number = place_physical_gpu(getenv("CUDA_VISIBLE_DEVICES"), device), node = PLACE_NOWHERE;
    int count = scandir("/proc/driver/nvidia/gpus", &list, is_address, alphasort);
    if (number >= 0 && number < count) {
        char file[320], text[TEXT];
        snprintf(file, sizeof file, "/sys/bus/pci/devices/%s/numa_node", list[number]->d_name);
        read_text(file, text);
        node = *text ? (int)strtol(text, NULL, 10) : PLACE_NOWHERE;
    }
    for (int k = 0; k < count; k++)
        free(list[k]);
    if (count >= 0)
        free(list);
    return node < 0 ? PLACE_NOWHERE : node;
}

void place_read(const int *gpu, int gpus, struct place_machine *machine)
{
    *machine = (struct place_machine){0};
    read_nodes(machine);
    machine->gpus = gpus < PLACE_MAX_GPUS ? gpus : PLACE_MAX_GPUS;
    for (int k = 0; k < machine->gpus; k++)
        machine->gpu_node[k] = machine->nodes > 1 ? node_of_gpu(gpu[k]) : PLACE_NOWHERE;
}

void place_bind(int node)
{
    unsigned long mask[PLACE_MAX_NODES * 16 / (8 * sizeof(unsigned long))] = {0};
    const unsigned bits = 8 * sizeof *mask;
    cpu_set_t usable;
    if (node < 0 || (size_t)node >= 8 * sizeof mask || !usable_of_node(node, &usable))
        return;
    if (sched_setaffinity(0, sizeof usable, &usable))
        return;
    mask[(unsigned)node / bits] |= 1ul << ((unsigned)node % bits);
    syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask,
            8 * sizeof mask); // a wish: memory elsewhere is memory
}
