"""What the control page answers over HTTP: every route of web/openapi.json, and what it refuses."""

import gzip
import http.client
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse

import cv2
import numpy as np
import pytest

import tools
from live import end_with_us, free_port
from test_outputs import until
from test_serve import Shown, serve

OPENAPI = tools.load(tools.ROOT / "web" / "openapi.json")
STREAMS = ("/api/events", "/api/video")
SCHEMATHESIS = os.environ.get("SCHEMATHESIS") or shutil.which("schemathesis")


@pytest.fixture(scope="module")
def page(tmp_path_factory, clips):
    """A page of a film that goes round and round."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "media").mkdir()
    (folder / "kernel.txt").write_text("1 2 1\n")
    with serve(folder, clips["plain.mp4"], "--media", folder / "media", "-f", "gray") as shown:
        shown.folder = folder
        shown.await_input(state="running", width=160, height=120)
        yield shown


@pytest.fixture
def gray(page):
    """The same, with the chain "gray"."""
    page.chain("gray")
    return page


def patch(page, **options):
    return page.ask("/api/options", {name.replace("__", "."): value for name, value in options.items()}, "PATCH")


def links(page):
    return page.fine("/api/chain")["links"]


def refused(answer, code, *words):
    assert answer[0] == code, answer
    assert answer[1]["ok"] is False and all(word in answer[1]["error"] for word in words), answer
    return True


# ---- the files ----


FILES = sorted(path.name for path in (tools.ROOT / "web").glob("*.*"))


@pytest.mark.parametrize("name", FILES)
def test_files_are_those_of_web(page, name):
    path, data = "/" + name.replace("index.html", ""), (tools.ROOT / "web" / name).read_bytes()
    for encoding in ("identity", "gzip, br"):
        line = page.connect()
        line.request("GET", path, headers={"Accept-Encoding": encoding})
        answer = line.getresponse()
        text, tag = answer.read(), answer.getheader("ETag")
        packed = answer.getheader("Content-Encoding") == "gzip"
        assert answer.status == 200 and packed == ("gzip" in encoding)
        assert (gzip.decompress(text) if packed else text) == data
        assert "default-src 'self'" in answer.getheader("Content-Security-Policy")
        line.request("GET", path, headers={"Accept-Encoding": encoding, "If-None-Match": tag})
        assert line.getresponse().status == 304
        line.close()


def test_the_page_is_small(page):
    size = 0
    for name in FILES:
        if name != "openapi.json":
            line = page.connect()
            line.request("GET", "/" + name.replace("index.html", ""), headers={"Accept-Encoding": "gzip"})
            size += len(line.getresponse().read())
            line.close()
    assert 1000 < size < 150000


def test_the_page_has_nothing_in_line_and_nothing_from_elsewhere():
    for name in FILES:
        text = (tools.ROOT / "web" / name).read_text()
        if name.endswith(".html"):
            assert not re.search(r"<style|<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=", text)
            assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
        if name.endswith(".js"):
            assert not re.search(r"\beval\(|new Function\(|innerHTML", text)


# ---- the table of routes ----


def luminance(colour):
    """Of #rgb or #rrggbb, as WCAG 2.1 defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[k:k + 2], 16) / 255 for k in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["dark", "light"])
def test_words_stand_out_from_their_ground(scheme):
    style = (tools.ROOT / "web" / "style.css").read_text()
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6});", style.split(":root {")[scheme + 1].split("}")[0]))
    for word, ground in [("text", "ground"), ("bad", "bad-ground"), ("on-accent", "accent"),
                         *((word, ground) for ground in ("panel", "raised")
                           for word in ("text", "muted", "accent", "bad", "live", "good", "second", "third"))]:
        dark, light = sorted(luminance(colours[name]) for name in (word, ground))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (word, ground)


def test_every_route_is_described(page):
    """Each path of the program's tables is in the description, with its methods, and the other way."""
    rows = set()
    for file in (tools.ROOT / "page").glob("api_*.c"):
        rows |= set(re.findall(r'\{"(\w+)", "(/[^"]*)", \w+', file.read_text()))
    told = {(method.upper(), path.replace("{name}", "*")) for path, methods in OPENAPI["paths"].items()
            for method in methods}
    own = {("GET", "/"), ("GET", "/openapi.json"), ("POST", "/login")}
    assert rows == told - own
    document = (tools.ROOT / "docs" / "page.md").read_text()
    assert [path for _, path in told - own if path.replace("*", "NAME") not in document] == []


def resolve(schema):
    return OPENAPI["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema


TYPES = {"string": str, "number": (int, float), "integer": int, "boolean": bool, "array": list, "object": dict}


def conforms(value, schema, where="answer"):
    """Whether a value is what the schema says, member by member; nothing that it does not name."""
    schema = resolve(schema)
    if value is None:
        assert schema.get("nullable"), f"{where} is null"
        return
    if "oneOf" in schema:
        assert any(isinstance(value, TYPES[resolve(one)["type"]]) for one in schema["oneOf"]), (where, value)
        return
    assert isinstance(value, TYPES[schema["type"]]), (where, value)
    assert not (isinstance(value, bool) and schema["type"] != "boolean"), where
    assert value in schema.get("enum", [value]), (where, value)
    if schema["type"] == "array":
        assert schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)), where
        for k, item in enumerate(value):
            conforms(item, schema["items"], f"{where}[{k}]")
    if "properties" in schema:
        assert set(schema.get("required", [])) <= set(value) <= set(schema["properties"]), (where, value)
        for name, member in value.items():
            conforms(member, schema["properties"][name], f"{where}.{name}")


def json_schema(path, method, code):
    answer = OPENAPI["paths"][path][method]["responses"][str(code)]
    return answer["content"]["application/json"]["schema"]


@pytest.mark.parametrize("path", [p for p, m in OPENAPI["paths"].items()
                                  if "get" in m and p.startswith("/api/") and "{" not in p
                                  and p not in (*STREAMS, "/api/snapshot")])
def test_answers_are_as_described(page, path):
    conforms(page.fine(path), json_schema(path, "get", 200))


def test_openapi_is_served(page):
    assert page.fine("/openapi.json") == OPENAPI


@pytest.mark.skipif(not SCHEMATHESIS, reason="schemathesis is not installed")
def test_schemathesis(tmp_path, clips):
    """Random requests, right and wrong, are answered as described."""
    (tmp_path / "media").mkdir()
    (tmp_path / "schemathesis.toml").write_text(
        '[checks.negative_data_rejection]\n'
        'expected-statuses = ["400", "401", "403", "404", "405", "409", "413", "414", "415", "422"]\n')
    with serve(tmp_path, clips["plain.mp4"], "--media", tmp_path / "media") as shown:
        shown.await_input(state="running")
        result = tools.execute([SCHEMATHESIS, "--config-file", "schemathesis.toml", "run",
                                tools.ROOT / "web" / "openapi.json", "-u", f"http://{shown.host}", "--seed", "1",
                                "--exclude-path-regex", "^/(api/(events|video|compare)|login)$", "-c", "all",
                                "--exclude-checks", "ignored_auth,object_level_authorization,use_after_free,"
                                "ensure_resource_availability,positive_data_acceptance", "--phases",
                                "examples,coverage,fuzzing", "-n", "10", "--no-color", "--continue-on-failure"], timeout=300, cwd=tmp_path)
        assert result.code == 0, result.text[-6000:]
        assert shown.process.poll() is None


# ---- stages and the chain ----


def test_stages_have_their_tables(page):
    stages = {stage["name"]: stage for stage in page.fine("/api/stages")["stages"]}
    assert list(stages) == [line.split()[0] for line in tools.sluice("stages").text.split("\n\n")[0].splitlines()]
    sigma = stages["gaussian"]["options"][0]
    assert (sigma["name"], sigma["type"], sigma["unit"], sigma["required"]) == ("sigma", "real", "pixels", True)
    assert sigma["min"] == 0.1 and "initial" not in sigma
    border = stages["gaussian"]["options"][2]
    assert border["initial"] == "replicate" and border["choices"] == ["replicate", "zero", "reflect", "mirror", "wrap"]


def test_the_chain_is_what_was_put(gray):
    assert gray.fine("/api/chain", {"chain": "gray,gaussian=1.4,gaussian=2"}, "PUT")["ok"]
    told = gray.fine("/api/chain")
    assert told["chain"] == "gray,gaussian=sigma=1.4,gaussian=sigma=2"
    assert [(link["stage"], link["number"]) for link in told["links"]] == \
        [("gray", 1), ("gaussian", 1), ("gaussian", 2)]
    assert told["links"][2]["options"] == {"sigma": 2, "radius": None, "border": "replicate"}
    assert ",".join(link["text"] for link in told["links"]) == told["chain"]
    assert gray.chain() == told["chain"]


def test_the_picture_follows_the_chain(gray):
    def mean():
        return cv2.imdecode(np.frombuffer(gray.ask("/api/snapshot")[1], np.uint8), 0).mean()
    gray.chain("threshold=254:255")
    dark = mean()
    gray.chain("threshold=254:255,invert")
    assert dark < 60 < 190 < mean()


def test_options_are_set_together(gray):
    gray.chain("gray,gaussian=1.4,threshold=20:240")
    code, answer = patch(gray, gaussian__sigma=2.25, gaussian__border="wrap", threshold__t1=30)
    assert code == 200 and answer["chain"] == "gray,gaussian=sigma=2.25:border=wrap,threshold=t1=30:t2=240"
    assert patch(gray, gaussian__sigma=3, threshold__t1=999)[0] == 422
    assert gray.chain() == answer["chain"]


def test_numbers_keep_their_value(gray):
    gray.chain("gray,gaussian=1")
    for value in (0.1, 1 / 3, 1.4, 2, 12.3456789, 1e1):
        assert patch(gray, gaussian__sigma=value)[0] == 200
        assert abs(links(gray)[1]["options"]["sigma"] - value) < 1e-9


def test_options_that_take_many_are_lists(gray):
    gray.chain("gray,wavelet=2:4..8")
    assert links(gray)[1]["options"]["scales"] == ["2", "4..8"]
    assert patch(gray, wavelet__scales=["1", 3, "5..7"])[0] == 200
    assert links(gray)[1]["options"]["scales"] == ["1", "3", "5..7"]
    assert patch(gray, wavelet__scales="9")[0] == 200 and links(gray)[1]["options"]["scales"] == ["9"]
    for wrong in ([], [[1]], [None]):
        assert refused(patch(gray, wavelet__scales=wrong), 400, "nor a list of them")
    assert refused(patch(gray, wavelet__scales=["2", "out.txt"]), 422, "may not name files")


CHAINS_REFUSED = [
    # chain, words
    ("gausian", ["there is no stage 'gausian'", "did you mean 'gaussian'", "^^^^^^^"]),
    ("gaussian=-1", ["sigma"]),
    ("gaussian", ["sigma"]),
    ("match=/etc/passwd", ["may not name files", "/etc/passwd"]),
    ("match='/etc/passwd'", ["may not name files"]),
    ("match=x.png : threshold=0.9", ["may not name files"]),
    ("gray,convolve=kernel.txt", ["may not name files", "kernel.txt"]),
    ("sepconvolve=1 2 1:kernel.txt", ["may not name files"]),
    ("sepconvolve=column=kernel.txt:row=1 2 1", ["may not name files"]),
    ("stats=out.json", ["may not name files"]),
    ("stats=report=out.json", ["may not name files"]),
    ("wavelet=1:out=out.json", ["may not name files"]),
    ("tee=out.mkv", ["may not name files"]),
    ("tee = out.mkv", ["may not name files"]),
    ("gray, tee=rtsp://127.0.0.1/x", ["may not name files"]),
    ("tee=a=b.mkv", ["may not name files"]),
    ("tee=output=1", ["may not name files"]),
    ("tee=1", ["may not name files"]),
    ("stats=-", ["may not name files"]),
    ("stats=1:2", ["may not name files"]),
    ("match=1:replicate", ["may not name files"]),
    ("wavelet=1:3:out=7", ["may not name files"]),
    ("tee_cuda=out.mkv", ["may not name files"]),
    ("stats_cuda=out.json", ["may not name files"]),
    ("convolve_cuda=/etc/passwd", ["may not name files"]),
    ("match_cuda=/etc/passwd", ["may not name files"]),
    ("gray,tee_npp=rtsp://127.0.0.1/x", ["no device here"]),
    ("convolve=1 2 1:scael=2", ["scael"]),
]


@pytest.mark.parametrize("chain, words", CHAINS_REFUSED, ids=[row[0] for row in CHAINS_REFUSED])
def test_chains_are_refused_with_a_reason(gray, chain, words):
    before = sorted(gray.folder.rglob("*"))
    assert refused(gray.ask("/api/chain", {"chain": chain}, "PUT"), 422, *words)
    query = urllib.parse.urlencode({"kind": "difference", "other": chain})
    for path in ("/api/snapshot?", "/api/video?"):
        assert refused(gray.ask(path + query), 422, *words)
    assert gray.chain() == "gray" and sorted(gray.folder.rglob("*")) == before


def test_options_name_no_files_either(gray):
    gray.chain("gray,convolve=1 2 1")
    assert refused(patch(gray, convolve__kernel="kernel.txt"), 422, "may not name files")
    assert refused(patch(gray, convolve__kernel="1 2 1',tee='x.mkv"), 422)
    assert patch(gray, convolve__kernel="1 2 1/2 4 2/1 2 1")[0] == 200


def test_the_next_input_is_no_way_to_files(tmp_path):
    with serve(tmp_path) as shown:
        shown.chain("gray,wavelet=1:3")
        for name, value in (("wavelet.out", 1), ("wavelet#1.out", "1"), ("wavelet.out", "out.json")):
            assert refused(shown.ask("/api/options", {name: value}, "PATCH"), 422, "may not name files")
        assert refused(shown.ask("/api/chain", {"chain": "gray,tee=out.mkv"}, "PUT"), 422, "may not name files")


def test_files_that_the_run_names_stay(tmp_path, clips):
    (tmp_path / "kernel.txt").write_text("1 2 1\n2 4 2\n1 2 1\n")
    with serve(tmp_path, clips["plain.mp4"], "-f", "gray,convolve=kernel.txt,stats=out.jsonl") as shown:
        shown.await_input(state="running")
        told = shown.fine("/api/chain")
        assert told["links"][1]["options"]["kernel"] and told["links"][2]["options"]["report"] == "out.jsonl"
        assert shown.ask("/api/chain", {"chain": told["chain"] + ",invert"}, "PUT")[0] == 200
        assert refused(shown.ask("/api/chain", {"chain": "gray,stats=kernel.txt"}, "PUT"), 422)


def test_passwords_of_the_chain_stay_with_the_program(tmp_path):
    """The page shows a chain without them, and sends that when stages are moved."""
    with serve(tmp_path, "-f", "gray,tee=rtmp://user:sesame@127.0.0.1:1/x") as shown:
        told = shown.fine("/api/chain")["chain"]
        assert "user:***@127" in told and "sesame" not in told
        shown.chain("invert," + told)
        shown.chain(told + ",gaussian=2")
        name = told.split("output=")[1].strip("'")
        assert refused(patch(shown, tee__output=name), 422, "may not name files")
        moved = told.replace("127.0.0.1", "127.0.0.2")
        assert refused(shown.ask("/api/chain", {"chain": moved}, "PUT"), 422, "may not name files")


BODIES_REFUSED = [
    # method, path, body, words
    ("PUT", "/api/chain", "", ["JSON"]),
    ("PUT", "/api/chain", "gray", ["JSON"]),
    ("PUT", "/api/chain", "[]", ["object"]),
    ("PUT", "/api/chain", "{}", ["\"chain\""]),
    ("PUT", "/api/chain", '{"chain":1}', ["\"chain\""]),
    ("PUT", "/api/chain", '{"chain":"gray","x":1}', ["'x'"]),
    ("PUT", "/api/chain", '{"chain":"gray","chain":"gray"}', ["duplicate"]),
    ("PUT", "/api/chain", '{"chain":"gray\\u0000"}', ["JSON"]),
    ("PATCH", "/api/options", "{}", ["no option"]),
    ("PATCH", "/api/options", '{"sigma":1}', ["no option"]),
    ("PATCH", "/api/options", '{"gaussian.sigma,tee.output":1}', ["no option"]),
    ("PATCH", "/api/options", '{"gaussian.sigma":[]}', ["neither a number nor a text"]),
    ("PATCH", "/api/options", '{"gaussian.sigma":true}', ["neither a number nor a text"]),
    ("PATCH", "/api/options", '{"gaussian.sigma":"\'\\""}', ["neither a number nor a text"]),
    ("POST", "/api/player", '{"action":"fly"}', ["fly", "live, pause, play, seek, step"]),
    ("POST", "/api/player", '{"action":"seek"}', ["at"]),
    ("POST", "/api/player", '{"action":"seek","at":"1"}', ["at"]),
    ("POST", "/api/player", '{"action":"step","frames":1.5}', ["whole number"]),
    ("POST", "/api/player", '{"action":"play","rate":1e300}', ["rate"]),
    ("POST", "/api/input", '{"kind":"media"}', ["name"]),
    ("POST", "/api/input", '{"kind":"folder","name":"x"}', ["folder"]),
    ("POST", "/api/record", '{"action":"pause"}', ["pause", "start, stop"]),
]


@pytest.mark.parametrize("method, path, body, words", BODIES_REFUSED,
                         ids=[" ".join(row[:3])[:60] for row in BODIES_REFUSED])
def test_bodies_are_refused_with_a_reason(gray, method, path, body, words):
    assert refused(gray.ask(path, body, method, Content_Type="application/json"), 400, *words)
    assert gray.chain() == "gray"


def test_bodies_have_a_ceiling_and_a_type(gray):
    assert gray.ask("/api/chain", {"chain": " " * (256 << 10)}, "PUT")[0] == 413
    assert gray.ask("/api/chain", "chain=gray", "PUT", Content_Type="application/x-www-form-urlencoded")[0] == 415
    assert gray.ask("/api/chain", "{}", "DELETE")[0] == 405
    assert gray.ask("/api/nothing")[0] == 404 and gray.ask("/web/app.js")[0] == 404
    assert gray.ask("/../../etc/passwd")[0] == 404 and gray.ask("/%2e%2e/Makefile")[0] == 404


# ---- undo and redo ----


def test_undo_and_redo(tmp_path, clips):
    with serve(tmp_path, clips["plain.mp4"], "-f", "gray") as shown:
        shown.await_input(state="running")
        assert refused(shown.ask("/api/undo", {}), 409, "no change to undo")
        for chain in ("gray,invert", "invert", "invert"):
            shown.chain(chain)
        told = shown.fine("/api/chain")
        assert (told["undo"], told["redo"]) == (2, 0)
        assert [shown.fine("/api/undo", {})["chain"] for _ in range(2)] == ["gray,invert", "gray"]
        assert shown.ask("/api/undo", "", "POST")[0] == 409
        assert shown.fine("/api/redo", {})["chain"] == "gray,invert" == shown.chain()
        shown.chain("sobel")
        assert refused(shown.ask("/api/redo", {}), 409, "no change to redo")
        assert shown.fine("/api/undo", {})["chain"] == "gray,invert"


def test_a_slider_is_one_change(gray):
    gray.chain("gray,gaussian=1")
    before = gray.fine("/api/chain")["undo"]
    for k in range(20):
        assert patch(gray, gaussian__sigma=1 + k / 10)[0] == 200
    patch(gray, gaussian__border="wrap")
    assert gray.fine("/api/chain")["undo"] == before + 2
    gray.fine("/api/undo", {})
    assert gray.fine("/api/undo", {})["chain"] == "gray,gaussian=sigma=1"


def test_changes_by_the_socket_are_shown_and_undone(tmp_path, clips):
    with serve(tmp_path, clips["plain.mp4"], "-f", "gray", "--control", "ctl") as shown:
        shown.await_input(state="running")
        assert tools.sluice("ctl", "ctl", "chain", "invert", cwd=tmp_path).code == 0
        until(lambda: shown.chain() == "invert")
        assert shown.fine("/api/undo", {})["chain"] == "gray"
        assert tools.sluice("ctl", "ctl", "get", cwd=tmp_path).text == '{"ok":true,"chain":"gray"}\n'


# ---- figures ----


def test_figures_of_the_last_second(page):
    until(lambda: page.fine("/api/stats").get("fps_now", 0) > 5)
    told = page.fine("/api/stats")
    assert told["running"] and told["in"] >= told["out"] and 0 < told["ring"] <= 64
    assert 0 < told["busy"]["filter"] <= 1 and told["player"]["mode"] == "live"


def test_the_timeline_is_the_last_second(page):
    told = page.fine("/api/timeline")
    assert {"decode", "filter", "encode"} <= {span["part"] for span in told["spans"]}
    for span in told["spans"]:
        assert told["now_us"] - 1000000 <= span["end_us"] <= told["now_us"] + 1000
        assert span["begin_us"] <= span["end_us"]
    frames = [span["frame"] for span in told["spans"] if span["part"] == "filter"]
    assert frames == sorted(frames) and None not in frames


def test_the_histogram_is_of_the_filtered_picture(gray):
    gray.chain("threshold=128:128")
    assert gray.ask("/api/snapshot")[0] == 200
    line = gray.connect()
    line.request("GET", "/api/video?codec=mjpeg")
    assert line.getresponse().status == 200

    def two_values():
        bins = gray.fine("/api/histogram")["bins"]
        return sum(bins) == 160 * 120 and sum(1 for count in bins if count) == 2
    until(two_values)
    line.close()


def test_the_command_line_is_for_a_shell(gray):
    gray.chain("gray,convolve=1 2 1/2 4 2/1 2 1")
    words = shlex.split(gray.fine("/api/command")["command"])
    assert words[0] == "sluice" and "-f" in words
    assert words[words.index("-f") + 1] == gray.chain()


def test_names_that_are_no_text_are_shown(tmp_path, clips):
    name = os.fsencode(tmp_path) + b"/caf\xe9.mp4"
    with open(name, "wb") as file:
        file.write(clips["plain.mp4"].read_bytes())
    with serve(tmp_path, os.fsdecode(name)) as shown:
        assert shown.await_input(state="running")["name"].endswith("caf?.mp4")
        assert "caf?.mp4" in shown.fine("/api/command")["command"]
        assert shown.fine("/api/stats")["input"].endswith("caf?.mp4")


# ---- events ----


def test_events_tell_what_changes(gray):
    heard = {name: [] for name in ("chain", "stats", "input", "player")}

    def listen(name):
        heard[name] += gray.events(name, 1.6)
    listeners = [threading.Thread(target=listen, args=[name]) for name in heard]
    for listener in listeners:
        listener.start()
    time.sleep(0.6)
    gray.chain("gray,invert")
    for listener in listeners:
        listener.join()
    assert [event["chain"] for event in heard["chain"]] == ["gray", "gray,invert"]
    assert 4 <= len(heard["stats"]) <= 10
    assert heard["player"] and heard["input"]
    for name, schema in (("chain", "Chain"), ("stats", "Stats"), ("input", "Input"), ("player", "Player")):
        for event in heard[name]:
            conforms(event, {"$ref": f"#/components/schemas/{schema}"}, name)


def test_the_log_is_told_without_secrets(tmp_path):
    with serve(tmp_path, "rtsp://user:geheim@127.0.0.1:1/x") as shown:
        shown.await_input(state="failed")
        told = next(shown.events("log", 5))
        assert told["level"] in ("error", "warning", "info") and "geheim" not in json.dumps(told)
        assert "geheim" not in json.dumps([shown.fine(path) for path in ("/api/stats", "/api/command")])


def test_listeners_have_a_ceiling(tmp_path):
    with serve(tmp_path) as shown:
        lines = []
        for k in range(17):
            line = shown.connect()
            line.request("GET", "/api/events")
            lines.append((line, line.getresponse()))
        assert [answer.status for _, answer in lines] == [200] * 16 + [503]
        lines[0][0].close()
        lines[0][1].close()
        until(lambda: next(shown.events("stats", 2), None))


def test_a_source_is_told_to_be_lost_and_back(tmp_path, clips):
    port = free_port()
    send = ["ffmpeg", "-v", "error", "-re", "-stream_loop", "-1", "-i", clips["plain.mp4"], "-an", "-c:v", "mpeg2video",
            "-g", "5", "-f", "mpegts", f"udp://127.0.0.1:{port}?pkt_size=1316"]

    def sender():
        return subprocess.Popen(send, stdin=subprocess.DEVNULL, preexec_fn=end_with_us)
    source = sender()
    try:
        with serve(tmp_path, f"udp://127.0.0.1:{port}", "--stall-timeout", "1") as shown:
            shown.await_input(state="running")
            source.kill()
            source.wait()
            told = shown.await_input(state="lost")
            assert abs(told["since"] - time.time()) < 5 and shown.fine("/api/stats")["lost"]
            source = sender()
            shown.await_input(state="running")
            assert shown.fine("/api/stats")["seconds_lost"] > 0 # from the stall on: the sender returns at once
    finally:
        source.kill()
        source.wait()


# ---- pictures ----


def picture(page, query=""):
    code, data = page.ask("/api/snapshot" + query)
    assert code == 200
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)


def test_a_snapshot_is_a_picture_or_breaks_off(tmp_path):
    """One that takes too long is no empty answer that seems to be whole."""
    source = "testsrc2=size=3840x2160:rate=5:duration=6"
    tools.ffmpeg("-f", "lavfi", "-i", source, "-c:v", "libx264", "-preset", "ultrafast", tmp_path / "large.mkv")
    with serve(tmp_path, "large.mkv", "-f", "wavelet=1..32") as shown:
        shown.await_input(state="running")
        for _ in range(3):
            try:
                code, data = shown.ask("/api/snapshot")
            except http.client.IncompleteRead:
                continue
            assert code != 200 or data, "an empty picture"


def test_snapshots_show_what_is_asked(gray):
    gray.fine("/api/player", {"action": "seek", "at": 0.5})
    until(lambda: not gray.fine("/api/player")["busy"])
    gray.chain("gray,invert")
    try:
        after, before = picture(gray), picture(gray, "?kind=before")
        assert after.shape[:2] == (120, 160) == before.shape[:2] and after.ndim == 2 and before.ndim == 3
        assert picture(gray, "?kind=split").shape[1] == 320
        assert (picture(gray, "?stage=1") == 255 - after).all()
        assert (picture(gray, "?kind=difference&other=gray,invert") == 0).all()
        assert picture(gray, "?kind=difference&other=gray").any()
        assert (picture(gray) == after).all(), "it stands still"
    finally:
        gray.fine("/api/player", {"action": "live"})


@pytest.mark.parametrize("query, words", [("kind=sideways", ["sideways", "after, before, split, difference"]),
                                          ("stage=x", ["stage"]), ("stage=-2", ["stage"]), ("stage=", ["stage"]),
                                          ("stage=99999999999999999999", ["stage"]), ("codec=av1", ["h264, mjpeg"]),
                                          ("kind=difference&other=" + "x" * 4096, ["longer"])])
def test_what_is_no_view_is_refused(page, query, words):
    for path in ("/api/snapshot?", "/api/video?"):
        assert refused(page.ask(path + query), 400, *words)


def test_without_an_input_there_is_no_picture(tmp_path):
    with serve(tmp_path) as shown:
        assert refused(shown.ask("/api/snapshot"), 409, "choose an input")
        assert shown.ask("/api/video")[0] in (409, 503)
        assert shown.chain() == "gray,gaussian=sigma=1.4,sobel,threshold=t1=20:t2=240"
        assert shown.chain("gray") == "gray" and shown.fine("/api/undo", {})["undo"] == 0
        assert shown.fine("/api/timeline")["spans"] == [] and shown.fine("/api/stats")["running"] is False


def test_the_video_is_a_film(gray):
    line = gray.connect()
    line.request("GET", "/api/video?kind=after")
    answer = line.getresponse()
    kind, data = answer.getheader("Content-Type"), answer.read(60000)
    line.close()
    assert kind.startswith(("video/mp4; codecs=\"avc1.", "multipart/x-mixed-replace"))
    if kind.startswith("video/mp4"):
        assert data[4:8] == b"ftyp" and b"moov" in data[:2000] and b"moof" in data


# ---- the player ----


def test_the_player_stands_where_it_is_told(gray):
    try:
        conforms(gray.fine("/api/player", {"action": "pause"}), {"$ref": "#/components/schemas/Player"})
        told = gray.fine("/api/player", {"action": "seek", "at": 0.51})
        assert told["mode"] == "paused" and told["whole"]
        until(lambda: gray.fine("/api/player")["at"] == 0.48)
        gray.fine("/api/player", {"action": "step", "frames": 2})
        until(lambda: gray.fine("/api/player")["at"] == 0.56)
        gray.fine("/api/player", {"action": "play", "rate": 2})
        until(lambda: gray.fine("/api/player")["at"] > 0.6)
    finally:
        assert gray.fine("/api/player", {"action": "live"})["mode"] == "live"


# ---- backends and recordings ----


def test_backends_stand_beside_each_other(gray):
    gray.chain("gray,gaussian=1.4,sobel")
    told = gray.fine("/api/compare", {})
    conforms(told, {"$ref": "#/components/schemas/Compared"})
    assert {"cpu", "scalar"} <= {row["backend"] for row in told["rows"]}
    assert all(row["equal"] and row["ms"] > 0 and row["fps"] > 0 for row in told["rows"])


def test_a_recording_is_a_film(gray):
    assert gray.fine("/api/record", {"action": "start"})["recording"]
    assert refused(gray.ask("/api/record", {"action": "start"}), 409)
    until(lambda: gray.fine("/api/stats")["recording"]["frames"] > 5)
    told = gray.fine("/api/record", {"action": "stop"})
    assert not told["recording"] and told["name"]
    conforms(told, {"$ref": "#/components/schemas/Recording"})
    until(lambda: not gray.fine("/api/stats")["recording"]["finishing"])
    code, data = gray.ask("/api/recordings/" + told["name"])
    assert code == 200 and data == (gray.folder / "media" / told["name"]).read_bytes()
    (gray.folder / "got.mkv").write_bytes(data)
    stream = tools.probe(gray.folder / "got.mkv", "-show_entries", "stream=width,height")["streams"][0]
    assert (stream["width"], stream["height"]) == (160, 120)


def test_a_recording_tells_what_it_leaves_out(tmp_path):
    media, fast = tmp_path / "media", tmp_path / "fast.gray"
    media.mkdir()
    with open(fast, "wb") as file:
        file.truncate(20000 * 320 * 240)  # black, at the speed of the machine
    with Shown(tmp_path, "--page", "127.0.0.1:0", "--media", media, "--format", "rawvideo", "--pixfmt", "gray",
               "--size", "320x240", fast, "null:", "-f", "gaussian=2") as shown:
        until(lambda: shown.ask("/api/record", {"action": "start"})[0] == 200)
        before = shown.fine("/api/stats")["frames"]
        until(lambda: shown.fine("/api/stats")["frames"] > before + 500)
        assert shown.fine("/api/record", {"action": "stop"})["dropped"] > 0
        after = shown.fine("/api/stats")["frames"]
        until(lambda: not shown.fine("/api/stats")["recording"]["finishing"])
        told = shown.fine("/api/stats")["recording"]
        assert 450 < told["frames"] + told["dropped"] <= after - before + 100, told


@pytest.mark.parametrize("name", ["none.mkv", "..%2fkernel.txt", "../kernel.txt", "%2fetc%2fpasswd", "", ".", "-x"])
def test_recordings_are_of_the_folder(page, name):
    assert page.ask("/api/recordings/" + name)[0] == 404


def test_recordings_need_a_folder(tmp_path, clips):
    with serve(tmp_path, clips["plain.mp4"]) as shown:
        shown.await_input(state="running")
        assert refused(shown.ask("/api/record", {"action": "start"}), 409, "--media")
        assert shown.ask("/api/recordings/out.txt")[0] == 404


# ---- inputs of a run ----


def test_the_page_of_a_run_chooses_nothing(tmp_path, clips):
    with Shown(tmp_path, clips["plain.mp4"], "hash:out.txt", "--live", "--page", "127.0.0.1:0") as shown:
        shown.await_input(state="running")
        assert shown.fine("/api/inputs")["chooses"] is False
        assert refused(shown.choose("address", "rtsp://127.0.0.1/x"), 403, "sluice serve")
        assert refused(shown.ask("/api/upload?name=x.mp4", b"x" * 1000, Content_Type="application/octet-stream"),
                       403)
        assert shown.chain("gray") == "gray"
        command = shown.fine("/api/command")["command"]
        assert "hash:out.txt" in command and "--page" not in command


def test_private_uploads_go_with_the_page(tmp_path, clips):
    (tmp_path / "private").mkdir()
    with serve(tmp_path, env={"TMPDIR": str(tmp_path / "private")}) as shown:
        data = clips["plain.mp4"].read_bytes()
        for name in ("a.mp4", "b.mp4"):
            code, told = shown.ask(f"/api/upload?name={name}", data, Content_Type="application/octet-stream")
            assert code == 201 and told == {"ok": True, "kind": "upload", "name": name}
        (folder,) = (tmp_path / "private").iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert [file.name for file in folder.iterdir()] == ["b.mp4"], "the last one only"
        assert shown.choose("upload", "a.mp4")[0] == 422
        assert shown.choose("upload", "b.mp4")[0] == 202
        shown.await_input(state="running", name="b.mp4", width=160)
        shown.stop()
    assert list((tmp_path / "private").iterdir()) == []


def test_uploads_leave_what_is_shown(tmp_path, clips):
    """Also between two passes, and while it is opened."""
    tools.ffmpeg(*tools.SHORT, *tools.X264, tmp_path / "short.mp4")
    data, small = (tmp_path / "short.mp4").read_bytes(), b"words"
    with serve(tmp_path) as shown:
        assert shown.ask("/api/upload?name=short.mp4", data, Content_Type="application/octet-stream")[0] == 201
        shown.take("upload", "short.mp4")
        for k in range(60):
            code, _ = shown.ask(f"/api/upload?name={k}.mp4", small, Content_Type="application/octet-stream")
            assert code == 201
            assert shown.fine("/api/inputs") and shown.fine("/api/chain")
        assert not [line for line in shown.said["stderr"] if "short.mp4" in line and "opened" in line]
        shown.await_input(state="running", name="short.mp4")


def test_an_upload_that_breaks_off_leaves_nothing(tmp_path):
    (tmp_path / "media").mkdir()
    with serve(tmp_path, "--media", "media") as shown:
        host, port = shown.host.split(":")
        with socket.create_connection((host, int(port))) as line:
            line.sendall(f"POST /api/upload?name=x.mp4 HTTP/1.1\r\nHost: {shown.host}\r\n"
                         "Content-Type: application/octet-stream\r\nContent-Length: 100000\r\n\r\n".encode())
            line.sendall(b"x" * 5000)
            until(lambda: list((tmp_path / "media").iterdir()))
            assert shown.fine("/api/inputs")["media"] == []
        until(lambda: not list((tmp_path / "media").iterdir()))


# ---- strangers ----


@pytest.mark.parametrize("path", ["/", "/api/chain", "/api/stages"])
def test_foreign_hosts_are_refused(page, path):
    assert page.ask(path, Host="evil.example")[0] == 421
    assert page.ask(path, Host=f"localhost:{page.host.split(':')[1]}")[0] == 200


def test_foreign_pages_change_nothing(gray):
    for headers in ({"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site"}, {"Origin": "null"}):
        assert refused(gray.ask("/api/chain", {"chain": "invert"}, "PUT", **headers), 403)
    assert gray.chain() == "gray"
    assert gray.ask("/api/chain", {"chain": "invert"}, "PUT", Origin=f"http://{gray.host}")[0] == 200
