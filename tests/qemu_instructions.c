// A plugin of qemu-user that says how many instructions a program executed, as a line on stderr.
//
//     cc -shared -fPIC tests/qemu_instructions.c -o count.so
//     qemu-aarch64 -L /usr/aarch64-linux-gnu -plugin file=./count.so build-arm64/budget sobel 1920 1080 1
//
// The declarations are those of qemu-plugin.h, which Debian does not install, as far as they are used.
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

struct qemu_plugin_tb;
enum { PLUGIN_VERSION = 1, INLINE_ADD_U64 = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
                                           void (*call)(uint64_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op, void *counter,
                                              uint64_t more);
void qemu_plugin_register_atexit_cb(uint64_t id, void (*call)(uint64_t id, void *opaque),
                                    void *opaque);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);

extern int qemu_plugin_version;
int qemu_plugin_version = PLUGIN_VERSION;
int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

static uint64_t executed; // by one thread

static void count_block(uint64_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, INLINE_ADD_U64, &executed,
                                             qemu_plugin_tb_n_insns(tb));
}

static void print_count(uint64_t id, void *opaque)
{
    (void)id;
    (void)opaque;
    fprintf(stderr, "instructions: %" PRIu64 "\n", executed);
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, count_block);
    qemu_plugin_register_atexit_cb(id, print_count, NULL);
    return 0;
}
