"""A machine with a true webcam: the kernel's driver "vivid" in qemu, for hosts that have neither
camera nor modules. Its root is this host's, read-only, so it runs the sluice that is tested.

It needs qemu-system-x86, busybox-static, v4l-utils and, once, the 70 MB of Debian's kernel, which
apt-get downloads into a folder without installing it."""

import gzip
import lzma
import platform
import re
import shutil
import stat
import subprocess
from pathlib import Path

import tools

BUSYBOX = next((p for p in map(Path, ("/bin/busybox", "/usr/bin/busybox")) if p.exists()), None)
MODULES = ["virtio_pci", "9pnet_virtio", "9p", "vivid"]
# One node that captures, with two inputs to choose from: a webcam, and HDMI.
VIVID = "n_devs=1 node_types=0x1 num_inputs=2 input_types=0xc"
INIT = """#!/bin/sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
while read name; do
    options=
    [ $name = vivid ] && options="{vivid}"
    insmod /modules/$name.ko $options || echo "VM: no module $name"
done < /modules/order
mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=262144,cache=loose root /host
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 out /host{folder}
mount --bind /dev /host/dev; mount -t proc proc /host/proc; mount -t sysfs sys /host/sys
ip link set lo up
echo "VM: ready"
chroot /host /bin/sh {folder}/job.sh
echo "VM: ended with $?"
sync
poweroff -f
"""


def missing():
    """What this host lacks, in words; None: nothing."""
    if platform.machine() != "x86_64":
        return "the webcam's machine is an x86_64"
    for program in "qemu-system-x86_64", "v4l2-ctl", "dpkg-deb", "apt-get":
        if not shutil.which(program):
            return f"no {program}"
    return None if BUSYBOX else "no busybox"


def kernel(folder):
    """Debian's kernel package, unpacked below the folder; None if it cannot be had."""
    told = tools.execute(["apt-cache", "depends", "linux-image-amd64"])
    name = re.search(r"Depends: (linux-image-\S+)", told.text)
    if not name:
        return None
    root = folder / name[1]
    if not root.exists():
        folder.mkdir(parents=True, exist_ok=True)
        if tools.execute(["apt-get", "download", name[1]], cwd=folder, timeout=300).code:
            return None
        package = next(folder.glob(f"{name[1]}_*.deb"))
        part = folder / "part"
        tools.execute(["dpkg-deb", "-x", package, part], timeout=120)
        package.unlink()
        part.rename(root)
    return root


def read_module(file):
    data = file.read_bytes()
    return lzma.decompress(data) if file.suffix == ".xz" else data


def load_order(root, wanted):
    """Names and contents of the modules, each behind those that it depends on."""
    files = {file.name.split(".ko")[0].replace("-", "_"): file for file in root.rglob("*.ko*")}
    order = {}

    def add(name):
        if name in order or name not in files: # what has no file is built in
            return
        data = read_module(files[name])
        depends = re.search(rb"\0depends=([^\0]*)\0", data)[1].decode()
        for other in filter(None, depends.split(",")):
            add(other.replace("-", "_"))
        order[name] = data
    for name in wanted:
        add(name)
    return order


def archive(entries):
    """A cpio archive, "newc": {name: (mode, contents)}."""
    parts = []
    for inode, (name, (mode, data)) in enumerate([*entries.items(), ("TRAILER!!!", (0, b""))], 1):
        fields = [inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        parts += [head + bytes(-len(head) % 4), data + bytes(-len(data) % 4)]
    return b"".join(parts)


def make_initrd(root, folder, file):
    entries = {name: (stat.S_IFDIR | 0o755, b"")
               for name in ("bin", "modules", "proc", "sys", "dev", "host", "tmp")}
    entries["bin/busybox"] = stat.S_IFREG | 0o755, BUSYBOX.read_bytes()
    entries["bin/sh"] = stat.S_IFLNK | 0o777, b"busybox"
    order = load_order(root, MODULES)
    for name, data in order.items():
        entries[f"modules/{name}.ko"] = stat.S_IFREG | 0o644, data
    entries["modules/order"] = stat.S_IFREG | 0o644, "".join(f"{n}\n" for n in order).encode()
    init = INIT.format(vivid=VIVID, folder=folder)
    entries["init"] = stat.S_IFREG | 0o755, init.encode()
    file.write_bytes(gzip.compress(archive(entries), 1))


def share(path, tag, readonly):
    return ["-virtfs", f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap"
            + (",readonly=on" if readonly else "")]


def run(root, folder, job, limit):
    """Run the shell script `job` in the machine, which can write to `folder` and nowhere else.
    Returns what it said. Past the limit it is switched off."""
    folder = folder.resolve()
    (folder / "job.sh").write_text(job)
    initrd = folder.parent / (folder.name + ".initrd")
    make_initrd(root, folder, initrd)
    # On a busy host the emulated timer is late, which the kernel takes for a defect at its start.
    console = ["console=ttyS0", "quiet", "panic=-1", "no_timer_check"]
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m",
               "1024", "-nographic", "-no-reboot", "-nic", "none", "-kernel",
               next((root / "boot").glob("vmlinuz-*")), "-initrd", initrd, "-append",
               " ".join(console), *share("/", "root", True), *share(folder, "out", False)]
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        said = process.communicate(timeout=limit)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        said = process.communicate()[0]
    return said.decode(errors="replace")
