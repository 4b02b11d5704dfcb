"""A cable between two hosts that is cut, mended and bad: network namespaces with nftables.

Skipped by name where the host allows no namespaces. SLUICE_TEST_LONG=1 cuts fifty times."""

import random
import shutil
import subprocess
import sys
import time

import pytest

import tools
from live import HERE, LONG, SMALL, Job, Server, check_times, needs_rtsp
from test_outputs import frames_of, misses_nothing, output_of, recorder, size_of, until

FAR = "10.77.0.2"
PICTURE = "lavfi:testsrc2=size=320x240:rate=25"


class Cable:
    """Two hosts of one cable: what is `near` sees what is `far` at FAR."""

    def __init__(self):
        self.hosts = []

    def lay(self):
        self.near = self.host("unshare", "--user", "--map-root-user", "--net")
        self.far = self.host(*self.at(self.near), "unshare", "--net")
        self.do(self.near, "ip link add near type veth peer name far netns "
                f"{self.far.process.pid}")
        for host, name, address in ((self.near, "near", "10.77.0.1"), (self.far, "far", FAR)):
            self.do(host, f"ip address add {address}/24 dev {name}")
            self.do(host, f"ip link set {name} up")
            self.do(host, "ip link set lo up")
        self.do(self.far, "nft add table inet cable")
        for way in ("input", "output"):
            self.do(self.far, f"nft add chain inet cable {way} {{ type filter hook {way} priority 0; }}")

    def host(self, *command):
        self.hosts.append(Server(*command, "sh", "-c", "echo ready; exec sleep infinity"))
        assert self.hosts[-1].process.stdout.readline() == b"ready\n", "no namespace for a host"
        return self.hosts[-1]

    @staticmethod
    def at(host):
        """What a command that runs there begins with."""
        return ["nsenter", "--target", str(host.process.pid), "--user", "--net",
                "--preserve-credentials"]

    def do(self, host, command):
        done = subprocess.run([*self.at(host), *command.split()], capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stderr}"

    def cut(self):
        """Nothing arrives any more, and nobody is told."""
        for way in ("input", "output"):
            self.do(self.far, f"nft add rule inet cable {way} drop")

    def mend(self):
        for way in ("input", "output"):
            self.do(self.far, f"nft flush chain inet cable {way}")

    def lose(self, percent):
        """So many of the far side's datagrams."""
        self.do(self.far, "nft add rule inet cable output ip protocol udp numgen random mod 100 < "
                f"{percent} drop")

    def serve(self, *pipelines):
        """An RTSP server on the far side."""
        return Server(*self.at(self.far), sys.executable, HERE / "rtsp_server.py", f"{FAR}:8554",
                      *pipelines, ready=b"ready")

    def job(self, folder, *args):
        return Job(folder, *args, before=self.at(self.near))

    def close(self):
        for host in self.hosts:
            host.kill()


@pytest.fixture
def cable():
    if not all(shutil.which(tool) for tool in ("unshare", "nsenter", "ip", "nft")):
        pytest.skip("no unshare, nsenter, ip or nft")
    made = Cable()
    try:
        made.lay()
    except AssertionError as reason:
        made.close()
        pytest.skip(f"no network namespaces here: {reason}")
    yield made
    made.close()


@needs_rtsp
def test_picture_is_back_when_the_cable_is(cable, tmp_path):
    random.seed(5)
    times, longest = 50 if LONG else 3, 0
    with cable.serve(SMALL), cable.job(tmp_path, f"rtsp://{FAR}:8554/0", "out.mkv",
                                       "--stall-timeout", "1s") as job:
        job.await_frames()
        for loss in range(1, times + 1):
            cable.cut()
            job.await_words("is lost", loss)
            time.sleep(random.uniform(0, 4))
            cable.mend()
            longest = max(longest, job.await_words("is back after", loss))
            resources = job.resources() if loss == 1 else resources
            assert job.resources() == resources
            time.sleep(random.uniform(0.2, 1))
        told = job.stop()
    print(f"{times} cuts, longest return {longest:.2f} s, descriptors and threads {resources}")
    assert longest < 4
    assert told["frames"]["reconnects"] == told["frames"]["losses"] == times
    assert len(check_times(tmp_path / "out.mkv")) == told["frames"]["out"]


@needs_rtsp
@pytest.mark.parametrize("when", ["before", "after"])
def test_stop_does_not_wait_for_a_cut_cable(cable, tmp_path, when):
    """Before the loss is seen there is a connection to take leave of, after it one to be made."""
    with cable.serve(SMALL), cable.job(tmp_path, f"rtsp://{FAR}:8554/0", "out.mkv",
                                       "--stall-timeout", "2s") as job:
        job.await_frames()
        cable.cut()
        if when == "after":
            job.await_words("is lost")
            time.sleep(0.5)
        begin = time.monotonic()
        told = job.stop(limit=6)
        assert time.monotonic() - begin < 3
    assert len(check_times(tmp_path / "out.mkv")) == told["frames"]["out"]


@needs_rtsp
def test_lost_datagrams_damage_pictures_and_stop_nothing(cable, tmp_path):
    with cable.serve(SMALL.replace("pt=96", "pt=96 mtu=400")), \
            cable.job(tmp_path, f"rtsp://{FAR}:8554/0", "out.mkv", "--rtsp-transport", "udp") as job:
        job.await_frames(25)
        cable.lose(3)
        time.sleep(5)
        told = job.stop(expected=130)
    frames = told["frames"]
    assert frames["losses"] == 0
    assert frames["damaged_frames"] + frames["damaged_packets"] > 0
    assert frames["out"] > 90, frames
    assert len(check_times(tmp_path / "out.mkv")) == frames["out"]


@needs_rtsp
def test_publishing_through_a_cut_cable_holds_up_nobody(cable, tmp_path):
    got = tmp_path / "got.ts"
    with cable.serve(recorder(got)), cable.job(tmp_path, PICTURE, "rec.mkv", "-o",
                                               f"rtsp://{FAR}:8554/0", "--stall-timeout", "1s",
                                               "--open-timeout", "2s") as job:
        until(lambda: size_of(got) > 20000)
        cable.cut()
        job.await_words("is lost", limit=60)
        cable.mend()
        job.await_words("is back after", limit=20)
        before = size_of(got)
        until(lambda: size_of(got) > before + 2000)
        told = job.stop()
    assert output_of(told, "rtsp:")["connects"] == 2
    times = misses_nothing(told, tmp_path / "rec.mkv")
    assert max(b - a for a, b in zip(times, times[1:])) < 0.06 # the source was not held up
    assert frames_of(got) > 10
