"""The plugins of other programs, through those programs: frames equal the program's own."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tools

BUILD = Path(os.environ.get("SLUICE", tools.SLUICE)).resolve().parent
FREI0R = BUILD / "hosts" / "frei0r" / "sluice.so"
GSTREAMER = BUILD / "hosts" / "gstreamer" / "libgstsluice.so"
WIDTH, HEIGHT = 64, 33
CHAINS = ["gray,gaussian=1.4:border=mirror,sobel", "invert", "avgblur=2", "brightness=20,sharpen=1.5"]

need_frei0r = pytest.mark.skipif(not FREI0R.exists(), reason="no frei0r plugin: frei0r-plugins-dev is missing")
need_melt = pytest.mark.skipif(not shutil.which("melt"), reason="melt is missing")


def noise(size, seed=3):
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8).tobytes()


def by_sluice(chain, raw, pixfmt, width, height, wanted=None, more=()):
    done = tools.sluice("-F", "rawvideo", "--pix-fmt", pixfmt, "--size", f"{width}x{height}", "-", "-", "-F",
                        "rawvideo", "--pix-fmt", wanted or pixfmt, "-q", "-f", chain, *more, input=raw)
    assert done.code == 0, done.stderr
    return done.stdout


def by_host(command, folder, **env):
    """Run a host to its end. melt may wait for ever for a job so short that it ended before melt looked, with no
    thread but its own: then once more."""
    for patience in (30, 30, 240) if command[0] == "melt" else [240]:
        done = subprocess.run(["timeout", "-s", "KILL", str(patience), *command], cwd=folder, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, env=tools.environment(
                                  {"FREI0R_PATH": str(FREI0R.parent), "GST_PLUGIN_PATH": str(GSTREAMER.parent),
                                   "SDL_VIDEODRIVER": "dummy", **env}))
        if done.returncode not in (137, -9):
            break
    return done


# ---- frei0r ----


def by_frei0r(parameters, raw):
    escaped = parameters.replace(":", "\\:")
    done = subprocess.run(
        ["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgba", "-s", f"{WIDTH}x{HEIGHT}", "-i", "-",
         "-vf", f"frei0r=filter_name=sluice:filter_params='{escaped}'", "-f", "rawvideo", "-"],
        input=raw, capture_output=True, timeout=60, env=tools.environment({"FREI0R_PATH": str(FREI0R.parent)}))
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.decode()


@need_frei0r
@pytest.mark.parametrize("chain", CHAINS)
def test_frei0r_in_ffmpeg_is_the_program(chain):
    raw = noise(4 * WIDTH * HEIGHT * 3)
    for parameters in (chain, chain + "|scalar"):
        pictures, said = by_frei0r(parameters, raw)
        assert pictures == by_sluice(chain, raw, "rgba", WIDTH, HEIGHT) and said == ""


@need_frei0r
@pytest.mark.parametrize("parameters,sentence", [
    ("grayy", "sluice: there is no stage 'grayy'; did you mean 'gray'"),
    ("gblur=2", "sluice: ffmpeg's gblur is"),
    ("invert|gpu", "sluice: backend is 'gpu'; it can be auto, cuda, cpu or scalar"),
])
def test_frei0r_lets_pass_what_it_cannot_filter_and_says_so_once(parameters, sentence):
    raw = noise(4 * WIDTH * HEIGHT * 3)
    pictures, said = by_frei0r(parameters, raw)
    assert pictures == raw and said.count("sluice: ") == 1 and sentence in said


@need_frei0r
def test_frei0r_shows_its_host_nothing_else():
    said = subprocess.run(["nm", "-D", "--defined-only", FREI0R], capture_output=True, text=True, check=True).stdout
    assert {line.split()[2][:4] for line in said.splitlines()} == {"f0r_"}


@need_frei0r
@need_melt
def test_frei0r_in_melt_is_the_program(tmp_path):
    """Noise as a film of one key frame a picture; what melt shows of it without the filter is the input."""
    subprocess.run(["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgba", "-s", "64x48", "-r", "25", "-i", "-",
                    "-c:v", "png", "in.mov"], input=noise(4 * 64 * 48 * 3), cwd=tmp_path, check=True, timeout=60)
    shown = {}
    for chain in ("null", "gray,sobel"):
        command = ["melt", "-silent", "-profile", "atsc_720p_25", "in.mov", "-filter", "frei0r.sluice",
                   f"chain={chain}", "-consumer", "avformat:out.raw", "f=rawvideo", "vcodec=rawvideo",
                   "pix_fmt=rgba", "an=1", "real_time=-1", "mlt_image_format=rgba", "width=64", "height=48"]
        done = by_host(command, tmp_path)
        assert done.returncode == 0 and "sluice: " not in done.stderr, done.stderr
        shown[chain] = (tmp_path / "out.raw").read_bytes()
    assert len(shown["null"]) == 4 * 64 * 48 * 3
    assert shown["gray,sobel"] == by_sluice("gray,sobel", shown["null"], "rgba", 64, 48)


# ---- GStreamer ----

# Each format's bytes of one step of a row in each plane, the columns and rows that share it as powers of two,
# and the bits that samples have.
ONE, HALF = (1, 0, 0), (1, 1, 1)
FORMATS = {
    "I420": ("yuv420p", [ONE, HALF, HALF], 0xffff), "NV12": ("nv12", [ONE, (2, 1, 1)], 0xffff),
    "Y444": ("yuv444p", [ONE] * 3, 0xffff), "YUY2": ("yuyv422", [(4, 1, 0)], 0xffff),
    "GRAY8": ("gray", [ONE], 0xffff), "RGB": ("rgb24", [(3, 0, 0)], 0xffff), "BGRA": ("bgra", [(4, 0, 0)], 0xffff),
    "GBR": ("gbrp", [ONE] * 3, 0xffff), "I420_10LE": ("yuv420p10le", [(2, 0, 0), (2, 1, 1), (2, 1, 1)], 0x3ff),
    "P010_10LE": ("p010le", [(2, 0, 0), (4, 1, 1)], 0xffc0), "GRAY16_LE": ("gray16le", [(2, 0, 0)], 0xffff)}


@pytest.fixture(scope="module")
def gst(tmp_path_factory):
    """GStreamer with the plugin, or a reason why not."""
    if not GSTREAMER.exists():
        pytest.skip("no GStreamer plugin: libgstreamer-plugins-base1.0-dev is missing")
    gi = pytest.importorskip("gi", reason="python3-gi is missing")
    os.environ["GST_PLUGIN_PATH"] = str(GSTREAMER.parent)
    os.environ["GST_REGISTRY"] = str(tmp_path_factory.mktemp("gst") / "registry")
    try:
        for name in ("Gst", "GstApp", "GstVideo"):
            gi.require_version(name, "1.0")
        from gi.repository import Gst, GstApp, GstVideo
    except (ValueError, ImportError) as missing:
        pytest.skip(f"GStreamer's typelibs are missing: {missing}")
    assert GstApp
    Gst.init(None)
    Gst.video = GstVideo
    return Gst


def rows_of(format, width, height):
    """The bytes of a row, and rows, of each plane."""
    for step, right, down in FORMATS[format][1]:
        yield (width + (1 << right) - 1 >> right) * step, height + (1 << down) - 1 >> down


def pictures_of(format, width, height, count):
    """Noise, by ffmpeg's layout: no padding."""
    size = sum(row * rows for row, rows in rows_of(format, width, height))
    mask = FORMATS[format][2].to_bytes(2, "little") * ((size + 1) // 2)
    return [bytes(a & b for a, b in zip(noise(size, seed), mask)) for seed in range(count)]


def moved(gst, caps, width, height, raw, pack):
    """From ffmpeg's layout to GStreamer's, or back."""
    info = gst.video.VideoInfo.new_from_caps(caps)
    padded, at, out = bytearray(raw if not pack else b"\0" * info.size), 0, []
    for plane, (row, rows) in enumerate(rows_of(info.finfo.name.replace("-", "_"), width, height)):
        for y in range(rows):
            begin = info.offset[plane] + y * info.stride[plane]
            if pack:
                padded[begin:begin + row] = raw[at:at + row]
            out.append(bytes(padded[begin:begin + row]))
            at += row
    return bytes(padded) if pack else b"".join(out)


class Played:
    """What came out of `sluice`: frames without padding, their caps, and what the bus said."""

    def __init__(self, gst, chain, format, width, height, frames, before="", more="", wanted="", at_frame=None):
        caps = gst.Caps.from_string(f"video/x-raw,format={format},width={width},height={height},framerate=25/1{before}")
        self.pipeline = gst.parse_launch(
            f"appsrc name=in format=time ! sluice name=s {more} ! {wanted or 'identity'} ! appsink name=out sync=false")
        source, self.element, sink = (self.pipeline.get_by_name(n) for n in ("in", "s", "out"))
        source.set_property("caps", caps)
        self.element.set_property("chain", chain)
        seen = []
        if at_frame:
            def probe(pad, info):
                at_frame(self.element, len(seen))
                seen.append(info)
                return gst.PadProbeReturn.OK
            self.element.get_static_pad("sink").add_probe(gst.PadProbeType.BUFFER, probe)
        self.pipeline.set_state(gst.State.PLAYING)
        for k, frame in enumerate(frames):
            buffer = gst.Buffer.new_wrapped(moved(gst, caps, width, height, frame, True))
            buffer.pts, buffer.duration = k * gst.SECOND // 25, gst.SECOND // 25
            source.emit("push-buffer", buffer)
        source.emit("end-of-stream")
        self.frames, self.times, self.caps, self.messages = [], [], None, []
        while sample := sink.emit("try-pull-sample", 20 * gst.SECOND):
            self.caps = sample.get_caps()
            buffer = sample.get_buffer()
            data = buffer.extract_dup(0, buffer.get_size())
            self.frames.append(moved(gst, self.caps, width, height, data, False))
            self.times.append(buffer.pts)
        self.ended = sink.get_property("eos")
        kinds = gst.MessageType.ERROR | gst.MessageType.WARNING
        while message := self.pipeline.get_bus().pop_filtered(kinds):
            parse = message.parse_error if message.type == gst.MessageType.ERROR else message.parse_warning
            self.messages.append((message.type.first_value_nick, message.src.name, parse()[0].message))
        self.plan = self.element.get_property("plan")
        self.pipeline.set_state(gst.State.NULL)


@pytest.mark.parametrize("format", FORMATS)
def test_gstreamer_is_the_program(gst, format):
    pixfmt = FORMATS[format][0]
    for chain, (width, height) in zip(CHAINS, [(64, 48), (33, 31), (1, 1), (322, 7)]):
        width += width % 2 if format == "YUY2" else 0  # else its last group has a sample of no picture
        frames = pictures_of(format, width, height, 3)
        played = Played(gst, chain, format, width, height, frames)
        assert played.ended and played.messages == []
        assert played.caps.get_structure(0).get_string("format") == format
        assert played.times == [k * gst.SECOND // 25 for k in range(3)]
        of_range = ["--range", "limited"] if pixfmt[:2] in ("yu", "nv", "p0") else []
        assert b"".join(played.frames) == by_sluice(chain, b"".join(frames), pixfmt, width, height, more=of_range)


def test_gstreamer_negotiates_another_format(gst):
    frames = pictures_of("I420", 33, 31, 2)
    for wanted in ("GRAY8", "RGB", "I420_10LE"):
        played = Played(gst, "gray,sobel", "I420", 33, 31, frames, wanted=f"video/x-raw,format={wanted}")
        assert played.caps.get_structure(0).get_string("format") == wanted and played.messages == []
        of_range = ["--range", "limited"] if wanted == "I420_10LE" else []
        assert b"".join(played.frames) == by_sluice("gray,sobel", b"".join(frames), "yuv420p", 33, 31,
                                                    FORMATS[wanted][0], of_range)


TO_RGB = "videoconvert ! video/x-raw,format=RGB"


@pytest.mark.parametrize("colorimetry", ["bt601", "bt709", "bt2020", "1:3:5:1"])
def test_gstreamer_says_the_colours_of_another_format(gst, colorimetry):
    """videoconvert makes the same RGB of what comes out as of what went in, as far as its short cuts are exact."""
    frame = bytes([120]) * (64 * 48) + bytes([90]) * (32 * 24) + bytes([200]) * (32 * 24)
    before = f",colorimetry={colorimetry},chroma-site=jpeg"
    want, = Played(gst, "null", "I420", 64, 48, [frame], before=before, wanted=TO_RGB).frames
    for format in ("NV12", "Y444", "I420_10LE", "RGB"):
        wanted = f"video/x-raw,format={format}"
        played = Played(gst, "null", "I420", 64, 48, [frame], before=before, wanted=f"{wanted} ! {TO_RGB}")
        a, b = (np.frombuffer(x, np.uint8).astype(int) for x in (played.frames[0], want))
        assert np.abs(a - b).max() <= 5 and played.messages == [], format
        said = Played(gst, "null", "I420", 64, 48, [frame], before=before, wanted=wanted).caps.get_structure(0)
        info = gst.video.VideoColorimetry()
        assert info.from_string(said.get_string("colorimetry"))
        assert said.get_string("chroma-site") == ("jpeg" if format in ("NV12", "I420_10LE") else None)


@pytest.mark.parametrize("width,height", [(1280, 536), (64, 48), (64, 578)])
def test_gstreamer_says_the_colours_of_rgb(gst, width, height):
    frame = bytes([200, 30, 60]) * (width * height)
    for format in ("I420", "NV12", "Y444"):
        played = Played(gst, "null", "RGB", width, height, [frame], wanted=f"video/x-raw,format={format} ! {TO_RGB}")
        a, b = (np.frombuffer(x, np.uint8).astype(int) for x in (played.frames[0], frame))
        assert np.abs(a - b).max() <= 5 and played.messages == [], format


@pytest.mark.parametrize("backend", ["cpu", "scalar"])
def test_gstreamer_has_the_backends(gst, backend):
    frames = pictures_of("GRAY8", 33, 31, 2)
    played = Played(gst, "gaussian=2", "GRAY8", 33, 31, frames, more=f"backend={backend}")
    assert b"".join(played.frames) == by_sluice("gaussian=2", b"".join(frames), "gray", 33, 31)


def test_gstreamer_knows_memory_of_gpus_where_it_is_built_for_it(gst):
    needs = subprocess.run(["readelf", "-d", GSTREAMER], capture_output=True, text=True, check=True).stdout
    for template in gst.ElementFactory.find("sluice").get_static_pad_templates():
        assert ("memory:CUDAMemory" in template.get_caps().to_string()) == ("libgstcuda-1.0.so" in needs)


def test_gstreamer_keeps_to_system_memory_without_a_gpu(gst):
    if tools.has_cuda():
        pytest.skip("there is a GPU: tests/gstreamer_gpu.py")
    frames = pictures_of("NV12", 33, 31, 2)
    played = Played(gst, "sobel", "NV12", 33, 31, frames, wanted="video/x-raw(memory:CUDAMemory);video/x-raw")
    assert played.caps.get_features(0).to_string() == "memory:SystemMemory" and played.messages == []
    assert b"".join(played.frames) == by_sluice("sobel", b"".join(frames), "nv12", 33, 31, more=["--range", "limited"])
    element = gst.ElementFactory.make("sluice")
    for pad in ("sink", "src"):
        assert "CUDAMemory" not in element.get_static_pad(pad).query_caps(None).to_string()
        assert not element.get_static_pad(pad).query(gst.Query.new_context("gst.cuda.context"))


def test_gstreamer_changes_the_chain_between_frames(gst):
    frames = pictures_of("GRAY8", 33, 31, 6)

    def at_frame(element, k):
        chain = {2: "invert", 4: "no such chain"}.get(k)
        if chain:
            element.set_property("chain", chain)
    played = Played(gst, "box=2", "GRAY8", 33, 31, frames, at_frame=at_frame)
    assert b"".join(played.frames[:2]) == by_sluice("box=2", b"".join(frames[:2]), "gray", 33, 31)
    assert b"".join(played.frames[2:]) == by_sluice("invert", b"".join(frames[2:]), "gray", 33, 31)
    assert [m[:2] for m in played.messages] == [("warning", "s")] and "no such chain" in played.messages[0][2]
    assert "table of invert" in played.plan
    played = Played(gst, "avgblur=2", "GRAY8", 33, 31, frames[:1])
    assert played.plan.startswith("ffmpeg's avgblur=2 is sepconvolve=")


def test_gstreamer_keeps_fields_apart(gst):
    frames = pictures_of("GRAY8", 32, 30, 2)
    played = Played(gst, "box=2", "GRAY8", 32, 30, frames,
                    before=",interlace-mode=interleaved,field-order=top-field-first")
    for made, frame in zip(played.frames, frames):
        rows, woven = np.frombuffer(frame, np.uint8).reshape(30, 32), np.empty((30, 32), np.uint8)
        for field in (0, 1):
            done = by_sluice("box=2", rows[field::2].tobytes(), "gray", 32, 15)
            woven[field::2] = np.frombuffer(done, np.uint8).reshape(15, 32)
        assert made == woven.tobytes()


@pytest.mark.parametrize("chain,sentence", [("grayy", "there is no stage 'grayy'"), ("box=0", "the range is 1"),
                                            ("convolution=1 2 3 4 5 6 7 8 9", "write convolve='9 8 7/6 5 4/3 2 1'")])
def test_gstreamer_fails_with_the_sentence(gst, chain, sentence):
    played = Played(gst, chain, "GRAY8", 33, 31, pictures_of("GRAY8", 33, 31, 2))
    ours = [message for kind, name, message in played.messages if (kind, name) == ("error", "s")]
    assert len(ours) == 1 and sentence in ours[0] and played.frames == []


def test_gst_inspect_and_launch(gst):
    env = tools.environment()
    said = subprocess.run(["gst-inspect-1.0", "sluice"], capture_output=True, text=True, env=env, timeout=60).stdout
    for words in ("Filter/Effect/Video", "chain  ", "backend  ", "device  ", "plan  ", "(string)P010_10LE"):
        assert words in said
    done = subprocess.run("gst-launch-1.0 -q videotestsrc num-buffers=5 ! sluice chain=gray,gaussian=2,sobel ! "
                          "videoconvert ! fakesink", shell=True, capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is missing")
def test_gstreamer_and_frei0r_under_valgrind(gst):
    """Bytes that nobody wrote, and those beyond a plane, in our sources; what hosts do is their own."""
    sources = {file.name for folder in ("hosts", "filter", "cpu", "plan", "stages", "base")
               for file in (tools.ROOT / folder).rglob("*.[ci]*")}
    hosts = [["gst-launch-1.0", "-q", "videotestsrc", "num-buffers=3", "!", "video/x-raw,format=I420,width=33,height=31",
              "!", "sluice", "chain=gray,gaussian=2,sobel", "!", "video/x-raw,format=RGB", "!", "fakesink"]]
    if FREI0R.exists():
        hosts += [["ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i", "testsrc=s=64x33", "-frames:v", "2",
                   "-vf", "frei0r=filter_name=sluice:filter_params='avgblur=2,sobel'", "-f", "null", "-"]]
    for host in hosts:
        env = tools.environment({"FREI0R_PATH": str(FREI0R.parent), "ORC_CODE": "backup"})
        done = subprocess.run(["valgrind", "-q", *host], capture_output=True, text=True, env=env, timeout=300)
        assert done.returncode == 0, done.stderr
        assert not sources & set(re.findall(r"\((\w+\.\w+):\d+\)", done.stderr)), done.stderr


def test_the_document_tells_the_truth(gst, tmp_path):
    """Its commands run, in a folder with an in.mp4."""
    lines = re.findall("^    ((?:ffmpeg|melt|gst-).*)$", (tools.ROOT / "docs" / "hosts.md").read_text(), re.M)
    assert len(lines) == 7
    subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=s=64x48:d=0.4", "-pix_fmt", "yuv420p",
                    "in.mp4"], cwd=tmp_path, check=True, timeout=60)
    for line in lines:
        if not shutil.which(line.split()[0]) or ("frei0r" in line and not FREI0R.exists()):
            continue
        if "CUDAMemory" in line:  # tests/gstreamer_gpu.py runs it
            continue
        command = shlex.split(line)
        quietly = ["-v", "error", "-y", "-nostdin"] if command[0] == "ffmpeg" else []
        done = by_host([command[0], *quietly, *command[1:]], tmp_path)
        assert done.returncode == 0 and "sluice: " not in done.stderr, (line, done.stderr)


def test_the_document_counts_the_formats():
    folder, document = tools.ROOT / "hosts" / "gstreamer", (tools.ROOT / "docs" / "hosts.md").read_text()
    formats = re.findall(r'SAME\((\w+), "', (folder / "formats.c").read_text())
    assert f"| {len(formats)} formats of 8 to 16 bits" in document
    list_of = re.search(r"cuda_formats\[\] =(.*?);", (folder / "cuda.c").read_text(), re.S)[1]
    of_gpus = re.findall(r"\w+", list_of)
    assert f"in {len(of_gpus)} of the formats" in document and set(of_gpus) < set(formats)
