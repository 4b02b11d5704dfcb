"""The sandbox: what somebody who took over a run's decoder cannot do, and what runs still can."""

import errno
import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

import tools

TOLD = re.search(r"^sandbox +(?:Landlock (\d+)|no Landlock)", tools.sluice("doctor").text, re.M)
LANDLOCK = int(TOLD[1] or 0)
CHAIN = ("-f", "invert")

# What each attack of tests/intruder.c gets, and the version of Landlock from which on; 0: seccomp and
# capabilities do it.
FORBIDDEN = {
    **dict.fromkeys(("run_program", "run_descriptor", "trace_victim", "read_victim", "become_user",
                     "make_namespace", "clone_namespace", "mount_something", "change_root",
                     "load_bpf", "count_events", "make_ring", "take_keys", "handle_faults",
                     "type_into_terminal", "make_device"), (errno.EPERM, 0)),
    **dict.fromkeys(("make_tcp", "make_udp", "make_local", "make_packet", "make_netlink"),
                    (errno.EACCES, 0)),
    **dict.fromkeys(("open_environ", "read_shadow", "read_outside", "list_outside",
                     "write_outside", "make_outside", "make_nameless", "remove_outside",
                     "make_folder", "move_outside", "make_symlink"), (errno.EACCES, 2)),
    "link_outside": (errno.EXDEV, 2),
    "truncate_outside": (errno.EACCES, 3),
    "signal_victim": (errno.EPERM, 6),
    "find_free_thread": (errno.ESRCH, 0),
}
NETWORK = {"make_tcp", "make_udp", "make_netlink"}
ROOTS = {"make_namespace", "clone_namespace", "mount_something", "change_root", "load_bpf",
         "count_events", "make_ring", "handle_faults", "make_device", "make_packet", "read_shadow",
         "trace_victim", "read_victim"}  # not for everybody, without a sandbox either


def expected(version=LANDLOCK, allowed=()):
    codes = {name: code for name, (code, since) in FORBIDDEN.items()
             if since <= version and name not in allowed}
    if version:
        codes["make_device"] = errno.EACCES  # Landlock comes first
    return codes


def denied():
    """What is not for this process, without a sandbox either: in a chroot not even root may make namespaces."""
    without = {"make_namespace", "clone_namespace"} if tools.execute(["unshare", "-U", "true"]).code else set()
    return without | (set() if os.geteuid() == 0 else ROOTS)


@pytest.fixture(scope="module")
def preload(tmp_path_factory):
    made = tmp_path_factory.mktemp("intruder") / "intruder.so"
    source = Path(__file__).resolve().parent / "intruder.c"
    built = tools.execute(["cc", "-std=gnu11", "-shared", "-fPIC", "-o", made, source, "-ldl"])
    assert built.code == 0, built.stderr
    return str(made)


@pytest.fixture
def attack(tmp_path, preload, clips, run):
    """Run with an intruder in it: the errno of each attack."""
    outside, output = tmp_path / "outside", tmp_path / "output"

    def attacked(*args, **env):
        for folder in outside, output:
            folder.mkdir(exist_ok=True)
        for name in "file", "victim", "moved":
            (outside / name).write_text("hello")
        (outside / "new").unlink(missing_ok=True)
        told = run(*(args or (clips["film.mkv"], "output/x.mkv", *CHAIN, "-y", "--backend", "cpu")),
                   env={"LD_PRELOAD": preload, "INTRUDER_REPORT": str(tmp_path / "report"),
                        "INTRUDER_OUTSIDE": str(outside), "INTRUDER_OUTPUT": str(output),
                        "INTRUDER_VICTIM": str(os.getpid()), **env})
        assert told.code in (0, 143), told.stderr
        rows = (tmp_path / "report").read_text().split("\n")[:-1]
        return {name: int(code) for name, code in (row.split() for row in rows)}

    return attacked


# ---- what is forbidden ----


def test_attacks_work_without_it(attack, clips):
    """So that their failures mean something."""
    found = attack(clips["film.mkv"], "output/x.mkv", *CHAIN, "--sandbox", "off")
    same = {name for name, code in expected(version=99).items() if found[name] == code}
    assert not same - denied(), found


def test_run_of_a_file_is_confined(attack):
    found = attack()
    assert {name: found[name] for name in expected()} == expected()


# --control opens the working folder, too, in which everything here is.
OF_FOLDERS = {name for name in FORBIDDEN if name.endswith("_outside")} | {"make_nameless", "make_folder"}


@pytest.mark.parametrize("option, allowed", [
    (("--metrics", "0"), NETWORK | {"make_local"}),
    (("--control", "socket"), {"make_local"} | OF_FOLDERS),
], ids=["metrics", "control"])
def test_sockets_are_for_those_that_ask(attack, clips, option, allowed):
    found = attack(clips["film.mkv"], "output/x.mkv", *CHAIN, *option)
    wanted = expected(allowed=allowed)
    assert {name: found[name] for name in wanted} == wanted
    assert all(found[name] == 0 for name in allowed), found


def test_run_on_a_gpu_is_confined(attack, clips, cuda):
    if not cuda:
        pytest.skip("no GPU")
    found = attack(clips["film.mkv"], "output/x.mkv", *CHAIN, "-y", "--backend", "cuda", "--hwdec", "off")
    wanted = expected(allowed={"make_local"})
    assert {name: found[name] for name in wanted} == wanted


def test_page_is_confined(attack, clips, tmp_path):
    """The intruder asks the program to end, which serve does not by itself."""
    found = attack("serve", clips["film.mkv"], "--listen", "127.0.0.1:0", *CHAIN, INTRUDER_ENDS="1",
                   TMPDIR=str(tmp_path / "output"))
    assert not list((tmp_path / "output").glob("sluice-page-*")), "uploads have a folder no longer"
    wanted = expected(allowed=NETWORK | {"make_local"})
    if LANDLOCK:
        wanted["link_outside"] = errno.EACCES
    assert {name: found[name] for name in wanted} == wanted


def test_audits_read_and_change_nothing(attack, tmp_path, clips, run):
    (tmp_path / "output").mkdir()
    assert run(clips["film.mkv"], "output/x.mkv", *CHAIN, "--jobs", "2").code == 0
    found = attack("audit", "output/x.mkv")
    reads = {"read_shadow", "read_outside", "list_outside"}
    wanted = {**expected(allowed=reads), **({"link_outside": errno.EACCES} if LANDLOCK else {})}
    assert {name: found[name] for name in wanted} == wanted
    assert all(found[name] == 0 for name in reads - ROOTS)


@pytest.mark.parametrize("version", range(2, min(LANDLOCK, 6)))
def test_older_kernels_forbid_what_they_can(attack, version):
    found = attack(LANDLOCK=str(version))
    assert {name: found[name] for name in expected(version)} == expected(version)
    newer = [name for name, (_, since) in FORBIDDEN.items() if since > version]
    assert all(found[name] == 0 for name in newer), found


@pytest.mark.parametrize("version", ["0", "1"])
def test_kernel_without_landlock(attack, run, preload, clips, version):
    found = attack(LANDLOCK=version)
    assert {name: found[name] for name in expected(0)} == expected(0)
    assert found["read_outside"] == 0
    without = {"LD_PRELOAD": preload, "LANDLOCK": version}
    told = run(clips["film.mkv"], "null:", "--sandbox", "on", env=without)
    assert told.code == 1 and "no Landlock" in told.stderr and "--sandbox off" in told.stderr
    assert "no Landlock in this kernel" in run("doctor", env=without).text


# ---- what runs need ----


@pytest.mark.skipif(not LANDLOCK, reason="this kernel has no Landlock")
@pytest.mark.parametrize("arguments, made", [
    (("{film}", "out.mp4", "--json", "sum/a.json", "--trace", "t.json"), "sum/a.json"),
    (("{film}", "out.mkv", "--segment", "1s"), "out-000000.mkv"),
    (("{film}", "days/%Y/x.mkv", "--segment", "1s", "--live"), "days/*/x.mkv"),
    (("{film}", "made/list.m3u8"), "made/list.m3u8"),
    (("{film}", "sum/%04d.png", "--frames", "3"), "sum/0003.png"),
    (("in%02d.png", "images.mkv"), "images.mkv"),
    (("i*.png", "globbed.mkv"), "globbed.mkv"),
    (("{film}", "link.mkv", "-y"), "elsewhere/target.mkv"),
    (("file:{film}", "file:named.mkv", "-o", "hash:sum/h.txt"), "sum/h.txt"),
    (("{film}", "out.mkv", "-f", "tee=sum/tee.mkv,stats=sum/s.json,convolve=kernel.txt"),
     "sum/tee.mkv"),
    (("{film}", "out.mkv", "-f", "match=in01.png:report=sum/m.json"), "sum/m.json"),
    (("{film}", "parts.mkv", "--jobs", "2"), "parts.mkv.manifest"),
    (("-", "/dev/null", "-F", "matroska"), "kernel.txt"),
], ids=lambda value: None if isinstance(value, str) else " ".join(value[1:])[:24])
def test_runs_reach_what_they_name(run, tmp_path, clips, arguments, made):
    for name in "sum", "elsewhere":
        (tmp_path / name).mkdir()
    (tmp_path / "kernel.txt").write_text("1 2 1\n")
    (tmp_path / "link.mkv").symlink_to("elsewhere/target.mkv")
    tools.ffmpeg("-i", clips["film.mkv"], "-frames:v", "3", tmp_path / "in%02d.png")
    arguments = [word.format(film=clips["film.mkv"]) for word in arguments]
    if "-f" not in arguments:
        arguments += CHAIN
    given = clips["film.mkv"].read_bytes() if arguments[0] == "-" else None
    told = run(*arguments, "--sandbox", "on", "-q", input=given)
    assert told.code == 0, told.stderr
    assert list(tmp_path.glob(made)), sorted(tmp_path.rglob("*"))


@pytest.mark.skipif(not LANDLOCK, reason="this kernel has no Landlock")
def test_files_that_are_named_later(tmp_path, clips):
    """A template in the working folder, one outside, which --allow makes one inside."""
    work, other = tmp_path / "work", tmp_path / "other folder"
    for folder in work, other:
        folder.mkdir()
        tools.ffmpeg("-i", clips["film.mkv"], "-vf", "crop=8:8", "-frames:v", "1",
                     folder / "t.png")

    def ask(*allowed):
        command = [tools.SLUICE, "lavfi:testsrc=size=64x48:rate=25", "null:", "--control", "s",
                   "-f", "match=t.png", *allowed, "-q"]
        with subprocess.Popen(command, cwd=work, env=tools.environment()) as process:
            ctl = lambda *words: tools.sluice("ctl", "s", *words, cwd=work)
            while not (work / "s").exists():
                assert process.poll() is None
                time.sleep(0.02)
            answers = [ctl("chain", f"match={name}").text for name in ("'t.png'", f"'{other}/t.png'")]
            answers.append(ctl("snapshot", "-y", "now.png").text)
            ctl("quit")
        return [json.loads(answer) for answer in answers]

    inside, outside, snapshot = ask()
    assert inside["ok"] and snapshot["ok"] and (work / "now.png").exists()
    assert not outside["ok"] and "Permission denied; it is the sandbox" in outside["error"]
    assert all(answer["ok"] for answer in ask("--allow", other))


def test_folders_to_allow(run, clips):
    told = run(clips["film.mkv"], "null:", "--allow", "nowhere")
    assert told.code == 2 and "--allow: nowhere is no folder" in told.stderr


@pytest.mark.skipif(not LANDLOCK, reason="this kernel has no Landlock")
def test_sentence_names_the_sandbox(run, tmp_path, clips):
    """Encoders open files of their own: here a log of statistics in another folder."""
    (tmp_path / "out").mkdir()
    (tmp_path / "in.mkv").write_bytes(clips["film.mkv"].read_bytes())
    command = ["in.mkv", "out/x.m3u8", *CHAIN, "-y", "--option",
               f"hls_segment_filename={tmp_path}/%d.ts"]
    assert run(*command, "--sandbox", "off").code == 0
    told = run(*command)
    assert told.code == 5 and "it is the sandbox that forbids it" in told.stderr
    assert run(*command, "--allow", ".").code == 0
