"""Weeks of running: what Prometheus, systemd and the control socket are told."""

import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

import test_live as live
import tools

CAMERA = "lavfi:testsrc=size=320x240:rate=25"

# ---- metrics ----

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABELS = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')


def parse_labels(text):
    labels, at = {}, 0
    while at < len(text):
        match = LABELS.match(text, at)
        assert match, f"no labels: {text}"
        labels[match[1]] = match[2]
        at = match.end()
    return tuple(sorted(labels.items()))


def parse(text):
    """Prometheus's text format, strictly: {(name, labels): value} and {family: type}."""
    assert text.endswith("\n")
    values, types, helped, closed, family = {}, {}, set(), set(), None
    for line in text[:-1].split("\n"):
        if match := re.fullmatch(rf"# HELP ({NAME}) (\S.*)", line):
            assert match[1] not in helped, "told twice"
            closed.add(family)
            family = match[1]
            helped.add(family)
        elif match := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|histogram)", line):
            assert match[1] == family and family not in types
            types[family] = match[2]
        else:
            match = re.fullmatch(rf"({NAME})(?:{{(.+)}})? (-?[0-9.e+-]+|\+Inf)", line)
            assert match, f"no sample: {line!r}"
            base = match[1]
            if types[family] == "histogram":
                base = re.sub(r"_(bucket|sum|count)$", "", base)
            assert base == family and family not in closed
            key = match[1], parse_labels(match[2] or "")
            assert key not in values, "told twice"
            values[key] = float(match[3])
    for name, kind in types.items():
        assert (kind == "counter") == name.endswith("_total"), name
    return values, types


class Metrics:
    """One scrape."""

    def __init__(self, port):
        self.type, self.text = scrape(port)
        self.values, self.types = parse(self.text)

    def __getitem__(self, name):
        return self.values["sluice_" + name, ()]

    def by(self, name, label):
        return {dict(labels)[label]: value for (key, labels), value in self.values.items()
                if key == "sluice_" + name}

    def ledger(self):
        """As the closing summary names it."""
        drops = {f"dropped_{k}": v for k, v in self.by("frames_dropped_total", "reason").items()}
        return {"in": self["frames_in_total"], "filled": self["frames_filled_total"],
                "out": self["frames_out_total"], **drops,
                "damaged_frames": self["frames_damaged_total"],
                "damaged_packets": self["packets_damaged_total"],
                "taken_over": self["frames_taken_over_total"],
                "losses": self["source_losses_total"],
                "reconnects": self["source_reconnects_total"]}

    def counters(self):
        return {key: value for key, value in self.values.items()
                if not any(key[0] == name for name, kind in self.types.items() if kind == "gauge")}


def scrape(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 200, text
    connection.close()
    return answer.headers["Content-Type"], text


def port_of(job):
    job.await_words("metrics are at")
    line = next(line for line in job.said if "metrics are at" in line)
    return int(re.search(r"http://127\.0\.0\.1:(\d+)/metrics$", line.strip())[1])


def check_histogram(metrics):
    buckets = [(float(bound), value) for bound, value in
               metrics.by("latency_seconds_bucket", "le").items()]
    assert [bound for bound, _ in buckets] == sorted({bound for bound, _ in buckets})
    counts = [value for _, value in buckets]
    assert counts == sorted(counts) and buckets[-1][0] == float("inf")
    count = metrics["latency_seconds_count"]
    assert counts[-1] == count
    low = sum((b - a) * bound for (bound, _), a, b in
              zip([(0, 0), *buckets[:-1]], [0, *counts[:-1]], counts))
    assert low <= metrics["latency_seconds_sum"] and (count == 0 or metrics["latency_seconds_sum"])


def test_metrics_grow_and_add_up(tmp_path):
    with live.Job(tmp_path, CAMERA, "out.mkv", "--metrics", 0) as job:
        port = port_of(job)
        job.await_frames(10)
        first = Metrics(port)
        job.await_frames(50)
        second = Metrics(port)
        told = job.stop()
    assert first.type == "text/plain; version=0.0.4; charset=utf-8"
    assert first.types == second.types and first.values.keys() == second.values.keys()
    for key, value in first.counters().items():
        assert second.values[key] >= value, key
    for name, value in second.ledger().items():
        assert value <= told["frames"][name], name
    for metrics in first, second:
        check_histogram(metrics)
        ledger = metrics.ledger()
        inside = ledger["in"] + ledger["filled"] - ledger["out"] - sum(
            value for key, value in ledger.items() if key.startswith("dropped_"))
        assert 0 <= inside < 100
    assert second["frames_in_total"] >= first["frames_in_total"] + 20
    before, after = (sum(metrics.by("output_bytes_total", "output").values()) for metrics in (first, second))
    assert after > before > 0
    assert told["output"]["bytes"] >= after
    assert second["latency_seconds_count"] > first["latency_seconds_count"]
    busy = [metrics.by("part_busy_seconds_total", "part") for metrics in (first, second)]
    assert set(busy[0]) == set(told["pace"]["busy"])
    assert all(busy[1][part] > busy[0][part] for part in ("decode", "filter", "encode", "mux"))
    assert abs(second["media_seconds_total"] - second["frames_out_total"] / 25) < 1
    assert 0 <= second["ring_slots_used"] <= second["ring_slots"] == told["run"]["ring"]
    process = {name: second.values[f"process_{name}", ()] for name in
               ("cpu_seconds_total", "resident_memory_bytes", "start_time_seconds", "open_fds")}
    assert 0 < process["cpu_seconds_total"] < 600
    assert process["resident_memory_bytes"] > 1 << 20 and process["open_fds"] > 3
    assert abs(process["start_time_seconds"] - time.time()) < 60
    assert dict(next(key[1] for key in second.values if key[0] == "sluice_build_info"))["version"]


def test_metrics_of_a_source_that_is_lost_are_those_of_the_summary(tmp_path):
    port = live.free_port()
    with live.udp_sender(port) as sender, \
            live.Job(tmp_path, f"udp://127.0.0.1:{port}", "out.mkv", "--stall-timeout", 1,
                     "--metrics", 0) as job:
        job.await_frames(20)
        assert Metrics(port_of(job))["source_lost"] == 0
        sender.kill()
        job.await_words("is lost")
        time.sleep(1.5)
        metrics = [Metrics(port_of(job)) for _ in range(2)]
        told = job.stop()
    assert all(one["source_lost"] == 1 for one in metrics)
    assert 1 < metrics[0]["source_lost_seconds_total"] < metrics[1]["source_lost_seconds_total"]
    assert metrics[1]["source_lost_seconds_total"] < told["frames"]["lost_s"]
    for name, value in metrics[1].ledger().items(): # nothing has moved since
        assert told["frames"][name] == value, name
    assert metrics[1]["frames_out_total"] >= 20
    p50 = told["time"]["latency_s"]["p50"] # within 5 %
    counts = {float(k): v for k, v in metrics[1].by("latency_seconds_bucket", "le").items()}
    half = metrics[1]["latency_seconds_count"] / 2
    assert all(count >= half for bound, count in counts.items() if bound > p50 * 1.05)
    assert all(count <= half + 1 for bound, count in counts.items() if bound < p50 / 1.05)


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool")
def test_promtool_finds_nothing(tmp_path):
    with live.Job(tmp_path, CAMERA, "null:", "--metrics", 0) as job:
        port = port_of(job)
        job.await_frames()
        text = scrape(port)[1]
        job.stop()
    told = tools.execute(["promtool", "check", "metrics"], input=text.encode())
    assert told.code == 0 and not told.stdout and not told.stderr, (told.stdout, told.stderr)


def test_whoever_asks_before_the_input_is_open_is_told_to_come_again():
    reader, writer = os.pipe()
    command = [tools.SLUICE, "-", "null:", "--metrics", f"127.0.0.1:{live.free_port()}"]
    job = subprocess.Popen(command, stdin=reader, stderr=subprocess.PIPE, env=tools.environment())
    os.close(reader)
    port = int(re.search(rb":(\d+)/metrics", job.stderr.readline())[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/metrics")
    assert connection.getresponse().status == 503
    connection.close()
    os.close(writer)
    assert job.wait(10) == 4
    job.stderr.close()


def test_secrets_and_odd_names_in_metrics(tmp_path, clips):
    odd = tmp_path / 'a"b\\c\nd.mkv'
    shutil.copy(clips["film.mkv"], odd)
    with live.Job(tmp_path, "--live", odd, "null:", "--metrics", 0) as job:
        job.await_frames(20)
        metrics = Metrics(port_of(job))
        job.end(0)
    labels = dict(next(key[1] for key in metrics.values if key[0] == "sluice_job_info"))
    assert labels["input"].endswith('a\\"b\\\\c\\nd.mkv') and labels["codec"] == "h264"

    tools.ffmpeg("-f", "lavfi", "-i", "testsrc=size=160x120", "-frames:v", 1, tmp_path / "a.jpg")
    picture = (tmp_path / "a.jpg").read_bytes()

    def give(handler):
        live.answer(handler, "multipart/x-mixed-replace; boundary=b")
        while True:
            handler.wfile.write(b"--b\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n"
                                % len(picture) + picture + b"\r\n")
            time.sleep(0.1)
    with live.Http(give) as server, \
            live.Job(tmp_path, server.url.replace("//", "//u:geheim@"), "null:", "--metrics",
                     0) as job:
        job.await_frames(5)
        text = scrape(port_of(job))[1]
        job.stop()
    assert "geheim" not in text and "u:***@" in text


def test_port_in_use_is_said_before_anything_is_written(run, tmp_path, clips):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = run(clips["film.mkv"], "out.mkv", "--metrics", port)
        serves = run("serve", "--listen", "127.0.0.1:0", "--metrics", port)
    assert result.code == serves.code == 5
    assert f"metrics cannot be shown at {port}: Address already in use" in serves.stderr and not serves.stdout
    assert f"metrics cannot be shown at {port}: Address already in use" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path, code, said", [("none/ctl", 5, "none/ctl cannot be listened on: No such file"),
                                              ("there", 5, "there cannot be listened on: it is there, and is no socket"),
                                              ("x" * 200, 2, "is too long")])
def test_a_control_socket_that_cannot_be_opened_is_an_output_that_cannot(run, tmp_path, clips, path, code, said):
    (tmp_path / "there").write_text("a file")
    runs = run(clips["film.mkv"], "out.mkv", "--control", path, "--json", "run.json")
    serves = run("serve", "--listen", "127.0.0.1:0", "--control", path)
    for result in runs, serves:
        assert result.code == code and said in result.stderr, result.stderr
    assert json.loads((tmp_path / "run.json").read_text())["exit"] == code
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run.json", "there"]
    assert (tmp_path / "there").read_text() == "a file"


@pytest.mark.parametrize("address", ["", "x", "65536", "-1", "9464x", "[::1]", "::1:9464", "host:",
                                     "http://127.0.0.1:9464"])
def test_nonsense_is_no_address(run, tmp_path, clips, address):
    result = run(clips["film.mkv"], "out.mkv", f"--metrics={address}")
    assert result.code == 2 and f"'{address}' is no address for metrics" in result.stderr
    assert not list(tmp_path.iterdir())


def test_stuck_clients_hold_nothing_up(tmp_path):
    with live.Job(tmp_path, f"{CAMERA}:duration=4", "out.mkv", "--metrics", 0) as job:
        port = port_of(job)
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(30)]
        for k, client in enumerate(clients[10:]):
            client.sendall(b"GET /met" if k % 2 else b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
                           * 99)
        job.await_frames(10)
        begin = time.monotonic()
        before = Metrics(port)["frames_out_total"]
        assert time.monotonic() - begin < 2
        job.await_frames(60)
        assert Metrics(port)["frames_out_total"] > before
        told = job.end(0)
        for client in clients:
            client.close()
    assert told["frames"]["out"] == 100 and told["time"]["wall_s"] < 8


def test_stats_of_the_control_socket_are_those_of_the_summary(tmp_path):
    with live.Job(tmp_path, CAMERA, "out.mkv", "--control", "c") as job:
        job.await_frames(30)
        stats = json.loads(tools.sluice("ctl", "c", "stats", cwd=tmp_path).text)
        told = job.stop()
    shared = set(told["frames"]) & set(stats)
    assert {"in", "filled", "out", "dropped_late", "dropped_clock", "dropped_range", "dropped_stop",
            "damaged_frames", "losses", "reconnects", "lost_s", "taken_over"} <= shared
    assert all(0 <= stats[name] <= told["frames"][name] for name in shared)
    assert 30 <= stats["out"] <= stats["in"] and stats["lost"] is False
    assert 0 < stats["latency_s"]["p50"] <= stats["latency_s"]["p99"] and stats["bytes"] > 0


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def dial(port):
    client = socket.socket(socket.AF_UNIX if isinstance(port, str) else socket.AF_INET)
    client.settimeout(5)
    client.connect(port if isinstance(port, str) else ("127.0.0.1", port))
    return client


@pytest.mark.parametrize("option, said", [("--control", None), ("--metrics", "metrics are at"),
                                          ("-o", "the picture is at")])
def test_clients_wait_quietly_when_descriptors_are_short(tmp_path, option, said):
    """The listener is ready then, and nobody can be accepted."""
    value = {"--control": "c", "--metrics": "0", "-o": "mjpeg:0"}[option]
    with live.Job(tmp_path, "lavfi:testsrc=size=64x48:rate=5", "null:", option, value) as job:
        job.await_frames(5)
        line = next((line for line in job.said if said and said in line), "")
        port = int(re.search(r":(\d+)(/\w+)?$", line.strip())[1]) if said else str(tmp_path / "c")
        pid = job.process.pid
        used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
        free = min(set(range(len(used) + 1)) - used)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, 4096))
        clients = [dial(port) for _ in range(5)]
        before = cpu_seconds(pid)
        time.sleep(2)
        spent = cpu_seconds(pid) - before
        if not said:
            assert "no file descriptor" in clients[0].makefile().readline()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (4096, 4096))
        last = clients[-1] if said else dial(port)
        last.sendall(b"GET / HTTP/1.0\r\n\r\n" if said else b"get\n")
        assert last.recv(5)
        for client in [*clients, last]:
            client.close()
        job.stop()
    assert spent < 0.7


def test_answers_of_the_control_socket_are_whole_however_long(tmp_path):
    """Of a client that reads late, and one that leaves; the next command waits for its turn."""
    row = " ".join(["1.000000001"] * 151)
    with live.Job(tmp_path, CAMERA, "null:", "--control", "c") as job:
        job.await_frames(5)
        with dial(str(tmp_path / "c")) as slow, dial(str(tmp_path / "c")) as gone:
            gone.sendall(b"get\n" * 50000)
            gone.close()
            slow.sendall(f"chain convolve='{'/'.join([row] * 151)}'\n".encode() + b"get\n" * 3)
            time.sleep(1)
            lines = slow.makefile()
            answers = [json.loads(lines.readline()) for _ in range(4)]
        told = tools.sluice("ctl", "c", "get", cwd=tmp_path)
        job.stop()
    assert all(answer["ok"] and answer["chain"].count(row) == 151 for answer in answers)
    assert told.code == 0 and json.loads(told.text) == answers[0]


@pytest.mark.parametrize("words, said", [
    (["chain"], "chain takes an argument: chain CHAIN"),
    (["chain", " "], "chain takes an argument"),
    (["set"], "set takes an argument"),
    (["snapshot"], "snapshot takes an argument"),
    (["snapshot", "-y"], "snapshot takes an argument"),
    (["get", "it"], "get takes no arguments"),
    (["quit", "now"], "quit takes no arguments"),
])
def test_commands_have_the_arguments_that_they_take(tmp_path, words, said):
    with live.Job(tmp_path, CAMERA, "null:", "-f", "gray", "--control", "c") as job:
        job.await_frames(2)
        refused = tools.sluice("ctl", "c", *words, cwd=tmp_path)
        assert refused.code == 2 and said in refused.stderr + refused.text
        assert json.loads(tools.sluice("ctl", "c", "get", cwd=tmp_path).text)["chain"] == "gray"


def test_what_the_control_socket_cannot_serve_is_said(tmp_path):
    with live.Job(tmp_path, CAMERA, "null:", "--control", "c") as job:
        job.await_frames(5)
        with dial(str(tmp_path / "c")) as client:
            client.sendall(b"chain " + b"x" * (5 << 20) + b"\nget\n")
            lines = client.makefile()
            first, second = json.loads(lines.readline()), json.loads(lines.readline())
        clients = [dial(str(tmp_path / "c")) for _ in range(16)]
        refused = tools.sluice("ctl", "c", "get", cwd=tmp_path)
        for each in clients:
            each.close()
        several = tools.sluice("ctl", "c", "get\nquit", cwd=tmp_path)
        job.stop()
    assert not first["ok"] and "longer than" in first["error"] and second["ok"]
    assert refused.code == 2 and "too many clients" in refused.text
    assert several.code == 2 and "one line" in several.stderr


def test_a_snapshot_replaces_only_what_it_may(tmp_path):
    def snapshot(*words):
        return tools.sluice("ctl", "c", "snapshot", *words, cwd=tmp_path)
    (tmp_path / "now.png").write_text("precious")
    with live.Job(tmp_path, CAMERA, "out.mkv", "--control", "c", "--journal", "journal") as job:
        job.await_frames()
        refused = snapshot("now.png")
        assert refused.code == 2 and "now.png exists" in refused.text
        assert (tmp_path / "now.png").read_text() == "precious"
        assert snapshot("-y", "now.png").code == snapshot("new.png").code == 0
        for name in "now.png", "new.png":
            assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"
        for name in "out.mkv", "journal":
            assert "named twice" in snapshot("-y", name).text
        job.stop()


# ---- systemd ----


class Manager:
    """What systemd is to a service: a socket, and what came through it when."""

    def __init__(self, address):
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address.replace("@", "\0", 1))
        self.heard = []
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self):
        while data := self.socket.recv(4096):
            for line in data.decode().split("\n"):
                self.heard.append((time.monotonic(), line))

    def times(self, word):
        return [when for when, line in self.heard if line.startswith(word)]

    def wait(self, word, times=1, limit=15):
        start = time.monotonic()
        while len(self.times(word)) < times:
            assert time.monotonic() - start < limit, f"no {word}: {self.heard}"
            time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"", self.address.replace("@", "\0", 1))
        self.thread.join(5)
        self.socket.close()


def watched(monkeypatch, manager, watchdog_s=None):
    """Have what is started from now on tell the manager."""
    monkeypatch.setenv("NOTIFY_SOCKET", manager.address)
    if watchdog_s:
        monkeypatch.setenv("WATCHDOG_USEC", str(int(watchdog_s * 1e6)))


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_systemd_is_told(tmp_path, monkeypatch, kind):
    address = f"@sluice-{os.getpid()}" if kind == "abstract" else str(tmp_path / "s")
    with Manager(address) as manager:
        watched(monkeypatch, manager, 2)
        with live.Job(tmp_path, CAMERA, "out.mkv") as job:
            manager.wait("READY=1")
            assert "STATUS=waiting for the first frame; frame 0, 0.0 fps" == manager.heard[0][1]
            manager.wait("WATCHDOG=1", 5)
            fed = manager.times("WATCHDOG=1")
            assert not manager.times("STOPPING=1")
            job.stop()
        assert len(manager.times("READY=1")) == len(manager.times("STOPPING=1")) == 1
        assert manager.times("STOPPING=1")[0] > fed[-1]
        assert any(re.fullmatch(r"STATUS=frame \d+, [\d.]+ fps", line) for _, line in manager.heard)
    gaps = [b - a for a, b in zip(fed, fed[1:])]
    assert max(gaps) < 2 and 0.7 < sum(gaps) / len(gaps) < 1.6, gaps


def test_file_that_ends_by_itself_stops(tmp_path, clips, monkeypatch):
    with Manager(f"@sluice-{os.getpid()}") as manager:
        watched(monkeypatch, manager)
        with live.Job(tmp_path, clips["film.mkv"], "out.mkv") as job:
            job.end(0)
        manager.wait("STOPPING=1")
        words = [line for _, line in manager.heard if not line.startswith("STATUS")]
    assert words == ["READY=1", "STOPPING=1"] # and no watchdog, which nobody asked for


def test_ready_is_not_said_before_there_is_a_frame(tmp_path, monkeypatch):
    with Manager(f"@sluice-{os.getpid()}") as manager:
        watched(monkeypatch, manager)
        job = subprocess.Popen([tools.SLUICE, "-", "null:", "-q"], stdin=subprocess.PIPE,
                               env=tools.environment())
        job.stdin.write(b"YUV4MPEG2 W64 H48 F25:1 C420jpeg\nFRAME\n" + bytes(2000))
        job.stdin.flush()
        time.sleep(1)
        assert not manager.times("READY=1")
        for _ in range(50):
            job.stdin.write(bytes(64 * 48 * 3 // 2 - 2000) + b"FRAME\n" + bytes(2000))
        job.stdin.flush()
        manager.wait("READY=1")
        job.stdin.close()
        job.wait(10)


def test_watchdog_of_a_job_that_hangs_is_not_fed(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "out")
    reader = os.open(tmp_path / "out", os.O_RDONLY | os.O_NONBLOCK)
    with Manager(f"@sluice-{os.getpid()}") as manager:
        watched(monkeypatch, manager, 0.6)
        with live.Job(tmp_path, CAMERA, "out", "-F", "yuv4mpegpipe") as job:
            manager.wait("READY=1") # the pipe takes a little
            start = time.monotonic()
            while time.monotonic() - max([start, *manager.times("WATCHDOG=1")]) < 3:
                assert time.monotonic() - start < 30, "it is fed for ever"
                time.sleep(0.1)
            assert job.process.poll() is None and not manager.times("STOPPING=1")
            fed = len(manager.times("WATCHDOG=1"))
            os.set_blocking(reader, True)
            drain = threading.Thread(target=lambda: [0 for _ in iter(
                lambda: os.read(reader, 1 << 20), b"")], daemon=True)
            drain.start() # somebody reads again: it lives
            manager.wait("WATCHDOG=1", fed + 3)
            job.process.kill()
            job.process.wait()
            drain.join(5)
    os.close(reader)


def test_watchdog_of_a_stopped_process_is_not_fed(tmp_path, monkeypatch):
    with Manager(f"@sluice-{os.getpid()}") as manager:
        watched(monkeypatch, manager, 0.6)
        with live.Job(tmp_path, CAMERA, "null:") as job:
            manager.wait("WATCHDOG=1", 2)
            job.process.send_signal(signal.SIGSTOP)
            time.sleep(0.2)
            fed = len(manager.times("WATCHDOG=1"))
            time.sleep(1.5)
            assert len(manager.times("WATCHDOG=1")) == fed
            job.process.send_signal(signal.SIGCONT)
            manager.wait("WATCHDOG=1", fed + 1)
            job.process.kill()


def test_watchdog_of_a_job_whose_source_is_away_is_fed(tmp_path, monkeypatch):
    port = live.free_port()
    with Manager(f"@sluice-{os.getpid()}") as manager, live.udp_sender(port) as sender:
        watched(monkeypatch, manager, 2)
        with live.Job(tmp_path, f"udp://127.0.0.1:{port}", "null:", "--stall-timeout", "0.5s",
                      "--open-timeout", 4) as job:
            manager.wait("READY=1")
            sender.kill()
            job.await_words("is lost")
            lost = time.monotonic()
            manager.wait("STATUS=the source is lost, connecting again")
            time.sleep(8)
            fed = [when for when in manager.times("WATCHDOG=1") if when > lost]
            job.stop()
    assert len(fed) >= 6 and max(b - a for a, b in zip([lost, *fed], fed)) < 2


def test_watchdog_of_another_process_is_not_ours(tmp_path, monkeypatch):
    with Manager(f"@sluice-{os.getpid()}") as manager:
        watched(monkeypatch, manager, 0.4)
        monkeypatch.setenv("WATCHDOG_PID", "1")
        with live.Job(tmp_path, CAMERA + ":duration=2", "null:") as job:
            job.end(0)
        assert manager.times("READY=1") and not manager.times("WATCHDOG=1")


@pytest.mark.parametrize("name", ["x", "@", "/" + 200 * "x"])
def test_socket_that_is_none_is_said_and_harms_nothing(run, clips, name):
    result = run(clips["film.mkv"], "null:", env={"NOTIFY_SOCKET": name})
    assert result.code == 0 and f"NOTIFY_SOCKET is '{name}'" in result.stderr


def test_nobody_behind_the_socket_harms_nothing(run, clips):
    assert run(clips["film.mkv"], "null:", env={"NOTIFY_SOCKET": "@sluice-nobody"}).code == 0


# ---- the unit ----

UNIT = tools.ROOT / "app" / "sluice@.service.in"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_unit_is_understood(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sluice").symlink_to(tools.SLUICE)
    unit = tmp_path / "sluice@.service"
    unit.write_text(UNIT.read_text().replace("@BINDIR@", str(tmp_path / "bin")))
    told = tools.execute(["systemd-analyze", "verify", "--man=no", unit])
    assert told.code == 0 and "sluice" not in told.stderr, told.stderr
    unit.write_text(unit.read_text().replace("WatchdogSec=60", "WatchdogSec=soon"))
    assert "sluice@.service" in tools.execute(["systemd-analyze", "verify", unit]).stderr


def version_of_systemd():
    return int(re.search(r"systemd (\d+)", tools.execute(["systemd-analyze", "--version"]).text)[1])


@pytest.mark.skipif(not shutil.which("systemd-analyze") or version_of_systemd() < 250,
                    reason="no systemd-analyze that rates files")
def test_unit_exposes_little(tmp_path):
    """At most 2 of 10, which is root with everything; it was 1.8 by systemd 252."""
    unit = tmp_path / "sluice@.service"
    rate = ["systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=20", unit]
    unit.write_text(UNIT.read_text().replace("@BINDIR@", "/usr/bin"))
    assert tools.execute(rate).code == 0, tools.execute(rate).text
    unit.write_text(unit.read_text().replace("ProtectSystem=strict", "").replace("CapabilityBoundingSet=", ""))
    assert tools.execute(rate).code != 0


def names_of(words, groups):
    """The system calls that words of SystemCallFilter= stand for."""
    found = set()
    for word in words:
        found |= names_of(groups[word], groups) if word.startswith("@") else {word}
    return found


@pytest.mark.skipif(not shutil.which("systemd-analyze") or not shutil.which("strace"),
                    reason="no systemd-analyze, or no strace")
def test_unit_lets_the_program_call_what_it_calls(tmp_path, clips):
    """All that a live run calls, its sandbox included, is in the unit's filter."""
    groups, group = {}, None
    for line in tools.execute(["systemd-analyze", "syscall-filter"]).text.split("\n"):
        if line.startswith("@"):
            group = groups.setdefault(line.strip(), [])
        elif line.startswith("    ") and group is not None:
            group += [line.strip()] if not line.strip().startswith("#") else []
    allowed = {"execve", "exit", "exit_group", "rt_sigreturn"}
    for words in re.findall(r"^SystemCallFilter=(.*)$", UNIT.read_text(), re.M):
        named = names_of(words.lstrip("~").split(), groups)
        allowed = allowed - named if words.startswith("~") else allowed | named
    told = tools.execute(["strace", "-f", "-qq", "-o", tmp_path / "calls", tools.SLUICE, clips["film.mkv"],
                          "out.mkv", "--live", "--segment", "1s", "--metrics", "0", "--control", "socket",
                          "-f", "invert"], cwd=tmp_path)
    assert told.code == 0, told.stderr
    lines = (tmp_path / "calls").read_text().split("\n")
    calls = {call[1]: line for line in lines if (call := re.match(r"\d+ +(\w+)\(", line))}
    denied = {name: calls[name] for name in set(calls) - allowed}
    # Given up by root, who the unit's user is not.
    assert set(denied) <= {"capset"}, denied
    assert {"seccomp", "landlock_restrict_self"} <= set(calls) or "no Landlock" in tools.sluice("doctor").text


@pytest.mark.parametrize("output", [None, "mine.mkv"])
def test_command_of_the_unit_starts_what_is_asked_for(tmp_path, clips, output):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sluice").symlink_to(tools.SLUICE)
    line = re.search(r"^ExecStart=:/bin/sh -c '(.*)'$", UNIT.read_text(), re.M)[1]
    line = line.replace("@BINDIR@", str(tmp_path / "bin")).replace("%i", "door").replace("%%", "%")
    env = {"INPUT": str(clips["film.mkv"]), "OPTIONS": "-f invert --live --metrics 0"}
    told = tools.execute(["/bin/sh", "-c", line], cwd=tmp_path,
                         env={**env, **({"OUTPUT": output} if output else {})})
    assert told.code == 0, told.stderr
    names = [file.name for file in tmp_path.glob("*.mkv")]
    assert names == [output] if output else re.fullmatch(r"door-\d{8}T\d{6}Z\.mkv", names[0])
