"""How far the control page's picture is behind life, and whether it stays there.

A live source at 720p shows the time in its pixels; Chromium shows the page, and once a second the time
in its picture is compared with the clock: source, network, decoder, filter, encoder and browser are
all in between. Reported, never judged.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile
import threading
import time

import numpy

import tools
from browser import Browser
from live import free_port

WIDTH, HEIGHT, RATE, BITS, UNIT_MS = 1280, 720, 25, 16, 10
SIDE = WIDTH // BITS
LOOK = """let c = document.getElementById('picture'), scale = c.width / %d, paint = c.getContext('2d'), value = 0;
          for (let bit = 0; bit < %d; bit++) {
            let x = Math.round((bit + 0.5) * %d * scale), y = Math.round(%d * scale);
            value = value * 2 + (paint.getImageData(x, y, 1, 1).data[0] > 127 ? 1 : 0);
          }
          return [value, Date.now()]""" % (WIDTH, BITS, SIDE, SIDE // 2)


def show_time(to, done):
    """Frames whose upper edge is the time as black and white squares, over moving noise."""
    noise = numpy.random.default_rng(1).integers(64, 192, (HEIGHT // 8, WIDTH // 8 + RATE), numpy.uint8)
    begin, index = time.monotonic(), 0
    while not done.is_set():
        time.sleep(max(0, begin + index / RATE - time.monotonic()))
        shift = index % RATE
        frame = numpy.repeat(numpy.repeat(noise[:, shift:shift + WIDTH // 8], 8, 0), 8, 1)
        value = int(time.time() * 1000 / UNIT_MS) % (1 << BITS)
        for bit in range(BITS):
            frame[:SIDE, bit * SIDE:(bit + 1) * SIDE] = 255 * (value >> (BITS - 1 - bit) & 1)
        to.write(frame.tobytes())
        index += 1


def measure(minutes, folder):
    port, done, lags = free_port(), threading.Event(), []
    sender = subprocess.Popen(
        ["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "gray", "-s", f"{WIDTH}x{HEIGHT}", "-r", str(RATE),
         "-i", "-", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "25",
         "-flush_packets", "1", "-f", "mpegts", f"udp://127.0.0.1:{port}?pkt_size=1316"], stdin=subprocess.PIPE)
    threading.Thread(target=show_time, args=(sender.stdin, done), daemon=True).start()
    server = subprocess.Popen([tools.SLUICE, "serve", f"udp://127.0.0.1:{port}", "-f", "gaussian=1", "--listen",
                               "127.0.0.1:0", "-q"], stdout=subprocess.PIPE, text=True)
    browser = Browser(folder)
    try:
        browser.open("http://" + server.stdout.readline().split("http://")[1].strip())
        time.sleep(5)
        for _ in range(int(minutes * 60)):
            value, now_ms = browser.run(LOOK)
            lags.append((now_ms - value * UNIT_MS) % ((1 << BITS) * UNIT_MS))
            time.sleep(1)
    finally:
        done.set()
        browser.close()
        for process in (server, sender):
            process.kill()
            process.wait()
    return lags


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--json", type=pathlib.Path)
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lags = measure(settings.minutes, folder)
    halves = lags[:len(lags) // 2], lags[len(lags) // 2:]
    told = {"looks": len(lags), "median_ms": float(numpy.median(lags)), "p99_ms": float(numpy.percentile(lags, 99)),
            "worst_ms": max(lags), "over_300_ms": sum(lag > 300 for lag in lags),
            "median_of_halves_ms": [float(numpy.median(half)) for half in halves]}
    print(json.dumps(told, indent=2))
    if settings.json:
        settings.json.write_text(json.dumps({**told, "lags_ms": lags}))


if __name__ == "__main__":
    main()
