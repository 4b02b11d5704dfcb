"""A run as long as weeks are short: soak.py [--seconds N] [--rate FPS] [--pace P] [--jobs N] [--backend cuda], with
SLUICE naming the program.

A camera of small pictures, many a second, that hangs up every twenty seconds of its own; packets are lost and
corrupted on the way; the pictures go into segments, a playlist, a port that nobody listens on, and
to a browser; meanwhile parameters change, figures are asked for and snapshots taken. 540 s of 500
pictures a second are as many as three hours of 25; --pace 1.25 sends three hours of the camera's time
in --seconds 8640, 2 h 24 min. Meant for builds with sanitizers; without, its figures of memory, threads and
descriptors count, too, and with --backend cuda those of the first GPU's memory. Before it, --jobs: so many jobs of
all kinds in one process (soak_jobs.c, beside the program). Tells every ten minutes or so on stderr what it has
found. Exits with 1 if anything is wrong."""
import argparse
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

CONNECTION_S = 20
REPORT_TURNS = 600
CHAINS = ["stats=/dev/null,gray,gaussian=1.4,threshold=20:240",
          "stats=/dev/null,gaussian=1.4,threshold=9:99"]


def make_clip(path, rate):
    subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i",
                    f"testsrc2=size=160x120:rate={rate}:duration={CONNECTION_S}", "-c:v", "libx264",
                    "-preset", "ultrafast", "-tune", "zerolatency", "-g", str(rate // 10), "-muxdelay",
                    "0", "-f", "mpegts", path], check=True)


class Camera(threading.Thread):
    """Sends the clip to whoever connects, `pace` times as fast as it plays, and hangs up."""

    def __init__(self, clip, pace):
        super().__init__(daemon=True)
        self.data, self.connections, self.lasts = clip.read_bytes(), 0, CONNECTION_S / pace
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        step = max(188, int(len(self.data) / (self.lasts * 50)) // 188 * 188)
        while True:
            connection, _ = self.listener.accept()
            self.connections += 1
            begin = time.monotonic()
            with connection:
                for at in range(0, len(self.data), step):
                    time.sleep(max(0, begin + self.lasts * at / len(self.data) - time.monotonic()))
                    try:
                        connection.sendall(self.data[at:at + step])
                    except OSError:
                        break


def ask(path, line):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(str(path))
        client.sendall(line.encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            answer += client.recv(65536)
    return json.loads(answer)


def change(folder, line):
    answer = ask(folder / "ctl", line)
    assert answer["ok"], answer


def fetch(port, path, most=1 << 16):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    body = connection.getresponse().read(most)
    connection.close()
    return body


def listens(port):
    """True once the port takes connections: a page of an output from the first frame on."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def device_mib():
    """The first GPU's memory in use, other programs' included."""
    return int(subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                              stdout=subprocess.PIPE, text=True, check=True).stdout)


def usage_of(pid, backend):
    status = Path(f"/proc/{pid}/status").read_text()
    return {"rss_kb": int(re.search(r"VmRSS:\s+(\d+)", status)[1]),
            "threads": int(re.search(r"Threads:\s+(\d+)", status)[1]),
            "fds": len(os.listdir(f"/proc/{pid}/fd")),
            "device_mib": device_mib() if backend == "cuda" else 0}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def latency_of(text):
    """Of /metrics: each limit in seconds, and how many frames were within it."""
    return [(float(limit), int(float(count))) for limit, count in
            re.findall(r'^sluice_latency_seconds_bucket\{le="([^"]+)"\} (\S+)', text, re.M)]


def quantile(before, now, share):
    """The first limit that so many of the frames between two moments were within."""
    passed = [(limit, count - earlier[1]) for (limit, count), earlier in zip(now, before or [(0, 0)] * len(now))]
    return next(limit for limit, count in passed if count >= share * passed[-1][1])


def bother(job, folder, metrics, page, seconds, backend):
    """Ask and change for so long. Returns how much the process used, once a second, and its latencies
    until then."""
    used, begin, turn = [], time.monotonic(), 0
    while time.monotonic() - begin < seconds and job.poll() is None:
        turn += 1
        change(folder, f"set gaussian.sigma={1 + turn % 5 / 4}, threshold.t1={turn % 100}")
        ask(folder / "ctl", "stats")
        if turn % 10 == 0:
            change(folder, f"chain {CHAINS[turn // 10 % 2]}")
            ask(folder / "ctl", f"snapshot -y {folder / 'now.jpg'}")
        latency = latency_of(fetch(metrics, "/metrics").decode())
        fetch(page, "/stream")
        used.append(usage_of(job.pid, backend) | {"latency": latency})
        if turn % REPORT_TURNS == 0:
            print(json.dumps({"seconds": round(time.monotonic() - begin), "quarters": quarters(used)}),
                  file=sys.stderr, flush=True)
        time.sleep(1)
    return used


def quarters(used):
    """Medians of each quarter of the time, and quantiles of its latencies."""
    part, rows = len(used) // 4, []
    for k in range(4):
        of, before = used[k * part:(k + 1) * part], used[k * part - 1]["latency"] if k else None
        rows.append({key: statistics.median(u[key] for u in of) for key in ("rss_kb", "threads", "fds", "device_mib")} |
                    {f"p{100 * share:g}_s": quantile(before, of[-1]["latency"], share) for share in (0.5, 0.95, 0.99)})
    return rows


def check(told, used, rate, seconds):
    """The facts that must be true. `seconds` are the camera's."""
    _, second, _, last = quarters(used)
    frames = told["frames"]
    drops = sum(frames[k] for k in ("dropped_range", "dropped_stop", "dropped_clock", "dropped_late", "dropped_disk"))
    late = used[len(used) // 4:]
    facts = {
        "the ledger adds up": frames["in"] + frames["filled"] == frames["out"] + drops,
        "every loss was mended": frames["losses"] - frames["reconnects"] in (0, 1),
        "as often as it was hung up": frames["reconnects"] >= seconds // CONNECTION_S - 2,
        "frames came": frames["in"] > rate * seconds * 0.8,
        "it ended as asked": told["exit"] in (0, 3),
        "below its ceiling": max(u["rss_kb"] for u in used) * 1024 < told["run"]["max_memory"]
                             or "SOAK_SANITIZED" in os.environ,
        "threads constant": max(u["threads"] for u in late) - min(u["threads"] for u in late) <= 2,
        "descriptors constant": max(u["fds"] for u in late) - min(u["fds"] for u in late) <= 8,
        # Buckets are a factor of 2 to 2.5 wide.
        "memory is flat": last["rss_kb"] <= 1.03 * second["rss_kb"] or "SOAK_SANITIZED" in os.environ,
        "the GPU's memory is flat": last["device_mib"] <= second["device_mib"],
        "latencies are flat": all(last[key] <= 2.5 * second[key] for key in ("p50_s", "p95_s")),
    }
    return facts


def run_jobs(sluice, jobs, backend, folder):
    """A short film with sound, filtered again and again."""
    film = folder / "film.mkv"
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i", "testsrc2=size=96x64:rate=25:duration=0.8",
                    "-f", "lavfi", "-i", "sine=duration=0.8", "-c:v", "libx264", "-preset", "ultrafast", "-g", "7",
                    "-c:a", "aac", film], check=True)
    work = folder / "jobs"
    work.mkdir()
    code = subprocess.run([sluice.parent / "soak_jobs", film, str(jobs), backend], cwd=work, check=False).returncode
    if code:
        sys.exit(code)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=540)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--pace", type=float, default=1)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    options = parser.parse_args()
    if options.pace <= 0:
        parser.error("--pace is above 0")
    sluice = Path(os.environ.get("SLUICE", "build/sluice")).absolute()
    with tempfile.TemporaryDirectory() as folder_:
        folder = Path(folder_)
        if options.jobs:
            run_jobs(sluice, options.jobs, options.backend, folder)
        if not options.seconds:
            return
        make_clip(folder / "clip.ts", options.rate)
        camera = Camera(folder / "clip.ts", options.pace)
        metrics, page = free_port(), free_port()
        job = subprocess.Popen(
            [sluice, f"tcp://127.0.0.1:{camera.port}", "rec.mkv",
             "-y", "--backend", options.backend, "-F", "matroska", "--preset", "ultrafast", "--segment", "60",
             "-o", "live.m3u8",
             "-o", f"udp://127.0.0.1:{free_port()}", "-o", f"mjpeg:{page}", "--metrics", str(metrics),
             "-f", CHAINS[0], "--control", "ctl", "--journal", "journal", "--simulate",
             "loss=0.1%,corrupt=0.1%", "--json", "run.json"],
            cwd=folder, stdin=subprocess.DEVNULL, stderr=open(folder / "said", "w"))
        deadline = time.monotonic() + 120
        while not (folder / "ctl").exists() or b"frames_out" not in fetch(metrics, "/metrics") or not listens(page):
            assert job.poll() is None and time.monotonic() < deadline, (folder / "said").read_text()[-4000:]
            time.sleep(0.5)
        used = bother(job, folder, metrics, page, options.seconds, options.backend)
        if job.poll() is None:
            ask(folder / "ctl", "quit")
        code = job.wait(60)
        said = (folder / "said").read_text()
        reports = [line for line in said.splitlines()
                   if "Sanitizer" in line or "runtime error" in line]
        if code not in (0, 3) or not (folder / "run.json").exists():
            sys.exit(f"exit {code}\n{said[-6000:]}")
        told = json.loads((folder / "run.json").read_text())
        facts = check(told, used, options.rate, options.pace * options.seconds)
        print(json.dumps({"frames": told["frames"], "outputs": told["outputs"],
                          "latency_s": told["time"]["latency_s"], "quarters": quarters(used),
                          "reports": reports[:40], "facts": facts}, indent=1))
        if reports:
            print(said[-20000:])
        sys.exit(0 if all(facts.values()) and not reports else 1)


main()
