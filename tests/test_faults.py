"""What happens when input, output or patience fails: exit codes, messages, nothing left behind."""

import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

import tools

ROOT = os.geteuid() == 0


def packets(file):
    return tools.probe(file, "-show_packets", "-select_streams", "v:0").get("packets", [])


def failed(result, code, folder, *words):
    """The exit code, one sentence with these words, and no trace in the folder."""
    assert result.code == code, f"exit {result.code}: {result.stderr}"
    lines = [line for line in result.stderr.splitlines() if line.startswith("sluice: ")]
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0]
    assert not list(folder.iterdir())


@pytest.fixture
def out(tmp_path):
    """A folder for outputs, empty unless something was left there."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def unprivileged():
    """How to run as nobody, whom permissions bind: as ourselves where we are not root."""
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if ROOT else {}
    try:
        tools.execute(["true"], **nobody)
    except PermissionError:
        pytest.skip("nobody may not even enter / here")
    return nobody


# ---- input that is none ----


def test_missing_input(run, tmp_path, out):
    failed(run("missing.mp4", out / "o.mp4"), 4, out, "missing.mp4", "No such file")


def test_empty_input(run, tmp_path, out):
    (tmp_path / "empty.mp4").touch()
    failed(run("empty.mp4", out / "o.mp4"), 4, out, "empty.mp4", "empty (0 bytes)", "expected")


@pytest.mark.parametrize("format", [[], ["-F", "rawvideo", "--size", "64x48", "--pix-fmt", "gray"]])
def test_empty_standard_input(run, out, format):
    result = run(*format, "-", out / "o.mp4", input=b"")
    failed(result, 4, out, "standard input", "empty (0 bytes)", "expected")


def test_folder_as_input(run, tmp_path, out):
    failed(run(tmp_path, out / "o.mp4"), 4, out, str(tmp_path), "folder", "*.png")


def test_input_without_permission(tmp_path, clips, unprivileged):
    """As nobody when root, as ourselves otherwise."""
    folder = Path("/tmp") / f"sluice-{os.getpid()}"
    folder.mkdir(mode=0o777)
    try:
        folder.chmod(0o777)
        shutil.copy(clips["plain.mp4"], folder / "secret.mp4")
        (folder / "secret.mp4").chmod(0)
        program = shutil.copy(tools.SLUICE, folder / "sluice")
        result = tools.execute([program, folder / "secret.mp4", folder / "o.mp4"], cwd=folder,
                               **unprivileged)
        assert result.code == 4, result.stderr
        assert "secret.mp4" in result.stderr and "Permission denied" in result.stderr
        assert sorted(f.name for f in folder.iterdir()) == ["secret.mp4", "sluice"]
    finally:
        shutil.rmtree(folder)


def test_audio_only_input(run, clips, out):
    failed(run(clips["sound.wav"], out / "o.mp4"), 4, out, "sound.wav", "no video", "pcm_s16le")


def test_header_only_input(run, tmp_path, clips, out):
    tools.ffmpeg("-i", clips["plain.mp4"], "-c", "copy", "-movflags", "empty_moov+frag_keyframe",
                 tmp_path / "whole.mp4")
    for name, source, body in (("header.mp4", tmp_path / "whole.mp4", b"moof"),
                               ("header.mkv", clips["plain.mkv"], b"\x1f\x43\xb6\x75")):
        data = source.read_bytes()
        (tmp_path / name).write_bytes(data[:data.index(body) - 4 * (body == b"moof")])
        failed(run(name, out / "o.mp4"), 4, out, name)


def test_encrypted_input(run, clips, out):
    failed(run(clips["encrypted.mp4"], out / "o.mp4"), 4, out, "encrypted.mp4", "encrypted", "clear")


@pytest.mark.parametrize("name", ["notes.txt", "notes.mp4", "notes.mkv", "notes.png", "notes"])
def test_text_as_input(run, tmp_path, out, name):
    (tmp_path / name).write_text("Dear diary,\nthis is no video.\n" * 40)
    failed(run(name, out / "o.mp4"), 4, out, name)


@pytest.mark.parametrize("name", ["x.mp4", "x.mkv", "x.ts", "x.png", "x.jpg", "x.gif", "x"])
def test_noise_as_input(run, tmp_path, out, name):
    (tmp_path / name).write_bytes(tools.random_picture(100, 100, 3).tobytes())
    result = run(name, out / "o.mp4")
    assert result.code in (3, 4), result.stderr
    assert name in result.stderr
    assert result.code == 3 or not list(out.iterdir())


@pytest.mark.parametrize("pixfmt", ["yuv420p9", "yuv420p10", "yuv422p12", "gbrp10", "gray14"])
@pytest.mark.parametrize("chain", [
    "stats=report.json", "gamma=2", "brightness=20,contrast=2", "gaussian=2", "sobel=l2", "box=3",
    "match=small.png", "gray=mean,gaussian=40"])
def test_samples_above_their_depth(run, tmp_path, pixfmt, chain):
    """Units of any 16 bits, then all 0xffff: equal frames by every backend and level of the CPU."""
    units = tools.random_picture(64 * 48, 6, 1, 65536, "<u2").tobytes()
    (tmp_path / "in.raw").write_bytes(units + b"\xff" * len(units))
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc=s=16x16", "-frames:v", 1, tmp_path / "small.png")
    hashes = set()
    for backend, level in [("scalar", ""), ("cpu", "base"), ("cpu", "v2"), ("cpu", "")]:
        result = run("-F", "rawvideo", "--size", "64x48", "--pixfmt", pixfmt + "le", "in.raw",
                     "--frames", 4, "hash:out.txt", "-y", "-f", chain, "--backend", backend,
                     env={"SLUICE_CPU": level})
        assert result.code == 0, result.stderr
        hashes.add((tmp_path / "out.txt").read_text())
    assert len(hashes) == 1


@pytest.mark.parametrize("pixfmt,chain", [
    ("yuv420p10le", "null"), ("yuv420p10le", "brightness=5"), ("yuv420p10le", "tee=tee.yuv,gray"),
    ("yuv420p10be", "null"), ("yuv420p10be", "brightness=5"), ("gbrp12le", "null"),
    ("gbrp12le", "tee=tee.yuv,gray")])
def test_no_sample_above_its_depth_leaves(run, tmp_path, pixfmt, chain):
    """Planes that a chain leaves alone go to encoders, of which some end the process for these."""
    depth = 12 if "12" in pixfmt else 10
    (tmp_path / "in.raw").write_bytes(
        tools.random_picture(64 * 48, 3, 1, 65536, "<u2").tobytes() * 2)
    result = run("-F", "rawvideo", "--size", "64x48", "--pixfmt", pixfmt, "in.raw", "--frames", 2,
                 "-F", "rawvideo", "out.raw", "-f", chain)
    assert result.code == 0, result.stderr
    for name in ["out.raw"] + ["tee.yuv"] * ("tee" in chain):
        samples = np.frombuffer((tmp_path / name).read_bytes(),
                                ">u2" if pixfmt.endswith("be") else "<u2")
        assert samples.max() == (1 << depth) - 1


def with_codec(clip, tag):
    """An MP4 with another tag for its H.264."""
    data = bytearray(clip.read_bytes())
    at = data.index(b"avc1", data.index(b"stsd"))
    data[at:at + 4] = tag
    return bytes(data)


def test_codec_that_is_unknown(run, tmp_path, clips, out):
    (tmp_path / "odd.mp4").write_bytes(with_codec(clips["plain.mp4"], b"zz99"))
    failed(run("odd.mp4", out / "o.mp4"), 4, out, "odd.mp4", "cannot be decoded", "an unknown codec, tag zz99",
           "no decoder for it")


def undecodable(tmp_path, clips, kind):
    """(words that name the file, how its codec is called): video that this FFmpeg has no decoder for."""
    name, called, decoder = {"vvc": ("film.mp4", "vvc (H.266", "vvc"),
                             "avs2": ("film.avs2", "avs2 (AVS2-P2/IEEE1857.4)", "libdavs2"),
                             "unknown": ("film.mp4", "an unknown codec, tag zz99", "zz99")}[kind]
    if f" {decoder} " in subprocess.run(["ffmpeg", "-v", "error", "-decoders"], capture_output=True, text=True).stdout:
        pytest.skip(f"this FFmpeg has a decoder for {kind}")
    tags = {"vvc": b"vvc1", "unknown": b"zz99"}
    (tmp_path / name).write_bytes(with_codec(clips["plain.mp4"], tags[kind]) if kind in tags else bytes(3000))
    return ["-F", "avs2", name] if kind == "avs2" else [name], called


@pytest.mark.parametrize("kind", ["vvc", "avs2", "unknown"])
def test_a_codec_without_a_decoder_is_named(run, tmp_path, clips, kind):
    words, called = undecodable(tmp_path, clips, kind)
    for command in [*words, "null:"], ["plan", *words]:
        result = run(*command)
        assert result.code == 4 and not result.stdout and result.stderr.count("\n") == 1, command
        assert f"{words[-1]} cannot be decoded: its video is {called}" in result.stderr
        assert "no decoder for it" in result.stderr
    told = run("doctor", *words, "--backend", "cpu")
    assert told.code == 0 and re.search(r"decoding  impossible: this FFmpeg \(libavcodec \d+\) has no decoder for "
                                        + re.escape(called), told.text)
    assert "none" not in told.text.split("\ninput ")[1].split("\n")[0]


# ---- damaged input ----


def test_truncated_mp4_without_index_is_refused(run, tmp_path, clips, out):
    data = clips["film.mp4"].read_bytes()
    for share in (0.02, 0.3, 0.9):
        (tmp_path / "cut.mp4").write_bytes(data[:int(len(data) * share)])
        failed(run("cut.mp4", out / "o.mp4"), 4, out, "cut.mp4")


@pytest.mark.parametrize("name", ["faststart.mp4", "film.mkv", "sound.ts", "sound.avi"])
@pytest.mark.parametrize("share", [0.35, 0.6, 0.97])
def test_truncated_input_gives_every_frame_that_decodes(run, tmp_path, clips, name, share):
    source = tmp_path / name
    if name == "faststart.mp4":
        tools.ffmpeg("-i", clips["film.mp4"], "-c", "copy", "-movflags", "+faststart", source)
    else:
        source.write_bytes(clips[name].read_bytes())
    data = source.read_bytes()
    source.write_bytes(data[:int(len(data) * share)])
    theirs = len(tools.decode_hashes(source))
    result = run(source, "o.mkv")
    assert result.code in (0, 3), result.stderr
    assert len(packets(tmp_path / "o.mkv")) == theirs > 3
    if name == "faststart.mp4" or (name == "film.mkv" and share < 0.5):
        assert result.code == 3 and "ends before its own header or index says" in result.stderr
    assert not tools.leftovers(tmp_path)


@pytest.mark.parametrize("name", ["film.mp4", "film.mkv", "sound.ts", "interlaced-mpeg2.ts"])
def test_flipped_bytes_are_counted(run, tmp_path, clips, name):
    source = tools.flipped(clips[name], tmp_path / name)
    result = run(source, "o.mkv")
    assert result.code == 3, result.stderr
    assert re.search(r"^damaged +\d+ (packet|frame)s? ", result.stderr, re.M)
    assert len(packets(tmp_path / "o.mkv")) == len(tools.decode_hashes(source)) > 5
    assert not tools.leftovers(tmp_path)


@pytest.mark.parametrize("name", ["film.mp4", "film.mkv", "sound.ts", "sound.avi", "sound.webm"])
def test_a_hole_in_the_file_gives_every_frame_that_decodes(run, tmp_path, clips, name):
    """FFmpeg's readers of AVI and Matroska skip a hole without a word, and only the length tells; its
    H.264 decoder loses the mark of a concealed frame now and then when it has several threads."""
    source = tools.holed(clips[name], tmp_path / name)
    result = run(source, "o.mkv")
    assert result.code == 3 or (result.code == 0 and name == "sound.avi"), result.stderr
    assert len(packets(tmp_path / "o.mkv")) == len(tools.decode_hashes(source)) > 5


def test_a_damaged_image_of_a_sequence_is_counted(run, tmp_path, clips):
    for file in clips.sequence().iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "in0003.png").write_bytes((tmp_path / "in0003.png").read_bytes()[:90])
    result = run("in%04d.png", "o.mkv")
    assert result.code == 3 and "damaged" in result.stderr
    assert len(packets(tmp_path / "o.mkv")) == 5


# ---- input that reaches for more ----


class Listener:
    """A port on loopback that nobody should call."""

    def __enter__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.settimeout(0.1)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.calls = 0
        self.done = False
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()
        return self

    def listen(self):
        while not self.done:
            try:
                self.socket.accept()[0].close()
                self.calls += 1
            except TimeoutError:
                pass

    def __exit__(self, *exception):
        self.done = True
        self.thread.join()
        self.socket.close()


def playlists(other):
    """Texts that FFmpeg takes for a list of `other`."""
    return {
        "hls": f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{other}\n#EXT-X-ENDLIST\n",
        "hls-master": f"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\n{other}\n",
        "hls-key": f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-KEY:METHOD=AES-128,URI=\"{other}\"\n"
                   f"#EXTINF:2,\n{other}\n#EXT-X-ENDLIST\n",
        "ffconcat": f"ffconcat version 1.0\nfile '{other}'\n",
        "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
               "m=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n",
        "dash": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" '
                'type="static" mediaPresentationDuration="PT2S" minBufferTime="PT1S">'
                f'<Period><AdaptationSet mimeType="video/mp4"><Representation id="1" '
                f'bandwidth="1000"><BaseURL>{other}</BaseURL></Representation></AdaptationSet>'
                "</Period></MPD>",
    }


@pytest.mark.parametrize("suffix", [".mp4", ".m3u8", ".ts", ".txt", ""])
@pytest.mark.parametrize("kind", playlists(""))
def test_a_playlist_is_refused_and_opens_nothing(run, tmp_path, out, kind, suffix):
    with Listener() as listener:
        (tmp_path / f"list{suffix}").write_text(playlists(f"{listener.url}/x.ts")[kind])
        result = run(f"list{suffix}", out / "o.mp4")
        time.sleep(0.05)
        assert listener.calls == 0
    failed(result, 4, out, f"list{suffix}")


@pytest.mark.parametrize("kind", ["hls", "hls-key", "ffconcat", "dash"])
def test_a_playlist_does_not_open_other_files(run, tmp_path, out, clips, kind):
    """Seen by strace where there is one; the result is checked either way."""
    shutil.copy(clips["sound.ts"], tmp_path / "other.ts")
    (tmp_path / "list.mp4").write_text(playlists("other.ts")[kind])
    strace = shutil.which("strace")
    trace = [strace, "-f", "-qq", "-e", "trace=open,openat", "-o", tmp_path / "calls"] if strace else []
    for format in ([], ["-F", {"ffconcat": "concat", "dash": "dash"}.get(kind, "hls")]):
        result = tools.execute([*trace, tools.SLUICE, *format, "list.mp4", out / "o.mp4"],
                               cwd=tmp_path)
        assert result.code in (2, 4) and not list(out.iterdir()), result.stderr
        if strace:
            assert "other.ts" not in (tmp_path / "calls").read_text()


def test_a_protocol_prefix_opens_nothing(run, tmp_path, out, clips):
    shutil.copy(clips["sound.ts"], tmp_path / "a.ts")
    for name in ("concat:a.ts|a.ts", "subfile,,start,0,end,9999,,:a.ts", "crypto:a.ts",
                 "async:a.ts", "cache:a.ts", "data:video/mp2t;base64,R0E="):
        failed(run(name, out / "o.mp4"), 4, out, name)


# ---- output that fails ----


@pytest.mark.parametrize("name", ["o.mkv", "o.mp4", "o.ts", "o.avi", "o%03d.png", "o.y4m"])
def test_disk_full(small_disk, run, clips, name):
    fine = [] if name.endswith(("png", "y4m")) else ["--option", "qp=1"]
    result = run("-q", "-f", "null", *fine, clips["film.mkv"], small_disk / name)
    assert result.code == 5, result.stderr
    assert "No space left" in result.stderr and len(result.stderr.splitlines()) == 1
    assert not tools.leftovers(small_disk)
    assert not (small_disk / name).exists()


def test_disk_full_keeps_the_old_output(small_disk, run, clips):
    (small_disk / "o.mkv").write_text("precious")
    assert run("-y", "-f", "null", "--option", "qp=1", clips["film.mkv"], small_disk / "o.mkv").code == 5
    assert [f.name for f in small_disk.iterdir()] == ["o.mkv"]
    assert (small_disk / "o.mkv").read_text() == "precious"


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", ["o.m3u8", "o.mpd"])
@pytest.mark.parametrize("old", [False, True])
def test_disk_full_leaves_nothing_of_a_playlist(small_disk, run, clips, name, late, old):
    """Nor does it touch the one that is to be replaced. `late`: all is written at the end."""
    cuts = ["--option", "hls_time=0.4", "--option", "g=10"] if name == "o.m3u8" else [
        "--option", "seg_duration=0.4", "--option", "g=10"]
    if old:
        assert run("-q", clips["plain.mp4"], small_disk / name, "--duration", 1).code == 0
    before = {file.name: file.read_bytes() for file in small_disk.iterdir()}
    result = run("-y", "-q", "-f", "null", "--option", "qp=1", clips["film.mkv"], small_disk / name,
                 *[] if late else cuts)
    assert result.code == 5 and "No space left" in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert {file.name: file.read_bytes() for file in small_disk.iterdir()} == before


def test_disk_full_leaves_a_live_playlist_of_what_is_there(small_disk, run, clips):
    """Those who watch it have seen so much; it names nothing that is not there, and says of no end."""
    result = run("-q", "--live", "-f", "null", "--option", "qp=10", clips["film.mkv"], small_disk / "o.m3u8",
                 "--option", "hls_time=0.4", "--option", "g=10")
    assert result.code == 5 and "No space left" in result.stderr, result.stderr
    named = [line for line in (small_disk / "o.m3u8").read_text().splitlines() if not line.startswith("#")]
    assert named and all(len(packets(small_disk / segment)) == 10 for segment in named)
    assert {file.name for file in small_disk.iterdir()} == {"o.m3u8", *named}


@pytest.mark.parametrize("words", [["null:", "--json", "o"], ["null:", "--trace", "o"], ["hash:o"],
                                   ["null:", "--journal", "o"], ["null:", "-f", "stats=o"]])
def test_disk_full_keeps_old_reports(small_disk, run, clips, words):
    (small_disk / "o").write_text("precious")
    with open(small_disk / "fill", "wb") as fill:
        try:
            fill.write(bytes(1 << 20))
            fill.flush()
        except OSError:
            pass
    result = run("-y", "-q", clips["film.mkv"], *words, cwd=small_disk)
    assert result.code == 5 and "No space left" in result.stderr, result.stderr
    assert sorted(f.name for f in small_disk.iterdir()) == ["fill", "o"]
    assert (small_disk / "o").read_text() == "precious"


@pytest.mark.parametrize("output", ["/dev/full", "hash:/dev/full"])
def test_device_full(run, clips, output):
    format = [] if output.startswith("hash") else ["-F", "matroska"]
    result = run("-q", clips["film.mkv"], output, *format)
    assert result.code == 5 and "/dev/full" in result.stderr and "No space left" in result.stderr


def test_standard_output_full(clips):
    with open("/dev/full", "w") as full:
        for arguments in (["-", "-F", "matroska"], ["hash:-"], ["null:", "--json", "-"]):
            result = tools.sluice("-q", clips["film.mkv"], *arguments, stdout=full)
            assert result.code == 5, arguments


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["stages"], ["plan"], ["doctor"]])
def test_report_onto_a_full_device_is_a_failure(arguments):
    with open("/dev/full", "w") as full:
        assert tools.sluice(*arguments, stdout=full).code != 0


@pytest.mark.parametrize("name", ["o.mkv", "o.mp4", "o.y4m", "hash:o.txt"])
def test_file_size_limit(tmp_path, out, clips, name):
    """SIGXFSZ does not kill: the limit is an error like any other."""
    limit = "1" if name.startswith("hash") else "40"
    chain = ["-f", "null"]
    result = tools.execute(["sh", "-c", f'ulimit -f {limit}; exec "$0" "$@"', tools.SLUICE,
                            *chain, clips["film.mkv"], name], cwd=out)
    assert result.code == 5, result.stderr
    assert "File too large" in result.stderr
    assert not list(out.iterdir())


@pytest.mark.parametrize("format", ["matroska", "mp4", "mpegts", "yuv4mpegpipe", "rawvideo"])
def test_reader_of_the_pipe_leaves(format):
    """Quiet, and not success. The input never ends, so only the reader can end the run."""
    process = subprocess.Popen([tools.SLUICE, "-q", "-F", "rawvideo", "--size", "320x240",
                                "--pixfmt", "gray", "/dev/urandom", "-", "-F", format],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, env=tools.environment())
    process.stdout.read(100)
    process.stdout.close()
    said = process.stderr.read().decode()
    assert process.wait(20) == 5, said
    assert said == ""


@pytest.mark.parametrize("name, words", [
    ("no/such/o.mkv", ["no/such", "No such file"]), ("file/o.mkv", ["file"]),
    ("dir", ["dir", "folder"]), ("dir/", ["dir"])])
def test_output_where_none_can_be(run, tmp_path, clips, name, words):
    (tmp_path / "file").write_text("x")
    (tmp_path / "dir").mkdir()
    result = run(clips["plain.mkv"], name, *(["-F", "matroska"] if "." not in name else []))
    assert result.code == 5, result.stderr
    for word in words:
        assert word in result.stderr
    assert sorted(f.name for f in tmp_path.iterdir()) == ["dir", "file"]


def test_output_folder_without_permission(clips, unprivileged):
    folder = Path("/tmp") / f"sluice-{os.getpid()}"
    (folder / "locked").mkdir(parents=True)
    try:
        folder.chmod(0o755)
        source = shutil.copy(clips["plain.mkv"], folder / "in.mkv")
        program = shutil.copy(tools.SLUICE, folder / "sluice")
        (folder / "locked").chmod(0o555)
        result = tools.execute([program, source, folder / "locked" / "o.mkv"], cwd=folder, **unprivileged)
        assert result.code == 5, result.stderr
        assert "o.mkv" in result.stderr and "Permission denied" in result.stderr
        assert not list((folder / "locked").iterdir())
    finally:
        (folder / "locked").chmod(0o755)
        shutil.rmtree(folder)


def test_output_that_fails_late_leaves_no_trace(run, tmp_path, out, clips):
    """The encoder's own refusal, once the first frame is there."""
    result = run(clips["odd.mkv"], out / "o.mkv", "-c:v", "dvvideo")
    assert result.code in (2, 5), result.stderr
    assert "dvvideo" in result.stderr and not list(out.iterdir())


# ---- too much ----


def test_pictures_larger_than_the_limit_are_refused(run, clips, out):
    failed(run(clips["plain.mkv"], out / "o.mkv", "--max-pixels", 19199), 4, out, "plain.mkv",
           "160x120", "19199", "--max-pixels")
    assert run("-q", clips["plain.mkv"], out / "o.mkv", "--max-pixels", 19200).code == 0


def test_a_small_file_that_claims_a_huge_picture_is_refused(run, tmp_path, out, clips):
    """The header of a PNG changed to 60000 x 60000."""
    data = bytearray(clips["still.png"].read_bytes())
    data[16:24] = (60000).to_bytes(4, "big") * 2
    (tmp_path / "bomb.png").write_bytes(data)
    result = run("bomb.png", out / "o.png")
    assert result.code == 4 and "bomb.png" in result.stderr, result.stderr
    assert not list(out.iterdir())


def bomb(file, side):
    """A PNG of so many samples square that takes four bytes a thousand."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    packer = zlib.compressobj(1)
    rows = b"".join(packer.compress(b"\0" + b"\x80" * (4 * side)) for _ in range(side)) + packer.flush()
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 6, 0, 0, 0)) +
                     chunk(b"IDAT", rows) + chunk(b"IEND", b""))


# A process begins with the memory of the one that started it: this one is small.
USED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_maxrss, used.ru_utime)
sys.exit(code)
"""


@pytest.mark.parametrize("words,code,says", [
    (["plain.mp4", "null:", "-f", "match=bomb.png"], 2, "the template bomb.png is 9000x9000 and the picture 160x120"),
    (["plan", "-f", "match=bomb.png", "--max-pixels", "9000000"], 2, "bomb.png; it is 9000x9000"),
    (["bomb.png", "o.png", "--max-pixels", "9000000"], 4, "bomb.png has pictures of 9000x9000"),
    (["doctor", "bomb.png", "--max-pixels", "9000000"], 4, "bomb.png")])
def test_a_picture_is_refused_before_it_is_decoded(tmp_path, clips, words, code, says):
    """9000 x 9000 of RGBA are 309 MiB."""
    bomb(tmp_path / "bomb.png", 9000)
    shutil.copy(clips["plain.mp4"], tmp_path)
    with open(tmp_path / "said", "wb") as said:
        job = subprocess.run(["/usr/bin/python3", "-c", USED, tools.SLUICE, *words], cwd=tmp_path, stderr=said,
                             stdout=subprocess.PIPE, env=tools.environment(), text=True)
    said = (tmp_path / "said").read_text()
    assert job.returncode == code and says in said, said
    memory, seconds = job.stdout.split()[-2:]
    assert int(memory) < 200 << 10 and float(seconds) < 1, job.stdout


def test_a_picture_that_grows_in_the_stream_is_refused(run, clips, out, tmp_path):
    """The limit holds for every frame, and what came before it is kept or not, but never half."""
    small, large = (tmp_path / f"{k}.h264" for k in "ab")
    for file, size in ((small, "96x64"), (large, "320x240")):
        tools.ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25:duration=0.2",
                     *tools.X264, file)
    (tmp_path / "grows.h264").write_bytes(small.read_bytes() + large.read_bytes())
    result = run("grows.h264", out / "o.mkv", "--max-pixels", 10000)
    assert result.code in (3, 4), result.stderr
    assert not tools.leftovers(out)


# ---- signals ----

BUSY = 8  # seconds that a machine with other work may add to what is promised

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class Running:
    """sluice with an endless raw input from a pipe that we feed, or leave silent."""

    def __init__(self, output, *arguments, frames=30, feed=True):
        self.size = 320 * 240
        given = ["-F", "rawvideo", "--size", "320x240", "--pixfmt", "gray"]
        self.process = subprocess.Popen(
            [tools.SLUICE, *given, "-", output, *arguments], stdin=subprocess.PIPE,
            stderr=subprocess.PIPE, env=tools.environment(), bufsize=0)
        self.feeding = feed
        self.process.stdin.write(os.urandom(self.size) * frames)
        self.thread = threading.Thread(target=self.feed, daemon=True)
        self.thread.start()

    def feed(self):
        data = os.urandom(self.size)
        while self.feeding:
            try:
                self.process.stdin.write(data)
            except (BrokenPipeError, ValueError):
                return

    def stop(self, number, within):
        """Send a signal; returns (exit code, what was said, seconds it took)."""
        began = time.monotonic()
        self.process.send_signal(number)
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            pytest.fail(f"{number.name} is not obeyed within {within} s")
        took = time.monotonic() - began
        self.feeding = False
        return code, self.process.stderr.read().decode(), took


def wait_for(condition, seconds=10):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.02)


@pytest.mark.parametrize("name", ["o.mkv", "o.mp4", "o.ts", "o.avi", "o.webm"])
@pytest.mark.parametrize("number", SIGNALS)
def test_signal_ends_a_long_run_with_a_whole_output(out, name, number):
    running = Running(out / name)
    wait_for(lambda: tools.is_writing(running.process, out))
    time.sleep(0.4)
    code, said, took = running.stop(number, 20)
    assert code == SIGNALS[number], said
    assert took < 2 + BUSY, f"took {took:.1f} s"
    assert [f.name for f in out.iterdir()] == [name]
    assert len(tools.decode_hashes(out / name)) == len(packets(out / name)) > 0
    assert re.search(r"^frames ", said, re.M)


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_ends_a_frozen_source_with_a_whole_output(out, number):
    running = Running(out / "o.mp4", feed=False, frames=30)
    wait_for(lambda: tools.is_writing(running.process, out))
    time.sleep(0.5)
    code, said, took = running.stop(number, 20)
    assert code == SIGNALS[number], said
    assert took < 2 + BUSY, f"took {took:.1f} s"
    assert [f.name for f in out.iterdir()] == ["o.mp4"]
    assert len(packets(out / "o.mp4")) > 0


@pytest.mark.parametrize("frames", [0, 1])
@pytest.mark.parametrize("number", SIGNALS)
def test_signal_ends_a_source_that_never_began(out, number, frames):
    """Waiting for the first bytes, or for enough to know the format."""
    command = [tools.SLUICE, "-", out / "o.mp4"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=tools.environment())
    if frames:
        process.stdin.write(b"YUV4MPEG2 W64 H64 F25:1 C420\n")
        process.stdin.flush()
    time.sleep(0.5)
    process.send_signal(number)
    assert process.wait(2 + BUSY) == SIGNALS[number]
    assert not list(out.iterdir())


def test_a_second_signal_ends_at_once(out):
    """An encoder that takes long to finish is not waited for."""
    running = Running(out / "o.mkv", "--preset", "placebo", frames=60)
    wait_for(lambda: tools.is_writing(running.process, out))
    running.process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    code, _, took = running.stop(signal.SIGINT, 20)
    assert code == 130 and took < 0.5 + BUSY
    names = [f.name for f in out.iterdir()]
    assert names in ([], ["o.mkv"]), "a temporary file is left"


@pytest.mark.parametrize("name", ["o.mkv", "o.m3u8"])
def test_a_killed_run_leaves_nothing(out, name):
    """The unfinished output has no name that could stay."""
    running = Running(out / name)
    wait_for(lambda: tools.is_writing(running.process, out))
    running.process.kill()
    running.process.wait(5)
    running.feeding = False
    assert not list(out.iterdir())


@pytest.mark.skipif(not ROOT, reason="only root can hide /proc")
def test_output_without_nameless_files(tmp_path, out, clips):
    """Where the file system has none, or /proc is not there, a temporary name does the same."""
    def hidden(*arguments):
        script = 'mount -t tmpfs none /proc && exec "$0" "$@"'
        return tools.execute(["unshare", "-m", "sh", "-c", script, tools.SLUICE, "-q", *arguments],
                             cwd=out)

    if hidden("--version").code:
        pytest.skip("no mount namespaces here")
    assert hidden(clips["plain.mkv"], "o.mkv").code == 0
    assert hidden(clips["plain.mkv"], "o.mkv").code == 5
    assert hidden("-y", clips["plain.mkv"], "o.mkv").code == 0
    assert hidden(clips["plain.mkv"], "x" * 251 + ".mkv").code == 0
    assert hidden(clips["plain.mkv"], "o%d.png", "--frames", 2).code == 0
    assert hidden(clips["plain.mkv"], "full.mp4", "-c:v", "dvvideo").code != 0
    assert sorted(f.name for f in out.iterdir()) == ["o.mkv", "o1.png", "o2.png", "x" * 251 + ".mkv"]
    assert len(packets(out / "o.mkv")) == 50


@pytest.mark.parametrize("encoder", [["-c:v", "libaom-av1", "--option", "cpu-used=0"],
                                     ["-c:v", "libx264", "--preset", "placebo"]])
def test_signal_does_not_wait_for_a_slow_encoder(out, encoder):
    """1080p: a whole file with what came out in time, or none and a sentence that says so."""
    if not tools.has_encoder(encoder[1]):
        pytest.skip(f"no {encoder[1]} here")
    process = subprocess.Popen([tools.SLUICE, "-f", "null", "-F", "rawvideo", "--size", "1920x1080",
                                "--pixfmt", "yuv420p", "/dev/urandom", out / "o.mkv", *encoder],
                               stderr=subprocess.PIPE, env=tools.environment())
    wait_for(lambda: tools.is_writing(process, out))
    time.sleep(1)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert time.monotonic() - began < 2 + BUSY
    said = process.stderr.read().decode()
    assert "frames  " in said
    if list(out.iterdir()):
        assert len(packets(out / "o.mkv")) > 0
    else:
        assert "no output" in said


def test_signal_does_not_wait_for_a_reader_that_takes_nothing(clips):
    process = subprocess.Popen([tools.SLUICE, "-q", "-f", "null", "-F", "rawvideo", "--size",
                                "640x480", "--pixfmt", "gray", "/dev/urandom", "-", "-F",
                                "matroska", "-c:v", "rawvideo"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=tools.environment())
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(2 + BUSY) == 143, process.stderr.read()


@pytest.mark.parametrize("name", ["USR1", "WINCH"])
def test_signals_work_whatever_was_ignored(clips, name):
    """SIGUSR1, or what ends the thread that waits for signals, ignored from the start."""
    ignoring = ["sh", "-c", f'trap "" {name}; exec "$0" "$@"', tools.SLUICE]
    assert tools.execute([*ignoring, "-q", clips["plain.mkv"], "null:"], timeout=20).code == 0


def test_signal_during_a_pipe_leaves_a_playable_stream(tmp_path, out):
    with open(out / "got.mkv", "wb") as got:
        process = subprocess.Popen([tools.SLUICE, "-F", "rawvideo", "--size", "320x240", "--pixfmt",
                                    "gray", "/dev/zero", "-", "-F", "matroska"], stdout=got,
                                   stderr=subprocess.PIPE, env=tools.environment())
        time.sleep(0.8)
        process.send_signal(signal.SIGTERM)
        assert process.wait(2 + BUSY) == 143
    assert len(packets(out / "got.mkv")) > 5


def test_an_endless_device_ends_by_frames(run, tmp_path):
    result = run("-q", "-F", "rawvideo", "--size", "64x64", "--pixfmt", "gray", "/dev/zero",
                 "o.mkv", "--frames", 10)
    assert result.code == 0 and len(packets(tmp_path / "o.mkv")) == 10


def test_ignored_hangup_stays_ignored(out):
    """What nohup starts survives its terminal."""
    command = ["sh", "-c", 'trap "" HUP; exec "$0" "$@"', tools.SLUICE, "-F", "rawvideo", "--size",
               "320x240", "--pixfmt", "gray", "/dev/zero", out / "o.mkv"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=tools.environment())
    wait_for(lambda: tools.is_writing(process, out))
    process.send_signal(signal.SIGHUP)
    time.sleep(0.6)
    alive = process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.wait(4)
    assert alive


# ---- memory ----


def test_memory_that_runs_out_is_an_error_not_a_crash(run, clips, out):
    """Address space too small for the job, at several sizes."""
    for kilobytes in (250000, 300000, 400000):
        result = tools.execute(["sh", "-c", f'ulimit -v {kilobytes}; exec "$0" "$@"', tools.SLUICE,
                                "-q", clips["film.mkv"], out / "o.mkv"])
        assert result.code in (0, 1, 4, 5, 127), result.stderr
        assert not tools.leftovers(out)
        assert (out / "o.mkv").exists() == (result.code == 0)
        (out / "o.mkv").unlink(missing_ok=True)


def test_memory_is_flat_over_a_long_run(tmp_path):
    """The peak of 4000 frames is that of 400."""
    peaks = []
    for frames in (400, 4000):
        script = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
                  "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        result = tools.execute(["/usr/bin/python3", "-c", script, tools.SLUICE, "-q", "-F",
                                "rawvideo", "--size", "160x120", "--pixfmt", "gray", "/dev/zero",
                                "null:", "--frames", frames])
        peaks.append(int(result.text))
    assert peaks[1] < peaks[0] + 6000, f"{peaks} kB"
