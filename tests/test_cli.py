"""The command line: what each option does, and what is refused and how."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import termios
import time
from xml.etree import ElementTree

import numpy as np
import pytest

import tools

STAGES = re.findall(r"^STAGE\((\w+)\)", (tools.ROOT / "stages/stages.inc").read_text(), re.M)


def packets(file, select="v:0"):
    return tools.probe(file, "-show_packets", "-select_streams", select)["packets"]


def video(file):
    return next(s for s in tools.probe(file, "-show_streams")["streams"]
                if s["codec_type"] == "video")


def refused(result, folder, *words):
    """Exit 2, a sentence with these words, and nothing written."""
    assert result.code == 2, f"exit {result.code}: {result.stderr}"
    assert not result.stdout
    for word in words:
        assert word in result.stderr
    assert not list(folder.iterdir())


# ---- options and commands ----

COMMON = "quiet verbose help version list-devices".split()
FILTERS = "filter backend hwdec device threads ring verify mem vram".split()
OPENS = ("format pix-fmt size rate stream max-pixels repeatable live rtsp-transport playlist-hosts tls-verify ca-file "
         "open-timeout stall-timeout reconnect max-latency c:v crf preset b:v option range").split()
RUNS = "start duration frames simulate gap overwrite no-overwrite".split()
PAGE = "media keep token tls-cert tls-key upload-max".split()
PROOF = "sandbox allow source max-pixels".split()
LINE = [*FILTERS, *OPENS, *RUNS, *PAGE, *"""output segment strict page shard jobs resume control journal replay metrics
        trace sandbox allow""".split()]
TAKEN = {  # by command: the options that have an effect there
    "": [*LINE, "json"],
    "stages": [], "ctl": ["overwrite", "no-overwrite"],
    "plan": LINE,
    "doctor": [*FILTERS, *OPENS, "output", "segment"],
    "bench": [*FILTERS, *OPENS, *RUNS, "json", "trace", "quick", "ladder", "chart"],
    "serve": [*FILTERS, *OPENS, *RUNS, *PAGE, *"segment strict listen control journal metrics sandbox allow".split()],
    "join": [*PROOF, "format", "option", "overwrite", "no-overwrite", "strict"],
    "audit": [*PROOF, *"backend threads samples seed json overwrite no-overwrite".split()],
    "bisect": [*PROOF, "backend", "threads"],
}


@pytest.mark.parametrize("command", TAKEN, ids=[name or "run" for name in TAKEN])
def test_an_option_has_an_effect_or_is_refused(run, tmp_path, command):
    rows = [row for section in SECTIONS
            for row in re.findall(r"(?m)^  (?:    |-\w, )(--?)([\w:-]+)( [A-Z]|\[=)?", run("help", section).text)]
    names = {name for _, name, _ in rows}
    assert len(names) > 75 and not set(TAKEN[command]) - names
    for dashes, name, value in rows:
        if name not in COMMON + TAKEN[command]:
            words = [command, dashes + name, "1"] if value else [command, dashes + name]
            result = run(*filter(None, words))
            refused(result, tmp_path, f"sluice: {command or 'a run'} does not take {dashes}{name}; ")
            assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("words, told", [
    (["plan", "in.mp4", "--json", "-"], "plan does not take --json; a run, bench, audit and farm do"),
    (["doctor", "-y"], "doctor does not take --overwrite; a run, plan, bench, serve, ctl, join and audit do"),
    (["stages", "-c:v", "ffv1"], "stages does not take -c:v; "),
    (["doctor", "--metrics=9464"], "doctor does not take --metrics; a run, plan and serve do"),
    (["in.mp4", "out.mp4", "--samples", "3"], "a run does not take --samples; audit and farm do"),
    (["serve", "--page", "8080"], "serve does not take --page; a run and plan do, and serve has --listen ADDRESS"),
    (["bench", "in.mp4", "out.mp4"], "'out.mp4' is one name too many: 'sluice bench [INPUT] [-f CHAIN]'"),
    (["stages", "gray", "sobel"], "'sobel' is one name too many: 'sluice stages [NAME|all]'"),
])
def test_what_a_command_does_not_take_is_said(run, tmp_path, words, told):
    refused(run(*words), tmp_path, told)


# ---- the reports ----


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_lists_every_option(run, option):
    result = run(option)
    assert result.code == 0 and not result.stderr
    for name in ("--filter", "--backend", "--hwdec", "--device", "--threads", "--ring", "--verify",
                 "--format", "--size", "--rate", "--pix-fmt", "--range", "--start", "--duration", "--frames",
                 "--stream", "--max-pixels", "--repeatable", "-c:v", "--crf", "--preset", "-b:v", "--option",
                 "--overwrite", "--strict", "--json", "--trace", "--quiet", "--verbose", "--version",
                 "Exit codes"):
        assert name in result.text


SECTIONS = ["filtering", "input", "live", "output", "page", "parts", "farm", "running", "benchmark"]
TOPICS = [
    # topic, words that its help has
    ("live", ["Live input", "--reconnect N", "(default: 5 s, of playlists 30 s)"]),
    ("output", ["-o, --output OUTPUT", "-c:v ENCODER", "named last"]),
    ("--output", ["--output OUTPUT", "May be repeated", "env:NAME"]),
    ("reconnect", ["reconnection attempts: forever, no, or N", "Default: forever"]),
    ("-b:v", ["bit rate"]), ("c:v", ["video encoder", "named last before it"]),
    ("pix-fmt", ["Before INPUT it describes the input"]),
    ("-f", ["--filter CHAIN", "@FILE"]), ("gap", ["freeze", "the last picture"]),
    ("ring", ["A whole number, 1 .. 64"]), ("verify", ["--verify[=N]"]),
    ("page", ["Control page", "--listen ADDRESS", "(default: 127.0.0.1:8080)"]),
    ("--page", ["--page ADDRESS", "waits for no visitor"]), ("--token", ["@FILE", "env:NAME"]),
    ("serve", ["sluice serve [INPUT]", "--media DIR"]),
    ("ctl", ["sluice ctl SOCKET", "snapshot FILE"]), ("doctor", ["decoders"]),
    ("gaussian", ["0.1 .. 250 pixels"]),
]


@pytest.mark.parametrize("topic, words", TOPICS, ids=[row[0] for row in TOPICS])
def test_help_shows_a_topic(run, topic, words):
    result = run("help", topic)
    assert result.code == 0 and not result.stderr
    for word in words:
        assert word in " ".join(result.text.split())
    assert run("--help", topic).text == run("-h", topic).text == result.text


def test_help_is_a_screen_a_section(run):
    overview = run("--help").text
    assert len(overview.splitlines()) <= 44
    for section in SECTIONS:
        assert re.search(rf"^  {section} +-", overview, re.M)
        assert len(run("help", section).text.splitlines()) <= 44
    everything = run("help", "all").text
    assert overview in everything and run("stages", "all").text in everything
    assert max(map(len, everything[:everything.index("Stages")].splitlines())) <= 80


@pytest.mark.parametrize("topic, near", [("reconect", "reconnect"), ("--thread", "threads"),
                                         ("gausian", "gaussian"), ("runing", "running")])
def test_help_on_nothing_names_what_is_near(run, topic, near):
    result = run("help", topic)
    assert result.code == 2 and not result.stdout and f"did you mean '{near}'?" in result.stderr
    assert run("help", topic, "x").code == 2


def test_no_arguments_show_the_usage(run):
    result = run()
    assert result.code == 2 and "usage: sluice INPUT OUTPUT" in result.stderr


def test_version_names_sluice_and_its_libraries(run):
    result = run("--version")
    assert result.code == 0
    assert re.match(r"sluice \d+\.\d+\.\d+ \(libavformat \d+.*libavcodec \d+.*CUDA", result.text)


def test_stages_describes_every_stage(run):
    brief = run("stages").text
    assert [line.split()[0] for line in brief.splitlines()[:-2]] == STAGES
    text = run("stages", "all").text
    assert re.findall(r"^([a-z]+)(?:=.*)?$", text, re.M) == STAGES
    assert "0.1 .. 250 pixels" in text and "replicate|zero|reflect|mirror|wrap" in text


def test_stages_describes_one_stage(run):
    text = run("stages", "gaussian").text
    assert text.startswith("gaussian=sigma:") and "sobel" not in text
    assert run("stages", "gausian").code == 2
    assert run("help", "gaussian").text == text and run("help").text == run("--help").text
    assert "did you mean 'gaussian'?" in run("help", "gausian").stderr


def test_plan_shows_passes(run, clips):
    assert "table of gamma" in run("plan", "-f", "gamma=2").text
    text = run("plan", "-f", "gray,gaussian=2,sobel").text
    assert "pass 1" in text and "halo" in text and "bytes" in text
    assert "160x120" in run("plan", clips["plain.mp4"]).text


def test_plan_without_an_input_is_for_the_pictures_that_options_describe(run):
    assert run("plan").text.startswith("yuv420p limited range") and "1920x1080, on" in run("plan").text
    text = run("plan", "--size", "640x360", "--pix-fmt", "gray10le", "-f", "sobel").text
    assert text.startswith("gray10le") and "640x360, on" in text and "640x360, 10 bits" in text
    assert "4096x2304, on" in run("plan", "--size", "4096x2304").text
    assert "rgb24 full range -> gray" in run("plan", "--pix-fmt", "rgb24", "-f", "gray").text
    for name in ("gray99", "cuda"):
        wrong = run("plan", "--pix-fmt", name)
        assert wrong.code == 2 and f"'{name}', which is no pixel format of pictures in memory" in wrong.stderr


@pytest.mark.parametrize("pixfmt, chain, outputs, steps", [
    ("monow", "sobel", ["o.png"], 1),
    ("monow", "null", ["o.gif"], 1), # nothing but the encoder asks for another
    ("yuv422p", "invert", ["o.gif", "-o", "o.mkv"], 2), # H.264 plays everywhere in 4:2:0
    ("yuv422p", "tee=t.gif,gray", ["o.mp4"], 1),
    ("yuv422p", "invert", ["o.mkv"], 0),
])
def test_plan_names_what_libswscale_converts(run, tmp_path, pixfmt, chain, outputs, steps):
    file = {"monow": "i.pbm", "yuv422p": "i.nut"}[pixfmt]
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=64x48", "-frames:v", 1, "-pix_fmt", pixfmt,
                 *([] if pixfmt == "monow" else ["-c:v", "rawvideo"]), tmp_path / file)
    plan, log = run("plan", "-f", chain, file, *outputs), run("-f", chain, file, *outputs)
    assert plan.code == 0 and log.code == 0, (plan.stderr, log.stderr)
    named, done = (re.findall(r"libswscale converts (\w+ to \w+ for the [\w ]+)", text)
                   for text in (plan.text, log.stderr))
    assert sorted(named) == sorted(done) and len(named) == steps, (plan.text, log.stderr)
    assert plan.text.count("may differ between FFmpeg versions") == steps


@pytest.mark.parametrize("source, tags", [
    (["-pix_fmt", "rgb24", "-c:v", "png"], "pc,bt470bg"),
    (["-c:v", "ffv1", "-color_range", "tv"], "tv,unknown"),
    (["-c:v", "ffv1", "-color_range", "pc"], "pc,unknown"),
])
@pytest.mark.parametrize("encoder", ["libx264", "libx265"])
def test_pictures_of_odd_sizes_are_not_converted_twice(run, tmp_path, encoder, source, tags):
    """4:4:4 of full range has two names, and encoders take both."""
    if not tools.has_encoder(encoder):
        pytest.skip(f"no {encoder}")
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=98x64,format=yuv444p,crop=97:63", "-frames:v", 1, *source,
                 tmp_path / "i.mkv")
    options = "-f", "invert", "i.mkv", "o.mkv", "-c:v", encoder, "--crf", 0
    plan, log = run("plan", *options), run(*options)
    assert plan.code == 0 and log.code == 0, (plan.stderr, log.stderr)
    assert "libswscale" not in plan.text + log.stderr
    [stream] = tools.probe(tmp_path / "o.mkv", "-show_streams")["streams"]
    found = f"{stream['color_range']},{stream.get('color_space', 'unknown')}"
    assert (stream["pix_fmt"].replace("j", ""), found) == ("yuv444p", tags)


def test_plan_refuses_what_filtering_refuses(run, clips, tmp_path):
    assert run("plan", "-f", "gausian").code == 2
    assert run("plan", tmp_path / "missing.mp4").code == 4


def test_doctor_says_what_would_run(run, clips):
    assert all(word in run("doctor").text for word in ("GPU", "decoders", "encoders", "filters",
                                                       "ring"))
    text = run("doctor", clips["film.mkv"], "out.mp4").text
    assert "h264 160x120" in text and "libx264" in text and "film.mkv" in text
    assert run("doctor", "missing.mp4").code == 4


# ---- wrong chains ----

WRONG_CHAINS = [
    # chain, what is marked, words of the sentence
    ("gausian=1.4", "gausian", ["gausian", "gaussian"]),
    ("gray,sobl", "sobl", ["sobl", "did you mean 'sobel'"]),
    ("gray, treshold=20,invert", "treshold", ["did you mean 'threshold'", "brightness, contrast"]),
    ("GRAY", "GRAY", ["did you mean 'gray'"]),
    ("frobnicate", "frobnicate", ["brightness", "binarize"]),
    ("gaussian=sgima=2", "sgima", ["did you mean 'sigma'", "radius", "border"]),
    ("gaussian=2:boarder=zero", "boarder", ["did you mean 'border'"]),
    ("gaussian=0", "0", ["0.1 .. 250"]),
    ("gray,gaussian=250.5", "250.5", ["0.1 .. 250"]),
    ("gaussian=-1", "-1", ["0.1 .. 250"]),
    ("gaussian=1e999", "1e999", ["0.1 .. 250"]),
    ("gaussian=nan", "nan", ["number"]),
    ("gaussian=2px", "2px", ["number"]),
    ("gaussian=2:2.5", "2.5", ["whole number"]),
    ("box=0", "0", ["1 .. 16384"]),
    ("box=99999", "99999", ["1 .. 16384"]),
    ("brightness=256", "256", ["-255 .. 255"]),
    ("threshold=257", "257", ["0 .. 256"]),
    ("gray=chroma", "chroma", ["luma|mean"]),
    ("sobel=border=black", "black", ["replicate|zero|reflect|mirror|wrap"]),
    ("gaussian", "gaussian", ["needs a value", "sigma", "0.1 .. 250"]),
    ("gray,threshold", "threshold", ["t1"]),
    ("gaussian=radius=3", "gaussian", ["needs a value", "sigma"]),
    ("threshold=200:100", "threshold=200:100", ["t2 must not be less"]),
    ("gaussian=2::zero", "", ["missing"]),
    ("gaussian=", "", ["missing"]),
    ("gaussian=sigma=", "sigma=", ["missing"]),
    ("gaussian=2:sigma=3", "sigma=3", ["twice"]),
    ("gaussian=1:2:zero:4", "4", ["one more"]),
    ("invert=1", "1", ["one more"]),
    ("sobel=mode=l1:zero", "zero", ["before"]),
    ("gray,,sobel", "", ["missing"]),
    (",gray", "", ["missing"]),
    ("gray,", "", ["missing"]),
]


@pytest.mark.parametrize("chain, marked, words", WRONG_CHAINS, ids=[row[0] for row in WRONG_CHAINS])
def test_wrong_chain_is_refused_with_its_place_marked(run, tmp_path, chain, marked, words):
    """Before anything is opened: the input does not even exist."""
    result = run("missing.mp4", "out.mp4", "-f", chain)
    refused(result, tmp_path, *words)
    lines = result.stderr.splitlines()
    shown = next(k for k, line in enumerate(lines) if line == f"  {chain}")
    marks = lines[shown + 1]
    begin = marks.index("^") - 2
    assert chain[begin:begin + marks.count("^")].strip() == marked or (
        not marked and marks.count("^") <= 1)


def test_chain_tolerates_spaces_and_order_of_names(run, clips):
    plain = run("-q", clips["plain.mp4"], "hash:-", "-f", "gray,gaussian=2:5:zero,sobel").text
    loose = run("-q", clips["plain.mp4"], "hash:-", "-f",
                " gray , gaussian = border=zero : sigma=2.0 : radius=5 ,sobel ").text
    assert loose == plain and len(tools.read_hashes(plain)) == 50


# ---- wrong options ----

WRONG_OPTIONS = [
    # arguments behind "missing.mp4 out.mp4", words
    (["--frmaes", "5"], ["--frmaes"]),
    (["--crff=20"], ["--crff=20", "did you mean '--crf'"]),
    (["--duraton", "5"], ["did you mean '--duration'"]),
    (["--quiet=1"], ["--quiet takes no value"]),
    (["--re"], ["'--re' is the beginning of several options"]),
    (["-qyx"], ["there is no option '-qyx'"]),
    (["-Z"], ["-Z"]),
    (["--thread-count", "2"], ["--thread-count"]),
    (["extra.mp4"], ["extra.mp4", "'frames/*.png'", "-o"]),
    (["--frames"], ["--frames", "value"]),
    (["-f"], ["-f", "value"]),
    (["--frames", "0"], ["--frames", "'0'"]),
    (["--frames", "-1"], ["--frames"]),
    (["--frames", "1.5"], ["--frames", "whole number"]),
    (["--frames", "many"], ["--frames", "many"]),
    (["--frames", ""], ["--frames"]),
    (["--threads", "0"], ["--threads"]),
    (["--threads", "2000"], ["--threads", "1024"]),
    (["--ring", "0"], ["--ring", "64"]),
    (["--ring", "65"], ["--ring", "64"]),
    (["--device", "-1"], ["--device", "'-1'"]),
    (["--device", "0,"], ["--device", "as in 0,1"]),
    (["--device", "0,1,0"], ["--device", "GPU 0 twice"]),
    (["--device", "both"], ["--device", "or all"]),
    (["--device", ",".join(map(str, range(17)))], ["--device", "16"]),
    (["--verify=0"], ["--verify"]),
    (["--verify=x"], ["--verify"]),
    (["--max-pixels", "0"], ["--max-pixels"]),
    (["--mem", "0"], ["--mem is '0'", "512M"]),
    (["--mem", "much"], ["--mem is 'much'", "1.5GiB"]),
    (["--mem", "2GBit"], ["--mem is '2GBit'"]),
    (["--vram", "-1G"], ["--vram is '-1G'", "512M"]),
    (["--start", "-1"], ["--start"]),
    (["--start", "1:2:3:4"], ["--start", "HH:MM:SS"]),
    (["--start", "10:99"], ["--start", "'10:99'", "MM:SS"]),
    (["--start", "1:60:00"], ["--start", "'1:60:00'"]),
    (["--start", "1.5:00"], ["--start", "'1.5:00'"]),
    (["--start", "soon"], ["--start", "soon"]),
    (["--start", "nan"], ["--start"]),
    (["--duration", "0"], ["--duration", "more than 0"]),
    (["--duration", "1x"], ["--duration"]),
    (["--backend", "gpu"], ["--backend", "cuda, cpu or scalar"]),
    (["--hwdec", "maybe"], ["--hwdec", "require"]),
    (["-c:v", "nope"], ["nope", "encoder"]),
    (["-c:v", "aac"], ["aac", "video"]),
    (["-c:v", "libvpx"], ["mp4", "vp8"]),
    (["--crf", "abc"], ["crf", "abc"]),
    (["--crf", "99"], ["crf=99", "0 .. 51"]),
    (["--crf", "-1"], ["--crf is '-1'", "from 0"]),
    (["--option", "crf=99"], ["crf=99", "0 .. 51"]),
    (["-c:v", "copy"], ["every frame is filtered"]),
    (["--preset", "quick"], ["preset=quick", "veryfast,faster"]),
    (["--option", "tune=grain,nope"], ["tune=grain,nope", "zerolatency"]),
    (["--option", "profile=nope"], ["profile=nope", "high422"]),
    (["-c:v", "mpeg4", "--crf", "20"], ["--crf", "mpeg4"]),
    (["-c:v", "mpeg4", "--preset", "fast"], ["--preset", "mpeg4"]),
    (["-b:v", "fast"], ["-b:v is 'fast'", "2M"]),
    (["--option", "g"], ["'g'", "key=value"]),
    (["--option", "=3"], ["key=value"]),
    (["--option", "nope=1"], ["nope", "libx264", "mp4"]),
    (["--option", "g=abc"], ["g=abc"]),
    (["--option", "g=99999999999"], ["g=99999999999"]),
    (["--option", "movflags=nope"], ["movflags=nope"]),
    (["-F", "nope"], ["nope", "format"]),
    (["--listen", "8080"], ["a run does not take --listen", "serve does", "--page ADDRESS"]),
    (["--media", "."], ["--media is of the control page", "--page 8080"]),
    (["--token", "geheim"], ["--token is of the control page"]),
    (["--page", "8080", "--tls-cert", "a.pem"], ["--tls-cert and --tls-key stand together"]),
    (["--page", "8080", "--keep", "0"], ["--keep", "more than 0"]),
    (["--page", "8080", "--upload-max", "much"], ["--upload-max is 'much'", "500M"]),
    (["--segment", "0.0000001"], ["too short"]),
    (["-o", "l2.m3u8", "--segment", "2s"], ["--option hls_time="]),
    (["-o", "."], ["is a folder", "./out.mp4"]),
    (["-o", "null"], ["did you mean null:?"]),
    (["-o", "udp://127.0.0.1:9", "--segment", "2s"], ["--segment", "udp://127.0.0.1:9"]),
    (["-o", "mjpeg:18080", "--segment", "2s"], ["--segment", "mjpeg:18080"]),
]


@pytest.mark.parametrize("arguments, words", WRONG_OPTIONS,
                         ids=[" ".join(row[0]) for row in WRONG_OPTIONS])
def test_wrong_option_is_refused_before_anything_is_opened(run, tmp_path, arguments, words):
    refused(run("missing.mp4", "out.mp4", *arguments), tmp_path, *words)


FFMPEG_OPTIONS = [
    # what ffmpeg takes, and what is named instead
    (["-i", "in.mp4"], "sluice in.mp4 out.mp4"), (["-ss", "5"], "--start"), (["-t", "5"], "--duration"),
    (["-to", "5"], "--duration"), (["-an"], "sound is copied"), (["-vn"], "always one"),
    (["-sn"], "copied"), (["-c", "copy"], "-c:v"), (["-vcodec", "libx264"], "-c:v"),
    (["-codec:v", "libx264"], "-c:v"), (["-c:a", "copy"], "sound is copied"),
    (["-acodec", "aac"], "sound is copied"), (["-vf", "negate"], "-f CHAIN"),
    (["-filter_complex", "negate"], "-f CHAIN"), (["-b", "2M"], "-b:v"), (["-q:v", "2"], "--crf"),
    (["-r", "30"], "--rate"), (["-framerate", "30"], "--rate"), (["-s", "64x48"], "does not resize"),
    (["-pix_fmt", "gray"], "--pix"), (["-hwaccel", "cuda"], "--hwdec"),
    (["-loglevel", "error"], "-q"), (["-v", "error"], "-q"), (["-hide_banner"], "leave it out"),
    (["-nostdin"], "leave it out"), (["-map", "0"], "--stream"), (["-vframes", "3"], "--frames"),
    (["-frames:v", "3"], "--frames"), (["-g", "50"], "--option g=50"),
    (["-tune", "film"], "--option tune=film"), (["-maxrate", "2M"], "--option maxrate=2M"),
    (["-re"], "--live"), (["-strict", "-2"], "--option strict=-2"), (["-vsync", "0"], "timestamps"),
    (["-metadata", "title=x"], "copied"), (["-rtsp_transport", "tcp"], "--rtsp-transport"),
    (["-f", "rawvideo"], "-F rawvideo"), (["-f", "mp4"], "-F mp4"), (["-f", "lavfi"], "lavfi:testsrc"),
]


@pytest.mark.parametrize("arguments, words", FFMPEG_OPTIONS,
                         ids=[" ".join(row[0]) for row in FFMPEG_OPTIONS])
def test_options_of_ffmpeg_are_answered_with_those_of_sluice(run, tmp_path, arguments, words):
    for line in ([*arguments, "missing.mp4", "out.mp4"], ["missing.mp4", "out.mp4", *arguments]):
        refused(run(*line), tmp_path, arguments[0], words)


def test_an_address_named_twice_is_refused_without_its_secrets(run, tmp_path):
    address = "rtmp://user:geheim@127.0.0.1/live"
    result = run("missing.mp4", address, "-o", address)
    refused(result, tmp_path, "user:***@127.0.0.1", "twice")
    assert "geheim" not in result.stderr


def test_options_around_the_first_output_are_one_list(run, tmp_path):
    options = ["--option", "g=25", "-o", "out.mp4", "--option", "nope=1"]
    refused(run("missing.mp4", *options), tmp_path, "nope")


@pytest.mark.parametrize("arguments, words", [
    (["--preset", "warp"], ["warp"]),
    (["--option", "tune=nope"], ["nope"]),
    (["--option", "profile=nope"], ["nope"]),
    (["--stream", "9"], ["--stream", "streams 0 to"]),
    (["--stream", "1"], ["stream 1", "audio"]),
    (["--stream", "x"], ["--stream", "'x'"]),
    (["--size", "10x10"], ["--size", "raw video"]),
    (["--pixfmt", "gray"], ["--pix-fmt is for raw video", "behind INPUT"]),
], ids=lambda value: " ".join(value))
def test_option_that_does_not_fit_the_file_is_refused(run, tmp_path, clips, arguments, words):
    refused(run(clips["film.mp4"], "out.mp4", *arguments), tmp_path, *words)


@pytest.mark.parametrize("arguments, word", [
    (["--size", "10"], "10"), (["--size", "0x0"], "0x0"), (["--pixfmt", "puce"], "puce"),
    (["--rate", "often"], "often"), (["--rate", "0"], "rate")])
def test_wrong_description_of_raw_video_is_refused(run, tmp_path, clips, arguments, word):
    source = clips.folder / "noise.raw"
    source.write_bytes(bytes(10000))
    given = {"--size": "10x10", "--pixfmt": "gray", "--rate": "25", arguments[0]: arguments[1]}
    flat = [text for pair in given.items() for text in pair]
    refused(run("-F", "rawvideo", *flat, source, "out.mkv"), tmp_path, word)


@pytest.mark.parametrize("arguments", [
    ["-", "-"], ["missing.mp4"], ["missing.mp4", "out.unknown"], ["missing.mp4", "out"],
    ["missing.mp4", "hash:"], ["missing.mp4", "null:", "-c:v", "libx264"],
    ["missing.mp4", "hash:x.txt", "--crf", "20"], ["missing.mp4", "null:", "-F", "mp4"],
    ["", "out.mp4"], ["missing.mp4", ""], ["-F", "nope", "missing.mp4", "out.mp4"],
    ["missing.mp4", "out.srt"],
], ids=" ".join)
def test_names_that_cannot_be_meant_are_refused(run, tmp_path, arguments):
    refused(run(*arguments), tmp_path, "sluice: ")


@pytest.mark.parametrize("given, words", [
    ([], ["--size WxH and --pix-fmt"]), (["--size", "64x48"], ["--pix-fmt"]),
    (["--pixfmt", "gray"], ["--size WxH"])], ids=" ".join)
@pytest.mark.parametrize("name, format", [("noise.raw", ["-F", "rawvideo"]), ("noise.yuv", [])])
def test_raw_video_says_nothing_of_itself(run, tmp_path, clips, name, format, given, words):
    """A guess would not be told from the truth."""
    source = clips.folder / name
    source.write_bytes(bytes(10000))
    refused(run(*format, *given, source, "out.mkv"), tmp_path, "raw video", *words)


def test_pipes_and_files_by_the_names_that_ffmpeg_gives_them(run, tmp_path, clips):
    hashes = run("-q", clips["plain.mp4"], "hash:-").text
    assert run("-q", f"file:{clips['plain.mp4']}", "hash:-").text == hashes
    assert run("-q", clips["plain.mp4"], "file:out.mp4").code == 0
    assert packets(tmp_path / "out.mp4")
    y4m = run("-q", clips["plain.mp4"], "pipe:1", "-F", "y4m", "-f", "null").stdout
    assert y4m.startswith(b"YUV4MPEG2")
    for name in ("pipe:", "pipe:0"):
        assert run("-q", name, "pipe:", "-F", "y4m", "-f", "null", input=y4m).stdout == y4m
    assert [path.name for path in tmp_path.iterdir()] == ["out.mp4"]
    assert run("-q", "file:out.mp4", "out.mp4", "-y").code == 2 # the same file


def test_unknown_option_names_the_option_itself(run, tmp_path):
    """Also in the middle of others, where the next word is innocent."""
    for arguments in (["--nope", "in.mp4", "out.mp4"], ["in.mp4", "--nope", "out.mp4"],
                      ["in.mp4", "out.mp4", "--nope", "5"], ["in.mp4", "out.mp4", "-q", "--nope=5"]):
        assert "'--nope" in run(*arguments).stderr


# ---- the output ----


def test_existing_output_is_kept(run, tmp_path, clips):
    output = tmp_path / "out.mp4"
    output.write_text("precious")
    result = run(clips["plain.mp4"], output)
    assert result.code == 5 and "out.mp4 exists" in result.stderr and "-y" in result.stderr
    assert output.read_text() == "precious"
    assert run(clips["plain.mp4"], output, "-y", "-n").code == 5
    assert output.read_text() == "precious"


def test_an_output_that_exists_is_told_after_mistakes_and_missing_inputs(run, tmp_path, clips):
    for name in ("out.mp4", "second.txt"):
        (tmp_path / name).write_text("precious")
    assert run(clips["plain.mp4"], "out.mp4", "--crf", "99").code == 2
    assert run(clips["plain.mp4"], "out.mp4", "-o", "x.mp4", "--preset", "warp").code == 2
    for outputs in (["out.mp4"], ["hash:second.txt"], ["x.mp4", "-o", "out.mp4"]):
        result = run("missing.mp4", *outputs)
        assert result.code == 4 and "missing.mp4" in result.stderr
        assert run(clips["plain.mp4"], *outputs).code == 5


def test_the_folder_of_a_playlist_is_made(run, tmp_path, clips):
    assert run("-q", clips["plain.mp4"], "hls/x.m3u8").code == 0
    assert (tmp_path / "hls" / "x.m3u8").exists()


def test_existing_output_is_replaced_when_allowed(run, tmp_path, clips):
    output = tmp_path / "out.mp4"
    output.write_text("old")
    output.chmod(0o640)
    assert run("-q", clips["plain.mp4"], output, "-y").code == 0
    assert len(packets(output)) == 50
    assert output.stat().st_mode & 0o777 == 0o640


WRITTEN = {"hash": ["{in}", "hash:old"], "image": ["{in}", "old.png"], "file": ["{in}", "old.mkv"],
           "sequence": ["{in}", "old%d.png"], "json": ["{in}", "new.mkv", "--json", "old"],
           "trace": ["{in}", "new.mkv", "--trace", "old"],
           "journal": ["{in}", "new.mkv", "--journal", "old"],
           "tee": ["{in}", "new.mkv", "-f", "gray,tee=old.mkv"],
           "records": ["{in}", "new.mkv", "-f", "gray,stats=old"],
           "bench's chart": ["bench", "-f", "invert", "--quick", "--size", "64x48", "--chart", "old"],
           "bench's json": ["bench", "-f", "invert", "--quick", "--size", "64x48", "--json", "old"],
           "ladder's chart": ["bench", "--ladder", "--quick", "--size", "64x48", "--chart", "old"]}


@pytest.mark.parametrize("flags", [[], ["-n"], ["-y", "-n"], ["-n", "-y"]])
@pytest.mark.parametrize("kind", WRITTEN)
def test_every_kind_of_file_is_kept(run, tmp_path, clips, kind, flags):
    """Which is said before anything is written or measured."""
    words = [clips["still.png"] if word == "{in}" else word for word in WRITTEN[kind]]
    old = {name: "precious" for name in ("old", "old.mkv", "old.png", "old7.png")}
    for name, text in old.items():
        (tmp_path / name).write_text(text)
    result = run(*words, *flags)
    assert result.code == 5 and re.search(r"old\S* exists; -y replaces it", result.stderr), result.stderr
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == old and not result.text


@pytest.mark.parametrize("kind", WRITTEN)
def test_every_kind_of_file_is_replaced_when_allowed(run, tmp_path, clips, kind):
    words = [clips["still.png"] if word == "{in}" else word for word in WRITTEN[kind]]
    for name in ("old", "old.mkv", "old.png", "old1.png"):
        (tmp_path / name).write_text("precious")
    assert run(*words, "-y", "-q", "--backend", "cpu").code == 0
    replaced = [name for name in ("old", "old.mkv", "old.png", "old1.png")
                if (tmp_path / name).read_bytes() != b"precious"]
    assert len(replaced) == 1 and not tools.leftovers(tmp_path)


@pytest.mark.parametrize("words, code", [
    (["missing.mp4", "new.mkv"], 4), (["in.png", "no/such/new.mkv"], 5), (["in.png", "new.mkv", "-f", "x"], 2),
    (["in.png", "new.mkv", "-c:v", "dvvideo"], 5), (["in.png", "new.mkv", "--control", "in.png"], 5)])
def test_a_run_that_cannot_begin_empties_nothing(run, tmp_path, clips, words, code):
    (tmp_path / "in.png").write_bytes(clips["still.png"].read_bytes())
    files = {"--journal": "journal", "--trace": "trace"}
    for name in files.values():
        (tmp_path / name).write_text("precious")
    result = run(*words, *[word for pair in files.items() for word in pair], "-y")
    assert result.code == code, result.stderr
    assert {name: (tmp_path / name).read_text() for name in files.values()} == dict.fromkeys(
        files.values(), "precious")
    assert run(*words, "--journal", "fresh").code == code
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.png", "journal", "trace"]


@pytest.mark.parametrize("option", ["--json", "--trace", "--journal"])
def test_what_cannot_be_written_is_said_at_the_start(run, tmp_path, clips, option):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "lost").symlink_to("no/such/file")
    for name in ("no/such/file", "lost", "loop", "."):
        result = run("-q", clips["plain.mp4"], "new.mkv", option, name)
        assert result.code == 5 and result.stderr.startswith(f"sluice: {name} "), result.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["loop", "lost"]


@pytest.mark.parametrize("words", [["link"], ["link", "--json", "link2"], ["hash:link"],
                                   ["null:", "--journal", "link"], ["null:", "--trace", "link"]])
def test_a_link_that_leads_nowhere_is_followed(run, tmp_path, clips, words):
    """As a shell's redirection does; also where it leads over another one into a folder."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "next").symlink_to("file")
    (tmp_path / "link").symlink_to("sub/next")
    (tmp_path / "link2").symlink_to(tmp_path / "sub" / "other")
    words = words + ["-F", "matroska"] * (words[0] == "link")
    assert run("-q", clips["plain.mp4"], *words).code == 0
    assert (tmp_path / "link").is_symlink() and (tmp_path / "sub" / "next").is_symlink()
    assert (tmp_path / "sub" / "file").stat().st_size > 0
    assert run("-q", clips["plain.mp4"], *words).code == 5
    assert run("-q", clips["plain.mp4"], *words, "-y").code == 0


def test_files_that_are_open_already_are_written_in_place(tmp_path, clips):
    for name in ("/dev/stdout", "/dev/fd/1", "pipe:1", "-"):
        with open(tmp_path / "out", "w+") as out:
            out.write("first\n")
            out.flush()
            result = tools.sluice("-q", clips["plain.mp4"], "null:", "--json", name, stdout=out)
            assert result.code == 0, result.stderr
        text = (tmp_path / "out").read_text()
        assert text.startswith("first\n{") and json.loads(text[6:])["exit"] == 0


def test_a_journal_is_for_its_owner_only(run, tmp_path, clips):
    assert run("-q", clips["plain.mp4"], "null:", "--journal", "j").code == 0
    assert (tmp_path / "j").stat().st_mode & 0o777 == 0o600


SHORT_SEGMENTS = ["--option", "hls_time=0.4", "--option", "g=10"]


@pytest.mark.parametrize("taken, words", [
    ("live0.ts", ["live.m3u8"]), ("live3.ts", ["live.m3u8"]), ("live9.ts", ["live.m3u8"]),
    ("live3.ts", ["live.m3u8", "--option", "start_number=0"]),
    ("a3.ts", ["live.m3u8", "--option", "hls_segment_filename=a%d.ts"]),
    ("live3.m4s", ["live.m3u8", "--option", "hls_segment_type=fmp4"]),
    ("live3.ts", ["live.m3u8", "--live"]), ("live3.ts", ["live.m3u8", "--live", "--option", "start_number=0"]),
    ("chunk-stream0-00001.m4s", ["live.mpd"]), ("init-stream0.m4s", ["live.mpd"]),
    ("chunk-stream0-00001.m4s", ["live.mpd", "--live"])])
def test_a_playlist_keeps_files_that_have_the_name_of_a_segment(run, tmp_path, clips, taken, words):
    """And names none of them; of a film nothing else is left, either."""
    (tmp_path / taken).write_text("mine")
    words += SHORT_SEGMENTS if words[0].endswith("m3u8") else []
    result = run("-q", clips["plain.mp4"], *words)
    assert result.code == 5 and f"{taken} exists; -y replaces it" in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert (tmp_path / taken).read_text() == "mine"
    if "--live" not in words:
        assert [file.name for file in tmp_path.iterdir()] == [taken]
    for playlist in tmp_path.glob("live.m*"):
        assert taken not in playlist.read_text()
    assert run("-q", clips["plain.mp4"], *words, "-y").code == 0
    assert (tmp_path / taken).read_bytes() != b"mine" or taken == "live9.ts"


@pytest.mark.parametrize("name, words", [
    ("live0.ts", ["live.m3u8"]), ("s-000000.mkv", ["s.mkv", "--segment", 1]),
    ("init-stream0.m4s", ["x.mpd"]), ("out3.png", ["out%d.png"])])
def test_names_that_are_made_up_do_not_hit_the_input(run, tmp_path, clips, name, words):
    data = clips["plain.mkv"].read_bytes()
    (tmp_path / name).write_bytes(data)
    result = run("-q", name, *words, "-y")
    assert (tmp_path / name).read_bytes() == data
    assert result.code == (0 if "--segment" in words else 2 if "png" in name else 5), result.stderr


def test_many_segments_take_few_descriptors(tmp_path, clips):
    result = tools.execute(["sh", "-c", 'ulimit -n 48; exec "$0" "$@"', tools.SLUICE, "-q",
                            clips["plain.mp4"], "v.m3u8", "--option", "hls_time=0.04", "--option", "g=1"],
                           cwd=tmp_path)
    assert result.code == 0, result.stderr
    assert len(list(tmp_path.iterdir())) == 51 and not tools.leftovers(tmp_path)


def test_segments_of_one_second_do_not_replace_each_other(run, tmp_path, clips):
    for _ in range(2):
        result = run(clips["plain.mp4"], "out.mkv", "--segment", "0.25s", "-y", "--json", "run.json")
        assert result.code == 0, result.stderr
    told = json.loads((tmp_path / "run.json").read_text())
    files = list(tmp_path.glob("out-*.mkv"))
    assert len(files) == told["outputs"][0]["files"] > 2
    assert sum(len(tools.frame_times(file)) for file in files) == told["frames"]["out"]


def test_output_appears_only_when_whole(run, tmp_path, clips):
    """A run that fails in the middle leaves the old file; the encoder refuses the second picture."""
    output = tmp_path / "out.mp4"
    output.write_text("old")
    (tmp_path / "header.mp4").write_bytes(clips["plain.mp4"].read_bytes()[:3000])
    assert run("header.mp4", output, "-y").code == 4
    assert output.read_text() == "old"


@pytest.mark.parametrize("words", [["null:", "--json", "{}"], ["null:", "--trace", "{}"],
                                   ["null:", "--journal", "{}"], ["{}", "-F", "matroska"], ["hash:{}"]])
@pytest.mark.parametrize("name", ["in.mkv", "./in.mkv", "link.mkv", "sub/../in.mkv", "hard.mkv"])
def test_output_onto_the_input_is_refused(run, tmp_path, clips, words, name):
    data = clips["plain.mkv"].read_bytes()
    (tmp_path / "in.mkv").write_bytes(data)
    (tmp_path / "link.mkv").symlink_to("in.mkv")
    (tmp_path / "hard.mkv").hardlink_to(tmp_path / "in.mkv")
    (tmp_path / "sub").mkdir()
    words = [word.format(name) for word in words]
    for source, more in ("in.mkv", {}), ("-", {"stdin": open(tmp_path / "in.mkv", "rb")}):
        result = run(source, *words, "-y", **more)
        assert result.code == 2 and "same file" in result.stderr, result.stderr
    assert (tmp_path / "in.mkv").read_bytes() == data == (tmp_path / "hard.mkv").read_bytes()


def test_an_image_of_the_input_is_not_replaced_under_another_name(run, tmp_path, clips):
    (tmp_path / "f1.png").write_bytes(clips["still.png"].read_bytes())
    (tmp_path / "hard.png").hardlink_to(tmp_path / "f1.png")
    for words in (["f%d.png", "hard.png"], ["f*.png", "hard.png"], ["f1.png", "f%d.png"]):
        result = run(*words, "-y")
        assert result.code == 2 and "same file" in result.stderr, (words, result.stderr)


def test_a_sequence_onto_itself_is_refused(run, tmp_path, clips):
    for file in clips.sequence().iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    result = run("in%04d.png", "in%04d.png", "-y", "-q")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert result.code == 2


@pytest.mark.parametrize("option", ["--json", "--trace"])
@pytest.mark.parametrize("name", ["in.mkv", "out.mp4", "./in.mkv", "sub/../out.mp4"])
def test_report_over_input_or_output_is_refused(run, tmp_path, clips, name, option):
    data = clips["plain.mkv"].read_bytes()
    (tmp_path / "in.mkv").write_bytes(data)
    (tmp_path / "sub").mkdir()
    result = run("-q", "in.mkv", "out.mp4", option, name)
    assert (tmp_path / "in.mkv").read_bytes() == data
    assert result.code == 2


STRANGE = ["-in", "a:b", "c[d]", "e'f\"g", "h i", "100%", "50%d", "%", "new\nline", "tab\t", "ünï",
           "#x?y=1&z", "file:y", "http:z", "pipe:1", "*", "$(x)", "a|b", "back\\slash", ".hidden",
           "hash:x", "null:", "x" * 250, "concat:a", "-", "~"]


@pytest.mark.parametrize("suffix", [".mkv", ".png"])
@pytest.mark.parametrize("name", STRANGE)
def test_strange_file_names_are_plain_files(run, tmp_path, clips, name, suffix):
    """Input and output, in the current folder, after `--`."""
    source = tmp_path / "in" / (name + suffix)
    source.parent.mkdir()
    source.write_bytes(clips["still.png" if suffix == ".png" else "plain.mkv"].read_bytes())
    target = tmp_path / "out" / (name + suffix)
    target.parent.mkdir()
    assert run("-q", "-f", "invert", "--", source.name, "../got" + suffix, cwd=source.parent).code == 0
    assert (tmp_path / ("got" + suffix)).exists()
    if name.startswith(("hash:", "null:", "file:")):
        return  # as an output these have a meaning; ./hash:x is the file
    result = run("-q", "--", source, target.name, cwd=target.parent)
    assert result.code == 0, result.stderr
    names = sorted(file.name for file in target.parent.iterdir())
    assert names == ([target.name] if "%d" not in name or suffix == ".mkv" else ["501.png"])


def test_a_folder_before_a_strange_name_keeps_its_meaning_away(run, tmp_path, clips):
    assert run("-q", clips["plain.mkv"], "./hash:x.mkv").code == 0
    assert run("-q", clips["plain.mkv"], "./null:.mkv").code == 0
    assert (tmp_path / "hash:x.mkv").exists() and (tmp_path / "null:.mkv").exists()


# ---- pipes ----


def test_y4m_goes_in_and_out_through_pipes(run, clips):
    y4m = tools.ffmpeg("-i", clips["plain.mp4"], "-f", "yuv4mpegpipe", "-").stdout
    result = run("-q", "-", "-", "-F", "y4m", "-f", "null", input=y4m)
    assert result.code == 0 and result.stdout.startswith(b"YUV4MPEG2 W160 H120 F25:1")
    again = run("-q", "-", "hash:-", "-f", "null", input=result.stdout)
    assert ([row[2:] for row in tools.read_hashes(again.text)] ==
            tools.decode_hashes(clips["plain.mp4"]))


@pytest.mark.parametrize("name", ["film.mkv", "sound.ts"])
@pytest.mark.parametrize("format", ["matroska", "mkv", "mpegts", "mp4", "mov", "nut", "avi", "webm"])
def test_containers_go_out_through_a_pipe(run, clips, tmp_path, format, name):
    result = run("-q", clips[name], "-", "-F", format, "--frames", "10")
    assert result.code == 0, result.stderr
    (tmp_path / "got").write_bytes(result.stdout)
    assert len(packets(tmp_path / "got")) == 10
    if format != "webm":
        assert len(packets(tmp_path / "got", "a:0")) > 10
    if format in ("mp4", "mov"):
        assert b"moof" in result.stdout


@pytest.mark.parametrize("name", ["sound.ts", "film.mkv", "animated.gif", "still.png", "resized.h264",
                                  "still.jpg"])
def test_containers_come_in_through_a_pipe(run, clips, name):
    piped = run("-q", "-", "hash:-", "-f", "null", input=clips[name].read_bytes())
    assert piped.code == 0, piped.stderr
    named = run("-q", clips[name], "hash:-", "-f", "null")
    assert [row[2:] for row in tools.read_hashes(piped.text)] == [
        row[2:] for row in tools.read_hashes(named.text)]


def test_raw_video_comes_in_and_goes_out(run):
    data = tools.random_picture(30, 40, 1).tobytes()
    result = run("-q", "-F", "rawvideo", "--size", "20x20", "--pixfmt", "gray", "-", "-", "-F",
                 "rawvideo", "-f", "invert", input=data)
    assert result.code == 0
    assert result.stdout == bytes(255 - byte for byte in data)


def test_devices_and_fifos_are_written_in_place(run, tmp_path, clips):
    assert run("-q", clips["plain.mkv"], "/dev/null", "-F", "matroska").code == 0
    fifo = tmp_path / "fifo.mkv"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
        assert run("-q", clips["plain.mkv"], fifo).code == 0
        data = reader.communicate(timeout=20)[0]
    assert data.startswith(b"\x1a\x45\xdf\xa3") and fifo.is_fifo()


# ---- a part of the input ----


@pytest.mark.parametrize("name", ["film.mkv", "film.mp4", "sound.ts", "late.mkv", "late.mp4",
                                  "late.ts", "vfr.mp4", "sound.avi", "animated.gif"])
@pytest.mark.parametrize("start, duration, frames", [
    (None, None, 7), (0.2, None, None), (None, 0.3, None), (0.1, 0.22, None), (0.13, None, 3),
    (0, None, None)])
def test_parts_are_cut_by_time_and_count(run, clips, name, start, duration, frames):
    """Times count from the file's first timestamp."""
    rows = tools.read_hashes(run("-q", "-f", "null", clips[name], "hash:-").text)
    about = tools.probe(clips[name], "-show_streams", "-show_format")
    stream = next(s for s in about["streams"] if s["codec_type"] == "video")
    over, under = map(int, stream["time_base"].split("/"))
    first = float(about["format"]["start_time"])
    begin = first + (start or 0)
    end = begin + duration if duration else float("inf")
    wanted = [row[1:] for row in rows if begin - 1e-6 <= row[1] * over / under < end - 1e-6
              or (start is None and row[1] * over / under < end - 1e-6)][:frames]
    given = [*(["--start", start] if start is not None else []),
             *(["--duration", duration] if duration else []),
             *(["--frames", frames] if frames else [])]
    got = tools.read_hashes(run("-q", "-f", "null", *given, clips[name], "hash:-").text)
    assert [row[1:] for row in got] == wanted
    assert len(got) < len(rows) or not start


def test_times_are_seconds_or_clock(run, clips):
    texts = {run("-q", "--start", text, clips["film.mkv"], "hash:-").text
             for text in ("1.2", "00:01.2", "0:0:1.2", "0:00:01.20")}
    assert len(texts) == 1


@pytest.mark.parametrize("suffix", [".mkv", ".mp4", ".ts"])
def test_a_part_begins_at_zero_with_its_sound(run, tmp_path, clips, suffix):
    output = tmp_path / f"out{suffix}"
    assert run("-q", "--start", 1, "--duration", 0.6, clips["film.mp4"], output).code == 0
    frames = [float(p["pts_time"]) for p in packets(output)]
    sounds = [float(p["pts_time"]) for p in packets(output, "a:0")]
    assert len(frames) == 15
    assert 0 <= min(frames) <= 0.1  # room for frames that are decoded before they are shown
    assert min(sounds) == pytest.approx(min(frames), abs=0.06)
    assert max(sounds) == pytest.approx(max(frames), abs=0.08)


def test_nothing_in_the_range_is_an_input_error(run, tmp_path, clips):
    result = run("--start", "1:00", clips["film.mkv"], "out.mkv")
    assert result.code == 4 and "film.mkv" in result.stderr and "range" in result.stderr
    assert not list(tmp_path.iterdir())


def test_stream_chooses_what_is_filtered(run, tmp_path, clips):
    for filtered, other in ((0, 2), (2, 0)):
        output = tmp_path / f"{filtered}.mkv"
        assert run("-q", "--stream", filtered, clips["two.mkv"], output, "-f", "gray").code == 0
        before, after = packets(clips["two.mkv"], str(other)), packets(output, str(other))
        assert [p["size"] for p in before] == [p["size"] for p in after]
        streams = tools.probe(output, "-show_streams")["streams"]
        assert [s["width"] for s in streams if s["codec_type"] == "video"] == [96, 160]
        assert streams[filtered]["color_range"] == "pc" != streams[other].get("color_range")


# ---- images ----


@pytest.mark.parametrize("suffix", ["png", "jpg", "tiff", "webp", "bmp", "gif", "apng"])
@pytest.mark.parametrize("name", ["still.png", "still.jpg", "still-alpha.png", "still-gray16.png",
                                  "still-palette.png", "still-bit.png"])
def test_images_go_in_and_out(run, tmp_path, clips, name, suffix):
    output = tmp_path / f"out.{suffix}"
    result = run("-q", clips[name], output, "-f", "invert")
    assert result.code == 0, result.stderr
    about = video(output)
    assert (about["width"], about["height"]) == (161, 121)
    tools.ffmpeg("-i", clips[name], "-vf", "format=gray,negate", "-f", "rawvideo", "-frames:v", "1",
                 tmp_path / "a")
    tools.ffmpeg("-i", output, "-vf", "format=gray", "-f", "rawvideo", "-frames:v", "1",
                 tmp_path / "b")
    a, b = (np.fromfile(tmp_path / n, "u1").astype(int) for n in "ab")
    if "alpha" not in name:
        assert abs(a - b).mean() < 8


def test_lossless_images_keep_every_sample(run, tmp_path, clips):
    for name, suffix in (("still.png", "png"), ("still.png", "bmp"), ("still.png", "tiff"),
                         ("still-deep.png", "png"), ("still-deep.png", "tiff"),
                         ("still-gray16.png", "png"), ("still-alpha.png", "png")):
        output = tmp_path / f"{name}.{suffix}"
        assert run("-q", clips[name], output, "-f", "null").code == 0
        seen = []
        for file in (clips[name], output):
            tools.ffmpeg("-i", file, "-pix_fmt", "rgba64le", "-f", "rawvideo", tmp_path / "seen")
            seen.append((tmp_path / "seen").read_bytes())
        assert seen[0] == seen[1], f"{name} to {suffix}"


def test_image_sequences_come_in_by_number_and_by_glob(run, clips, tmp_path):
    folder = clips.sequence()
    single = [tools.read_hashes(run("-q", "-f", "sobel", file, "hash:-").text)[0][3]
              for file in sorted(folder.iterdir())]
    for pattern in ("in%04d.png", "*.png", "in000?.png", "in000[1-6].png"):
        rows = tools.read_hashes(run("-q", "-f", "sobel", folder / pattern, "hash:-").text)
        assert [row[3] for row in rows] == single, pattern


def test_sequence_of_images_gets_its_rate(run, clips, tmp_path):
    run("-q", "--rate", "10", clips.sequence() / "in%04d.png", "out.mkv")
    assert sorted(float(p["pts_time"]) for p in packets(tmp_path / "out.mkv")) == pytest.approx(
        [0, 0.1, 0.2, 0.3, 0.4, 0.5])


def test_video_goes_out_as_numbered_images(run, clips, tmp_path):
    assert run("-q", "--frames", 5, clips["plain.mkv"], "f%03d.png").code == 0
    assert sorted(f.name for f in tmp_path.iterdir()) == [f"f00{k}.png" for k in range(1, 6)]
    hashes = [tools.decode_hashes(f)[0] for f in sorted(tmp_path.iterdir())]
    assert hashes == [row[2:] for row in tools.read_hashes(
        run("-q", "--frames", 5, clips["plain.mkv"], "hash:-").text)]


def test_an_existing_image_of_a_sequence_is_kept(run, clips, tmp_path):
    for name in ("f001.png", "f003.png"):
        (tmp_path / name).write_text("precious")
        result = run("-q", "--frames", 5, clips["plain.mkv"], "f%03d.png")
        assert result.code == 5 and name in result.stderr
        assert (tmp_path / name).read_text() == "precious"
        (tmp_path / name).unlink()
        for file in tmp_path.glob("f*.png"):
            file.unlink()


def test_one_image_of_a_video_is_its_first_frame(run, clips, tmp_path):
    result = run(clips["plain.mkv"], "out.png")
    assert result.code == 0 and "first frame" in result.stderr and "%04d" in result.stderr
    assert tools.decode_hashes(tmp_path / "out.png") == [
        tools.read_hashes(run("-q", "--frames", 1, clips["plain.mkv"], "hash:-").text)[0][2:]]


@pytest.mark.parametrize("suffix", ["gif", "apng"])
def test_animations_go_out(run, clips, tmp_path, suffix):
    output = tmp_path / f"out.{suffix}"
    assert run("-q", "--frames", 10, clips["plain.mkv"], output).code == 0
    assert len(tools.decode_hashes(output)) == 10


def test_a_sequence_begins_at_its_first_number_and_ends_at_a_gap(run, clips, tmp_path):
    for k, file in enumerate(sorted(clips.sequence().iterdir())):
        (tmp_path / f"s{107 + k + (k > 3)}.png").write_bytes(file.read_bytes())
    result = run("s%03d.png", "null:", "--json", "j.json")
    assert result.code == 3 and "gap" in result.stderr and "s%03d.png" in result.stderr
    told = json.loads((tmp_path / "j.json").read_text())
    assert told["frames"]["out"] == 4 and told["frames"]["truncated"]
    (tmp_path / "s111.png").write_bytes((tmp_path / "s110.png").read_bytes())
    assert run("-q", "-F", "image2", "s%03d.png", "null:").code == 0


def test_an_index_at_the_end_of_a_pipe_is_named(run, clips, tmp_path):
    tools.ffmpeg("-i", clips["plain.mp4"], "-c", "copy", tmp_path / "late.mp4")
    result = run("-", "out.mkv", input=(tmp_path / "late.mp4").read_bytes())
    assert result.code == 4 and "index at the end" in result.stderr


@pytest.mark.parametrize("name", ["rtsp://nosuchhost.invalid/1", "http://nosuchhost.invalid/a.mp4"])
def test_a_host_that_nobody_knows_is_named(run, tmp_path, name):
    result = run(name, "out.mkv")
    assert result.code == 4 and "the host nosuchhost.invalid is not known" in result.stderr


def test_strict_says_why_it_failed_even_when_quiet(run, tmp_path, clips):
    for k, file in enumerate(sorted(clips.sequence().iterdir())):
        (tmp_path / f"s{k + (k > 3)}.png").write_bytes(file.read_bytes())
    result = run("-q", "--strict", "s%d.png", "null:")
    assert result.code == 1 and "--strict" in result.stderr


def test_pictures_that_nobody_wants_are_not_left_out(run, clips, tmp_path):
    """Of one image beside a film, and of a page that nobody looks at."""
    result = run(clips["plain.mp4"], "o.mkv", "-o", "one.png", "-o", "mjpeg:127.0.0.1:0")
    assert result.code == 0 and "left out" not in result.stderr
    assert re.search(r"mjpeg:127.0.0.1:0  \d frames?, \d+ not made as nobody watched", result.stderr)


def test_an_end_by_count_does_not_wait_for_more_input(clips, tmp_path):
    """A pipe that stays open after the frames that are wanted."""
    y4m = tools.ffmpeg("-i", clips["plain.mp4"], "-frames:v", 6, "-f", "yuv4mpegpipe", "-").stdout
    process = subprocess.Popen([tools.SLUICE, "-q", "-F", "y4m", "-", tmp_path / "o.mkv",
                                "--frames", "3"], stdin=subprocess.PIPE, env=tools.environment())
    process.stdin.write(y4m)
    process.stdin.flush()
    assert process.wait(20) == 0
    assert len(packets(tmp_path / "o.mkv")) == 3


@pytest.mark.parametrize("name", ["plain.mp4", "sound.ts", "plain.mkv"])
@pytest.mark.parametrize("output", ["o.y4m", "o.ogv"])
def test_containers_that_count_frames_get_the_rate(run, clips, tmp_path, name, output):
    assert run("-q", clips[name], output, "-f", "null").code == 0
    assert video(tmp_path / output)["r_frame_rate"] == "25/1"
    assert len(tools.decode_hashes(tmp_path / output)) == len(tools.decode_hashes(clips[name]))


def test_frames_too_close_for_the_clock_are_dropped_and_counted(run, clips, tmp_path):
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x64:rate=400:duration=0.5", *tools.X264,
                 tmp_path / "fast.mp4")
    result = run("fast.mp4", "o.gif", "--json", "j.json")
    assert result.code == 3 and "clock" in result.stderr
    frames = json.loads((tmp_path / "j.json").read_text())["frames"]
    assert frames["in"] == 200 == frames["out"] + frames["dropped_clock"]
    assert len(packets(tmp_path / "o.gif")) == frames["out"] < 60


@pytest.mark.parametrize("pattern", ["no%04d.png", "no*.png"])
def test_a_sequence_without_files_is_an_input_error(run, tmp_path, pattern):
    result = run(pattern, "out.mkv")
    assert result.code == 4 and f"no file matches {pattern}" in result.stderr
    assert not list(tmp_path.iterdir())


# ---- what only the container or the picture knows ----


@pytest.mark.parametrize("output", ["o.mkv", "o.mp4"])
def test_an_aspect_that_only_the_container_knows_is_kept(run, clips, tmp_path, output):
    tools.ffmpeg("-i", clips["plain.mp4"], "-c:v", "libvpx-vp9", "-frames:v", 3, "-aspect", "16:9",
                 tmp_path / "wide.mkv")
    assert run("-q", "wide.mkv", output).code == 0
    assert video(tmp_path / output)["display_aspect_ratio"] == "16:9"


def test_chapters_end_with_the_output(run, clips, tmp_path):
    assert run("-q", clips["film.mp4"], "o.mp4", "--duration", "0.5").code == 0
    told = tools.probe(tmp_path / "o.mp4", "-show_chapters", "-show_format")
    assert [float(c["end_time"]) for c in told["chapters"]] == [pytest.approx(0.5, abs=0.05)]
    assert float(told["format"]["duration"]) < 1  # a subtitle lasts longer than the picture


def test_alpha_of_webm_comes_through(run, tmp_path):
    if not tools.has_encoder("libvpx-vp9"):
        pytest.skip("no libvpx-vp9 here")
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=64x64:d=0.2,format=yuva420p,colorchannelmixer="
                 "aa=0.5", "-c:v", "libvpx-vp9", "-pix_fmt", "yuva420p", tmp_path / "alpha.webm")
    assert run("-q", "alpha.webm", "o.png", "-f", "invert").code == 0
    assert video(tmp_path / "o.png")["pix_fmt"] == "rgba"
    assert run("-q", "alpha.webm", "o.mkv", "-f", "gray").code == 0
    assert "alpha_mode" not in {k.lower() for k in video(tmp_path / "o.mkv").get("tags", {})}


# ---- encoding ----


@pytest.mark.parametrize("output, codec, pixel", [
    ("out.mp4", "h264", "yuvj420p"), ("out.mov", "h264", "yuvj420p"),
    ("out.mkv", "h264", "yuvj420p"), ("out.ts", "h264", "yuvj420p"), ("out.webm", "vp9", "yuv420p"),
    ("out.avi", "h264", None), ("out.gif", "gif", None), ("out.y4m", "rawvideo", "gray"),
    ("out.png", "png", "gray"), ("out.nut", "ffv1", "gray"), ("out.jpg", "mjpeg", None)])
def test_default_encoder_suits_the_container(run, tmp_path, clips, output, codec, pixel):
    assert run("-q", "--frames", 5, clips["plain.mp4"], output).code == 0
    about = video(tmp_path / output)
    assert about["codec_name"] == codec
    assert pixel is None or about["pix_fmt"] == pixel


@pytest.mark.parametrize("name, output, pixel", [
    ("deep.mp4", "out.y4m", "yuv420p10le"), ("deep.mp4", "out.nut", "yuv420p10le"),
    ("deep.mp4", "out.png", "rgb48be"), ("deep.mp4", "out.tiff", "rgb48le"),
    ("format-gray10le.mkv", "out.png", "gray16be"), ("format-gbrp10le.mkv", "out.png", "rgb48be"),
    ("format-yuv422p10le.mkv", "out.mov", "yuv422p10le"),
    ("format-gray16le.mkv", "out.nut", "gray16le")])
def test_depth_is_kept_where_the_encoder_can(run, tmp_path, clips, name, output, pixel):
    encoder = ["-c:v", "prores_ks"] if output.endswith(".mov") else []
    assert run("-q", "--frames", 2, "-f", "brightness=1", clips[name], output, *encoder).code == 0
    assert video(tmp_path / output)["pix_fmt"] == pixel


@pytest.fixture(scope="module")
def even(clips, tmp_path_factory):
    """A frame or two of even size in many formats."""
    folder = tmp_path_factory.mktemp("even")
    for pixels in ("yuv422p10le", "yuv444p", "gbrp10le", "rgb24", "gray10le", "yuv420p10le", "yuva420p"):
        tools.ffmpeg("-i", clips["plain.mp4"], "-frames:v", 2, "-pix_fmt", pixels, "-c:v",
                     "rawvideo" if pixels == "rgb24" else "ffv1", folder / f"{pixels}.nut")
    return folder


@pytest.mark.parametrize("chain", ["gray,sobel", "invert"])
@pytest.mark.parametrize("output, encoder, deep", [
    ("o.mp4", [], False), ("o.mov", [], False), ("o.mkv", [], False), ("o.webm", [], False),
    ("o.mp4", ["-c:v", "libx265"], True), ("o.mkv", ["-c:v", "libaom-av1", "--option", "cpu-used=8"], True),
    ("o.mkv", ["-c:v", "mpeg4"], False), ("o.mpg", ["-c:v", "mpeg2video"], False)],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_what_is_written_by_default_plays_everywhere(run, tmp_path, even, output, encoder, deep, chain):
    """4:2:0 of 8 bits, of HEVC and AV1 also of 10, whatever the source and the chain have."""
    kinds = ["yuv420p", "yuvj420p", "yuva420p"] + ["yuv420p10le"] * deep
    for source in sorted(even.iterdir()):
        result = run("--frames", 2, "-f", chain, source, output, "-y", *encoder)
        assert result.code == 0, result.stderr
        assert video(tmp_path / output)["pix_fmt"] in kinds, source.name
        if not deep and "10le" in source.name and not encoder:
            assert "plays everywhere; --pix-fmt yuv" in result.stderr


@pytest.mark.parametrize("output, pixel", [("o.mp4", "yuv444p"), ("o.webm", "yuv420p")])
def test_odd_sizes_play_where_the_encoder_can(run, tmp_path, clips, output, pixel):
    result = run("--frames", 2, clips["format-yuv422p10le.mkv"], output)
    assert result.code == 0 and ("few players" in result.stderr) == (pixel == "yuv444p")
    about = video(tmp_path / output)
    assert (about["width"], about["height"]) == (161, 121)
    assert about["pix_fmt"].replace("j", "") == pixel


@pytest.mark.parametrize("chain", ["gray", "invert"])
def test_an_output_beside_another_plays_everywhere(run, tmp_path, even, chain):
    """The first one's format is gray, or RGB, which the encoder of the second would take, too."""
    assert run("-q", "-f", chain, even / "rgb24.nut", "a.png", "-o", "b.mp4", "-o", "c.webm", "-y").code == 0
    for name in ("b.mp4", "c.webm"):
        about = video(tmp_path / name)
        assert about["pix_fmt"] in ("yuv420p", "yuvj420p")
        assert about.get("color_space") not in ("gbr", "rgb")
        assert about.get("color_range") == "pc"


@pytest.mark.parametrize("name, output, arguments, pixel, range", [
    ("deep.mp4", "o.mp4", ["--pix-fmt", "yuv420p10le"], "yuv420p10le", "tv"),
    ("plain.mp4", "o.mp4", ["--pix-fmt", "yuv444p"], "yuv444p", "tv"),
    ("plain.mp4", "o.mkv", ["-c:v", "ffv1", "--pix-fmt", "bgr0"], "bgr0", None),
    ("plain.mp4", "o.mp4", ["-f", "gray", "--range", "limited"], "yuv420p", "tv"),
    ("plain.mp4", "o.mkv", ["-f", "gray", "-c:v", "ffv1", "--pix-fmt", "gray", "--range", "limited"], "gray", "tv"),
    ("plain.mp4", "o.mp4", ["--range", "full"], "yuvj420p", "pc"),
    ("plain.mp4", "o.webm", ["-f", "gray", "--range", "limited"], "yuv420p", "tv"),
    ("plain.mp4", "o.y4m", ["-f", "gray", "--range", "limited"], "gray", "tv"),
    ("plain.mp4", "o.png", ["--pix-fmt", "rgba"], "rgba", None),
    ("still.png", "o.gif", ["--pix-fmt", "rgb8"], "bgra", None)])
def test_the_format_of_an_output_can_be_chosen(run, tmp_path, clips, name, output, arguments, pixel, range):
    chain = [] if "-f" in arguments else ["-f", "null"]
    result = run("-q", "--frames", 1, clips[name], output, *chain, *arguments)
    assert result.code == 0, result.stderr
    about = video(tmp_path / output)
    assert about["pix_fmt"] == pixel and (range is None or about.get("color_range", "tv") == range)


def raw(run, clip, *arguments):
    result = run("-q", "--frames", 1, clip, "-", "-F", "rawvideo", *arguments)
    assert result.code == 0, result.stderr
    return np.frombuffer(result.stdout, np.uint8).astype(int)


def test_rgb_comes_of_yuv_for_those_who_calculate(run, clips):
    """Of 4:4:4, where chroma is as it is: the inverse of BT.601's matrix."""
    source = clips["format-yuv444p.mkv"]
    y, u, v = raw(run, source, "-f", "null").reshape(3, 121, 161)
    y, u, v = (y - 16) * 255 / 219, (u - 128) * 255 / 224, (v - 128) * 255 / 224
    want = np.stack([y + 1.402 * v, y - 0.344136 * u - 0.714136 * v, y + 1.772 * u], axis=2)
    got = raw(run, source, "-f", "null", "--pix-fmt", "rgb24").reshape(121, 161, 3)
    assert np.abs(got - np.clip(want, 0, 255)).max() <= 1


def test_gray_of_limited_range_is_the_luma_of_the_source(run, clips):
    """Expanded for the stage and back: within one code of what it was."""
    luma = raw(run, clips["plain.mp4"], "-f", "null")[:160 * 120]
    gray = raw(run, clips["plain.mp4"], "-f", "gray", "--pix-fmt", "gray", "--range", "limited")
    full = raw(run, clips["plain.mp4"], "-f", "gray")
    assert np.abs(gray - np.clip(luma, 16, 235)).max() <= 1
    assert np.abs(full - np.clip((luma - 16) * 255 / 219, 0, 255)).max() <= 1


@pytest.mark.parametrize("arguments, words", [
    (["out.mp4", "--pix-fmt", "puce"], ["puce", "no pixel format"]),
    (["out.mp4", "--pix-fmt", "cuda"], ["no pixel format of pictures in memory"]),
    (["out.mp4", "--pix-fmt", "rgb24"], ["libx264 does not take it", "yuv420p"]),
    (["out.y4m", "--pix-fmt", "nv12"], ["--pix-fmt nv12"]),
    (["hash:-", "--pix-fmt", "pal8"], ["pal8"]), (["out.gif", "--pix-fmt", "pal8"], ["pal8"]),
    (["out.mp4", "--range", "tv"], ["'tv'", "limited"]),
    (["out.jpg", "--range", "limited"], ["mjpeg", "always of full range"]),
    (["out.avi", "-c:v", "mpeg4", "--range", "full"], ["mpeg4", "always of limited range"]),
    (["out.mkv", "-c:v", "ffv1", "--pix-fmt", "bgr0", "--range", "limited"], ["full range by definition"]),
    (["out.mkv", "-o", "hash:-", "--pix-fmt", "gray", "-o", "null:", "--pix-fmt", "rgb24"], ["all the same"]),
], ids=lambda value: " ".join(value))
def test_formats_that_an_output_cannot_have_are_refused(run, tmp_path, arguments, words):
    refused(run("missing.mp4", *arguments), tmp_path, *words)


def test_colours_become_gray_by_a_stage_only(run, tmp_path, clips):
    refused(run(clips["plain.mp4"], "out.png", "-f", "null", "--pix-fmt", "gray"), tmp_path, "'gray'")


def test_outputs_of_one_picture_have_formats_of_their_own(run, tmp_path, clips):
    """libswscale makes those of the others."""
    assert run("-q", clips["plain.mp4"], "a.mkv", "-c:v", "ffv1", "--pix-fmt", "gray", "-f", "gray",
               "-o", "b.mkv", "-c:v", "ffv1", "--pix-fmt", "yuv444p", "--range", "limited", "-o", "c.mp4").code == 0
    told = [video(tmp_path / name) for name in ("a.mkv", "b.mkv", "c.mp4")]
    assert [about["pix_fmt"] for about in told] == ["gray", "yuv444p", "yuvj420p"]
    assert told[1]["color_range"] == "tv"


def test_encoder_options_reach_the_encoder(run, tmp_path, clips):
    source = clips["plain.mp4"]
    sizes = {}
    for name, options in {"good": ["--crf", 10], "bad": ["--crf", 45],
                          "tight": ["-b:v", "50k"], "named": ["-c:v", "libx264", "--option", "crf=45"],
                          "mpeg4": ["-c:v", "mpeg4", "--option", "global_quality=236", "--option", "flags=+qscale"],
                          }.items():
        assert run("-q", source, f"{name}.mkv", *options).code == 0, name
        sizes[name] = (tmp_path / f"{name}.mkv").stat().st_size
    assert sizes["bad"] < sizes["tight"] < sizes["good"]
    assert sizes["named"] == sizes["bad"]
    assert video(tmp_path / "mpeg4.mkv")["codec_name"] == "mpeg4"


def test_preset_and_generic_options_reach_the_encoder(run, tmp_path, clips):
    assert run("-q", clips["plain.mp4"], "out.mkv", "--preset", "ultrafast", "--option", "g=10").code == 0
    keys = [k for k, p in enumerate(packets(tmp_path / "out.mkv")) if "K" in p["flags"]]
    assert keys == [0, 10, 20, 30, 40]
    assert run("-q", clips["plain.mp4"], "x.mkv", "--option", "x264-params=keyint=7:scenecut=0").code == 0
    assert "K" in packets(tmp_path / "x.mkv")[7]["flags"]


def test_container_options_reach_the_container(run, tmp_path, clips):
    for options, first in (([], b"mdat"), (["--option", "movflags=+faststart"], b"moov")):
        assert run("-q", clips["plain.mp4"], "out.mp4", "-y", *options).code == 0
        data = (tmp_path / "out.mp4").read_bytes()
        assert min((b"moov", b"mdat"), key=data.index) == first
        assert len(packets(tmp_path / "out.mp4")) == 50


# ---- messages ----


def test_quiet_run_says_nothing(run, clips):
    result = run("-q", clips["film.mkv"], "out.mp4")
    assert result == (0, b"", "")


def test_quiet_run_still_says_what_failed(run):
    result = run("--quiet", "missing.mp4", "out.mp4")
    assert result.code == 4 and result.stderr.count("\n") == 1 and "missing.mp4" in result.stderr


def test_summary_has_verdict_and_ledger(run, clips):
    result = run(clips["plain.mp4"], "out.mp4")
    assert not result.stdout
    assert re.search(r"^out\.mp4  50 frames of 160x120 in [\d.]+ s: [\d.]+ fps", result.stderr, re.M)
    assert re.search(r"^frames +50 in = 50 out$", result.stderr, re.M)
    brief = run(clips["plain.mp4"], "o.png", "--frames", 1)
    assert "o.png  1 frame of" in brief.stderr and "verdict" not in brief.stderr


def test_what_is_left_out_is_said_once(run, clips):
    result = run(clips["film.mp4"], "out.avi")
    assert len(re.findall(r"stream \d+ \(subtitle, mov_text\) is left out: \w", result.stderr)) == 1


def test_streams_that_the_container_takes_are_not_left_out(run, clips):
    for name, output in (("film.mkv", "a.mkv"), ("film.mp4", "b.mp4"), ("film.mov", "c.mov"),
                         ("sound.ts", "d.ts"), ("sound.webm", "e.webm")):
        assert "left out" not in run(clips[name], output, "--frames", 5).stderr


def slow_run(clips, arguments, stderr, seconds=2.6, env=None):
    """Feed raw frames slowly, so that progress shows."""
    process = subprocess.Popen([tools.SLUICE, "-F", "rawvideo", "--size", "64x48", "--pixfmt",
                                "gray", "-", "null:", *arguments], stdin=subprocess.PIPE,
                               stderr=stderr, env=tools.environment(env))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        process.stdin.write(bytes(64 * 48))
        process.stdin.flush()
        time.sleep(0.02)
    process.stdin.close()
    return process


def test_progress_off_a_terminal_is_a_line_a_second(clips, tmp_path):
    with open(tmp_path / "log", "w") as log:
        assert slow_run(clips, [], log).wait(10) == 0
    text = (tmp_path / "log").read_text()
    lines = re.findall(r"^frame \d+  [\d.]+ fps  [\d.]+x  \d\d:\d\d:\d\d.*$", text, re.M)
    assert len(lines) == 2
    assert "\r" not in text and "\033" not in text


def on_terminal(command, env, columns=0):
    """Run under a pseudo-terminal; returns what it would show."""
    try:
        ours, theirs = pty.openpty()
    except OSError:
        pytest.skip("no pseudo-terminals here")
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    process = command(theirs, env)
    os.close(theirs)
    shown = b""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        ready, _, _ = select.select([ours], [], [], 0.2)
        if ready:
            try:
                data = os.read(ours, 65536)
            except OSError:
                break
            if not data:
                break
            shown += data
    os.close(ours)
    assert process.wait(10) is not None
    return shown.decode()


def test_progress_on_a_terminal_stays_in_place(clips):
    shown = on_terminal(lambda to, env: slow_run(clips, [], to, 1.6, env), {"TERM": "xterm"})
    assert len(re.findall(r"\r\033\[Kframe \d+", shown)) >= 2
    assert not re.search(r"frame \d+  [^\r]*\n", shown)
    assert "verdict" in shown


@pytest.mark.parametrize("columns", [120, 60, 54, 30, 12, 6])
def test_progress_never_fills_a_line_of_the_terminal(clips, columns):
    """It would wrap then, and could not be replaced."""
    shown = on_terminal(lambda to, env: slow_run(clips, [], to, 1.2, env), {"TERM": "xterm"}, columns)
    lines = re.findall(r"\r\033\[K(frame[^\r\n\033]*)", shown)
    assert lines and all(len(line) < columns for line in lines)
    assert "fps" in lines[-1] or columns < 60


@pytest.mark.parametrize("term", ["dumb", ""])
def test_no_escape_codes_for_a_terminal_that_takes_none(clips, term):
    shown = on_terminal(lambda to, env: slow_run(clips, ["-f", "gray"], to, 1.6, env), {"TERM": term})
    assert re.search(r"^frame \d+ .*\n", shown.replace("\r\n", "\n"), re.M)
    assert "\033" not in shown and "\r" not in shown.replace("\r\n", "")


# x264 looks at all of the frames before it gives the first: nearly all of its work is in the flush.
LATE = ["--preset", "placebo", "--option", "rc-lookahead=250", "--option", "threads=1"]


@pytest.fixture
def late(tmp_path):
    tools.ffmpeg("-f", "lavfi", "-i", "mandelbrot=size=480x270:rate=25", "-frames:v", 60, "-c:v", "ffv1",
                 "-pix_fmt", "yuv420p", tmp_path / "in.mkv")


def test_progress_says_that_the_encoder_gives_what_it_holds(run, late):
    result = run("in.mkv", "out.mkv", *LATE)
    ending = re.findall(r"^frame 60  .*  encoding the last (\d+)  (\d+) %  ETA .*$", result.stderr, re.M)
    held = [int(frames) for frames, _ in ending]
    assert held == sorted(held, reverse=True) and held[-1] < held[0] <= 60, result.stderr
    assert all(int(part) < 100 for frames, part in ending if int(frames) > 0)


def test_progress_of_what_was_stopped_is_of_the_frames_that_are_in(tmp_path, late):
    tools.ffmpeg("-stream_loop", 9, "-i", tmp_path / "in.mkv", "-c", "copy", tmp_path / "long.mkv")
    job = subprocess.Popen([tools.SLUICE, "long.mkv", "out.mkv", "-f", "null", "--preset", "slower",
                            "--option", "threads=1"], cwd=tmp_path, text=True, stderr=subprocess.PIPE,
                           env=tools.environment())
    while not job.stderr.readline().startswith("frame "):
        pass
    job.send_signal(signal.SIGINT)
    said = job.communicate(timeout=20)[1]
    lines = re.findall(r"^frame (\d+)  .*  encoding the last (\d+)(?:  (\d+) %)?", said, re.M)
    assert job.returncode == 130, said
    for frames, held, part in lines:
        assert int(part or 0) == pytest.approx(100 - 100 * int(held) / int(frames), abs=1), said


@pytest.mark.parametrize("outputs", [["out.mkv", *LATE], ["out.mkv", *LATE, "-o", "hash:h.txt"],
                                     ["hash:h.txt", "-o", "out.mkv", *LATE]])
def test_verdict_counts_the_flush_of_every_output(run, tmp_path, late, outputs):
    assert run("-q", "in.mkv", *outputs, "--json", "j.json").code == 0
    pace = json.loads((tmp_path / "j.json").read_text())["pace"]
    assert pace["busy"]["encode"] > 0.6 and pace["bottleneck"] == "encode", pace


@pytest.mark.parametrize("env, coloured", [
    ({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
    ({"TERM": "dumb"}, False)])
def test_colour_only_where_it_is_wanted(env, coloured):
    def command(to, env):
        return subprocess.Popen([tools.SLUICE, "missing.mp4", "out.mp4"], stderr=to,
                                stdin=subprocess.DEVNULL, env=tools.environment(env))

    assert ("\033[31m" in on_terminal(command, env)) == coloured


def test_json_tells_machines_everything(run, tmp_path, clips):
    assert run("-q", clips["film.mkv"], "out.mp4", "--json", "out.json", "--threads", 2).code == 0
    told = json.loads((tmp_path / "out.json").read_text())
    assert told["exit"] == 0 and told["status"] == "done" and told["version"].startswith("sluice ")
    assert told["input"]["name"] == str(clips["film.mkv"]) and told["input"]["codec"] == "h264"
    assert (told["input"]["width"], told["input"]["height"]) == (160, 120)
    assert told["output"]["name"] == "out.mp4" and told["output"]["encoder"] == "libx264"
    assert told["output"]["bytes"] == (tmp_path / "out.mp4").stat().st_size
    assert told["frames"]["in"] == told["frames"]["out"] == 50
    assert told["frames"]["damaged_frames"] == 0 and told["frames"]["truncated"] is False
    assert told["time"]["wall_s"] > 0 and told["time"]["media_s"] == pytest.approx(2, abs=0.1)
    assert told["pace"]["bottleneck"] in told["pace"]["busy"] and told["pace"]["verdict"]
    assert told["run"]["backend"] in ("cpu", "cuda")


def test_json_goes_to_standard_output(run, clips):
    result = run("-q", clips["plain.mp4"], "null:", "--json", "-")
    assert json.loads(result.text)["frames"]["out"] == 50


def test_json_is_text_whatever_the_name(run, tmp_path, clips):
    name = os.fsencode(tmp_path) + b"/\xff\xfe.mkv"
    with open(name, "wb") as file:
        file.write(clips["plain.mkv"].read_bytes())
    result = tools.execute([tools.SLUICE, "-q", os.fsdecode(name), "null:", "--json", "out.json"],
                           cwd=tmp_path)
    assert result.code == 0, result.stderr
    assert json.loads((tmp_path / "out.json").read_text())["frames"]["out"] == 50


def test_json_of_an_earlier_run_does_not_speak_for_a_failed_one(run, tmp_path, clips):
    assert run("-q", clips["plain.mp4"], "out.mkv", "--json", "out.json").code == 0
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        page = "%s:%d" % taken.getsockname()
        for arguments in (["missing.mp4", "new.mkv"], [clips["sound.wav"], "new.mkv"],
                          [clips["plain.mp4"], "no/such/folder.mkv"], [clips["plain.mp4"], "new.mkv", "--page", page],
                          [clips["plain.mp4"], "new.mkv", "--journal", "no/such/journal"]):
            code = run("-q", "-y", *arguments, "--json", "out.json").code
            told = tools.load(tmp_path / "out.json")
            assert code != 0 and told["exit"] == code and told["error"], arguments


def test_json_that_cannot_be_written_is_an_output_error(run, clips):
    result = run("-q", clips["plain.mp4"], "null:", "--json", "no/such/folder.json")
    assert result.code == 5 and "no/such/folder.json" in result.stderr


def test_trace_is_a_timeline_of_every_thread_and_slot(run, tmp_path, clips):
    assert run("-q", clips["film.mkv"], "out.mp4", "--trace", "t.json", "--ring", 3).code == 0
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert list(tracks.values())[:8] == ["start", "demux", "decode", "submit", "encode",
                                         "mux", "device", "slot 0 upload"]
    assert len(tracks) == 7 + 3 * 3
    spans = [e for e in events if e["ph"] == "X"]
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in spans)
    for name, frames in (("decode", 50), ("submit", 50), ("encode", 50), ("filter", 50)):
        seen = {e["args"]["frame"] for e in spans if e["name"] == name and "args" in e}
        assert seen == set(range(frames)), name
    filters = [e for e in spans if e["name"] == "filter"]
    assert {tracks[e["tid"]] for e in filters} == {f"slot {k} filter" for k in range(3)}
    for track in tracks:
        own = sorted((e["ts"], e["ts"] + e["dur"]) for e in spans if e["tid"] == track)
        assert all(a[1] <= b[0] + 0.002 for a, b in zip(own, own[1:])), tracks[track]


def test_trace_that_cannot_be_written_is_an_output_error(run, clips):
    result = run("-q", clips["plain.mp4"], "null:", "--trace", "no/such/folder.json")
    assert result.code == 5 and "no/such/folder.json" in result.stderr


def test_bench_measures_the_chain_in_memory_and_around_a_file(run, tmp_path, clips):
    result = run("bench", clips["plain.mp4"], "-f", "invert", "--quick", "--json", "b.json",
                 "--chart", "b.svg", "--backend", "cpu")
    assert result.code == 0, result.stderr
    rows = json.loads((tmp_path / "b.json").read_text())["rows"]
    assert all("row kernels for" in r["device"] for r in rows)
    assert [(r["group"], r["size"]) for r in rows] == [
        ("memory", "1080p"), ("memory", "4K"), ("memory", "8K")] + 4 * [("file", "")]
    assert all(0 < r["low"] <= r["median"] <= r["high"] for r in rows)
    assert rows[4]["ratio"] == pytest.approx(rows[4]["median"] / rows[3]["median"], rel=0.01)
    assert "invert" in result.text and "Filtering costs" in result.text
    chart = ElementTree.parse(tmp_path / "b.svg").getroot()
    assert len(chart.findall("{*}rect")) == 1 + len(rows)
    texts = tools.check_chart(chart, json.loads((tmp_path / "b.json").read_text())["processor"])
    assert {"Gpx/s", "fps"} <= set(texts), "an axis without its unit"
    assert sum("thousand million pixels a second" in text for text in texts) == 1
    assert sum("frames a second" in text for text in texts) == 1


def test_long_chain_is_whole_in_table_and_chart(run, tmp_path):
    chain = ",".join(["gray", "gaussian=1.4", "sobel", *["invert", "brightness=2"] * 8])
    result = run("bench", "-f", chain, "--quick", "--backend", "cpu", "--size", "320x240", "--chart", "b.svg",
                 "--json", "b.json")
    chart = ElementTree.parse(tmp_path / "b.svg").getroot()
    texts = tools.check_chart(chart, json.loads((tmp_path / "b.json").read_text())["processor"])
    assert result.code == 0 and chain in result.text and chain in "".join(texts)


@pytest.mark.parametrize("pixfmt", ["gray", "gray16le"])
def test_bench_takes_one_size_and_depth(run, pixfmt):
    result = run("bench", "-f", "sobel", "--quick", "--json", "-", "--backend", "cpu", "--size",
                 "320x240", "--pixfmt", pixfmt)
    (row,) = json.loads(result.text)["rows"]
    assert row["size"] == "320x240" and row["median"] > 0
    assert run("bench", "--size", "wide").code == run("bench", "--pixfmt", "rgb24").code == 2


def test_bench_of_a_chain_that_leaves_colours(run):
    result = run("bench", "-f", "wavelet=1:2:show=scale", "--quick", "--backend", "cpu", "--size", "65x47")
    assert result.code == 0 and "65x47" in result.text, result.stderr


def test_bench_refuses_what_filtering_refuses(run):
    assert run("bench", "-f", "gausian").code == 2
    assert run("bench", "missing.mp4", "-f", "invert", "--quick").code == 4


# ---- strictness ----


def test_damage_is_exit_3_and_with_strict_1(run, tmp_path, clips):
    damaged = tools.flipped(clips["film.mp4"], tmp_path / "damaged.mp4")
    result = run(damaged, "out.mkv")
    assert result.code == 3 and "damaged" in result.stderr
    assert len(packets(tmp_path / "out.mkv")) > 10
    assert run("-q", damaged, "strict.mkv", "--strict").code == 1


def test_strict_does_not_mind_whole_input(run, clips):
    assert run("-q", clips["film.mp4"], "out.mkv", "--strict").code == 0


@pytest.mark.parametrize("option, count", [("--verify", 50), ("--verify=1", 50), ("--verify=7", 8),
                                           ("--verify=100", 1)])
def test_verify_recomputes_every_nth_frame(run, clips, option, count):
    result = run("-q", clips["plain.mp4"], "null:", option, "--json", "-")
    assert result.code == 0
    assert json.loads(result.text)["frames"]["verified"] == count


@pytest.mark.parametrize("arguments", [["--backend", "cuda"], ["--hwdec", "require"],
                                       ["--backend", "cuda", "--device", "0,1"],
                                       ["--backend", "cuda", "--device", "all"],
                                       ["--device", "3"], ["--device", "0"], ["--device", "all"]])
def test_a_gpu_that_is_not_there_is_a_device_error(run, tmp_path, clips, cuda, arguments):
    if cuda:
        pytest.skip("there is a GPU")
    result = run(clips["plain.mp4"], "out.mp4", *arguments)
    assert result.code == 6 and "GPU" in result.stderr
    assert not list(tmp_path.iterdir())


# ---- changes while it runs ----


def talk(path, *lines):
    """Send lines to a control socket; its answers."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(path))
        client.sendall("".join(line + "\n" for line in lines).encode())
        answers = client.makefile()
        return [json.loads(answers.readline()) for _ in lines]


@pytest.fixture
def playing(request, tmp_path, clips):
    """A run of a film or another input that takes its time, with a control socket."""
    process = subprocess.Popen(
        [tools.SLUICE, "--live", getattr(request, "param", clips["film.mkv"]), "hash:out.txt", "-f", "gray,gaussian=1.4",
         "--control", "sock", "--journal", "journal", "-q"], cwd=tmp_path,
        stderr=subprocess.PIPE, text=True, env=tools.environment())
    for _ in range(500):
        if (tmp_path / "sock").exists() or process.poll() is not None:
            break
        time.sleep(0.01)
    yield process
    process.kill()
    process.wait()


def hashes(file):
    return [line.split(",")[-1].strip() for line in file.read_text().splitlines()
            if not line.startswith("#")]


def test_control_changes_frames_exactly_and_the_journal_replays_it(run, tmp_path, clips, playing):
    sock = tmp_path / "sock"
    assert talk(sock, "get") == [{"ok": True, "chain": "gray,gaussian=sigma=1.4"}]
    time.sleep(0.5)
    assert talk(sock, "set gaussian.sigma=3")[0]["chain"] == "gray,gaussian=sigma=3"
    time.sleep(0.4)
    assert talk(sock, "chain invert,sobel")[0]["ok"]
    assert talk(sock, "stats")[0]["frames"] > 5
    assert playing.wait(20) == 0, playing.stderr.read()
    assert not sock.exists()
    journal = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert [line["chain"] for line in journal] == [
        "gray,gaussian=sigma=1.4", "gray,gaussian=sigma=3", "invert,sobel"]
    assert 0 <= journal[0]["pts_us"] < journal[1]["pts_us"] < journal[2]["pts_us"]
    assert run("-q", clips["film.mkv"], "hash:again.txt", "--replay", "journal").code == 0
    live = hashes(tmp_path / "out.txt")
    assert hashes(tmp_path / "again.txt") == live and len(live) == 50
    whole = []
    for chain in ("gray,gaussian=1.4", "gray,gaussian=3", "invert,sobel"):
        assert run("-q", "-y", clips["film.mkv"], "hash:one.txt", "-f", chain).code == 0
        whole.append(hashes(tmp_path / "one.txt"))
    kinds = [next(k for k in range(3) if whole[k][n] == live[n]) for n in range(50)]
    assert kinds == sorted(kinds) and set(kinds) == {0, 1, 2}


def test_control_refuses_by_name_and_changes_nothing(tmp_path, playing):
    sock = tmp_path / "sock"
    answers = talk(sock, "set gaussian.sigma=-1", "set sobel.norm=l2", "set gaussian.sigma=2,gray.x=1",
                   "chain gausian=1", "what", "", "get")
    assert not any(answer["ok"] for answer in answers[:-1])
    assert "range" in answers[0]["error"] and "did you mean" in answers[3]["error"]
    assert answers[-1]["chain"] == "gray,gaussian=sigma=1.4"
    with socket.socket(socket.AF_UNIX) as rude: # too long, then gone
        rude.connect(str(sock))
        rude.sendall(b"x" * 10000)
    assert talk(sock, "quit") == [{"ok": True}]
    assert playing.wait(5) == 0


@pytest.mark.parametrize("playing", ["lavfi:testsrc=size=160x120:rate=25"], indirect=True)
def test_ctl_asks_from_the_command_line(run, tmp_path, playing):
    assert json.loads(run("ctl", "sock", "get").text)["ok"]
    assert run("ctl", "sock", "set", "gaussian.sigma=2").code == 0
    assert run("ctl", "sock", "set", "gaussian.sigma=x").code == 2
    assert run("ctl", "nosock", "get").code == 4
    assert run("ctl", "sock").code == 2
    assert run("-q", "--control", "sock", "x.mkv", "null:").code != 0
    assert oct((tmp_path / "sock").stat().st_mode)[-3:] == "600"


def test_journal_that_is_none_is_refused(run, tmp_path, clips):
    for text in ("", "{", '{"pts_us": 1}', '[1]', '{"pts_us":0,"chain":"gray"}\nx\n'):
        (tmp_path / "j").write_text(text)
        result = run("-q", clips["plain.mp4"], "null:", "--replay", "j")
        assert result.code == 2 and "no journal" in result.stderr, text
    result = run("-q", clips["plain.mp4"], "null:", "--replay", "/dev/zero")
    assert result.code == 2 and "line 1 is longer than 64 MiB" in result.stderr
    (tmp_path / "j").write_text('{"pts_us":0,"chain":"gray"}\n' * 1000001)
    assert "line 1000001 is one more" in run("-q", clips["plain.mp4"], "null:", "--replay", "j").stderr
    assert run("-q", clips["plain.mp4"], "null:", "--replay", "nosuch").code == 2
    (tmp_path / "j").write_text('{"pts_us":0,"chain":"gray"}')
    result = run("-q", clips["plain.mp4"], "null:", "--replay", "j", "--journal", "./j")
    assert result.code == 2 and (tmp_path / "j").read_text()
    (tmp_path / "j").write_text('{"pts_us":9000000,"chain":"gausian"}')
    assert "did you mean" in run("-q", clips["plain.mp4"], "null:", "--replay", "j").stderr


# ---- files that are written twice, or were read ----


@pytest.mark.parametrize("words, sentence", [
    (["out.mkv", "-f", "tee=a.mkv,gray", "--json", "a.mkv"], "a.mkv is named twice as an output"),
    (["out.mkv", "-f", "stats=s", "--json", "./s"], "./s is named twice as an output"),
    (["out.mkv", "-f", "stats=s", "--journal", "s"], "s is named twice as an output"),
    (["out.mkv", "-f", "gray,wavelet=2:out=w", "--json", "w.json"], "w.json is named twice as an output"),
    (["out.mkv", "--json", "j", "--journal", "./j"], "j is named twice as an output"),
    (["out.mkv", "--trace", "j", "--json", "j"], "j is named twice as an output"),
    (["out.mkv", "--json", "out.mkv"], "out.mkv is named twice as an output"),
    (["out.mkv", "-o", "b.mkv", "--journal", "b.mkv"], "b.mkv is named twice as an output"),
    (["hash:b", "--journal", "b"], "b is named twice as an output"),
    (["link", "-F", "matroska", "-o", "hash:kernel.txt"], "kernel.txt is named twice as an output"),
    (["out.mkv", "--replay", "changes", "--json", "s"], "s is named twice as an output"),
    (["out.mkv", "--json", "in.mp4"], "input and output are the same file, in.mp4"),
    (["out.mkv", "--journal", "./in.mp4"], "input and output are the same file, ./in.mp4"),
    (["hash:kernel.txt", "-f", "convolve=kernel.txt"], "kernel and output are the same file, kernel.txt"),
    (["out.mkv", "-f", "convolve='./kernel.txt',stats=kernel.txt"], "kernel and output are the same file"),
    (["out.mkv", "-f", "sepconvolve=1 2 1:row.txt", "--json", "row.txt"], "kernel and output are the same"),
    (["out.mkv", "-f", "convolve=kernel.txt", "--json", "link"], "kernel and output are the same file, link"),
    (["out.mkv", "-f", "match=t.pgm", "--journal", "t.pgm"], "template and output are the same file, t.pgm"),
    (["out.mkv", "-f", "match=t.pgm,tee=t.pgm"], "template and output are the same file, t.pgm"),
    (["out.mkv", "-f", "match=t.pgm,gausian=2", "--json", "t.pgm"], "did you mean 'gaussian'"),
    (["out.mkv", "-f", "match=t.pgm,gausian=2", "--journal", "t.pgm"], "did you mean 'gaussian'"),
    (["out.mkv", "--replay", "later", "--json", "t.pgm"], "template and output are the same file, t.pgm"),
    (["out.mkv", "--replay", "later", "--journal", "t.pgm"], "template and output are the same file, t.pgm"),
    (["out.mkv", "--replay", "changes", "--json", "./changes"], "input and output are the same file, ./changes"),
    (["out.mkv", "--replay", "changes", "--trace", "changes"], "input and output are the same file, changes"),
    (["changes", "-F", "matroska", "--replay", "changes"], "input and output are the same file, changes"),
    (["-", "-F", "matroska", "--json", "-"], "- is named twice as an output"),
    (["out.mkv", "-f", "stats=-", "--json", "-"], "- is named twice as an output"),
    (["o%02d.png", "--json", "o01.png"], "o01.png is named twice as an output"),
    (["o%02d.png", "-f", "stats=./o17.png"], "./o17.png is named twice as an output"),
])
def test_a_file_that_is_used_is_not_written_again(tmp_path, clips, words, sentence):
    (tmp_path / "in.mp4").write_bytes(clips["plain.mp4"].read_bytes())
    (tmp_path / "kernel.txt").write_text("1 2 1\n2 4 2\n1 2 1\n")
    (tmp_path / "row.txt").write_text("1 2 1\n")
    (tmp_path / "link").symlink_to("kernel.txt")
    (tmp_path / "t.pgm").write_bytes(b"P5 4 4 255\n" + bytes(range(16)))
    (tmp_path / "changes").write_text('{"pts_us": 0, "chain": "gray,stats=s"}\n')
    (tmp_path / "later").write_text('{"pts_us": 0, "chain": "gray"}\n{"pts_us": 200000, "chain": "match=t.pgm"}\n')
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    result = tools.sluice("in.mp4", *words, "-y", cwd=tmp_path)
    assert result.code == 2 and sentence in result.stderr, result.stderr
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_several_outputs_may_go_nowhere(run, clips):
    result = run(clips["plain.mp4"], "null:", "-o", "null:", "-f", "tee=null:,gray")
    assert result.code == 0, result.stderr


@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind")
def test_the_command_line_is_not_leaked():
    result = tools.execute(["valgrind", "-q", "--leak-check=full", "--errors-for-leak-kinds=definite",
                            "--error-exitcode=9", tools.SLUICE, "--version"])
    assert result.code == 0, result.stderr


# ---- what is told ----


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=64x48,format=rgba", "-frames:v", 3, folder / "t%02d.png")
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=64x48,format=yuv420p10", "-frames:v", 3, "-c:v", "ffv1", folder / "deep.mkv")
    return folder


@pytest.mark.parametrize("source, output, said", [
    ("t01.png", "o.jpg", "rgba is written as yuv420p: its transparency is left out"),
    ("t01.png", "o.png", None),
    ("t%02d.png", "o.y4m", "its transparency is left out"),
    ("deep.mkv", "o.mpg", "yuv420p10le is written as yuv420p: 8 of its 10 bits are kept"),
    ("deep.mkv", "o.mkv", "which plays everywhere"),
    ("deep.mkv", "o.y4m", None),
])
def test_what_an_output_cannot_hold_is_said(run, pictures, source, output, said):
    result = run("-f", "null", pictures / source, output)
    assert result.code == 0, result.stderr
    assert (said in result.stderr) if said else " is written as " not in result.stderr, result.stderr


def test_a_start_behind_the_end_of_a_sequence_is_said(run, pictures):
    for source in ("t%02d.png", "t*.png", "deep.mkv"):
        result = run(pictures / source, "null:", "--start", 10)
        assert result.code == 4 and "no frame in the range that was asked for" in result.stderr, result.stderr


def test_strict_says_why_in_json(run, tmp_path, clips):
    tools.flipped(clips["film.mkv"], tmp_path / "bad.mkv", every=997)
    for option in ([], ["--strict"]):
        result = run(tmp_path / "bad.mkv", "null:", "--json", "o.json", "-y", *option)
        told = tools.load(tmp_path / "o.json")
        assert told["exit"] == result.code == (1 if option else 3)
        assert ("--strict" in told["error"]) if option else told["error"] is None


@pytest.mark.parametrize("words, hint", [
    (["o.mkv", "-c:v", "ffv1", "--crf", 20], False),
    (["o.mpg", "--crf", 20], True),
    (["o.mkv", "-c:v", "ffv1", "--preset", "fast"], False),
])
def test_a_bitrate_is_offered_where_it_may_do(run, clips, words, hint):
    result = run(clips["film.mkv"], *words)
    assert result.code == 2 and "no such option" in result.stderr and ("-b:v may do" in result.stderr) == hint
