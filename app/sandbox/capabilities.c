// Capabilities of root: all but those by which a file is opened for its owner, and a run is given memory,
// priority and a port. Whoever is another user has none, which is as well.
#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "app/sandbox/parts.h"

static const unsigned kept[] = {
    CAP_CHOWN,    CAP_DAC_OVERRIDE,     CAP_DAC_READ_SEARCH, CAP_FOWNER,       CAP_FSETID,
    CAP_IPC_LOCK, CAP_NET_BIND_SERVICE, CAP_SYS_NICE,        CAP_SYS_RESOURCE,
};

int capabilities_drop(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    uint32_t mask[2] = {0}, more = 0;
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
        mask[kept[k] / 32] |= UINT32_C(1) << kept[k] % 32;
    if (syscall(SYS_capget, &header, data))
        return errno;
    for (int k = 0; k < 2; k++) {
        more |= (data[k].effective | data[k].permitted | data[k].inheritable) & ~mask[k];
        data[k].effective &= mask[k];
        data[k].permitted &= mask[k];
        data[k].inheritable &= mask[k];
    }
    // Service managers deny the call to those that have nothing to give up.
    return more && syscall(SYS_capset, &header, data) ? errno : 0;
}
