// What a process may still take, of systems that are made up of files.
#include "tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host_memory.h"

static char root[64];

// A file below `root`, with the folders that it is in.
static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *at = strchr(path + strlen(root) + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    fputs(text, to);
    fclose(to);
}

static int begin(void **state)
{
    (void)state;
    strcpy(root, "/tmp/host_memory.XXXXXX");
    return !mkdtemp(root);
}

static int end(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static void machine_of_gibibytes(int available)
{
    char text[128];
    snprintf(text, sizeof text, "MemTotal: 67108864 kB\nMemAvailable: %d kB\nCached: 5 kB\n",
             available << 20);
    put("proc/meminfo", text);
}

static const int64_t mebi = 1 << 20;

static void without_groups_it_is_what_the_system_says(void **state)
{
    (void)state;
    machine_of_gibibytes(4);
    assert_true(host_memory_available_in(root) == 4096 * mebi);
}

static void where_nobody_says_it_is_nothing(void **state)
{
    (void)state;
    assert_true(host_memory_available_in(root) == 0);
}

static void the_least_of_all_groups_above_counts(void **state)
{
    (void)state;
    machine_of_gibibytes(4);
    put("proc/self/cgroup", "0::/system.slice/job\n");
    put("sys/fs/cgroup/system.slice/memory.max", "1073741824\n"); // 1 GiB
    put("sys/fs/cgroup/system.slice/memory.current", "805306368\n");
    put("sys/fs/cgroup/system.slice/job/memory.max", "max\n");
    put("sys/fs/cgroup/system.slice/job/memory.current", "1\n");
    assert_true(host_memory_available_in(root) == 256 * mebi);
    put("sys/fs/cgroup/system.slice/memory.stat", "anon 1\ninactive_file 134217728\n");
    assert_true(host_memory_available_in(root) == 384 * mebi); // files in memory are given up
}

static void the_first_version_has_other_names(void **state)
{
    (void)state;
    machine_of_gibibytes(4);
    put("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory,hugetlb:/docker/abc\n0::/none\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"); // the container's own
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "268435456\n");
    assert_true(host_memory_available_in(root) == 256 * mebi);
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); // none
    assert_true(host_memory_available_in(root) == 4096 * mebi);
}

static void a_group_beyond_its_limit_leaves_nothing(void **state)
{
    (void)state;
    machine_of_gibibytes(4);
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/memory.max", "100\n");
    put("sys/fs/cgroup/memory.current", "200\n");
    assert_true(host_memory_available_in(root) == 1); // 0 would be that nobody says
    put("sys/fs/cgroup/memory.current", "100\n");
    assert_true(host_memory_available_in(root) == 1);
    assert_true(host_memory_ceiling(1) == 1);
}

static void a_reserve_stays(void **state)
{
    (void)state;
    assert_true(host_memory_ceiling(16384 * mebi) == 15360 * mebi);
    assert_true(host_memory_ceiling(512 * mebi) == 448 * mebi);
    assert_true(host_memory_ceiling(100 * mebi) == 50 * mebi);
    assert_true(host_memory_ceiling(0) == 0);
}

static void this_machine_says_something(void **state)
{
    (void)state;
    assert_true(host_memory_available() > 0);
    assert_true(host_memory_resident() > 0);
}

int main(void)
{
#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, begin, end)
    const struct CMUnitTest tests[] = {
        WITH_FILES(without_groups_it_is_what_the_system_says),
        WITH_FILES(where_nobody_says_it_is_nothing),
        WITH_FILES(the_least_of_all_groups_above_counts),
        WITH_FILES(the_first_version_has_other_names),
        WITH_FILES(a_group_beyond_its_limit_leaves_nothing),
        cmocka_unit_test(a_reserve_stays),
        cmocka_unit_test(this_machine_says_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
