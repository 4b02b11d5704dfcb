"""How soon Chromium shows what a slider of the control page does.

A server shows a generated film of 720p at 25 a second with one stage, a browser on the same machine moves
its slider as a hand does and looks at the canvas until it differs, 100 times: live and paused, with pictures
by WebCodecs and by Media Source. Reported, never judged.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

from browser import Browser
from test_page_browser import SLIDE, Served

WAYS = {"WebCodecs": "", "Media Source": "#play=media"}
SLIDER = "#links input[type=range]"


def slide(browser, times):
    """Milliseconds; None after two seconds without a change."""
    return [browser.wait(SLIDE, SLIDER, value) for value in [800, 200] * (times // 2)]


def summary(times):
    seen = [time_ms for time_ms in times if time_ms is not None]
    return {"moves": len(times), "seen": len(seen), "median_ms": statistics.median(seen), "worst_ms": max(seen),
            "over_100_ms": sum(time_ms > 100 for time_ms in seen)}


def measure(served, way, times):
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(folder)
        try:
            browser.open(served.url + WAYS[way])
            time.sleep(5)
            yield "live", summary(slide(browser, times))
            browser.click("#play")
            time.sleep(1)
            yield "paused", summary(slide(browser, times))
        finally:
            browser.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--json", type=pathlib.Path)
    settings = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        film = pathlib.Path(folder) / "film.mp4"
        subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25", "-t", "20",
                        "-c:v", "libx264", "-preset", "ultrafast", film], check=True)
        served = Served(film.parent, film, "-f", "brightness=0")
        try:
            for way in WAYS:
                for state, figures in measure(served, way, settings.times):
                    found[f"{way}, {state}"] = figures
                    print(f"{way}, {state}: {json.dumps(figures)}", flush=True)
        finally:
            served.process.terminate()
            served.process.wait()
    if settings.json:
        settings.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
