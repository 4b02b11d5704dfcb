"""A Slurm of several nodes on this host, on loopback: munged, slurmctld, slurmd. The nodes claim
processors and GPUs that the host may lack. Needs root, and Debian's slurm-wlm and munge."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

import tools

CPUS, GPUS = 4, 4  # of a node

CONF = """ClusterName=sluice
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={d}/munge/munge.sock
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/spool/%n
SlurmctldPidFile={d}/run/slurmctld.pid
SlurmdPidFile={d}/run/slurmd.%n.pid
SlurmctldLogFile={d}/log/slurmctld.log
SlurmdLogFile={d}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,default_queue_depth=200
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=3
SlurmctldTimeout=10
InactiveLimit=0
MinJobAge=600
KillWait=2
BatchStartTimeout=10
MessageTimeout=10
TCPTimeout=2
JobRequeue=1
CommunicationParameters=NoAddrCache
GresTypes=gpu
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs={cpus} \
RealMemory=4000 Gres=gpu:{gpus} State=UNKNOWN
PartitionName=video Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def why_not():
    """Why there can be none here, or None."""
    absent = [name for name in ("munged", "slurmctld", "slurmd", "sbatch")
              if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")]
    if absent:
        return f"{', '.join(absent)} is missing: make setup-test"
    return "only root can start a Slurm" if os.geteuid() else None


def free_ports(count):
    """The first of so many free ports in a row, below those that the system hands out."""
    for first in range(17000 + os.getpid() % 97 * 100, 32000, 100):
        sockets = [socket.socket() for _ in range(count)]
        try:
            for k, each in enumerate(sockets):
                each.bind(("127.0.0.1", first + k))
            return first
        except OSError:
            continue
        finally:
            for each in sockets:
                each.close()
    pytest.skip("no free ports")


def pid_of(file):
    """The process that a file names, or None."""
    try:
        pid = int(Path(file).read_text())
        gone = " Z " in Path(f"/proc/{pid}/stat").read_text()
        return None if gone else pid
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return None


def children(pid):
    """The process and all below it."""
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    return [pid, *(each for child in listed.split() for each in children(int(child)))]


def wait_for(what, seconds=60, every=0.2, told=""):
    """Ask until the answer is true, and return it; `told` is shown where it never is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = what()
        if answer:
            return answer
        time.sleep(every)
    pytest.fail(f"{what} is not so after {seconds} s: {told}")


class Cluster:
    """Nodes n1 .. nN in a folder of their own."""

    def __init__(self, folder, nodes):
        self.folder, self.nodes = Path(folder), nodes
        self.env = {"SLURM_CONF": str(folder / "slurm.conf"),
                    "PATH": f"{os.environ['PATH']}:/usr/sbin"}

    # ---- life ----

    def configure(self):
        for name in ("state", "spool", "log", "run", "munge"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "munge").chmod(0o700)
        key = self.folder / "munge" / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        for k in range(GPUS):  # a device of GRES is a device
            subprocess.run(["mknod", self.folder / "run" / f"gpu{k}", "c", "1", "3"], check=True)
        port = free_ports(self.nodes + 1)
        host = socket.gethostname().split(".")[0]
        conf = CONF.format(d=self.folder, host=host, port=port, first=port + 1,
                           last=port + self.nodes, nodes=self.nodes, cpus=CPUS, gpus=GPUS)
        (self.folder / "slurm.conf").write_text(conf)
        (self.folder / "gres.conf").write_text(
            f"NodeName=n[1-{self.nodes}] Name=gpu File={self.folder}/run/gpu[0-{GPUS - 1}]\n")
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")

    def daemon(self, *command):
        done = subprocess.run([str(word) for word in command], env=tools.environment(self.env),
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, cwd=self.folder, timeout=60)
        assert not done.returncode, f"{command}: {done.stderr.decode()}"

    def start(self):
        munge = self.folder / "munge"
        self.daemon("munged", "--force", f"--key-file={munge}/munge.key",
                    f"--socket={munge}/munge.sock", f"--pid-file={munge}/munged.pid",
                    f"--log-file={munge}/munged.log", f"--seed-file={munge}/munged.seed",
                    "--num-threads=2")
        self.start_controller()
        for k in range(self.nodes):
            self.start_node(f"n{k + 1}")
        self.await_nodes(self.nodes)

    def await_nodes(self, count):
        """Wait until so many nodes take jobs."""
        def up():
            return len(self.call("sinfo", "-h", "-N", "-t", "idle,mix,alloc", "-o", "%N").split())
        wait_for(lambda: up() == count)

    def stop(self):
        """Jobs, nodes, controller; munged last, without which the others hang."""
        for command in (["scancel", "--full", "--user=root"], ["scontrol", "shutdown"]):
            subprocess.run(command, env=tools.environment(self.env), stderr=subprocess.DEVNULL,
                           timeout=30, check=False)
        run = self.folder / "run"
        for file in [*run.glob("slurmd.*.pid"), run / "slurmctld.pid",
                     self.folder / "munge" / "munged.pid"]:
            self.end(file)

    @staticmethod
    def end(file):
        """Wait for a process to end, and help."""
        pid = pid_of(file)
        stop_at = time.monotonic() + (1 if "munged" in file.name else 10)
        while pid and pid_of(file) and time.monotonic() < stop_at:
            if "munged" in file.name:
                os.kill(pid, signal.SIGTERM)
            time.sleep(0.1)
        if pid and pid_of(file):
            os.kill(pid, signal.SIGKILL)

    # ---- what it is asked ----

    def call(self, *command):
        """What a command of Slurm prints."""
        done = subprocess.run(command, env=tools.environment(self.env), capture_output=True,
                              text=True, timeout=60)
        return done.stdout if not done.returncode else ""

    def node_of(self, job, task):
        """The node on which a task runs, or ""."""
        return self.call("squeue", "-h", "-r", "-t", "R", "-j", f"{job}_{task}", "-o", "%N").strip()

    def state_of(self, job, task):
        """R, PD ... or "" """
        return self.call("squeue", "-h", "-r", "-t", "all", "-j", f"{job}_{task}", "-o", "%t").strip()

    def own_job(self, job, task):
        """The number that a task has among jobs."""
        return re.search(r"^JobId=(\d+)", self.call("scontrol", "show", "job", f"{job}_{task}"))[1]

    # ---- faults ----

    def start_node(self, name):
        self.daemon("slurmd", "-f", self.folder / "slurm.conf", "-N", name)

    def start_controller(self):
        self.daemon("slurmctld", "-f", self.folder / "slurm.conf")
        wait_for(lambda: "UP" in self.call("scontrol", "ping"))

    def stop_controller(self):
        os.kill(pid_of(self.folder / "run" / "slurmctld.pid"), signal.SIGTERM)
        wait_for(lambda: not pid_of(self.folder / "run" / "slurmctld.pid"))

    def power_off(self, node):
        """End a node's daemon and all that runs there, without a word."""
        jobs = self.call("squeue", "-h", "-r", "-t", "R", "-w", node, "-o", "%F %K").splitlines()
        victims = [pid_of(self.folder / "run" / f"slurmd.{node}.pid")]
        for job in jobs:
            number = self.own_job(*job.split())
            step = subprocess.run(["pgrep", "-f", rf"^slurmstepd: \[{number}\.batch\]"],
                                  capture_output=True, text=True).stdout.split()
            victims += [each for pid in step for each in children(int(pid))]
        assert jobs and len(victims) > 2 * len(jobs) and all(victims)
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return [int(job.split()[1]) for job in jobs]
