"""What the tests are made with: the program, FFmpeg's tools, raw pictures, clips made once."""

import functools
import hashlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
SLUICE = os.path.abspath(os.environ.get("SLUICE", ROOT / "build" / "sluice"))


@functools.cache
def instrument():
    """What looks over the program's shoulder, by a word that such a program has in it: asan, tsan, valgrind or None."""
    program = Path(SLUICE).read_bytes()
    words = {"asan": b"__asan_init", "tsan": b"__tsan_init", "valgrind": b"exec valgrind"}
    return next((name for name, word in words.items() if word in program), None)


def has_asan():
    """Whether the program under test was made with AddressSanitizer."""
    return instrument() == "asan"


def needs_plain_archive():
    """Skip where the static library needs AddressSanitizer's."""
    if has_asan():
        pytest.skip("the archive was made with AddressSanitizer")


def media_folder():
    """The folder of real files, or None where there is none."""
    folder = Path(os.environ.get("SLUICE_MEDIA", ROOT.parent / "shared" / "media"))
    return folder if folder.is_dir() else None


# ---- programs ----


class Result(NamedTuple):
    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self):
        return self.stdout.decode()


def copy_sources(folder, without=()):
    """The source tree, without what is built and what begins with a dot."""
    for source in ROOT.iterdir():
        if source.name.startswith((".", "build", "out", "dist")) or source.name in without:
            continue
        if source.is_dir():
            shutil.copytree(source, folder / source.name, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("__pycache__"))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / source.name)


def environment(extra=None):
    """A surrounding that does not change what the program says."""
    env = {k: v for k, v in os.environ.items() if k not in ("SLUICE_CPU", "SLUICE_TRANSFORMS", "NO_COLOR")}
    return {**env, "LC_ALL": "C.UTF-8", **(extra or {})}


def execute(command, input=None, timeout=60, cwd=None, env=None, **more):
    """Run any command to its end. A hang and a crash are failures wherever they happen."""
    command = [str(word) for word in command]
    if has_asan() and Path(command[0]).name == "strace":  # which is the one that traces: LeakSanitizer cannot
        env = {"ASAN_OPTIONS": "detect_leaks=0", **(env or {})}
    if "stdin" not in more and input is None:
        more["stdin"] = subprocess.DEVNULL
    if "stdout" not in more:
        more["stdout"] = subprocess.PIPE
    try:
        done = subprocess.run(command, input=input, timeout=timeout, cwd=cwd, env=environment(env),
                              stderr=subprocess.PIPE, **more)
    except subprocess.TimeoutExpired:
        pytest.fail(f"hangs for {timeout} s: {' '.join(command)}")
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        pytest.fail(f"dies of {name}: {' '.join(command)}\n{done.stderr.decode(errors='replace')}")
    return Result(done.returncode, done.stdout or b"", done.stderr.decode(errors="replace"))


def sluice(*args, **more):
    """Run the program under test."""
    return execute([SLUICE, *args], **more)


def sluice_whole(*args, **more):
    """Run it and insist on success."""
    result = sluice(*args, **more)
    assert result.code == 0, f"exit {result.code}: {args}\n{result.stderr}"
    return result


def ffmpeg(*args, **more):
    result = execute(["ffmpeg", "-v", "error", "-nostdin", "-y", *args], **more)
    assert result.code == 0, f"ffmpeg {args}\n{result.stderr}"
    return result


def ffmpeg_version():
    version = re.match(r"ffmpeg version n?(\d+)\.(\d+)", execute(["ffmpeg", "-version"]).text)
    return tuple(map(int, version.groups())) if version else (99, 0)


SYNC = "-vsync" if ffmpeg_version() < (5, 1) else "-fps_mode"
AS_THEY_ARE = [] if ffmpeg_version() < (4, 4) else ["-noautoscale"]
# Apply all of the codec's cropping, and none of the container's.
UNCROPPED = ["-flags", "unaligned"] if ffmpeg_version() < (7, 1) else ["-apply_cropping", "codec"]


def probe(file, *args):
    """What ffprobe says, as JSON."""
    result = execute(["ffprobe", "-v", "error", "-of", "json", *args, f"file:{file}"])
    return json.loads(result.stdout or b"{}")


def load(file):
    """A summary, or anything else in JSON."""
    return json.loads(Path(file).read_text())


def has_encoder(name):
    return f" {name} " in execute(["ffmpeg", "-v", "error", "-encoders"]).text


def has_cuda():
    return "\nGPU 0" in sluice("doctor").text


# ---- frames ----


def decode_hashes(file, stream="0:v:0", frames=None, upright=False):
    """FFmpeg's own decode: a list of (bytes, md5) a frame."""
    limit = ["-frames:v", str(frames)] if frames else []
    turn = [*UNCROPPED, *([] if upright else ["-noautorotate"])]
    if str(file).endswith(".ogv"):
        turn += ["-threads", "1"]  # FFmpeg 5.1's Theora decoder races with itself
    result = execute(["ffmpeg", "-v", "error", "-nostdin", *turn, "-i", f"file:{file}",
                      *AS_THEY_ARE, SYNC, "passthrough", "-copyts", "-map", stream, *limit,
                      "-f", "framemd5", "-"], timeout=120)
    rows = [line.split(",") for line in result.text.splitlines() if not line.startswith("#")]
    return [(int(row[4]), row[5].strip()) for row in rows]


def picture_hash(planes):
    """The (bytes, md5) that decode_hashes() gives a frame of these planes."""
    data = b"".join(np.ascontiguousarray(plane).tobytes() for plane in planes)
    return len(data), hashlib.md5(data).hexdigest()


def read_hashes(text):
    """A `hash:` list: rows of (index, pts, bytes, md5)."""
    rows = [line.split(", ") for line in text.splitlines() if not line.startswith("#")]
    return [(int(i), int(pts), int(size), md5) for i, pts, size, md5 in rows]


def frame_times(file, select="v:0", frames=None, entry="best_effort_timestamp"):
    """Timestamps of the frames that ffprobe decodes; None where there is none."""
    limit = ["-read_intervals", f"%+#{frames}"] if frames else []
    result = execute(["ffprobe", "-v", "error", "-threads", "2", "-select_streams", select, *limit,
                      "-show_entries", f"frame={entry}", "-of", "csv=p=0", f"file:{file}"],
                     timeout=120)
    lines = [line.strip().strip(",") for line in result.text.splitlines() if line.strip()]
    return [None if line == "N/A" else float(line) for line in lines]


def planes_of(pixfmt, width, height):
    """The (rows, columns, type) of each plane of a planar format that the tests use."""
    name = pixfmt[:-2] if pixfmt.endswith("le") else pixfmt
    deep = next((d for d in ("9", "10", "12", "14", "16")
                 if name.endswith("p" + d) or name == "gray" + d), "")
    sample = np.dtype("<u2" if deep else "u1")
    base = name[:len(name) - len(deep)]
    if base == "gray":
        return [(height, width, sample)]
    if base in ("rgb24", "rgba", "ya8"):
        return [(height, width * {"rgb24": 3, "rgba": 4, "ya8": 2}[base], sample)]
    if base == "gbrp":
        return [(height, width, sample)] * 3
    x, y = {"420": (2, 2), "422": (2, 1), "444": (1, 1), "440": (1, 2), "411": (4, 1)}[base[-4:-1]]
    chroma = (-(-height // y), -(-width // x), sample)
    return [(height, width, sample), chroma, chroma] + [(height, width, sample)] * ("yuva" in base)


def write_raw(file, pictures):
    """Write frames, each a list of planes."""
    with open(file, "wb") as to:
        for planes in pictures:
            for plane in planes:
                to.write(np.ascontiguousarray(plane).tobytes())
    return file


def read_raw(file, pixfmt, width, height):
    """Read frames as lists of planes."""
    data = file if isinstance(file, bytes) else Path(file).read_bytes()
    shapes = planes_of(pixfmt, width, height)
    size = sum(rows * columns * sample.itemsize for rows, columns, sample in shapes)
    assert len(data) % size == 0, f"{len(data)} bytes are no frames of {size}"
    frames = []
    for at in range(0, len(data), size):
        planes = []
        for rows, columns, sample in shapes:
            count = rows * columns
            planes.append(np.frombuffer(data, sample, count, at).reshape(rows, columns))
            at += count * sample.itemsize
        frames.append(planes)
    return frames


def filter_raw(folder, pictures, pixfmt, chain, result=None, *more):
    """Send raw frames (lists of planes) through a chain, get raw frames of format `result`."""
    height, width = pictures[0][0].shape
    if pixfmt in ("rgb24", "rgba", "ya8"):
        width //= {"rgb24": 3, "rgba": 4, "ya8": 2}[pixfmt]
    source, target = Path(folder) / "in.raw", Path(folder) / "out.raw"
    write_raw(source, pictures)
    sluice_whole("-q", "-F", "rawvideo", "--size", f"{width}x{height}", "--pixfmt", pixfmt, source,
                 "-F", "rawvideo", target, "-y", "-f", chain, *more)
    frames = read_raw(target, result or pixfmt, width, height)
    assert len(frames) == len(pictures)
    return frames


# ---- clips ----

VIDEO = ["-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25:duration=2"]
SHORT = ["-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25:duration=0.4"]
ODD = ["-f", "lavfi", "-i", "testsrc2=size=161x121:rate=25:duration=0.4,format=rgb24"]
SOUND = ["-f", "lavfi", "-i", "sine=440:duration=2"]
X264 = ["-c:v", "libx264", "-preset", "ultrafast", "-threads", "1"]
FFV1 = ["-c:v", "ffv1", "-level", "3"]
EXACT = ["-fflags", "+bitexact"]  # the same bytes each time: no random numbers in headers
SUBTITLES = "1\n00:00:00,200 --> 00:00:00,900\nfirst\n\n2\n00:00:01,000 --> 00:00:01,800\nsecond\n"
CHAPTERS = (";FFMETADATA1\ntitle=The film\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=900\n"
            "title=One\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=900\nEND=2000\ntitle=Two\n")
GAPS = "select='not(eq(mod(n,7),3))*not(eq(mod(n,5),1))'"
UNEVEN = ["-vf", "settb=1/90000,setpts=N*3600+mod(N*7919\\,2500)", SYNC, "passthrough",
          "-enc_time_base", "1/90000"]
PIXEL_FORMATS = ["yuv420p", "yuv422p", "yuv444p", "yuv440p", "yuv411p", "yuv420p10le",
                 "yuv422p10le", "yuv444p12le", "yuv420p16le", "yuva420p", "yuva444p10le", "gray",
                 "gray10le", "gray16le", "bgr0", "bgra", "gbrp10le", "rgb48le"]


def full_film(folder, subtitle_codec):
    """All that a film can have beside its picture."""
    (folder / "film.srt").write_text(SUBTITLES)
    (folder / "film.ffmeta").write_text(CHAPTERS)
    return [*VIDEO, *SOUND, "-f", "lavfi", "-i", "sine=880:duration=2", "-i", folder / "film.srt",
            "-i", folder / "film.ffmeta", "-map", "0:v", "-map", "1:a", "-map", "2:a", "-map",
            "3:s", "-map_metadata", "4", "-map_chapters", "4", *X264, "-bf", "2", "-c:a", "aac",
            "-c:s", subtitle_codec, "-metadata:s:v:0", "language=eng", "-metadata:s:a:0",
            "language=deu", "-metadata:s:a:1", "language=fra", "-metadata:s:s:0", "language=spa",
            "-disposition:a:1", "default", "-disposition:a:0", "0", "-metadata",
            "comment=made for tests"]


def make_film(subtitle_codec, *more):
    return lambda clips, file: ffmpeg(*full_film(file.parent, subtitle_codec), *more, *EXACT, file)


def make_mkv(clips, file):
    note, font = file.parent / "note.txt", file.parent / "letters.ttf"
    note.write_text("attached\n")
    font.write_bytes(bytes(range(256)))
    ffmpeg(*full_film(file.parent, "subrip"), "-metadata:s:v:0", "title=Picture", "-attach", font,
           "-metadata:s:t:0", "mimetype=application/x-truetype-font", "-attach", note,
           "-metadata:s:t:1", "mimetype=text/plain", *EXACT, file)


def make(*args):
    return lambda clips, file: ffmpeg(*args, *EXACT, file)


def make_rotated(clips, file):
    """A quarter turn in the track header: what phones write."""
    data = bytearray(clips["plain.mp4"].read_bytes())
    at = data.index(b"tkhd") + 44
    data[at:at + 36] = struct.pack(">9i", 0, 1 << 16, 0, -1 << 16, 0, 0, 120 << 16, 0, 1 << 30)
    file.write_bytes(data)


def make_joined(*sizes, continues):
    """Streams one after another, byte for byte: with going timestamps, or beginning again."""

    def join(clips, file):
        data = b""
        for k, size in enumerate(sizes):
            part = file.with_suffix(f".{k}{file.suffix}")
            start = 0.4 * k if continues else 0
            ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25:duration=0.4", *X264,
                   "-output_ts_offset", str(start), part)
            data += part.read_bytes()
        file.write_bytes(data)

    return join


def make_encrypted(clips, file):
    ffmpeg("-i", clips["plain.mp4"], "-c", "copy", "-encryption_scheme", "cenc-aes-ctr",
           "-encryption_key", "76a6c65c5ea762046bd749a2e632ccbb",
           "-encryption_kid", "a7e61c373e219033c21091fa607bf3b8", file)


TAGS_709 = ["-vf", "format=yuv420p,setparams=colorspace=bt709:color_primaries=bt709:"
            "color_trc=bt709:range=tv"]
HDR = ["-vf", "format=yuv420p10le,setparams=colorspace=bt2020nc:color_primaries=bt2020:"
       "color_trc=smpte2084:range=tv", "-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:hdr10=1:max-cll=1000,400:master-display="
       "G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,50)"]
INTERLACED = ["-f", "lavfi", "-i", "testsrc2=size=160x128:rate=25:duration=0.4", "-vf",
              "setfield=tff", "-flags", "+ilme+ildct"]

RECIPES = {
    "film.mkv": make_mkv,
    "film.mp4": make_film("mov_text"),
    "film.mov": make_film("mov_text"),
    "plain.mp4": make(*VIDEO, *X264),
    "plain.mkv": make(*VIDEO, *X264),
    "sound.ts": make(*VIDEO, *SOUND, *X264, "-bf", "2", "-c:a", "aac"),
    "sound.avi": make(*VIDEO, *SOUND, "-c:v", "mpeg4", "-c:a", "mp2"),
    "sound.webm": make(*VIDEO, *SOUND, "-c:v", "libvpx", "-deadline", "realtime", "-cpu-used",
                       "8", "-c:a", "libvorbis"),
    "sound.wav": make(*SOUND),
    "gaps.mkv": make(*VIDEO, "-vf", GAPS, SYNC, "vfr", *X264),
    "vfr.mkv": make(*VIDEO, *UNEVEN, *X264),
    "vfr.mp4": make(*VIDEO, *UNEVEN, *X264, "-bf", "2", "-video_track_timescale", "90000"),
    "late.mkv": make(*VIDEO, *SOUND, *X264, "-c:a", "aac", "-output_ts_offset", "10"),
    "late.mp4": make(*VIDEO, *SOUND, *X264, "-c:a", "aac", "-output_ts_offset", "10"),
    "late.ts": make(*VIDEO, *SOUND, *X264, "-c:a", "aac", "-output_ts_offset", "10"),
    "rotated.mp4": make_rotated,
    "anamorphic.mp4": make(*VIDEO, "-vf", "setsar=64/45", *X264),
    "tagged.mp4": make(*VIDEO, *X264, *TAGS_709),
    "full.mp4": make(*VIDEO, "-vf", "format=yuv420p,scale=out_range=full", *X264),
    "deep.mp4": make(*VIDEO, *X264, "-pix_fmt", "yuv420p10le"),
    "hdr.mp4": make(*SHORT, *HDR, "-tag:v", "hvc1"),
    "hdr.mkv": make(*SHORT, *HDR),
    "odd.mkv": make(*ODD, *FFV1, "-pix_fmt", "yuv420p"),
    "interlaced-mpeg2.ts": make(*INTERLACED, "-c:v", "mpeg2video", "-q:v", "3"),
    "interlaced-h264.mkv": make(*INTERLACED, *X264, "-x264opts", "tff=1"),
    "interlaced-ffv1.mkv": make(*INTERLACED, *FFV1),
    "resized.h264": make_joined("160x120", "96x64", continues=False),
    "resized.ts": make_joined("160x120", "96x64", continues=True),
    "restarted.ts": make_joined("160x120", "160x120", continues=False),
    "animated.gif": make(*SHORT),
    "animated.apng": make(*SHORT, "-f", "apng"),
    "still.png": make(*ODD, "-frames:v", "1"),
    "still-deep.png": make(*ODD, "-frames:v", "1", "-pix_fmt", "rgb48be"),
    "still-gray16.png": make(*ODD, "-frames:v", "1", "-pix_fmt", "gray16be"),
    "still-palette.png": make(*ODD, "-frames:v", "1", "-pix_fmt", "pal8"),
    "still-bit.png": make(*ODD, "-frames:v", "1", "-pix_fmt", "monob"),
    "still-alpha.png": make(*ODD, "-frames:v", "1", "-vf", "format=rgba,geq=a=X:r='r(X,Y)':g='g(X,Y)':b='b(X,Y)'"),
    "still.jpg": make(*ODD, "-frames:v", "1", "-pix_fmt", "yuvj420p"),
    "still.tiff": make(*ODD, "-frames:v", "1"),
    "still.webp": make(*ODD, "-frames:v", "1"),
    "still.bmp": make(*ODD, "-frames:v", "1"),
    "two.mkv": make(*VIDEO, "-f", "lavfi", "-i", "testsrc=size=96x64:rate=25:duration=2", *SOUND,
                    "-map", "1", "-map", "2", "-map", "0", *X264, "-c:a", "aac"),
    "encrypted.mp4": make_encrypted,
    **{f"format-{name}.mkv": make(*ODD, *FFV1, "-pix_fmt", name) for name in PIXEL_FORMATS},
}

# Clips that are for faults, not for filtering.
NO_VIDEO = {"sound.wav", "encrypted.mp4"}


class Clips:
    """Clips by name, each made when first asked for."""

    def __init__(self, folder):
        self.folder = folder

    def __getitem__(self, name):
        file = self.folder / name
        if not file.exists():
            RECIPES[name](self, file)
        return file

    def sequence(self):
        """A folder of numbered images, in0001.png .. in0006.png."""
        folder = self.folder / "sequence"
        if not folder.exists():
            folder.mkdir()
            ffmpeg(*SHORT, "-frames:v", "6", folder / "in%04d.png")
        return folder


def random_picture(height, width, seed, levels=256, sample="u1"):
    return np.random.default_rng(seed).integers(0, levels, (height, width)).astype(sample)


def holed(source, target, size=3000):
    """A copy with zeros in the middle: what a bad sector leaves."""
    data = bytearray(source.read_bytes())
    at = len(data) // 2
    data[at:at + size] = bytes(size)
    target.write_bytes(data)
    return target


def flipped(source, target, every=997):
    """A copy with a byte changed here and there: damaged, not broken off."""
    data = bytearray(source.read_bytes())
    for at in range(len(data) // 4, len(data) * 3 // 4, every):
        data[at] ^= 0x55
    target.write_bytes(data)
    return target


def outputs_of(process, folder):
    """The files that the process has open in the folder, under whatever name or none."""
    try:
        return [fd for fd in Path(f"/proc/{process.pid}/fd").iterdir()
                if os.readlink(fd).startswith(f"{Path(folder).resolve()}/")]
    except FileNotFoundError:
        return []


def is_writing(process, folder):
    """Whether the process has begun an output in the folder."""
    return bool(outputs_of(process, folder))


def bytes_written(process, folder):
    """How large the smallest of them is. The program writes up to 256 KiB at once."""
    return min((fd.stat().st_size for fd in outputs_of(process, folder)), default=0)


def leftovers(folder):
    """Hidden files: what a temporary output is called where it needs a name."""
    return [str(path) for path in Path(folder).rglob(".*")]


def check_chart(svg, processor):
    """A title, what it was measured on, and no text beyond the edges; returns the texts."""
    texts = svg.findall("{*}text")
    words = ["".join(text.itertext()) for text in texts]
    assert texts[0].get("font-weight") == "bold" and processor in words[1] and "sluice" in words[1]
    for text, shown in zip(texts, words):
        wide = 7.5 * len(shown) * float(text.get("font-size", 13)) / 13
        left = float(text.get("x")) - {"end": wide, "middle": wide / 2}.get(text.get("text-anchor"), 0)
        assert 0 <= left and left + wide <= float(svg.get("width")), shown
        assert 0 < float(text.get("y")) <= float(svg.get("height")), shown
    return words
