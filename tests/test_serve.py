"""`sluice serve` and --page: the control page's life, from its address to its end."""

import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
from pathlib import Path

import pytest

import tools
from live import end_with_us, free_port
from test_outputs import until
from test_service import Manager, watched

LINE = re.compile(r"sluice: the page is at (https?)://([^/]+)/(?:#token=(\S+))?\n")


class Shown:
    """A program with a page: `sluice serve ...`, or a run with --page."""

    def __init__(self, folder, *words, env=None, token=None):
        self.serves = words[0] == "serve"
        self.process = subprocess.Popen([tools.SLUICE, *map(str, words)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                                        text=True, env=tools.environment(env), preexec_fn=end_with_us)
        self.said = {"stdout": [], "stderr": []}
        self.readers = [threading.Thread(target=self._listen, args=[name], daemon=True)
                        for name in self.said]
        for reader in self.readers:
            reader.start()
        until(self._line, 20, "no address is printed")
        self.scheme, self.host, made = self._line().groups()
        self.token = token or made

    def _listen(self, name):
        for line in getattr(self.process, name):
            self.said[name].append(line)

    def _line(self):
        if self.process.poll() is not None:
            pytest.fail(f"exit {self.process.returncode}: {''.join(self.said['stderr'])}")
        for line in list(self.said["stdout" if self.serves else "stderr"]):
            if LINE.fullmatch(line):
                return LINE.fullmatch(line)

    def connect(self):
        if self.scheme == "http":
            return http.client.HTTPConnection(self.host.replace("0.0.0.0", "127.0.0.1"), timeout=10)
        trust = ssl._create_unverified_context()
        return http.client.HTTPSConnection(self.host, timeout=10, context=trust)

    def ask(self, path, body=None, method=None, **headers):
        """(code, answer): JSON where it is."""
        line = self.connect()
        if isinstance(body, dict):
            body, headers = json.dumps(body), {"Content-Type": "application/json", **headers}
        if self.token:
            headers = {"Authorization": f"Bearer {self.token}", **headers}
        headers = {name.replace("_", "-"): value for name, value in headers.items() if value}
        line.request(method or ("GET" if body is None else "POST"), path, body, headers)
        answer = line.getresponse()
        data, kind = answer.read(), answer.getheader("Content-Type", "")
        line.close()
        return answer.status, json.loads(data) if kind.startswith("application/json") else data

    def fine(self, path, body=None, method=None):
        code, answer = self.ask(path, body, method)
        assert code == 200, answer
        return answer

    def chain(self, text=None):
        return self.fine("/api/chain", text and {"chain": text}, text and "PUT")["chain"]

    def choose(self, kind, name):
        return self.ask("/api/input", {"kind": kind, "name": name})

    def take(self, kind, name):
        code, answer = self.choose(kind, name)
        assert code == 202 and answer["ok"], answer

    def events(self, name, seconds):
        """The data of the events of this name, as long as it is listened."""
        line, end = self.connect(), time.monotonic() + seconds
        line.request("GET", "/api/events", headers={"Authorization": f"Bearer {self.token}"} if self.token else {})
        answer, kind = line.getresponse(), None
        line.sock.settimeout(seconds)
        try:
            while time.monotonic() < end:
                text = answer.readline().decode().rstrip("\n")
                if text.startswith("event: "):
                    kind = text[7:]
                elif text.startswith("data: ") and kind == name:
                    yield json.loads(text[6:])
        except TimeoutError:
            pass
        finally:
            line.close()

    def await_input(self, **wanted):
        """The first event of an input with these members."""
        seen = []
        for event in self.events("input", 15):
            seen.append(event)
            if all(event[key] == value for key, value in wanted.items()):
                return event
        pytest.fail(f"no {wanted}: {seen[-3:]}")

    def stop(self, number=signal.SIGTERM):
        """End it; returns exit code and seconds."""
        start = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(10)
        for reader in self.readers:
            reader.join(5)
        return code, time.monotonic() - start

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def serve(folder, *words, **more):
    return Shown(folder, "serve", "--listen", "127.0.0.1:0", *words, **more)


@pytest.fixture
def media(tmp_path, clips):
    """A folder of media with ways out of it."""
    folder = tmp_path / "media"
    (folder / "sub").mkdir(parents=True)
    for name in ("plain.mp4", "still.png"):
        (folder / name).write_bytes(clips[name].read_bytes())
    (folder / "sub" / "deep.mkv").write_bytes(clips["plain.mkv"].read_bytes())
    (folder / ".hidden.mkv").write_bytes(clips["plain.mkv"].read_bytes())
    (tmp_path / "outside.mkv").write_bytes(clips["plain.mkv"].read_bytes())
    (folder / "link.mkv").symlink_to(tmp_path / "outside.mkv")
    (folder / "up").symlink_to(tmp_path)
    return folder


# ---- what is refused ----


SERVE_REFUSES = [
    # arguments, words
    (["in.mp4", "out.mp4"], ["serve writes no output", "--page 8080"]),
    (["-o", "out.mp4"], ["serve does not take --output; a run, plan and doctor do"]),
    (["in.mp4", "--page", "8080"], ["--listen"]),
    (["in.mp4", "--json", "-"], ["serve does not take --json; a run, "]),
    (["in.mp4", "--replay", "journal"], ["--replay"]),
    (["in.mp4", "--trace", "trace"], ["--trace"]),
    (["in.mp4", "-f", "gausian"], ["did you mean", "gaussian"]),
    (["--token", ""], ["--token takes up to 200 letters"]),
    (["--token", "ge heim"], ["--token takes"]),
    (["--token", "geheim" * 40], ["--token takes"]),
    (["--token", "@none"], ["none cannot be read"]),
    (["--tls-key", "key.pem"], ["stand together"]),
    (["--keep", "soon"], ["--keep", "soon"]),
    (["--upload-max", "0"], ["--upload-max", "500M"]),
]


@pytest.mark.parametrize("words, said", SERVE_REFUSES, ids=[" ".join(row[0])[:40] for row in SERVE_REFUSES])
def test_serve_refuses(run, tmp_path, words, said):
    result = run("serve", *words)
    assert result.code == 2 and not result.stdout, result.stderr
    assert all(word in result.stderr for word in said) and "heim" not in result.stderr, result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command, said", [
    ("plan", "--upload-max is of the control page"), ("doctor", "doctor does not take --upload-max; a run, plan and serve do")])
def test_options_of_the_page_are_for_pages(run, command, said):
    result = run(command, "--upload-max", "1G")
    assert result.code == 2 and said in result.stderr, result.stderr


# ---- begin and end ----


def test_it_says_once_where_it_is(tmp_path, clips):
    with serve(tmp_path, clips["plain.mp4"], "-q") as page:
        assert page.host.startswith("127.0.0.1:") and page.host != "127.0.0.1:0" and not page.token
        code, text = page.ask("/")
        assert code == 200 and b"<html" in text and b"sluice" in text
        assert {"gaussian", "sobel"} <= {stage["name"] for stage in page.fine("/api/stages")["stages"]}
        page.await_input(state="running", name=str(clips["plain.mp4"]), width=160, height=120)
        assert page.stop()[0] == 128 + signal.SIGTERM
        assert len(page.said["stdout"]) == 1 and page.said["stderr"] == []


def test_a_second_server_on_the_port_says_so(run, tmp_path, clips):
    with serve(tmp_path) as page:
        for words in (["serve", clips["plain.mp4"], "--listen", page.host, "--journal", "journal"],
                      [clips["plain.mp4"], "out.mkv", "--page", page.host, "--journal", "journal"]):
            result = run(*words)
            assert result.code == 5 and not result.stdout
            assert page.host in result.stderr and "in use" in result.stderr
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("address", ["nowhere:x", "999999", "", "1.2.3.4.5:80"])
def test_what_is_no_address_is_refused(run, tmp_path, clips, address):
    assert run("serve", "--listen", address).code == 2
    result = run(clips["plain.mp4"], "out.mkv", "--page", address)
    assert result.code == 2 and not list(tmp_path.iterdir()), result.stderr


@pytest.mark.parametrize("words", [["--media", "none"], ["--tls-cert", "none", "--tls-key", "none"]])
def test_files_that_are_not_there_are_said(run, tmp_path, words):
    result = run("serve", "--listen", "127.0.0.1:0", *words)
    assert result.code == 2 and not result.stdout and "none" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("state", ["no input", "running", "opening", "still", "failed", "watched"])
def test_it_ends_within_two_seconds(tmp_path, clips, number, state):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        inputs = {"no input": [], "opening": [f"rtsp://127.0.0.1:{silent.getsockname()[1]}/x"],
                  "still": [clips["still.png"]], "failed": [__file__]}
        with serve(tmp_path, *inputs.get(state, [clips["plain.mp4"]])) as page:
            known = {"no input": "none", "watched": "running", "still": "running"}
            page.await_input(state=known.get(state, state))
            if state == "watched":
                viewers = [page.connect() for _ in range(4)]
                for viewer in viewers:
                    viewer.request("GET", "/api/video?codec=mjpeg")
                    assert viewer.getresponse().status == 200
            code, seconds = page.stop(number)
            assert code == 128 + number and seconds < 2.5


def test_control_journal_and_metrics_are_those_of_runs(run, tmp_path, clips):
    port = free_port()
    with serve(tmp_path, clips["plain.mp4"], "--control", "ctl", "--journal", "journal", "--metrics", port,
               "-f", "gray") as page:
        page.await_input(state="running")
        until(lambda: run("ctl", "ctl", "get").text == '{"ok":true,"chain":"gray"}\n')
        assert run("ctl", "ctl", "chain", "gray,invert").code == 0
        until(lambda: page.chain() == "gray,invert")
        asked = []

        def ask():
            with socket.create_connection(("127.0.0.1", port)) as line: # at any time, also between two passes
                line.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
                asked.append(line.recv(100).split()[1])
            return asked[-1]
        until(lambda: ask() == b"200")
        begun = time.monotonic()
        while time.monotonic() < begun + 5:
            ask()
        assert set(asked) <= {b"200", b"503"}
        until(lambda: ask() == b"200")
        assert page.await_input(state="running")
        page.chain("invert")
        until(lambda: (tmp_path / "journal").read_text().count("\n") == 3)
        assert run("ctl", "ctl", "quit").code == 0
        assert page.process.wait(5) == 0
    lines = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert [line["chain"] for line in lines] == ["gray", "gray,invert", "invert"]
    assert lines[0]["pts_us"] == 0 < lines[1]["pts_us"] < 2000000 <= lines[2]["pts_us"]


# ---- inputs ----


def test_a_file_begins_again_with_the_chain_as_it_is(tmp_path, clips):
    tools.ffmpeg(*tools.SHORT, *tools.X264, tmp_path / "short.mkv")
    with serve(tmp_path, "short.mkv", "-f", "gray") as page:
        assert page.chain("invert") == "invert"
        states = []
        for event in page.events("input", 15):
            if not states or event["state"] != states[-1]:
                states.append(event["state"])
            if states.count("running") > 3:
                break
        assert states.count("running") == 4 and "failed" not in states, states
        assert page.chain() == "invert"
        for k in range(40): # wherever in a pass, or between two
            text = f"gray,threshold=t1={k}:t2={k + 100}"
            assert page.chain(text) == page.chain() == text
            time.sleep(0.05)


def test_a_visitor_chooses_media(tmp_path, media):
    with serve(tmp_path, "--media", media) as page:
        page.await_input(state="none")
        inputs = page.fine("/api/inputs")
        assert inputs["chooses"] and [file["name"] for file in inputs["media"]] == [
            "plain.mp4", "still.png", "sub/deep.mkv"]
        assert inputs["media"][0]["bytes"] == (media / "plain.mp4").stat().st_size
        for name in ("plain.mp4", "still.png", "sub/deep.mkv", "plain.mp4"):
            page.take("media", name)
            page.await_input(state="running", name=name)


OUTSIDE = ["../outside.mkv", "sub/../../outside.mkv", "link.mkv", "up/outside.mkv", ".hidden.mkv", "",
           "%2e%2e/outside.mkv", "sub/%2e%2e/%2e%2e/outside.mkv", "..%2foutside.mkv", "plain.mp4\0.png",
           "../media/plain.mp4", "sub", ".", "..", "/dev/zero", "lavfi:testsrc", "file:plain.mp4",
           "x" * 5000, "..\\outside.mkv", "./plain.mp4", "sub//deep.mkv"]


@pytest.mark.parametrize("kind", ["media", "camera", "address", "upload"])
def test_what_is_not_offered_is_refused(tmp_path, media, kind):
    absolute = [str(tmp_path / "outside.mkv"), str(media / "plain.mp4"), f"file://{media}/plain.mp4",
                "concat:plain.mp4", "unix:///tmp/x", "pipe:0", "-"]
    with serve(tmp_path, "--media", media) as page:
        for name in OUTSIDE + absolute:
            code, answer = page.choose(kind, name)
            if kind == "camera" and code == 202: # drivers are asked first
                assert page.await_input(state="failed")["error"] == f"there is no camera '{name[:200]}'"
                continue
            assert 400 <= code < 500 and not answer["ok"] and answer["error"], (name, answer)
        assert page.choose("folder", "plain.mp4")[0] == 400
        if kind != "camera":
            assert page.await_input(state="none")["name"] == ""
    assert not any("outside" in line for line in page.said["stderr"])


def test_without_media_there_are_none(tmp_path, clips):
    (tmp_path / "plain.mp4").write_bytes(clips["plain.mp4"].read_bytes())
    with serve(tmp_path) as page:
        assert page.fine("/api/inputs")["media"] == []
        code, answer = page.choose("media", "plain.mp4")
        assert 400 <= code < 500 and "--media" in answer["error"]


def test_a_failed_input_is_shown_and_another_chosen(tmp_path, media):
    (media / "words.mp4").write_text("these are words\n" * 1000)
    (tmp_path / "text.mp4").write_text("these are words\n" * 1000)
    with serve(tmp_path, "text.mp4", "--media", media) as page:
        event = page.await_input(state="failed")
        assert "text.mp4" in event["error"] and event["name"] == "text.mp4"
        page.take("media", "words.mp4")
        assert "words.mp4" in page.await_input(state="failed", name="words.mp4")["error"]
        page.take("media", "plain.mp4")
        page.await_input(state="running", name="plain.mp4")
        assert page.process.poll() is None


def test_another_choice_ends_the_opening(tmp_path, media):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"rtsp://127.0.0.1:{silent.getsockname()[1]}/x"
        with serve(tmp_path, "--media", media) as page:
            page.take("address", address)
            page.await_input(state="opening", name=address)
            line, _ = silent.accept()  # an answer is waited for
            start = time.monotonic()
            page.take("media", "plain.mp4")
            page.await_input(state="running", name="plain.mp4")
            assert time.monotonic() - start < 2
            line.close()


def test_options_of_the_input_are_of_the_one_on_the_command_line(tmp_path, media):
    raw = tools.write_raw(tmp_path / "in.raw", [[tools.random_picture(48, 64, k)] for k in range(50)])
    with serve(tmp_path, "-F", "rawvideo", "--size", "64x48", "--pix-fmt", "gray", raw, "--media", media) as page:
        page.await_input(state="running", width=64, height=48)
        page.take("media", "plain.mp4")
        page.await_input(state="running", width=160, height=120)


def test_a_file_that_is_not_there_is_a_mistake(run, tmp_path, media):
    result = run("serve", "--listen", "127.0.0.1:0", "none.mp4", "--media", media)
    assert result.code == 4 and "none.mp4" in result.stderr and "No such file" in result.stderr
    assert not result.stdout and result.stderr.count("\n") == 1, "a page is told of that nobody will see"


def test_the_page_of_a_run_is_told_of_when_its_file_is_open(run, tmp_path):
    (tmp_path / "text.mp4").write_text("no video")
    for name, why in ("none.mp4", "No such file"), ("text.mp4", "cannot be read"):
        result = run(name, "out.mkv", "--page", "127.0.0.1:0")
        assert result.code == 4 and why in result.stderr
        assert result.stderr.count("\n") == 1 and "the page is at" not in result.stderr


def test_the_page_of_a_source_that_keeps_a_run_waiting_is_told_of_at_once(tmp_path, clips):
    os.mkfifo(tmp_path / "pipe")
    with Shown(tmp_path, "pipe", "out.mkv", "--page", "127.0.0.1:0") as page:
        assert page.fine("/api/chain")["chain"]
        (tmp_path / "pipe").write_bytes(clips["plain.mkv"].read_bytes())
        assert page.process.wait(20) == 0
    with socket.create_server(("127.0.0.1", 0)) as silent, \
            Shown(tmp_path, f"rtsp://127.0.0.1:{silent.getsockname()[1]}/x", "null:", "--page", "127.0.0.1:0") as page:
        assert page.stop()[0] == 128 + signal.SIGTERM


def test_what_serve_needs_besides_is_there_before_the_page_is_told_of(run, tmp_path, clips):
    for words in ["--control", "none/ctl"], ["--journal", "none/journal"]:
        result = run("serve", clips["plain.mp4"], "--listen", "127.0.0.1:0", *words)
        assert result.code == 5 and not result.stdout and result.stderr.count("\n") == 1


def test_images_by_a_pattern_are_served(tmp_path, clips):
    (tmp_path / "a1.png").write_bytes(clips["still.png"].read_bytes())
    with serve(tmp_path, "a%d.png") as page:
        page.await_input(state="running", name="a%d.png")
        assert not [line for line in page.said["stderr"] if "holds one picture" in line]


def test_an_absent_source_is_tried_again(tmp_path, clips):
    with serve(tmp_path, "late.mkv", "--reconnect", "forever") as page:
        page.await_input(state="failed")
        (tmp_path / "late.mkv").write_bytes(clips["plain.mkv"].read_bytes())
        page.await_input(state="running", name="late.mkv")


def test_a_picture_takes_changes_and_stays(tmp_path, media):
    with serve(tmp_path, media / "still.png", "--media", media, "-f", "gray") as page:
        page.await_input(state="running", width=161, height=121)
        assert page.chain("invert") == "invert"
        assert not [e for e in page.events("input", 1) if e["state"] != "running"]
        page.take("media", "plain.mp4")
        page.await_input(state="running", name="plain.mp4")
        assert page.chain() == "invert"


def test_an_upload_is_an_input(tmp_path, media, clips):
    data = clips["plain.mp4"].read_bytes()
    with serve(tmp_path, "--media", media, "--upload-max", "1M") as page:
        assert page.fine("/api/inputs")["upload_max"] == 1000000
        code, answer = page.ask("/api/upload?name=mine.mp4", data, Content_Type="application/octet-stream")
        assert code == 201 and answer["ok"], answer
        page.take("upload", "mine.mp4")
        page.await_input(state="running", name="mine.mp4")
        code, answer = page.ask("/api/upload?name=large.mp4", bytes(1000001))
        assert code == 413 and not answer["ok"]
        for name in ("..%2fx.mp4", "%2fx.mp4", ".x.mp4", "-x.mp4", "", "a%0ab.mp4", "a%00b.mp4", "%ff.mp4"):
            assert 400 <= page.ask(f"/api/upload?name={name}", data)[0] < 500, name
    assert {path.name for path in tmp_path.iterdir()} == {"media", "outside.mkv"}
    assert not (media / "large.mp4").exists() and (media / "plain.mp4").read_bytes() == data


# ---- who may look ----


def test_other_addresses_need_a_token_which_is_made(tmp_path, clips):
    with Shown(tmp_path, "serve", "--listen", "0.0.0.0:0", clips["plain.mp4"]) as page:
        assert re.fullmatch("[0-9a-f]{32}", page.token)
        made = page.token
        assert page.ask("/api/stages")[0] == 200
        page.token = None
        paths = ("/api/stages", "/api/chain", "/api/video", "/api/inputs")
        wrong = ("Bearer", "Bearer x", f"Bearer {made}x", f"Bearer {made[:-1]}", made)  # more than eight would wait
        for path, token in [(path, None) for path in paths] + list(zip(paths + paths, wrong)):
            assert page.ask(path, Authorization=token)[0] == 401, (token, path)
        code, answer = page.ask("/api/chain", {"chain": "gray"}, "PUT")
        assert code == 401 and not answer["ok"]
        assert len("".join(page.said["stdout"] + page.said["stderr"]).split(made)) == 2
    with Shown(tmp_path, "serve", "--listen", "0.0.0.0:0") as other:
        assert other.token != made


@pytest.mark.parametrize("words", [["--token", "geheim123"], ["--token=geheim123"], ["--tok", "geheim123"],
                                   ["--token", "@token"], ["--token", "env:TOKEN"]])
def test_a_token_that_is_given_is_not_shown(tmp_path, words):
    (tmp_path / "token").write_text("geheim123\n")
    with serve(tmp_path, *words, env={"TOKEN": "geheim123"}, token="geheim123") as page:
        assert page.ask("/api/stages")[0] == 200
        assert "geheim" not in json.dumps(page.fine("/api/command"))
        assert b"geheim" not in Path(f"/proc/{page.process.pid}/cmdline").read_bytes()
        page.token = None
        assert page.ask("/api/stages")[0] == 401
        page.stop()
        assert "geheim" not in "".join(page.said["stdout"] + page.said["stderr"])


def test_tls(tmp_path, clips):
    made = tools.execute(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
                          "/CN=localhost", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"])
    assert made.code == 0, made.stderr
    with serve(tmp_path, clips["plain.mp4"], "--tls-cert", "cert.pem", "--tls-key", "key.pem") as page:
        assert page.scheme == "https" and page.chain("invert") == "invert"
        page.scheme = "http"
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            page.ask("/")


def test_the_command_line_that_does_the_same(tmp_path, clips):
    (tmp_path / "media").mkdir()
    (tmp_path / "media" / "plain.mkv").write_bytes(clips["plain.mkv"].read_bytes())
    with serve(tmp_path, "--backend", "cpu", "-F", "mp4", clips["plain.mp4"], "--ring", "3", "-f", "gray",
               "--media", "media") as page:
        page.await_input(state="running")
        page.chain("gray,gaussian=2")
        command = page.fine("/api/command")["command"]
        assert command == f"sluice --backend cpu --ring 3 --format mp4 {clips['plain.mp4']} out.mkv " \
                          "-f gray,gaussian=sigma=2"
        page.take("media", "plain.mkv")
        page.await_input(state="running", name="plain.mkv")
        assert page.fine("/api/command")["command"] == \
            "sluice --backend cpu --ring 3 media/plain.mkv out.mkv -f gray,gaussian=sigma=2"
    with Shown(tmp_path, "-f", "gray", clips["plain.mp4"], "out.mkv", "--crf", "30", "--pix-fmt", "yuv420p", "-o",
               "udp://127.0.0.1:1/?password=geheim", "-F", "mpegts", "--gap", "freeze", "--live", "--option",
               "x264-params=keyint=20: scenecut=0", "--page", "127.0.0.1:0", "--token", "geheim", token="geheim") as page:
        assert page.fine("/api/command")["command"] == \
            f"sluice --gap freeze --live {clips['plain.mp4']} out.mkv --crf 30 --pix-fmt yuv420p --output " \
            "'udp://127.0.0.1:1/?password=***' --format mpegts --option 'x264-params=keyint=20: scenecut=0' -f gray"


# ---- a run with a page ----


def test_a_run_writes_the_same_with_a_page(run, tmp_path, clips):
    plain = run(clips["plain.mp4"], "hash:plain.txt", "-q", "-f", "gray,gaussian=2")
    assert plain.code == 0
    with Shown(tmp_path, clips["plain.mp4"], "hash:shown.txt", "-q", "--live", "-f", "gray,gaussian=2",
               "--page", "127.0.0.1:0") as page:
        assert not page.fine("/api/inputs")["chooses"]
        code, answer = page.choose("media", "plain.mp4")
        assert 400 <= code < 500 and not answer["ok"]
        page.await_input(state="running")
        page.ask("/api/player", {"action": "pause"})
        page.ask("/api/snapshot")
        assert page.process.wait(20) == 0 and not page.said["stdout"]
    assert (tmp_path / "shown.txt").read_text() == (tmp_path / "plain.txt").read_text()


def test_video_on_standard_output_is_all_that_is_there(tmp_path, clips):
    plain = tools.sluice(clips["plain.mp4"], "hash:-", "-q", cwd=tmp_path)
    shown = tools.sluice(clips["plain.mp4"], "hash:-", "-q", "--page", "127.0.0.1:0", cwd=tmp_path)
    assert shown.code == 0 and shown.stdout == plain.stdout and LINE.fullmatch(shown.stderr)


def test_visitors_who_never_read_hold_up_nothing(tmp_path, clips):
    """Ten of them, of every stream, in a run that goes at its source's pace."""
    with Shown(tmp_path, clips["plain.mp4"], "hash:out.txt", "--live", "--json", "run.json", "--page",
               "127.0.0.1:0") as page:
        start, stuck = time.monotonic(), []
        for k in range(10):
            line = socket.create_connection(page.host.split(":"))
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            path = ["/api/video?codec=mjpeg", "/api/video?codec=h264", "/api/events"][k % 3]
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: {page.host}\r\n\r\n".encode())
            stuck.append(line)
        assert page.process.wait(20) == 0
        assert time.monotonic() - start < 6
    told = tools.load(tmp_path / "run.json")
    assert (told["frames"]["out"], told["frames"]["dropped_late"]) == (50, 0), told


def test_a_change_on_the_page_is_in_the_journal(run, tmp_path, clips):
    with Shown(tmp_path, clips["plain.mp4"], "hash:out.txt", "--live", "-f", "gray", "--journal", "journal",
               "--page", "127.0.0.1:0") as page:
        page.await_input(state="running", width=160)
        assert page.chain("invert") == "invert"
        assert page.process.wait(20) == 0
    lines = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert [line["chain"] for line in lines] == ["gray", "invert"]
    again = run(clips["plain.mp4"], "hash:again.txt", "--replay", "journal")
    assert again.code == 0
    assert (tmp_path / "again.txt").read_text() == (tmp_path / "out.txt").read_text()


def test_the_chain_is_there_before_an_input(tmp_path, media):
    """A visitor's counts for the next job, whatever the command line says."""
    with serve(tmp_path, "--media", media, "-f", "gray") as page:
        assert page.chain() == "gray" and page.chain("gray,invert") == "gray,invert"
        page.take("media", "plain.mp4")
        page.await_input(state="running")
        assert page.chain() == "gray,invert"
    with serve(tmp_path, "--media", media) as page:
        assert page.chain().startswith("gray,gaussian=sigma=1.4")


def test_another_chain_is_another_attempt(tmp_path, media, clips):
    """A pattern that is larger than the picture is refused, and the chain behind it is not."""
    tools.ffmpeg("-f", "lavfi", "-i", "color=gray:s=400x300", "-frames:v", "1", tmp_path / "large.png")
    with serve(tmp_path, media / "plain.mp4", "--media", media, "-f", "match=large.png") as page:
        page.await_input(state="failed")
        page.chain("gray")
        page.await_input(state="running", width=160)
        assert page.chain() == "gray"


def test_a_chain_for_a_failed_input_is_one_more_attempt(tmp_path, media):
    (media / "words.mp4").write_text("these are words\n" * 1000)
    with serve(tmp_path, "--media", media) as page:
        page.take("media", "words.mp4")
        page.await_input(state="failed", name="words.mp4")
        before = len(page.said["stderr"])
        page.chain("invert")
        until(lambda: len(page.said["stderr"]) > before, 5, "no attempt")
        time.sleep(1)
        assert len(page.said["stderr"]) <= before + 4, page.said["stderr"][-3:]


def test_a_file_does_not_begin_again_while_a_visitor_looks_back(tmp_path, clips):
    with serve(tmp_path, clips["plain.mp4"], "-f", "gray") as page:
        page.await_input(state="running", width=160)
        code, state = page.ask("/api/player", {"action": "pause"})
        assert code == 200 and state["mode"] == "paused", state
        assert not [e for e in page.events("input", 3) if e["state"] != "running"]
        assert page.fine("/api/player")["mode"] == "paused"
        assert page.chain("invert") == "invert"
        assert page.ask("/api/player", {"action": "live"})[0] == 200
        page.await_input(state="ended")
        page.await_input(state="running")
        assert page.chain() == "invert" and page.fine("/api/player")["mode"] == "live"


def test_quit_ends_it_whatever_is_behind_the_word(tmp_path):
    with serve(tmp_path, "--control", "ctl") as page:
        assert tools.sluice("ctl", "ctl", "quit", "", cwd=tmp_path).code == 0
        assert page.process.wait(5) == 0


def test_systemd_is_told(tmp_path, clips, monkeypatch):
    """Of the server, not of its jobs: a file that begins again is no end."""
    tools.ffmpeg(*tools.SHORT, *tools.X264, tmp_path / "short.mkv")
    with Manager(f"@sluice-{os.getpid()}") as manager:
        watched(monkeypatch, manager, 1)
        with serve(tmp_path, "short.mkv") as page:
            manager.wait("READY=1")
            manager.wait("WATCHDOG=1", 4)
            assert not manager.times("STOPPING=1")
            page.stop()
        manager.wait("STOPPING=1")
        assert len(manager.times("READY=1")) == len(manager.times("STOPPING=1")) == 1
