"""Secrets: what addresses hold is shown nowhere, and need not stand on the command line."""

import json
import socket
from pathlib import Path

import pytest

import live
import tools
from test_outputs import until

PICTURE = "lavfi:testsrc=size=160x120:rate=25"


@pytest.mark.parametrize("chain", [
    "tee=srt://h?passphrase=geheim,grai", "tee=rtmp://u:a/geheim@h/x,grai", "tee=rtsp://geheim@h,grai",
    "tee='rtmp://u:x,geheim@h',grai", "tee=rtmp://u:x,geheim@h", "tee='rtmp://u:\"geheim'\"'\"'@h',grai",
    "gaussian=rtsp://u:geheim@h", "rtsp://u:geheim" + 80 * "x" + "@h", "convolve='http://u:geheim@h'",
    "match='rtsp://geheim@h'", "stats='rtsp://geheim@h/x'"])
def test_a_chain_that_is_refused_is_shown_without_secrets(run, tmp_path, clips, chain):
    result = run(clips["plain.mp4"], "null:", "-f", chain, "--json", "run.json")
    assert result.code in (2, 5) and "*" in result.stderr, result.stderr
    told = tmp_path / "run.json"
    assert "geheim" not in result.stderr + (told.read_text() if told.exists() else "")
    lines = result.stderr.splitlines()
    if len(lines) == 3 and chain.endswith("grai"):  # the mark still stands below the word
        assert lines[2].index("^") == lines[1].index("grai") and lines[2].count("^") == 4


@pytest.mark.parametrize("words", [
    ["rtsp://geheim@h"], ["a", "b", "rtsp://geheim@h"], ["a", "b", "--foo=rtsp://geheim@h"],
    ["a", "b", "--start", "rtsp://u:geheim@h"], ["rtsp://u:1/geheim@h", "o.mkv"],
    ["a", "b.mkv", "-o", "rtmp://geheim@h", "-F", "foo"]])
def test_a_command_line_that_is_refused_is_shown_without_secrets(run, words):
    result = run(*words)
    assert result.code in (2, 4) and "geheim" not in result.stderr, result.stderr


@pytest.mark.parametrize("words", [
    ["{}://user:geheim@127.0.0.1:{}/x", "null:"], ["{}://geheim@127.0.0.1:{}/x", "null:"],
    ["{}://127.0.0.1:{}/x?passphrase=geheim", "o.m3u8", "--option", "hls_key_info_file=geheim"],
    ["{}://127.0.0.1:{}/x", "a.mkv", "-f", "tee='rtmp://u:geheim@127.0.0.1/x'"],
    ["{}://127.0.0.1:{}/x", "null:", "-o", "rtmp://u:geheim@127.0.0.1/live/x"]])
def test_ps_does_not_show_secrets(tmp_path, words):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        words = [word.format("rtsp", port) if "{}" in word else word for word in words]
        with live.Job(tmp_path, *words) as job:
            silent.settimeout(10)
            with silent.accept()[0] as caller:
                assert caller.recv(1000).startswith(b"OPTIONS")
                shown = Path(f"/proc/{job.process.pid}/cmdline").read_bytes()
    assert b"geheim" not in shown and b"***" in shown and b"127.0.0.1" in shown


@pytest.mark.parametrize("name", ["@address", "env:CAMERA"])
def test_an_address_is_read_from_elsewhere(run, tmp_path, name):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    (tmp_path / "address").write_text(f"rtsp://user:geheim@127.0.0.1:{port}/x\n")
    result = run(name, "null:", env={"CAMERA": (tmp_path / "address").read_text().strip()})
    assert result.code == 4 and f"rtsp://user:***@127.0.0.1:{port}/x" in result.stderr


def test_outputs_and_chains_are_read_from_elsewhere(run, tmp_path, clips):
    (tmp_path / "chain").write_text("gray,\n  invert\n")
    (tmp_path / "@plain").write_bytes(clips["plain.mp4"].read_bytes())
    (tmp_path / "out").write_text("b.txt\n")
    assert run("@plain", "env:OUT", "-f", "@chain", env={"OUT": "hash:a.txt"}).code == 0
    assert run("@plain", "null:", "-o", "hash:b.txt", "-f", "gray,invert").code == 0
    assert (tmp_path / "a.txt").read_text() == (tmp_path / "b.txt").read_text()


@pytest.mark.parametrize("name,words", [("@none", "none cannot be read: No such file"),
                                        ("@empty", "nothing in it"), ("env:NONE", "no variable NONE"),
                                        ("@large", "64 KiB")])
def test_texts_that_are_not_there_are_refused(run, tmp_path, name, words):
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "large").write_text(70000 * "x")
    for line in ([name, "null:"], ["lavfi:testsrc", name], ["a", "b", "-f", name], ["a", "b", "-o", name]):
        result = run(*line)
        assert result.code == 2 and words in result.stderr, result.stderr


def test_control_and_journal_show_no_secrets_and_replay_takes_them_from_the_chain(tmp_path, clips):
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"tcp://127.0.0.1:{server.getsockname()[1]}?token=geheim"
        chain = f"brightness=12,tee='{url}',sobel"
        more = ["--control", "c", "--journal", "j", "--metrics", "0", "-f", chain]
        with live.Job(tmp_path, PICTURE, "null:", *more) as job:
            server.settimeout(10)
            with server.accept()[0]:
                job.await_frames(5)
                got = tools.sluice_whole("ctl", "c", "get", cwd=tmp_path).text
                assert "geheim" not in got and "?token=***" in got
                again = json.loads(got)["chain"].replace("offset=12", "offset=21")
                answer = tools.sluice("ctl", "c", "chain", again, cwd=tmp_path)
                assert answer.code == 0 and "geheim" not in answer.text, answer.text
                until(lambda: len((tmp_path / "j").read_text().splitlines()) == 2)
                told = job.stop()
        journal = (tmp_path / "j").read_text()
        assert "geheim" not in journal + json.dumps(told) 
        result = tools.sluice(clips["plain.mp4"], "null:", "--replay", "j", cwd=tmp_path)
        assert result.code == 2 and "without its password" in result.stderr
        with live.Job(tmp_path, clips["plain.mp4"], "null:", "--replay", "j", "-f", chain, "-y") as job:
            with server.accept()[0] as reader:
                while reader.recv(1 << 16):
                    pass
            job.end(0)
