"""The control page as visitors see it: in Chromium, with its mouse and its keys.

Skipped by name where there is none; `make setup-browser` installs it."""

import json
import re
import signal
import subprocess
import threading
import urllib.request
from pathlib import Path

import pytest

import tools
from browser import Browser, needs_chromium
from live import end_with_us, free_port, sender
from test_outputs import until

pytestmark = needs_chromium

WEB = Path(__file__).resolve().parent.parent / "web"
EDGES = "gray,gaussian=1.4,sobel,threshold=20:240"
MODULE = "return import('/app.js').then(({page}) => %s)"
# The mean of the picture's red, green and blue between two shares of its width.
MEAN = """let c = document.getElementById('picture'), [from, to] = arguments;
          let x = Math.round(from * c.width), w = Math.max(1, Math.round((to - from) * c.width));
          let data = c.getContext('2d').getImageData(x, 0, w, c.height).data, sum = 0;
          for (let k = 0; k < data.length; k += 4) sum += data[k] + data[k + 1] + data[k + 2];
          return sum / (data.length / 4 * 3)"""
# Moves a slider as a hand does, and looks until the picture differs: milliseconds.
SLIDE = """let [selector, value, done] = arguments, slider = document.querySelector(selector);
           let c = document.getElementById('picture'), paint = c.getContext('2d');
           let look = () => { let d = paint.getImageData(0, 0, c.width, c.height).data, sum = 0;
                              for (let k = 0; k < d.length; k += 64) sum += d[k]; return sum / (d.length / 64); };
           let before = look(), start = performance.now();
           slider.value = value; slider.dispatchEvent(new Event('input', {bubbles: true}));
           let wait = () => Math.abs(look() - before) > 3 ? done(performance.now() - start)
                          : performance.now() - start > 2000 ? done(null) : setTimeout(wait, 1); wait();"""


class Served:
    """`sluice serve`, and the address that it prints."""

    def __init__(self, folder, *arguments):
        self.folder = folder
        self.process = subprocess.Popen([tools.SLUICE, "serve", *map(str, arguments), "--listen", "127.0.0.1:0"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.PIPE, cwd=folder, env=tools.environment(),
                                        preexec_fn=end_with_us)
        self.said = []
        threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True).start()
        line = self.process.stdout.readline()
        assert re.search(r"http://\S+", line), f"no address: {line!r} {self.said}"
        self.url = re.search(r"http://\S+", line).group()

    def ask(self, path, method="GET", **body):
        data = json.dumps(body).encode() if method != "GET" else None
        request = urllib.request.Request(self.url.split("#")[0] + path, data, {"Content-Type": "application/json"},
                                         method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def chain(self):
        return [link["stage"] for link in self.ask("api/chain")["links"]]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


class Page(Browser):
    """The browser on the control page."""

    def visit(self, url, fragment=""):
        self.open("about:blank")
        self.open(url.split("#")[0] + fragment)
        self.await_pictures(2)

    def pictures(self):
        return self.run("let c = document.getElementById('picture'); return c ? 1 : 0") and \
            self.run(MODULE % "page.view.picture.count()")

    def await_pictures(self, more=5):
        until(lambda: self.run("return !!document.getElementById('picture') && document.readyState == 'complete'"),
              why="no page")
        until(lambda: self.run("return document.querySelectorAll('#chain-title').length"), why="no page")
        begun = []

        def came():
            count = self.run("return import('/app.js').then(m => m.page.view.picture.count()).catch(() => 0)")
            begun.append(count)
            return count - begun[0] >= more
        until(came, 20, "no pictures")

    def mean(self, begin=0, end=1):
        return self.run(MEAN, begin, end)

    def attribute(self, selector, name):
        return self.run("return document.querySelector(arguments[0])?.getAttribute(arguments[1])", selector, name)

    def text(self, selector):
        """The text that is shown; "" for what is hidden."""
        return self.run("let e = document.querySelector(arguments[0]); return e && e.checkVisibility() ? "
                        "(e.value || e.textContent) : ''", selector)

    def stages(self):
        return self.run("return [...document.querySelectorAll('#links > li strong')].map(e => e.textContent)")

    def kind(self, name):
        self.run("document.querySelector(`[name=kind][value=${arguments[0]}]`).click()", name)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    made = Page(tmp_path_factory.mktemp("browser"))
    made.resize(1280, 800)
    yield made
    made.close()


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """Ten seconds in which things move, and no two frames are equal."""
    file = tmp_path_factory.mktemp("film") / "film.mp4"
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-t", 10, "-pix_fmt", "yuv420p",
                 "-c:v", "libx264", "-preset", "ultrafast", "-g", 25, file)
    return file


@pytest.fixture
def served(tmp_path, film):
    with Served(tmp_path, film, "-f", EDGES, "--media", tmp_path) as server:
        yield server


# ---- that it is there ----


def test_all_of_the_page_is_small():
    assert sum(file.stat().st_size for file in WEB.iterdir() if file.name != "openapi.json") < 150_000
    for file in WEB.glob("*.html"):
        assert not re.search(r"<script>|<style|\sstyle=|\son\w+=", file.read_text()), "nothing is inline"


def test_loads_and_plays_without_a_complaint(page, served):
    page.complaints()
    page.visit(served.url)
    page.await_pictures(10)
    assert page.stages() == ["gray", "gaussian", "sobel", "threshold"]
    assert page.run("return document.getElementById('source-name').textContent").endswith("film.mp4")
    until(lambda: page.text("#at") != "0:00.00", why="time stands still")
    at = page.text("#at")
    until(lambda: page.text("#at") != at, why="time stands still")
    assert not page.complaints()


@pytest.mark.parametrize("way", ["codecs", "media", "mjpeg"])
def test_every_way_shows_it(page, served, way):
    page.visit(served.url, f"#play={way}")
    page.await_pictures(10)
    assert page.run(MODULE % "page.view.picture.by()") == way
    assert page.run(MODULE % "page.view.picture.size()") == [320, 240]
    assert page.run(MODULE % "page.view.picture.behind()") < 1, "not at the live edge"
    page.run(MODULE % "page.chain.put('')")
    until(lambda: page.mean() > 80, why="the change is not seen")
    for kind in ["split", "difference", "before"]:
        page.kind(kind)
        page.await_pictures(3)
    until(lambda: served.ask("api/stats")["preview"]["viewers"] == 1, why="streams are left behind")


# ---- the chain ----


def test_a_slider_acts_on_the_picture_that_stands_still(page, served):
    page.visit(served.url)
    page.run(MODULE % "page.chain.put('brightness=0')")
    until(lambda: page.stages() == ["brightness"])
    page.click("#play")
    until(lambda: page.attribute("#play", "aria-label") == "Play", why="it does not pause")
    page.await_pictures(0)
    times = [page.wait(SLIDE, "#links input[type=range]", value) for value in [800, 200] * 5]
    assert None not in times, "a change is not seen"
    assert sorted(times)[5] < 1000, times
    assert served.ask("api/chain")["links"][0]["options"]["offset"] < -50


def test_typed_values_and_refusals(page, served):
    page.visit(served.url)
    page.run("document.querySelector('#links li:nth-child(4) input[type=number]').focus()")
    page.press("control", "a")
    for key in "99":
        page.press(key)
    page.press("enter")
    until(lambda: served.ask("api/chain")["links"][3]["options"]["t1"] == 99, why="typed values do nothing")
    page.run("let t = document.getElementById('chain-text'); t.value = 'gray,gausian=2'; t.focus()")
    page.press("enter")
    until(lambda: "gausian" in page.text("#chain-error"), why="the refusal is not told")
    assert served.chain() == ["gray", "gaussian", "sobel", "threshold"]
    page.press("escape")
    assert not page.text("#chain-error") and "gaussian" in page.text("#chain-text")


def test_stages_are_added_moved_removed_and_undone(page, served):
    page.visit(served.url)
    page.click("#add")
    for key in "invert":
        page.press(key)
    page.press("enter")
    until(lambda: served.chain() == ["gray", "gaussian", "sobel", "threshold", "invert"], why="not added")
    until(lambda: page.stages() == served.chain())
    page.click("#links li:nth-child(5) [aria-label^='Move invert up']")
    until(lambda: served.chain()[3:] == ["invert", "threshold"], why="not moved by its button")
    until(lambda: page.text("#told") == "invert is now 4 of 5", why="the move is not told")
    until(lambda: page.stages() == served.chain())
    height = page.run("return document.querySelector('#links li').getBoundingClientRect().height")
    page.drag("#links li:nth-child(2) .grip", 0, -round(height) - 30)
    until(lambda: served.chain()[:2] == ["gaussian", "gray"], why="not moved by the mouse")
    until(lambda: page.stages() == served.chain())
    page.click("#links li:nth-child(1) [aria-label='Remove gaussian']")
    until(lambda: served.chain() == ["gray", "sobel", "invert", "threshold"], why="not removed")
    until(lambda: page.stages() == served.chain())
    for _ in range(4):
        before = served.ask("api/chain")["undo"]
        page.click("#undo")
        until(lambda: served.ask("api/chain")["undo"] == before - 1)
    assert served.chain() == ["gray", "gaussian", "sobel", "threshold"]
    page.click("#redo")
    until(lambda: "invert" in served.chain(), why="not redone")


def test_stages_that_need_a_file_are_marked(page, served):
    page.visit(served.url)
    page.click("#add")
    marked = page.run("return [...document.querySelectorAll('#add-list button:disabled')].map(e => e.textContent)")
    assert len(marked) == 2 and all("Needs a file: named where sluice is started" in text for text in marked)
    assert sorted(text[:3] for text in marked) == ["mat", "tee"]
    for key in "stats":
        page.press(key)
    page.press("enter")
    until(lambda: served.chain()[-1] == "stats", why="records without a file are not added")


def test_another_visitor_is_followed(page, served):
    page.visit(served.url)
    served.ask("api/chain", "PUT", chain="invert,box=3")
    until(lambda: page.stages() == ["invert", "box"], why="another visitor's change is not shown")
    assert page.text("#chain-text").startswith("invert,box=")


# ---- what is shown ----


def test_the_divider_parts_before_and_after(page, served):
    page.visit(served.url)
    page.run(MODULE % "page.chain.put('gray,brightness=-255')")
    page.kind("split")
    until(lambda: page.mean(0, 0.45) > 60 and page.mean(0.55, 1) < 20, why="no split")
    page.drag("#divider", 150, 0)
    right = int(page.attribute("#divider", "aria-valuenow"))
    assert right > 55
    until(lambda: page.mean(0.5, right / 100 - 0.02) > 40, why="the mouse moves it not")
    page.run("document.getElementById('divider').focus()")
    page.press("home")
    until(lambda: page.mean(0.02, 1) < 20, why="keys move it not")
    page.press("right")
    assert page.attribute("#divider", "aria-valuenow") == "1"


def test_the_picture_after_a_stage(page, served):
    page.visit(served.url)
    until(lambda: page.mean() < 60)
    page.click("#links li:nth-child(1) [aria-label^='Show the picture after']")
    until(lambda: page.mean() > 80, why="not the picture after gray")
    assert page.text("#stage-shown") == "after gray"
    page.click("#stage-shown")
    until(lambda: page.mean() < 60, why="not the whole chain")


def test_the_difference_of_two_settings(page, served):
    page.visit(served.url)
    page.run(MODULE % "page.chain.put('brightness=40')")
    until(lambda: page.stages() == ["brightness"])
    page.click("#hold")
    page.kind("difference")
    page.run("document.querySelector('[name=other][value=held]').click()")
    until(lambda: page.mean() < 1.5, why="A differs from itself")
    page.run(MODULE % "page.chain.put('brightness=-40')")
    until(lambda: page.mean() > 20, why="the difference is not seen")
    page.click("#restore")
    until(lambda: page.mean() < 1.5, why="A does not come back")


def test_backends_side_by_side(page, served):
    page.visit(served.url)
    page.click("#compare")
    until(lambda: page.run("return document.querySelectorAll('#compare-columns .good').length") >= 2, 20,
          "no comparison: " + page.text("#compare-error"))
    assert "Reference" in page.text("#compare-columns") and "frames a second" in page.text("#compare-columns")
    page.press("escape")
    until(lambda: not page.run("return document.querySelectorAll('dialog[open]').length"))


# ---- time ----


def test_scrub_step_and_live(page, served):
    page.visit(served.url)
    until(lambda: not page.run("return document.getElementById('scrub').disabled"), why="nothing to scrub")
    page.run("let s = document.getElementById('scrub'); s.value = 3; s.dispatchEvent(new Event('input'))")
    until(lambda: served.ask("api/player")["mode"] == "paused" and
          abs(served.ask("api/player")["at"] - 3) < 0.1, why="not scrubbed")
    until(lambda: page.attribute("#live", "aria-pressed") == "false")
    page.run("document.activeElement.blur()")
    at = served.ask("api/player")["at"]
    page.press(".")
    until(lambda: 0.03 < served.ask("api/player")["at"] - at < 0.05, why="not stepped")
    page.press(",")
    until(lambda: abs(served.ask("api/player")["at"] - at) < 0.001, why="not stepped back")
    page.press("space")
    until(lambda: served.ask("api/player")["mode"] == "playing", why="it does not play")
    page.press("l")
    until(lambda: served.ask("api/player")["mode"] == "live", why="not live")
    page.await_pictures(5)


def test_pictures_follow_another_size(page, served, tmp_path):
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=416x160:rate=25", "-t", 10, "-pix_fmt", "yuv420p",
                 "-c:v", "libx264", "-preset", "ultrafast", tmp_path / "wide.mp4")
    page.visit(served.url)
    box = "let b = document.getElementById('screen').getBoundingClientRect(); return [b.x, b.y, b.width, b.height]"
    before = page.run(box)
    page.click("#source")
    until(lambda: "wide.mp4" in page.text("#inputs-media"), why="the folder's files are not offered")
    page.run("[...document.querySelectorAll('#inputs-media button')].find(b => b.textContent.includes('wide')).click()")
    until(lambda: page.run(MODULE % "page.view.picture.size()") == [416, 160], why="the other size is not shown")
    page.await_pictures(5)
    assert page.run(box) == before, "the layout jumps"


def test_a_source_that_is_lost_and_comes_back(page, tmp_path):
    port = free_port()
    url = f"udp://127.0.0.1:{port}"
    source = sender("mpegts", url + "?pkt_size=1316")
    with source, Served(tmp_path, url, "-f", "null", "--stall-timeout", "1") as served:
        page.visit(served.url)
        source.kill()
        until(lambda: "is lost since" in page.text("#lost"), why="the loss is not told")
        source.start()
        until(lambda: not page.text("#lost"), why="it is still lost")
        page.await_pictures(5)


def test_a_server_that_is_gone_is_told_of(page, tmp_path, film):
    with Served(tmp_path, film, "-f", EDGES) as served:
        page.visit(served.url)
    until(lambda: "does not answer" in page.text("#banner"), why="it is not told that sluice is gone")


def test_an_input_is_chosen_or_uploaded(page, tmp_path, film):
    with Served(tmp_path, "--media", tmp_path) as served:
        page.open("about:blank")
        page.open(served.url)
        until(lambda: "No input yet" in page.text("#notice-text"), why="it is not said that there is no input")
        page.click("#notice-choose")
        until(lambda: "no file" in page.text("#inputs-media"), why="the folder is not empty")
        page.give("#file", film)
        until(lambda: page.text("#source-name") == "film.mp4", why=page.text("#inputs-error"))
        page.await_pictures(5)
        assert not page.text("#notice") and not page.run("return document.querySelectorAll('dialog[open]').length")


def test_an_input_that_cannot_be_shown_is_told_of(page, served, tmp_path):
    (tmp_path / "words.mp4").write_text("no film")
    page.visit(served.url)
    served.ask("api/input", "POST", kind="media", name="words.mp4")
    until(lambda: "words.mp4 could not be filtered" in page.text("#notice-text"), why="the failure is not told")


def test_a_page_that_nobody_sees_costs_nothing(page, served):
    page.visit(served.url)
    until(lambda: served.ask("api/stats")["preview"]["viewers"] == 1)
    back = page.turn_away()
    try:
        until(lambda: served.ask("api/stats")["preview"]["viewers"] == 0, why="a hidden page goes on looking")
    finally:
        back()
    page.await_pictures(5)


# ---- what is taken along ----


def test_record_and_snapshot(page, served, tmp_path):
    page.visit(served.url)
    page.click("#record")
    until(lambda: page.attribute("#record", "aria-pressed") == "true", why=page.text("#said"))
    page.await_pictures(15)
    page.click("#record")
    until(lambda: "Recorded" in page.text("#said"), why="nothing is said of the recording")
    name = page.run("return document.querySelector('#said a').download")
    assert tools.probe(tmp_path / name, "-show_streams")["streams"][0]["width"] == 320
    page.click("#snapshot")
    until(lambda: ".png saved" in page.text("#said"), why="no snapshot: " + page.text("#said"))


def test_a_link_carries_the_chain_and_asks_before(page, served):
    page.visit(served.url, "#chain=" + urllib.request.quote("invert,box=2"))
    until(lambda: page.text("#offer-chain") == "invert,box=2", why="the link's chain is not offered")
    assert "#" not in page.run("return location.href") and served.chain()[0] == "gray"
    page.click("#offer-apply")
    until(lambda: served.chain() == ["invert", "box"], why="it is not applied")
    until(lambda: "invert" in page.text("#command"), why="the command line is another")


# ---- who may, and how ----


def test_the_token_is_asked_for_and_leaves_the_address(page, tmp_path, film):
    with Served(tmp_path, film, "-f", EDGES, "--token", "open-sesame") as served:
        page.open(served.url.split("#")[0])
        until(lambda: page.run("return document.getElementById('login-dialog')?.open"), why="no token is asked for")
        page.run("document.getElementById('token').focus()")
        for key in "wrong":
            page.press(key)
        page.press("enter")
        until(lambda: page.text("#login-error") == "That is not the token.")
        page.open("about:blank")
        page.visit(served.url, "#token=open-sesame")
        assert "open-sesame" not in page.run("return location.href + document.documentElement.outerHTML")
        assert "open-sesame" not in page.run("return document.cookie")


@pytest.mark.parametrize("width", [360, 768, 1024, 1920])
def test_nothing_sticks_out(page, served, width):
    page.resize(width, 740)
    try:
        page.visit(served.url)
        assert page.run("return document.documentElement.scrollWidth") <= width
        outside = """return [...document.querySelectorAll('body *')].filter(e => e.checkVisibility() &&
                     !e.closest('.hidden, .sprite, .wide, .toast') && e.getBoundingClientRect().right > innerWidth + 1)
                     .map(e => e.id || e.className || e.tagName)"""
        assert not page.run(outside)
    finally:
        page.resize(1280, 800)


def test_everything_has_a_name_and_is_reached_by_keys(page, served):
    page.visit(served.url)
    nameless = """return [...document.querySelectorAll('button, input, select, textarea, canvas, [role=slider]')].filter(e =>
                  e.checkVisibility() && !(e.getAttribute('aria-label') || e.labels?.length || e.textContent.trim() || e.title))
                  .map(e => e.outerHTML.slice(0, 80))"""
    assert not page.run(nameless)
    assert not page.run("return document.querySelectorAll('output, figure [aria-live], figure [role=status]').length"), \
        "figures that change all the time would be read out"
    page.run("document.activeElement.blur()")
    reached, outlined = set(), True
    for _ in range(70):
        page.press("tab")
        found, visible = page.run("""let e = document.activeElement, s = getComputedStyle(e);
            if (e.type == 'radio') s = getComputedStyle(e.nextElementSibling);
            return [e.id || e.name || e.getAttribute('aria-label') || e.tagName, s.outlineStyle != 'none' || e == document.body]""")
        outlined = outlined and visible
        reached.add(found)
    assert outlined, "focus cannot be seen"
    assert {"source", "compare", "snapshot", "record", "link", "kind", "hold", "play", "scrub", "live", "add", "chain-text",
            "copy", "Remove gaussian", "Show the picture after gray"} <= reached
