"""sluice farm: parts of one output by Slurm, whose daemons run here on loopback, by Kubernetes'
manifests, and by xargs: whatever dies or lies meanwhile, the output is that of one run, and nothing
is computed twice without need."""

import collections
import contextlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import slurm
import tools
from slurm import wait_for

CHAIN = "gray,gaussian=1.4"
RUN = ["-f", CHAIN, "-c:v", "ffv1"]
PARTS = 40
DONE, FAILED, USAGE, INPUT, OUTPUT, NOT_YET = 0, 1, 2, 4, 5, 7
VALIDATE = os.environ.get("KUBERNETES_VALIDATE") or shutil.which("kubernetes-validate")

# What tasks call: it writes down what it is about to compute, and waits while a file says so.
LOGGED = """#!/bin/sh
part=$(echo "$*" | sed -n 's/.*--shard \\([0-9]*\\)\\/.*/\\1/p')
while [ -n "$part" ] && [ -e hold/$part ]; do sleep 0.1; done
echo "${{part:-$1}} ${{SLURMD_NODENAME:--}} ${{CUDA_VISIBLE_DEVICES:--}}" >>runs.log
exec {sluice} "$@"
"""


@contextlib.contextmanager
def started(folder, nodes):
    """A Slurm that lives so long."""
    if slurm.why_not():
        pytest.skip(slurm.why_not())
    cluster = slurm.Cluster(folder, nodes)
    cluster.configure()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with started(tmp_path_factory.mktemp("slurm") / "four", 4) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """Forty groups of pictures, with sound."""
    file = tmp_path_factory.mktemp("clip") / "in.mkv"
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=8", "-f", "lavfi", "-i",
                 "sine=440:duration=8", "-c:v", "libx264", "-g", "5", "-bf", "2", "-preset",
                 "ultrafast", "-c:a", "flac", file)
    return file


@pytest.fixture(scope="module")
def whole(tmp_path_factory, clip):
    """The output of one run."""
    file = tmp_path_factory.mktemp("whole") / "out.mkv"
    tools.sluice_whole(clip, file, *RUN, "-q")
    return file


class Farm:
    """A folder with in.mkv, where farms make out.mkv by a sluice whose runs are counted."""

    def __init__(self, folder, clip, env):
        self.folder, self.env = folder, env
        folder.mkdir(exist_ok=True)
        (folder / "hold").mkdir()
        shutil.copy(clip, folder / "in.mkv")
        program = folder / "logged"
        program.write_text(LOGGED.format(sluice=tools.SLUICE))
        program.chmod(0o755)

    def call(self, *args, code=0):
        result = tools.sluice("farm", *args, cwd=self.folder, env=self.env)
        assert result.code == code, f"exit {result.code}: {args}\n{result.stderr}{result.text}"
        return result

    def submit(self, *more, parts=PARTS, options=RUN):
        return self.call("submit", "in.mkv", "out.mkv", "--parts", str(parts), *options,
                         "--program", "./logged", *more)

    def status(self):
        """The exit code, and what is told."""
        result = tools.sluice("farm", "status", "out.mkv", "--json", "-", cwd=self.folder,
                              env=self.env)
        return result.code, json.loads(result.text)

    def await_code(self, code, seconds=60):
        """Wait until the farm's status is that; what it told."""
        told = []
        def is_so():
            told[:] = self.status()
            return told[0] == code
        wait_for(is_so, seconds, told=told)
        return told[1]

    def states(self, state):
        return [k for k, part in enumerate(self.status()[1]["parts"], 1) if part["state"] == state]

    def runs(self):
        """What was computed, how often: {"17": 1, "join": 1}."""
        return collections.Counter(line.split()[0] for line in self.lines())

    def lines(self):
        return (self.folder / "runs.log").read_text().splitlines()

    def hold(self, *parts):
        for part in parts:
            (self.folder / "hold" / str(part)).touch()

    def release(self):
        for file in (self.folder / "hold").iterdir():
            file.unlink()

    def part(self, part, parts=PARTS):
        return self.folder / f"out.mkv.part-{part}-of-{parts}"

    def log(self, name):
        return (self.folder / "out.mkv.farm" / f"{name}.log").read_text()


@pytest.fixture
def farm(tmp_path, clip, cluster):
    return Farm(tmp_path, clip, cluster.env)


@pytest.fixture
def farm_alone(tmp_path, clip):
    """One where there is no Slurm."""
    tools_folder = tmp_path / "bin"
    tools_folder.mkdir()
    for name in ("sh", "seq", "xargs", "sed", "sleep", "rm"):
        (tools_folder / name).symlink_to(shutil.which(name))
    return Farm(tmp_path / "farm", clip, {"PATH": str(tools_folder)})


def frames_of(file):
    times = tools.probe(file, "-select_streams", "v", "-show_entries", "packet=pts_time")
    return ([packet["pts_time"] for packet in times["packets"]], tools.decode_hashes(file),
            tools.decode_hashes(file, "0:a:0"))


def assert_whole(farm, whole):
    assert frames_of(farm.folder / "out.mkv") == frames_of(whole)
    assert not [file for file in tools.leftovers(farm.folder) if ".out.mkv" in file]


def once(parts=PARTS):
    return {**{str(part): 1 for part in range(1, parts + 1)}, "join": 1, "audit": 1}


# ---- Slurm ----


def test_forty_parts_over_four_nodes(farm, whole):
    told = farm.submit("--", "--gres=gpu:1", "--cpus-per-task", "1").text
    commands = [line for line in told.splitlines() if line.startswith("sbatch ")]
    assert len(commands) == 3 and "--array=1-40" in commands[0] and "--gres=gpu:1" in commands[0]
    assert all("--requeue" in line and "--cpus-per-task 1" in line for line in commands)
    assert all("--dependency=afterok:" in line and "--kill-on-invalid-dep=yes" in line and
               "gpu" not in line for line in commands[1:])
    farm.await_code(DONE)
    assert_whole(farm, whole)
    assert farm.runs() == once()
    nodes, gpus = (collections.Counter(line.split()[k] for line in farm.lines()) for k in (1, 2))
    assert set(nodes) == {"n1", "n2", "n3", "n4"} and set("0123") <= set(gpus)
    assert [line.split()[2] for line in farm.lines() if line[0] in "ja"] == ["-", "-"]
    assert "out.mkv is joined and audited" in farm.call("resume", "out.mkv").text
    assert "40 done" in farm.call("status", "out.mkv").text
    assert farm.runs() == once()


def release_requeued(cluster, job, parts):
    """Wait until tasks of a lost node are to run again, and spare them Slurm's two minutes."""
    for part in parts:
        wait_for(lambda: cluster.state_of(job, part) == "PD")
        cluster.call("scontrol", "update", f"JobId={job}_{part}", "StartTime=now")


def kill_shard(farm, part):
    """End what makes a part, as the kernel would for want of memory."""
    found = subprocess.run(["pgrep", "-f", rf"^/bin/sh ./logged .*--shard {part}/{PARTS}$"],
                           capture_output=True, text=True).stdout.split()
    assert len(found) == 1
    os.kill(int(found[0]), 9)


def test_a_node_a_shard_and_the_controller(farm, whole, cluster):
    """A node and a shard die, and the controller begins again, in the middle of it all."""
    held = [7, 12, *range(30, PARTS + 1)]
    farm.hold(*held)
    job = re.search(r"job (\d+): parts", farm.submit().text)[1]
    wait_for(lambda: set(range(1, 30)) - {7, 12} == set(farm.states("done")) and
             {7, 12} <= set(farm.states("running")))
    code, told = farm.status()
    assert code == NOT_YET and told["done"] == 27 and told["join"]["state"] == "pending"

    node = cluster.node_of(job, 7)
    shard = next(part for part in held if cluster.node_of(job, part) not in (node, ""))
    lost = cluster.power_off(node)
    assert 7 in lost and shard not in lost
    kill_shard(farm, shard)
    cluster.stop_controller()
    assert farm.call("status", "out.mkv", code=FAILED).stderr.endswith("what runs is not known\n")
    cluster.start_controller()
    release_requeued(cluster, job, lost)
    farm.release()
    told = farm.await_code(FAILED)
    wait_for(lambda: len(farm.states("done")) == PARTS - 1)
    assert farm.states("failed") == [shard] and not (farm.folder / "out.mkv").exists()
    shown = farm.call("status", "out.mkv", code=FAILED).text
    assert f"part {shard} failed: exit code 137, see out.mkv.farm/part-{shard}.log" in shown

    assert f"--array={shard} " in farm.call("resume", "out.mkv").text
    farm.await_code(DONE)
    assert_whole(farm, whole)
    assert farm.runs() == once()
    cluster.start_node(node)
    cluster.await_nodes(4)


def test_resume_while_it_runs(farm, whole):
    """Parts that are under way are not given to Slurm again; the new join waits for them, too."""
    farm.hold(3, 5)
    farm.submit(parts=8)
    wait_for(lambda: farm.states("running") == [3, 5] and len(farm.states("done")) == 6)
    assert "under way" in farm.call("resume", "out.mkv").text
    shutil.rmtree(farm.part(2, 8))
    farm.hold(2)
    told = farm.call("resume", "out.mkv").text
    assert "--array=2 " in told and re.search(r"--dependency=afterok:\d+:\d+_3:\d+_5 ", told)
    wait_for(lambda: farm.states("running") == [2, 3, 5])
    assert farm.states("done") == [1, 4, 6, 7, 8] and not (farm.folder / "out.mkv").exists()
    farm.release()
    farm.await_code(DONE)
    assert_whole(farm, whole)
    assert farm.runs() == once(8) | {"2": 2}


def flip(file, at):
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


def smuggle(farm, part, parts, *options, clip="in.mkv"):
    """Put a part of something else in a part's place."""
    folder = farm.folder / "elsewhere"
    folder.mkdir(exist_ok=True)
    output = folder / "out.mkv"
    tools.sluice_whole(clip, output, *options, "-q", "--shard", f"{part}/{parts}", cwd=farm.folder)
    shutil.rmtree(farm.part(part, parts))
    shutil.move(f"{output}.part-{part}-of-{parts}", farm.part(part, parts))


def test_lies(farm, whole):
    """Parts that are not what they should be are found, kept for a look, and made again; no other."""
    farm.submit(parts=8)
    farm.await_code(DONE)
    state = farm.folder / "out.mkv.farm"
    for name in ("out.mkv", "out.mkv.manifest", "out.mkv.farm/join.exit", "out.mkv.farm/audit.exit"):
        (farm.folder / name).unlink()

    other = farm.folder / "other.mkv"
    tools.ffmpeg("-i", farm.folder / "in.mkv", "-c", "copy", "-t", "7", other)
    flip(farm.part(2, 8) / "video.nut", 2000)
    smuggle(farm, 3, 8, "-f", "gray,gaussian=1.5", "-c:v", "ffv1")
    smuggle(farm, 4, 8, *RUN, clip=other)
    (farm.part(5, 8) / "manifest").write_bytes((farm.part(5, 8) / "manifest").read_bytes()[:-40])
    shutil.rmtree(farm.part(6, 8))
    shutil.copytree(farm.part(1, 8), farm.part(6, 8))
    shutil.rmtree(farm.part(8, 8))
    told = farm.call("status", "out.mkv", code=FAILED)
    assert "5\n" in re.search("^not whole .*\n", told.text, re.M)[0] and "cut short" in told.stderr

    told = farm.call("resume", "out.mkv")
    assert "--array=2-6,8 " in told.text
    for part, why in ((2, "packet"), (3, "chain"), (4, "source"), (5, "cut short"), (6, "is not")):
        assert re.search(rf"out.mkv.part-{part}-of-8.*{why}", told.stderr), told.stderr
        assert (state / "refused" / f"part-{part}-of-8.1").is_dir()
    farm.await_code(DONE)
    assert_whole(farm, whole)
    assert farm.runs() == {**once(8), **{str(part): 2 for part in (2, 3, 4, 5, 6, 8)},
                           "join": 2, "audit": 2}


def test_the_controller_dies(tmp_path, tmp_path_factory, clip, whole):
    """Its table of jobs may be an old one when it is back, and tasks run a second time, with the
    same numbers; a join that it has forgotten is submitted again."""
    with started(tmp_path_factory.mktemp("slurm") / "two", 2) as cluster:
        farm = Farm(tmp_path, clip, cluster.env)
        farm.hold(3)
        farm.submit(parts=8)
        wait_for(lambda: len(farm.states("done")) == 7)
        os.kill(slurm.pid_of(cluster.folder / "run" / "slurmctld.pid"), 9)
        cluster.start_controller()
        farm.release()
        wait_for(lambda: farm.status()[0] != NOT_YET)
        if farm.status()[0] != DONE:
            farm.call("resume", "out.mkv")
            farm.await_code(DONE)
        assert_whole(farm, whole)
        runs = farm.runs()
        assert set(runs) == set(once(8)) and max(runs.values()) <= 2


def test_an_audit_fails(farm, whole):
    """A failed audit is not drawn again until it is lucky."""
    farm.submit(parts=3)
    farm.await_code(DONE)
    output = farm.folder / "out.mkv"
    packets = tools.probe(output, "-select_streams", "v", "-show_entries", "packet=pos,size")["packets"]
    flip(output, int(packets[100]["pos"]) + int(packets[100]["size"]) // 2)
    assert tools.execute(["sh", "out.mkv.farm/audit.sh"], cwd=farm.folder).code == FAILED
    told = farm.call("status", "out.mkv", code=FAILED).text
    assert "audit     failed: exit code 1, see out.mkv.farm/audit.log" in told
    assert "audit has failed" in farm.call("resume", "out.mkv", code=FAILED).stderr
    output.unlink()
    assert "--array" not in farm.call("resume", "out.mkv").text
    farm.await_code(DONE)
    assert_whole(farm, whole)
    assert farm.runs() == once(3) | {"join": 2, "audit": 3}


def test_a_mistake_fails_and_says_so(farm):
    """A part that cannot be made fails its farm: the join is cancelled, the log says why."""
    farm.submit(parts=3, options=["-c:v", "no_such_encoder"])
    told = farm.await_code(FAILED)
    wait_for(lambda: farm.status()[1]["join"]["state"] == "failed")
    assert {part["state"] for part in told["parts"]} <= {"failed", "running", "pending"}
    wait_for(lambda: farm.states("failed") == [1, 2, 3])
    assert "no_such_encoder" in farm.log("part-2")


def test_submit_again(farm):
    farm.hold(2)
    farm.submit(parts=2)
    told = farm.call("submit", "in.mkv", "out.mkv", "--parts", "2", *RUN, code=OUTPUT)
    assert "resume" in told.stderr
    told = farm.call("submit", "in.mkv", "out.mkv", "--parts", "2", *RUN, "-y", code=OUTPUT)
    assert "scancel" in told.stderr
    farm.release()
    farm.await_code(DONE)
    farm.call("submit", "in.mkv", "out.mkv", "--parts", "2", *RUN, code=OUTPUT)
    farm.hold(1)
    told = farm.submit("-y", parts=2, options=["-f", "gray,invert", "-c:v", "ffv1"])
    assert "--array=1-2 " in told.text and told.stderr.count("its chain is another") == 2
    code, told = farm.status()
    assert code == NOT_YET and told["join"]["state"] == told["audit"]["state"] == "pending"
    farm.release()
    farm.await_code(DONE)
    assert "invert" in (farm.folder / "out.mkv.manifest").read_text()


def test_submit_again_while_one_part_has_failed(farm):
    """Others are under way all the same."""
    farm.hold(2)
    farm.submit(parts=2)
    folder = farm.folder / "out.mkv.farm"
    (folder / "part-1.exit").write_text("5\n")
    told = farm.call("submit", "in.mkv", "out.mkv", "--parts", "2", *RUN, "-y", code=OUTPUT)
    assert "scancel" in told.stderr
    (folder / "part-1.exit").unlink()
    farm.release()
    farm.await_code(DONE)


# ---- without Slurm ----


def test_the_join_has_the_options_of_the_container(tmp_path, clip):
    words = ["--format", "mp4", "--option", "movflags=+faststart", "--allow", "/tmp"]
    for before, behind in ((["-F", "matroska"], words), ([], ["--format=mp4", *words[2:]])):
        told = tools.sluice("farm", "print", *before, clip, "out.bin", "--parts", "2", "--as", "xargs", *behind,
                            cwd=tmp_path)
        assert told.code == 0, told.stderr
        join = told.text.split(" join ")[1].split(" -y ")[0]
        assert join.split("--source")[1].split()[1:] == words, join


def test_dry_run_is_what_is_run(tmp_path, clip):
    """Scripts and commands are printed as they would be written and run."""
    farm = Farm(tmp_path / "it's here", clip, None)
    args = ["in.mkv", "o%ut $1.mkv", "--parts", "3", *RUN, "-o", "3"]
    assert "-o" in farm.call("submit", *args, code=USAGE).stderr
    args = args[:-2]
    shown = farm.call("submit", *args, "--dry-run", "--at-once", "2", "--", "-p", "a b").text
    again = farm.call("print", *args, "--at-once", "2", "--", "-p", "a b").text
    tag = r"(?<=--job-name=sluice-)(\w+)-[0-9a-f]{12}"
    assert len(re.findall(tag, shown)) == 3 and re.sub(tag, r"\1", shown) == re.sub(tag, r"\1", again)
    assert shown != again  # names are a farm's own
    assert "--array=1-3%2 " in shown and "-p 'a b'" in shown and "/o%%ut" not in shown
    assert "'o%%ut $1.mkv.farm/part-%a.log'" in shown
    assert not list(farm.folder.glob("*.farm"))
    parts = re.split(r"^# ---- .*/(\w+)\.sh ----\n", shown, flags=re.M)
    script = farm.folder / "part.sh"
    script.write_text(parts[parts.index("part") + 1])
    (farm.folder / "o%ut $1.mkv.farm").mkdir()
    for part in "123":
        assert tools.execute(["sh", script, part]).code == 0
    script.write_text(re.split(r"^(PARTS=)", parts[parts.index("join") + 1], flags=re.M)[0])
    assert tools.execute(["sh", script]).code == 0
    assert (farm.folder / "o%ut $1.mkv").exists()


def test_xargs(farm_alone, whole):
    farm = farm_alone
    line = farm.call("print", "in.mkv", "out.mkv", "--parts", "6", *RUN, "--as", "xargs",
                     "--program", "./logged", "--at-once", "2").text
    assert "xargs -P 2" in line and line.count("\n") == 1
    farm.hold(3)
    with subprocess.Popen(["sh", "-c", line], env=tools.environment(farm.env), cwd="/",
                          stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: len(list(farm.folder.glob("out.mkv.part-*"))) == 5)
        told = farm.call("status", "out.mkv", code=NOT_YET).text
        assert "5 done, 1 missing" in told and "missing   3\n" in told
        farm.release()
        assert process.wait(60) == 0
    assert "6 done" in farm.call("status", "out.mkv").text
    assert_whole(farm, whole)
    assert farm.runs() == once(6)


def test_without_slurm(farm_alone):
    """What needs it says so; status does not."""
    farm = farm_alone
    assert "no farm makes" in farm.call("status", "out.mkv", code=INPUT).stderr
    assert "no out.mkv.farm" in farm.call("resume", "out.mkv", code=INPUT).stderr
    told = farm.call("submit", "in.mkv", "out.mkv", "--parts", "3", *RUN, code=FAILED)
    assert "xargs" in told.stderr and "resume" in told.stderr
    told = farm.call("status", "out.mkv", code=NOT_YET).text
    assert "3 missing" in told and "squeue is not here" in told
    assert tools.execute(["sh", "out.mkv.farm/part.sh", "2"], cwd=farm.folder).code == 0
    assert farm.states("done") == [2] and farm.states("missing") == [1, 3]
    (farm.folder / "in.mkv").rename(farm.folder / "gone.mkv")
    assert tools.execute(["sh", "out.mkv.farm/part.sh", "3"], cwd=farm.folder).code == INPUT
    told = farm.call("status", "out.mkv", code=FAILED).text
    assert "part 3 failed: exit code 4\n" in told  # no log: it was called by hand


def run_scripts(farm, file, last=("join", "audit"), parts=3):
    """Do by hand what tasks do, everything twice."""
    names = [["part.sh", str(k + 1)] for k in range(parts)] + [[f"{name}.sh"] for name in last]
    for name in names:
        for _ in range(2):
            result = tools.execute(["sh", f"{file}.farm/{name[0]}", *name[1:]], cwd=farm.folder)
            assert result.code == 0, f"{name}: {result.stderr}"


def test_damaged_input(farm_alone, clip):
    """Damage is no failure of a task; its part is whole, and says what is damaged."""
    farm = farm_alone
    tools.flipped(clip, farm.folder / "in.mkv")
    result = tools.sluice("in.mkv", "whole.mkv", *RUN, "--repeatable", cwd=farm.folder)
    assert result.code == 3, result.stderr
    farm.call("submit", "in.mkv", "out.mkv", "--parts", "3", *RUN, "--repeatable", code=FAILED)
    run_scripts(farm, "out.mkv")
    assert (tools.decode_hashes(farm.folder / "out.mkv") ==
            tools.decode_hashes(farm.folder / "whole.mkv"))


def test_hashes(farm_alone):
    """An output of hashes: its file and its parts are named without "hash:"."""
    farm = farm_alone
    args = ["in.mkv", "hash:out.txt", "--parts", "3", "-f", CHAIN]
    farm.call("submit", *args, code=FAILED)
    run_scripts(farm, "out.txt")
    assert "3 done" in farm.call("status", "out.txt").text
    assert "3 done" in farm.call("status", "hash:out.txt").text
    tools.sluice_whole("in.mkv", "hash:whole.txt", "-f", CHAIN, "-q", cwd=farm.folder)
    assert (farm.folder / "out.txt").read_text() == (farm.folder / "whole.txt").read_text()

    (farm.folder / "out.txt").unlink()
    flip(farm.folder / "out.txt.part-2-of-3" / "frames.txt", -9)
    told = farm.call("resume", "out.txt", "--dry-run")
    assert "PARTS=$(sbatch " in told.text and "--array=2 " in told.text
    assert "out.txt.part-2-of-3/frames.txt has changed" in told.stderr
    assert (farm.folder / "out.txt.part-2-of-3").is_dir()  # it was not meant


def test_what_the_queue_says(farm_alone):
    """Rows of squeue, in any order; what may still make a part counts before what has failed."""
    farm = farm_alone
    farm.call("submit", "in.mkv", "out.mkv", "--parts", "9", *RUN, code=FAILED)
    tag = json.loads((farm.folder / "out.mkv.farm" / "farm.json").read_text())["tag"]
    rows = [f"sluice-part-{tag}|7|1|R|n1", f"sluice-part-{tag}|5|1|F|(NonZeroExitCode)",
            f"sluice-part-{tag}|5|2|NF|(None)", f"sluice-part-{tag}|7|2|PD|(Resources)",
            f"sluice-part-{tag}|7|3|CG|n1", f"sluice-part-{tag}|7|4|RH|(JobHeldUser)",
            f"sluice-part-{tag}|7|5|OOM|(None)", f"sluice-part-{tag}|7|6|CD|n1",
            f"sluice-part-{tag}|7|99|R|n1", f"sluice-join-{tag}|8|N/A|PD|(Dependency)",
            f"sluice-audit-{tag}|9|N/A|PD|(Dependency)", "another|1|7|R|n1"]
    squeue = farm.folder.parent / "bin" / "squeue"
    squeue.write_text("#!/bin/sh\n" + "".join(f"echo '{row}'\n" for row in rows))
    squeue.chmod(0o755)
    code, told = farm.status()
    assert code == FAILED and told["queue_known"]
    assert [part["state"] for part in told["parts"]] == [
        "running", "pending", "running", "pending", "failed", *["missing"] * 4]
    assert told["join"] == {"state": "pending", "job": "8", "exit": 0, "reason": "(Dependency)"}
    shown = farm.call("resume", "out.mkv", "--dry-run").text
    assert "--array=5-9 " in shown and "--dependency=afterok:$PARTS:7_1:7_2:7_3:7_4 " in shown


@pytest.mark.parametrize("args, says", [
    ([], "usage"),
    (["grow"], "usage"),
    (["submit", "in.mkv"], "usage"),
    (["submit", "in.mkv", "out.mkv"], "--parts"),
    (["submit", "in.mkv", "out.mkv", "--parts", "0"], "--parts"),
    (["submit", "in.mkv", "null:", "--parts", "2"], "null:"),
    (["submit", "in.mkv", "-", "--parts", "2"], "none"),
    (["submit", "in.mkv", "rtsp://h/x", "--parts", "2"], "none"),
    (["submit", "in.mkv", "out.mkv", "--parts", "2", "-f", "sobell"], "sobell"),
    (["submit", "in.mkv", "out.mkv", "--parts", "2", "--json", "x"], "--json"),
    (["submit", "in.mkv", "out.mkv", "--parts", "2", "--start", "3"], "--start"),
    (["submit", "in.mkv", "out.mkv", "--parts", "2", "--shard", "1/2"], "--shard"),
    (["submit", "in.mkv", "out.mkv", "--parts", "2", "--metrics", "9"], "--metrics"),
    (["status", "out.mkv", "--parts", "2"], "farm status does not take --parts; farm submit and print do"),
    (["--parts", "2", "status", "out.mkv"], "farm status does not take --parts; farm submit and print do"),
    (["stat", "out.mkv", "--parts", "2"], "usage: sluice farm submit|status"),
    (["status", "out.mkv", "-f", "sobel"], "farm status does not take --filter; farm submit and print do"),
    (["resume", "out.mkv", "-y"], "farm resume does not take --overwrite; farm submit does"),
    (["resume", "out.mkv", "--at-once", "2"], "farm resume does not take --at-once"),
    (["print", "in.mkv", "out.mkv", "--dry-run"], "farm print does not take --dry-run; farm submit and resume do"),
    (["submit", "in.mkv", "out.mkv", "--image", "x"], "farm submit does not take --image; farm print does"),
    (["status"], "usage"),
    (["resume", "a", "b"], "usage"),
    (["print", "in.mkv", "out.mkv", "--parts", "2", "--as", "nomad"], "kubernetes"),
])
def test_mistakes(farm_alone, args, says):
    assert says in farm_alone.call(*args, code=USAGE).stderr
    assert not list(farm_alone.folder.glob("*.farm"))


def test_farm_json_is_checked(farm_alone):
    farm = farm_alone
    folder = farm.folder / "out.mkv.farm"
    folder.mkdir()
    for text in ("", "{}", '{"sluice-farm": 2}', "[1]"):
        (folder / "farm.json").write_text(text)
        assert "farm.json" in farm.call("status", "out.mkv", code=INPUT).stderr


# ---- Kubernetes ----


def manifests(farm, *more):
    text = farm.call("print", "in.mkv", "Out 1.mkv", "--parts", "4", *RUN, "--as", "kubernetes",
                     *more).text
    yaml = pytest.importorskip("yaml")
    return text, list(yaml.safe_load_all(text))


@pytest.mark.skipif(not VALIDATE, reason="kubernetes-validate is not installed")
def test_kubernetes_takes_the_manifests(farm_alone):
    file = farm_alone.folder / "job.yaml"
    file.write_text(manifests(farm_alone, "--image", "registry/sluice:1", "--at-once", "2")[0])
    result = tools.execute([VALIDATE, "--strict", file])
    assert result.code == 0 and result.text.count(" passed ") == 2, result.text + result.stderr
    file.write_text(file.read_text().replace("completionMode", "completionsMode"))
    assert tools.execute([VALIDATE, "--strict", file]).code != 0


def run_container(job, env, cwd):
    """Run a job's command as Kubernetes does, which reads $$ as $."""
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["workingDir"] == str(cwd)
    assert "$" not in container["command"][2].replace("$$", "")
    command = [word.replace("$$", "$") for word in container["command"]]
    return tools.execute(command, cwd=cwd, env=env)


def test_kubernetes_indexes_are_the_parts(farm_alone, whole):
    farm = farm_alone
    _, (parts, join) = manifests(farm, "--program", "./logged", "--at-once", "2")
    assert parts["metadata"]["name"] == "sluice-out-1-mkv-parts"
    assert parts["spec"]["completionMode"] == "Indexed" and parts["spec"]["completions"] == 4
    assert parts["spec"]["parallelism"] == 2 and join["spec"]["suspend"] is True
    assert run_container(join, farm.env, farm.folder).code == INPUT  # nothing is there yet
    for index in range(4):
        env = {**farm.env, "JOB_COMPLETION_INDEX": str(index)}
        assert run_container(parts, env, farm.folder).code == 0
        assert run_container(parts, env, farm.folder).code == 0  # a pod may run twice
    assert run_container(join, farm.env, farm.folder).code == 0
    assert frames_of(farm.folder / "Out 1.mkv") == frames_of(whole)


def test_usage_of_a_pod_is_its_code(farm_alone):
    """Codes that trying again does not change come out, for podFailurePolicy."""
    farm = farm_alone
    _, (parts, _) = manifests(farm, "--program", "./logged")
    rules = parts["spec"]["podFailurePolicy"]["rules"]
    assert rules[1]["onExitCodes"]["values"] == [USAGE, INPUT]
    (farm.folder / "in.mkv").unlink()
    env = {**farm.env, "JOB_COMPLETION_INDEX": "0"}
    assert run_container(parts, env, farm.folder).code == INPUT
