"""What a browser shows of sluice's streams: Chromium, spoken to through its WebDriver.

Skipped by name where there is none; `make setup-browser` installs it."""

import numpy
import pytest

import tools
from browser import Browser, needs_chromium
from live import Job, free_port
from test_outputs import Folder, misses_nothing, until

SIZE = (320, 240)
MOVES = "lavfi:testsrc2=size=320x240:rate=25"
GREEN = "color=0x20A040:size=320x240:rate=25"
TAGS = "format=gbrp,setparams=color_primaries=bt709:color_trc=bt709" # not of the device: it loses them

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


def page(folder, element):
    (folder / "page.html").write_text(f"<!doctype html><body style='margin:0'>{element}</body>")


def difference(a, b):
    return abs(a - b).mean()


def test_motion_jpeg_moves_in_a_browser(browser, tmp_path):
    port = free_port()
    page(tmp_path, f"<img src='http://127.0.0.1:{port}/stream'>")
    with Folder(tmp_path) as server, \
            Job(tmp_path, MOVES, "rec.mkv", "-f", "null", "-o", f"mjpeg:{port}") as job:
        job.await_frames(1)
        browser.open(f"{server.url}/page.html")
        until(lambda: browser.run("return document.images[0] && document.images[0].naturalWidth")
              == SIZE[0], why="no picture")
        before = browser.picture(*SIZE)
        until(lambda: difference(browser.picture(*SIZE), before) > 1, why="it does not move")
        until(lambda: browser.picture(*SIZE).std() > 40, why="it is empty")
        told = job.stop()
    misses_nothing(told, tmp_path / "rec.mkv")


def test_own_page_shows_the_stream(browser, tmp_path):
    port = free_port()
    with Job(tmp_path, MOVES, f"mjpeg:{port}", "-f", "null") as job:
        job.await_frames(1)
        browser.open(f"http://127.0.0.1:{port}/")
        until(lambda: browser.run("let image = document.images[0]; return image && "
                                  "image.naturalWidth") == SIZE[0], why="no picture")
        job.stop()


def test_playlist_plays_in_a_browser(browser, tmp_path):
    browser.open("data:text/html,<video></video>")
    if not until_known(browser, "return document.querySelector('video').canPlayType("
                       "'application/vnd.apple.mpegurl')"):
        pytest.skip("this browser plays no playlists")
    page(tmp_path, "<video muted autoplay src='live.m3u8'></video>")
    options = ["--option", "hls_time=1", "--option", "g=25"]
    with Folder(tmp_path) as server, Job(tmp_path, MOVES, "live.m3u8", "-f", "null", *options) as job:
        until(lambda: (tmp_path / "live.m3u8").exists() and
              (tmp_path / "live.m3u8").read_text().count(".ts") > 2)
        browser.open(f"{server.url}/page.html")
        until(lambda: (played(browser) or 0) > 2, 30, "it does not play")
        assert browser.run("return document.querySelector('video').videoWidth") == SIZE[0]
        assert browser.picture(*SIZE).std() > 40
        job.stop()


def until_known(browser, script):
    until(lambda: browser.run("return !!document.querySelector('video')"))
    return browser.run(script)


def played(browser):
    return browser.run("let video = document.querySelector('video'); return video && video.currentTime")


def test_colours_are_those_of_the_source(browser, tmp_path):
    """The same as Motion JPEG, whose players know one matrix only, and as a file that is tagged."""
    port, source = free_port(), tmp_path / "green.mkv"
    tools.ffmpeg("-f", "lavfi", "-i", GREEN, "-t", 20, "-vf", TAGS, "-c:v", "ffv1", source)
    page(tmp_path, f"<img src='http://127.0.0.1:{port}/stream'>")
    with Folder(tmp_path) as server, \
            Job(tmp_path, "--live", source, "rec.mp4", "-f", "null", "-o", f"mjpeg:{port}") as job:
        job.await_frames(1)
        browser.open(f"{server.url}/page.html")
        await_green(browser)
        job.await_frames(50) # a film that is long enough to be seen
        job.stop()
        page(tmp_path, "<video muted autoplay loop src='rec.mp4'></video>")
        browser.open(f"{server.url}/page.html")
        await_green(browser)


def await_green(browser):
    seen = []

    def is_green():
        seen.append(browser.picture(*SIZE)[120, 160])
        return abs(seen[-1] - numpy.array([0x40, 0xA0, 0x20])).max() <= 4
    try:
        until(is_green)
    except AssertionError:
        pytest.fail(f"blue, green, red are {seen[-1]}")
