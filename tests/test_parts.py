"""Parts of a file: each made by itself, put together, proved. What one run makes is what all parts make."""

import functools
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

import tools

CHAIN = ["-f", "gaussian=1,stats"]
TEST = ["-f", "lavfi", "-i", "testsrc2=size=96x64:rate=25:duration=6"]
TONE = ["-f", "lavfi", "-i", "sine=sample_rate=44100:duration=6"]
X264 = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"]
UNEVEN = ["-vf", r"select=mod(n\,3)*mod(n\,7)", tools.SYNC, "vfr"]

# Files with difficulties: frames out of order, groups that refer to the one before, times that are not even, that
# begin late, that cannot be sought; no index, one group only, another size in the middle.
FILMS = {
    "b.mp4": [*TEST, *TONE, *X264, "-g", "12", "-bf", "3", "-c:a", "aac"],
    "open.mkv": [*TEST, *X264, "-x264-params", "keyint=12:open-gop=1:bframes=3:b-adapt=0"],
    "refresh.mkv": [*TEST, *X264, "-x264-params", "keyint=20:intra-refresh=1"],
    "one.mp4": [*TEST, *X264, "-g", "1000", "-bf", "2"],
    "vfr.mp4": [*TEST, *UNEVEN, *X264, "-g", "15", "-bf", "2"],
    "late.ts": [*TEST, *TONE, *X264, "-g", "25", "-bf", "2", "-c:a", "aac", "-output_ts_offset", "7.3"],
    "late.mp4": [*TEST, *TONE, *X264, "-g", "25", "-bf", "2", "-c:a", "aac", "-output_ts_offset", "3"],
    "below.ts": [*TEST, *TONE, *X264, "-g", "25", "-bf", "2", "-c:a", "aac", "-output_ts_offset", "95439.3"], # it wraps
    "fragments.mp4": [*TEST, *X264, "-g", "12", "-movflags", "frag_keyframe+empty_moov"],
    "two.ts": [*TEST, "-c:v", "mpeg2video", "-g", "12", "-bf", "2"],
    "four.avi": [*TEST, "-c:v", "mpeg4", "-g", "12", "-bf", "2"],
    "eight.webm": [*TEST, "-c:v", "libvpx", "-g", "30", "-auto-alt-ref", "1", "-lag-in-frames", "10"],
    "five.mkv": [*TEST, "-c:v", "libx265", "-preset", "ultrafast", "-x265-params",
                 "log-level=none:keyint=15:bframes=3"],
    "flash.flv": [*TEST, *X264, "-g", "20", "-bf", "2"],
    "plain.y4m": [*TEST, "-frames:v", "30", "-pix_fmt", "yuv420p"],
    "bare.h264": [*TEST, *X264, "-g", "12", "-bf", "2"],
}


@pytest.fixture(scope="module")
def film(tmp_path_factory, clips):
    """A file with a difficulty, by name."""
    folder = tmp_path_factory.mktemp("films")

    def make(name):
        file = folder / name
        if name not in FILMS:
            return clips[name]
        if not file.exists():
            tools.ffmpeg(*FILMS[name], file)
        return file

    return make


def make_parts(run, source, output, parts, *options):
    """Make all parts of an output. Returns the exit codes."""
    codes = []
    for k in range(1, parts + 1):
        made = run(source, output, *options, "--shard", f"{k}/{parts}", "-q")
        assert made.code in (0, 3), made.stderr
        codes.append(made.code)
    return codes


def joined(run, output, *more):
    result = run("join", output, *more)
    assert result.code in (0, 3), result.stderr
    return result


def packets(file, select):
    """The hashes and times of packets, in the order of their times."""
    result = tools.execute(["ffmpeg", "-v", "error", "-i", f"file:{file}", "-map", select, "-c", "copy", "-copyts",
                            "-f", "framemd5", "-"])
    return sorted(line for line in result.text.splitlines() if not line.startswith("#"))


def frames(file):
    """Times, sizes and hashes. A frame lasts until the next one: how long a packet says is the container's guess, and
    FFmpeg 7 writes what the source guessed."""
    result = tools.execute(["ffmpeg", "-v", "error", "-i", f"file:{file}", "-map", "0:v:0", tools.SYNC, "passthrough",
                            "-copyts", "-f", "framemd5", "-"])
    rows = [line.split(",") for line in result.text.splitlines() if not line.startswith("#")]
    return [(pts, size, digest) for _, _, pts, _, size, digest in rows]


def manifest(file):
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return lines[0], [line for line in lines[1:-1] if line[0] == "frame"], lines[-1]


# ---- the sum is the whole ----


@pytest.mark.parametrize("parts", [3, 8])
@pytest.mark.parametrize("name", [*FILMS, "resized.ts", "restarted.ts", "resized.h264", "gaps.mkv"])
def test_parts_have_the_frames_of_the_whole(run, tmp_path, film, name, parts):
    if name == "five.mkv" and not tools.has_encoder("libx265"):
        pytest.skip("no x265")
    source = film(name)
    whole = run(source, "hash:whole.txt", "-q")
    assert whole.code in (0, 3), whole.stderr
    make_parts(run, source, "hash:out.txt", parts)
    joined(run, "hash:out.txt")
    assert (tmp_path / "out.txt").read_text() == (tmp_path / "whole.txt").read_text()
    for samples in (7, 0):
        audit = run("audit", "hash:out.txt", "--samples", samples)
        assert audit.code == 0, audit.stderr


@pytest.mark.parametrize("name", ["b.mp4", "vfr.mp4", "late.ts", "below.ts", "late.mp4", "film.mkv", "rotated.mp4",
                                  "hdr.mkv"])
def test_a_joined_film_is_the_undivided_one(run, tmp_path, film, name):
    """Frames, times and ledger by an encoder without loss; sound, subtitles, chapters and tags once and whole."""
    source = film(name)
    options = ["-c:v", "ffv1", "-f", "gaussian=1"]
    assert run(source, "whole.mkv", *options, "-q", "--json", "whole.json").code in (0, 3)
    make_parts(run, source, "out.mkv", 3, *options)
    joined(run, "out.mkv")
    out, whole = tmp_path / "out.mkv", tmp_path / "whole.mkv"
    assert frames(out) == frames(whole)
    for kind in {stream["codec_type"] for stream in tools.probe(whole, "-show_streams")["streams"]} & {"audio", "subtitle"}:
        assert packets(out, f"0:{kind[0]}") == packets(whole, f"0:{kind[0]}"), kind
    shown = ["-show_streams", "-show_chapters", "-show_entries",
             "stream=codec_name,width,height,pix_fmt,color_range,color_space,sample_aspect_ratio,r_frame_rate,"
             "start_time,side_data_list,disposition:stream_tags=language,title:format_tags=title"]
    assert tools.probe(out, *shown) == tools.probe(whole, *shown)
    _, _, end = manifest(tmp_path / "out.mkv.manifest")
    ledger = tools.load(tmp_path / "whole.json")["frames"]
    assert end["ledger"]["frames_in"] == ledger["in"] and end["ledger"]["frames_out"] == ledger["out"]
    audit = run("audit", "out.mkv", "--samples", "0", "--json", "found.json")
    assert audit.code == 0, audit.stderr
    others = [one for one in tools.probe(out, "-show_streams")["streams"] if one["codec_type"] in ("audio", "subtitle")]
    found = tools.load(tmp_path / "found.json")
    assert found["streams"] == found["copied"] == len(others)


@pytest.mark.parametrize("encoder, container", [("prores_ks", "mov"), ("prores_ks", "mkv"), ("qtrle", "mov")])
def test_parts_of_codecs_that_only_mov_has_a_tag_for(run, tmp_path, film, encoder, container):
    out, whole, options = f"out.{container}", f"whole.{container}", ["-c:v", encoder, "-f", "null"]
    make_parts(run, film("b.mp4"), out, 3, *options)
    joined(run, out)
    assert run(film("b.mp4"), whole, *options, "-q").code == 0
    assert frames(tmp_path / out) == frames(tmp_path / whole) and len(frames(tmp_path / out)) == 150
    tags = [tools.probe(tmp_path / name, "-show_streams")["streams"][0]["codec_tag"] for name in (out, whole)]
    assert tags[0] == tags[1]
    audit = run("audit", out, "--samples", "0")
    assert audit.code == 0, audit.stderr


@pytest.mark.parametrize("name, container", [("b.mp4", "mp4"), ("b.mp4", "ts"), ("below.ts", "mp4")])
def test_x264_in_parts_is_without_seams(run, tmp_path, film, name, container):
    """Times of decoding rise over the seams, and a player finds every frame at its time."""
    out, whole = f"out.{container}", f"whole.{container}"
    options = ["-c:v", "libx264", "--preset", "veryfast", "--crf", "0", "-f", "null"]
    make_parts(run, film(name), out, 4, *options)
    joined(run, out)
    assert run(film(name), whole, *options, "-q").code == 0
    assert frames(tmp_path / out) == frames(tmp_path / whole) and len(frames(tmp_path / out)) == 150
    rows = tools.probe(tmp_path / out, "-select_streams", "v", "-show_entries", "packet=pts,dts,duration")["packets"]
    times = [row["dts"] for row in rows]
    assert times == sorted(set(times)) and all(row["dts"] <= row["pts"] for row in rows)
    assert packets(tmp_path / out, "0:a") == packets(tmp_path / whole, "0:a")
    audit = run("audit", out, "--samples", "0")
    assert audit.code == 0, audit.stderr


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["b.mp4", "two.ts", "five.mkv", "open.mkv"])
def test_damaged_places(run, tmp_path, film, name, seed):
    """Parts of damaged files have the frames of the whole made repeatably, or are refused."""
    if name == "five.mkv" and not tools.has_encoder("libx265"):
        pytest.skip("no x265")
    data = bytearray(film(name).read_bytes())
    for k in range(20):
        data[3000 + (k * 7919 + seed * 104729) % (len(data) - 5000)] ^= 1 << k % 8
    source = tmp_path / f"damaged-{name}"
    source.write_bytes(data)
    whole = run(source, "hash:whole.txt", "--repeatable", "-q")
    assert whole.code in (0, 3)
    make_parts(run, source, "hash:out.txt", 4)
    result = run("join", "hash:out.txt")
    if result.code == 4 and "--repeatable" in result.stderr:
        make_parts(run, source, "hash:out.txt", 4, "--repeatable", "-y")
        result = run("join", "hash:out.txt")
    assert result.code == whole.code, result.stderr
    rows = [[line.split(",")[1:] for line in (tmp_path / name).read_text().splitlines() if line[0] != "#"]
            for name in ("out.txt", "whole.txt")]
    assert sorted(rows[0]) == sorted(rows[1])  # where damage brings times out of order, parts put them in order
    in_order = [int(row[0]) for row in rows[1]] == sorted({int(row[0]) for row in rows[1]})
    assert rows[0] == rows[1] or not in_order
    audit = run("audit", "hash:out.txt", "--samples", 0)
    assert audit.code == 0, audit.stderr


def test_reports_are_joined(run, tmp_path, film, clips):
    tools.ffmpeg("-i", film("b.mp4"), "-vf", "crop=16:16:8:8", "-frames:v", "1", tmp_path / "mark.png")
    chain = "stats=report={0}.stats,match=mark.png:min=0.5:report={0}.match,wavelet=1:2:out={0}.wavelet"
    whole = run(film("b.mp4"), "hash:whole.txt", "-f", chain.format("whole"), "-q")
    assert whole.code == 0, whole.stderr
    make_parts(run, film("b.mp4"), "hash:out.txt", 3, "-f", chain.format("out"))
    joined(run, "hash:out.txt")
    for kind in ("txt", "stats", "match", "wavelet", "wavelet.json"):
        assert (tmp_path / f"out.{kind}").read_bytes() == (tmp_path / f"whole.{kind}").read_bytes(), kind


@pytest.mark.skipif(not tools.media_folder(), reason="no real files")
def test_three_parts_of_a_real_film(run, tmp_path):
    source = tools.media_folder() / "foreman-hevc-384.mp4"
    assert run(source, "hash:whole.txt", "-q").code == 0
    make_parts(run, source, "out.mp4", 3)
    joined(run, "out.mp4")
    assert run("audit", "out.mp4", "--samples", "50").code == 0
    make_parts(run, source, "hash:out.txt", 3, "--pix-fmt", "gray")
    joined(run, "hash:out.txt")
    wanted = [line.split(", ")[1:] for line in (tmp_path / "whole.txt").read_text().splitlines() if line[0] != "#"]
    got = [line.split(", ")[1:] for line in (tmp_path / "out.txt").read_text().splitlines() if line[0] != "#"]
    assert got == wanted and len(got) == 248


# ---- lies ----


def flip(file, at):
    data = bytearray(file.read_bytes())
    data[at if at >= 0 else len(data) + at] ^= 4
    file.write_bytes(data)


def cut(file):
    file.write_bytes(file.read_bytes()[:-3000])


def rewrite(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def second(folder, name="out.mp4"):
    return folder / f"{name}.part-2-of-3"


def remake(run, film, folder, *options, source="b.mp4", parts=3):
    """Part 2, made otherwise."""
    shutil.rmtree(second(folder))
    made = run(film(source), "out.mp4", *options, "--shard", f"2/{parts}", "-q")
    assert made.code == 0, made.stderr


# What is done to part 2 of 3, and a word of the refusal, which names that part.
LIES = {
    "missing": (lambda run, film, at: shutil.rmtree(second(at)), "part 2 of 3 is missing"),
    "twice": (lambda run, film, at: shutil.copytree(second(at), at / "out.mp4.part-9-of-3"), "are both part 2"),
    "a byte of the video": (lambda run, film, at: flip(second(at) / "video.nut", -4000), "packet"),
    "video cut short": (lambda run, film, at: cut(second(at) / "video.nut"), "packet"),
    "no video": (lambda run, film, at: (second(at) / "video.nut").unlink(), "cannot be read"),
    "no manifest": (lambda run, film, at: (second(at) / "manifest").unlink(), "cannot be read"),
    "manifest cut short": (lambda run, film, at: cut(second(at) / "manifest"), "part-2-of-3/manifest, line"),
    "a frame's hash": (lambda run, film, at: flip(second(at) / "manifest", 900), "altered"),
    "the ledger": (lambda run, film, at: rewrite(second(at) / "manifest", '"frames_damaged":0',
                                                 '"frames_damaged":7'), "altered"),
    "the chain's name": (lambda run, film, at: rewrite(second(at) / "manifest", "sigma=1.5",
                                                       "sigma=2.5"), "altered"),
    "another chain": (lambda run, film, at: remake(run, film, at, "-f", "gaussian=9"), "chain"),
    "another encoder's options": (lambda run, film, at: remake(run, film, at, "-f", "gaussian=1.5", "--crf", "40"),
                                  "output"),
    "another source": (lambda run, film, at: remake(run, film, at, "-f", "gaussian=1.5", source="late.mp4"),
                       "source"),
    "the third's video": (lambda run, film, at: shutil.copy(at / "out.mp4.part-3-of-3" / "video.nut",
                                                            second(at) / "video.nut"), "packet"),
}


@pytest.fixture(scope="module")
def three(tmp_path_factory, film):
    """Three parts of one film."""
    folder = tmp_path_factory.mktemp("three")
    for k in (1, 2, 3):
        tools.sluice_whole(film("b.mp4"), "out.mp4", "-f", "gaussian=1.5", "--shard", f"{k}/3", "-q", cwd=folder)
    return folder


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_found(run, tmp_path, film, three, lie):
    shutil.copytree(three, tmp_path, dirs_exist_ok=True)
    change, words = LIES[lie]
    change(run, film, tmp_path)
    result = run("join", "out.mp4")
    assert result.code == 4 and words in result.stderr, result.stderr
    assert "2" in result.stderr
    assert not (tmp_path / "out.mp4").exists() and not (tmp_path / "out.mp4.manifest").exists()


def test_a_part_of_another_division(run, tmp_path, film, three):
    shutil.copytree(three, tmp_path, dirs_exist_ok=True)
    tools.sluice_whole(film("b.mp4"), "out.mp4", "-f", "gaussian=1.5", "--shard", "2/5", "-q", cwd=tmp_path)
    result = run("join", "out.mp4")
    assert result.code == 4 and "part-2-of-5" in result.stderr and "parts" in result.stderr


def test_the_source_is_asked_for(run, tmp_path, film, three):
    """A source that has moved is named by --source; another one is refused."""
    shutil.copytree(three, tmp_path, dirs_exist_ok=True)
    wrong = run("join", "out.mp4", "--source", film("late.mp4"))
    assert wrong.code == 4 and "not the source" in wrong.stderr
    shutil.copy(film("b.mp4"), tmp_path / "moved.mp4")
    joined(run, "out.mp4", "--source", "moved.mp4")


def test_join_keeps_what_is_there(run, tmp_path, three):
    shutil.copytree(three, tmp_path, dirs_exist_ok=True)
    (tmp_path / "out.mp4").write_text("mine")
    assert run("join", "out.mp4").code == 5
    assert (tmp_path / "out.mp4").read_text() == "mine"
    joined(run, "out.mp4", "-y")
    kept = (tmp_path / "out.mp4").read_bytes()
    assert run("join", "out.mp4").code == 5 and (tmp_path / "out.mp4").read_bytes() == kept


# ---- the old output, or the new one ----


@pytest.fixture(scope="module")
def changing(tmp_path_factory, film):
    """changing(output, folder): an output that was joined, and parts of another one of its name."""
    made = {}

    def make(output, folder):
        if output not in made:
            at = made[output] = tmp_path_factory.mktemp("changing")
            run = functools.partial(tools.sluice, cwd=at)
            make_parts(run, film("b.mp4"), output, 2, "-f", "gaussian=1.5,stats=report=s.txt")
            joined(run, output)
            make_parts(run, film("b.mp4"), output, 2, "-f", "gaussian=3,stats=report=s.txt", "-y")
        shutil.copytree(made[output], folder, dirs_exist_ok=True)
        return {name: (folder / name).read_bytes() for name in files_of(output)}

    return make


def files_of(output):
    name = output.removeprefix("hash:")
    return [name, "s.txt", f"{name}.manifest"]


def check_state(run, folder, output, old):
    """All is as it was, all is new, or an audit says that nothing vouches for it. Returns which."""
    now = {name: (folder / name).read_bytes() if (folder / name).exists() else None for name in old}
    audit = run("audit", output, "--samples", "2", cwd=folder)
    noted = now[files_of(output)[2]]
    if noted is None:
        assert audit.code == 4 and "has no manifest" in audit.stderr, audit.stderr
        return "refused"
    assert audit.code == 0, audit.stderr
    changed = [name for name in old if now[name] != old[name]]
    assert changed in ([], list(old))
    return "new" if changed else "old"


@pytest.mark.parametrize("output", ["out.mp4", "hash:out.txt"])
def test_a_join_that_is_killed(run, tmp_path, changing, moments, output):
    """Whenever that happens, no audit takes files for one output that are of two."""
    states = []
    for step in range(1, 30):
        folder = tmp_path / f"step-{step}"
        old = changing(output, folder)
        result = run("join", output, "-y", cwd=folder,
                     env={"LD_PRELOAD": moments, "KILL_AT": str(step)})
        states.append(check_state(run, folder, output, old))
        if result.code == 0:
            break
        assert result.code == 137, result.stderr
    assert states[-1] == "new" and states == sorted(states, key=["old", "refused", "new"].index)
    assert {"old", "refused"} < set(states)


@pytest.mark.parametrize("lack", ["bytes", "names"])
def test_a_join_on_a_full_disk(run, tmp_path, small_disk, changing, lack):
    """However much room there is, the old output stays until the new one is whole."""
    output, parts = "hash:out.txt", tmp_path / "parts"
    old = changing(output, parts)
    subprocess.run(["mount", "-o", "remount,size=2m", small_disk], check=True)
    for name in old:
        shutil.copy(parts / name, small_disk)
    states, pages = [], sum(len(data) for data in old.values()) // 4096
    for more in [0, *range(pages - 6, pages + 20)] if lack == "bytes" else range(20):
        if lack == "bytes":
            (small_disk / "filler").write_bytes(bytes(os.statvfs(small_disk).f_bavail * 4096))
            os.truncate(small_disk / "filler", max(0, (small_disk / "filler").stat().st_size - more * 4096))
        else:
            used = os.statvfs(small_disk).f_files - os.statvfs(small_disk).f_ffree
            subprocess.run(["mount", "-o", f"remount,nr_inodes={used + more}", small_disk], check=True)
        result = run("join", output, *parts.glob("*.part-*"), "-y", cwd=small_disk)
        (small_disk / "filler").unlink(missing_ok=True)
        states.append(check_state(run, small_disk, output, old))
        assert not tools.leftovers(small_disk)
        if result.code == 0:
            break
        assert result.code == 5 and "No space left" in result.stderr, result.stderr
    assert states[-1] == "new" and len(states) > 2 and set(states[:-1]) == {"old"}


# ---- audit ----


def test_audit(run, tmp_path, film, three):
    shutil.copytree(three, tmp_path, dirs_exist_ok=True)
    joined(run, "out.mp4")
    out, noted = tmp_path / "out.mp4", tmp_path / "out.mp4.manifest"
    whole = out.read_bytes(), noted.read_text()
    passed = run("audit", "out.mp4", "--samples", "0", "--json", "found.json")
    assert passed.code == 0 and "150 of 150 frames" in passed.stderr
    assert tools.load(tmp_path / "found.json")["samples"] == 150
    assert run("audit", "out.mp4", "--samples", "5", "--backend", "scalar").code == 0
    refused = run("audit", "out.mp4", "--samples", "5", "--backend", "cuda")
    assert refused.code == 2 and "--backend is cuda, and the CPU computes frames again" in refused.stderr

    row = tools.probe(out, "-select_streams", "v", "-show_entries", "packet=pos,size")["packets"][40]
    flip(out, int(row["pos"]) + int(row["size"]) // 2)
    failed = run("audit", "out.mp4")
    assert failed.code == 1 and "packet" in failed.stderr
    out.write_bytes(whole[0])

    lines = whole[1].splitlines()
    for what in ("frame", "packet"):
        n = next(n for n, line in enumerate(lines) if line.startswith(f'["{what}"'))
        noted.write_text("\n".join([*lines[:n], *lines[n + 1:]]) + "\n")
        assert run("audit", "out.mp4").code == 4
        noted.write_text(whole[1].replace(lines[n], lines[n].replace('"]', '0"]')))
        assert run("audit", "out.mp4").code == 4
    noted.write_text(whole[1])
    wrong = run("audit", "out.mp4", "--source", film("late.mp4"))
    assert wrong.code == 4 and "not the source" in wrong.stderr
    noted.unlink()
    assert run("audit", "out.mp4").code == 4


def test_audit_finds_frames_that_the_chain_does_not_give(run, tmp_path, film):
    """A manifest that is whole in itself, of frames that came of another chain."""
    make_parts(run, film("b.mp4"), "hash:out.txt", 2, "-f", "gaussian=1.5")
    joined(run, "hash:out.txt")
    make_parts(run, film("b.mp4"), "hash:other.txt", 2, "-f", "gaussian=3")
    joined(run, "hash:other.txt")
    seal(tmp_path / "other.txt.manifest", chain=manifest(tmp_path / "out.txt.manifest")[0]["chain"])
    failed = run("audit", "hash:other.txt", "--samples", "3")
    assert failed.code == 1 and "is not what the source and the chain give" in failed.stderr


def root(lines):
    """Of the hash tree of RFC 6962."""
    digest = lambda text: hashlib.sha256(text).digest()
    if len(lines) == 1:
        return digest(b"\0" + lines[0].encode())
    half = 1 << (len(lines) - 1).bit_length() - 1
    return digest(b"\1" + root(lines[:half]) + root(lines[half:]))


def leave_out(folder, name, first, last):
    """Leave frames out of a list of hashes, and of its manifest, which is whole in itself."""
    xxhash = pytest.importorskip("xxhash")
    text = (folder / name).read_text().splitlines()
    head, rows = [line for line in text if line[0] == "#"], [line for line in text if line[0] != "#"]
    kept = [line.split(", ", 1)[1] for line in rows[:first] + rows[last:]]
    (folder / name).write_text("\n".join(head + [f"{n}, {line}" for n, line in enumerate(kept)]) + "\n")
    noted = folder / f"{name}.manifest"
    lines = noted.read_text().splitlines()
    lines[1 + first:1 + last] = []
    end, data = json.loads(lines[-1]), (folder / name).read_bytes()
    end["frames"] = end["ledger"]["frames_in"] = end["ledger"]["frames_out"] = len(kept)
    end["root"] = root(lines[1:-1]).hex()
    end["file"] = {"bytes": len(data), "hash": xxhash.xxh3_128_hexdigest(data)}
    noted.write_text("\n".join([*lines[:-1], json.dumps(end)]) + "\n")
    seal(noted)


@pytest.mark.parametrize("name", ["b.mp4", "late.ts", "open.mkv", "vfr.mp4", "bare.h264"])
@pytest.mark.parametrize("first, last, samples", [
    (0, 1, 3), (-1, None, 3), (-40, None, 3),  # both ends are looked at, however few are computed
    (50, 51, 0), (50, 90, 0), (1, 2, 0)])      # ... and with all of them everything is
def test_audit_misses_frames_that_were_left_out(run, tmp_path, film, name, first, last, samples):
    make_parts(run, film(name), "hash:out.txt", 2, "-f", "gray")
    joined(run, "hash:out.txt")
    frames = len(manifest(tmp_path / "out.txt.manifest")[1])
    leave_out(tmp_path, "out.txt", *slice(first, last).indices(frames)[:2])
    failed = run("audit", "hash:out.txt", "--samples", samples)
    assert failed.code == 1 and "left out" in failed.stderr, failed.stderr


def test_a_sample_is_followed_by_the_next_frame(run, tmp_path, film):
    """What is left out behind a frame that is drawn is missed, and what is not drawn may not be."""
    make_parts(run, film("b.mp4"), "hash:out.txt", 2, "-f", "gray")
    joined(run, "hash:out.txt")
    leave_out(tmp_path, "out.txt", 70, 71)
    codes = [run("audit", "hash:out.txt", "--samples", "40", "--seed", seed).code for seed in range(1, 9)]
    assert set(codes) == {0, 1}


@pytest.mark.parametrize("source", ["b.mp4", "late.ts"])
@pytest.mark.parametrize("container", ["mkv", "mp4", "mov", "ts", "flv"])
def test_an_audit_sees_video_and_sound_in_every_container(run, tmp_path, film, source, container):
    """Where streams are only known by their packets, too, and where one says times in other units."""
    out = f"out.{container}"
    make_parts(run, film(source), out, 2, "-c:v", "libx264", "-f", "null")
    joined(run, out)
    audit = run("audit", out, "--samples", 1, "--json", "found.json")
    found = tools.load(tmp_path / "found.json")
    assert audit.code == 0, audit.stderr
    assert (found["packets"], found["streams"], found["copied"]) == (150, 1, 1)


def test_audit_hears_the_sound(run, tmp_path, film):
    tools.ffmpeg("-i", film("b.mp4"), *TONE, "-f", "lavfi", "-i", "sine=frequency=700:sample_rate=44100:duration=6",
                 "-map", "0:v", "-map", "1:a", "-map", "2:a", "-c:v", "copy", "-c:a", "aac", tmp_path / "source.mp4")
    make_parts(run, "source.mp4", "out.mkv", 2, "-c:v", "ffv1", "-f", "null")
    joined(run, "out.mkv")
    out, noted = tmp_path / "out.mkv", tmp_path / "out.mkv.manifest"
    passed = run("audit", "out.mkv", "--samples", 1)
    assert passed.code == 0 and "2 as written, 2 of them as in the source" in passed.stderr
    whole, text = out.read_bytes(), noted.read_text()

    row = tools.probe(out, "-select_streams", "a:1", "-show_entries", "packet=pos,size")["packets"][40]
    flip(out, int(row["pos"]) + int(row["size"]) // 2)
    failed = run("audit", "out.mkv", "--samples", 1)
    assert failed.code == 1 and "stream 2 are not those that were written" in failed.stderr

    out.write_bytes(whole)
    noted.write_text(text.replace('"from":2', '"from":1'))
    seal(noted)
    failed = run("audit", "out.mkv", "--samples", 1)
    assert failed.code == 1 and "packet 0 is not that of stream 1 of the source" in failed.stderr

    noted.write_text(text)
    out.rename(tmp_path / "full.mkv")
    tools.ffmpeg("-i", tmp_path / "full.mkv", "-map", "0:v", "-map", "0:a:0", "-c", "copy", out)
    failed = run("audit", "out.mkv", "--samples", 1)
    assert failed.code == 1 and "1 streams beside its video; 2 were written" in failed.stderr


def seal(file, **changes):
    """Change members of a manifest's identity, and seal it again."""
    xxhash = pytest.importorskip("xxhash")
    lines = file.read_text().splitlines()
    identity, end = {**json.loads(lines[0]), **changes}, json.loads(lines[-1])
    del end["seal"]
    text = json.dumps([identity, end], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    end["seal"] = xxhash.xxh3_128_hexdigest(text.encode())
    compact = [json.dumps(part, sort_keys=True, separators=(",", ":")) for part in (identity, end)]
    file.write_text("\n".join([compact[0], *lines[1:-1], compact[1]]) + "\n")


@pytest.mark.parametrize("named", [False, True])
def test_a_join_writes_reports_into_other_folders(run, tmp_path, film, named):
    """The sandbox lets it."""
    (tmp_path / "reports").mkdir()
    for k in (1, 2):
        assert run(film("b.mp4"), "out.mkv", "-f", "gray,stats=reports/s.jsonl", "--shard", f"{k}/2", "-q").code == 0
    joined = run("join", "out.mkv", *(sorted(tmp_path.glob("*.part-*")) if named else []))
    assert joined.code == 0, joined.stderr
    assert len((tmp_path / "reports" / "s.jsonl").read_text().splitlines()) >= 150


def test_a_join_finds_the_parts_of_a_prefixed_name_and_takes_a_format(run, tmp_path, film):
    for k in (1, 2):
        assert run(film("b.mp4"), "file:out.bin", "-f", "gray", "--format", "mp4", "--shard", f"{k}/2", "-q").code == 0
    joined = run("join", "file:out.bin", "--format", "mp4")
    assert joined.code == 0, joined.stderr
    assert "mp4" in tools.probe(tmp_path / "out.bin", "-show_entries", "format=format_name")["format"]["format_name"]


@pytest.mark.parametrize("encoder", ["mpeg2video", "mpeg4", "libx264", "ffv1"])
@pytest.mark.parametrize("chain", ["gray", "invert"])
def test_an_audit_passes_whatever_range_an_encoder_takes(run, tmp_path, film, encoder, chain):
    """Gray is of full range; MPEG-2 and MPEG-4 take the limited one, and tag nothing."""
    for k in (1, 2):
        made = run(film("b.mp4"), "out.mkv", "-f", chain, "-c:v", encoder, "--shard", f"{k}/2", "-q")
        assert made.code == 0, made.stderr
    assert run("join", "out.mkv", "-q").code == 0
    audit = run("audit", "out.mkv", "--samples", "20")
    assert audit.code == 0, audit.stderr


# ---- run twice ----


def test_a_part_is_made_once(run, tmp_path, film):
    assert run(film("b.mp4"), "out.mp4", "--shard", "2/3", "-q").code == 0
    before = (second(tmp_path) / "manifest").stat().st_mtime_ns
    again = run(film("b.mp4"), "out.mp4", "--shard", "2/3", "--json", "out.json")
    assert tools.load(tmp_path / "out.json")["exit"] == 0
    (tmp_path / "out.json").unlink()
    assert again.code == 0 and "nothing to do" in again.stderr
    assert (second(tmp_path) / "manifest").stat().st_mtime_ns == before
    other = run(film("b.mp4"), "out.mp4", "--shard", "2/3", "-f", "gray")
    assert other.code == 5 and "chain" in other.stderr
    assert run(film("b.mp4"), "out.mp4", "--shard", "2/3", "-f", "gray", "-y").code == 0
    assert manifest(second(tmp_path) / "manifest")[0]["chain"] == "gray"
    assert [f.name for f in tmp_path.iterdir()] == ["out.mp4.part-2-of-3"]


def test_four_make_one_part_at_once(tmp_path, film):
    command = [tools.SLUICE, film("b.mp4"), "out.mp4", "--shard", "1/2", "-q"]
    runs = [subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, env=tools.environment())
            for _ in range(4)]
    assert [one.wait(60) for one in runs] == [0] * 4, [one.stderr.read() for one in runs]
    assert [f.name for f in tmp_path.iterdir()] == ["out.mp4.part-1-of-2"]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_part_that_is_stopped_is_none(run, tmp_path, film, sign):
    """Nothing stays of it, and it can be made again."""
    running = subprocess.Popen([tools.SLUICE, film("b.mp4"), "out.mp4", "--shard", "1/2", "-f",
                                "gaussian=200,gaussian=200,gaussian=200", "--backend", "scalar"],
                               cwd=tmp_path, stderr=subprocess.PIPE, env=tools.environment())
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob(".out*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(sign)
    assert running.wait(20) == 128 + sign
    assert not list(tmp_path.iterdir())
    assert run(film("b.mp4"), "out.mp4", "--shard", "1/2", "-q").code == 0


@pytest.mark.parametrize("name, shard", [("b.mp4", "1/2"), ("late.ts", "2/2")])
def test_a_part_that_is_stopped_while_it_is_opened(tmp_path, film, moments, name, shard):
    """Nothing stays of it, however long the file takes to be opened."""
    mark, folder = tmp_path / "mark", tmp_path / "made"
    folder.mkdir()
    for opening in range(1, 20):
        env = {"LD_PRELOAD": moments, "HANG_AT": str(opening), "HANG_FILE": str(film(name)), "HANG_MARK": str(mark)}
        running = subprocess.Popen([tools.SLUICE, film(name), "out.mp4", "--shard", shard, "--allow", tmp_path],
                                   cwd=folder, stderr=subprocess.PIPE, env=tools.environment() | env)
        while not mark.exists() and running.poll() is None:
            time.sleep(0.02)
        if not mark.exists():
            break
        running.send_signal(signal.SIGTERM)
        assert running.wait(3) == 128 + signal.SIGTERM
        assert not list(folder.iterdir()), opening
        mark.unlink()
    assert opening > 2 and running.returncode == 0, running.stderr.read()


def failing(moments, file, at):
    """The environment of a run to which a byte of a file is a bad sector."""
    return {"LD_PRELOAD": moments, "FAIL_FILE": str(file), "FAIL_AT": str(at)}


@pytest.mark.parametrize("options", [[], ["--repeatable"]])
@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".ts", ".y4m"])
def test_a_part_is_not_made_of_what_cannot_be_read(run, tmp_path, moments, suffix, options):
    """However much of the part was read; a demuxer may take it for the file's end. The next run makes it."""
    source = tmp_path / f"large{suffix}"
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=4", "-pix_fmt", "yuv420p",
                 *([] if suffix == ".y4m" else ["-c:v", "mpeg2video", "-q:v", "1", "-g", "10", "-bf", "2"]), source)
    whole, size = run(source, "hash:whole.txt", "-q"), source.stat().st_size
    assert whole.code == 0 and size > 700000
    for percent in (25, 70):
        codes = [run(source, "hash:out.txt", "--shard", f"{k}/2", "-q", *options,
                     env=failing(moments, source, size * percent // 100)).code for k in (1, 2)]
        assert 4 in codes and not set(codes) - {0, 4} and (codes == [4, 4] or not options)
        assert [(tmp_path / f"out.txt.part-{k}-of-2").exists() for k in (1, 2)] == [code == 0 for code in codes]
        assert make_parts(run, source, "hash:out.txt", 2, *options) == [0, 0]
        assert joined(run, "hash:out.txt", "-y").code == 0
        assert (tmp_path / "out.txt").read_text() == (tmp_path / "whole.txt").read_text()
        for k in (1, 2):
            shutil.rmtree(tmp_path / f"out.txt.part-{k}-of-2")


def test_a_file_that_cannot_be_read_to_its_end_is_damage(run, tmp_path, moments):
    """Of MPEG-TS the demuxer says that it was the end; and nothing that can be read is no empty file."""
    source = tmp_path / "large.ts"
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=4", "-c:v", "mpeg2video", "-q:v", "1", source)
    broken = run(source, "null:", env=failing(moments, source, source.stat().st_size // 2))
    assert broken.code == 3, broken.stderr
    broken = run(source, "null:", env=failing(moments, source, 0))
    assert broken.code == 4 and "is empty" not in broken.stderr, broken.stderr


@pytest.mark.parametrize("percent", [5, 50, 99])
def test_what_cannot_be_read_back_is_not_whole(run, tmp_path, film, moments, percent):
    """The video of a part, of a join and for an audit: a manifest that ended there would make a good file a bad one."""
    options, output = [film("b.mp4"), "out.mkv", "-c:v", "ffv1", "-f", "null", "-q"], tmp_path / "out.mkv"
    make_parts(run, film("b.mp4"), "out.mkv", 2, *options[2:-1])
    videos = [tmp_path / f"out.mkv.part-{k}-of-2" / "video.nut" for k in (1, 2)]
    where = [video.stat().st_size * percent // 100 for video in videos]

    shutil.rmtree(videos[1].parent)
    part = run(*options, "--shard", "2/2", env=failing(moments, "video.nut", where[1]))
    assert part.code == 5 and "cannot be read back" in part.stderr, part.stderr
    assert not videos[1].parent.exists() and not tools.leftovers(tmp_path)
    assert run(*options, "--shard", "2/2").code == 0

    # Until it has its name the output has none, or a hidden one.
    for name in (f"{tmp_path}/#", f"{tmp_path}/.out.mkv"):
        whole = run("join", "out.mkv", env=failing(moments, name, sum(where)))
        if whole.code:
            break
        output.unlink()
    assert whole.code == 5 and "cannot be read back" in whole.stderr and not output.exists(), whole.stderr
    lost = run("join", "out.mkv", env=failing(moments, "1-of-2/video.nut", where[0]))
    assert lost.code == 4 and "its video cannot be read" in lost.stderr and not output.exists(), lost.stderr

    joined(run, "out.mkv")
    audit = run("audit", "out.mkv", env=failing(moments, output, sum(where)))
    assert audit.code == 4 and "cannot be read" in audit.stderr, audit.stderr
    assert run("audit", "out.mkv", "--samples", "3").code == 0


@pytest.mark.parametrize("file", ["frames.txt", "report-0", "report-1", "report-1.json"])
def test_a_part_s_file_that_cannot_be_read_is_not_joined_to_there(run, tmp_path, film, moments, file):
    """Whichever of its readings fails, those that check it and that which copies it."""
    make_parts(run, film("b.mp4"), "hash:out.txt", 1, "-f", "stats=report=s.txt,wavelet=1:2:out=w.bin")
    parts, name, codes = list(tmp_path.glob("*.part-*")), f"1-of-1/{file}", []
    at, whole = (parts[0] / file).stat().st_size - 1, None
    assert at > 5000  # what there was before is read
    for opening in (0, 1, 2, 3, 4):
        result = run("join", "hash:out.txt", env={**failing(moments, name, at), "FAIL_FOPEN": str(opening)})
        made = {path.name: path.read_bytes() for path in set(tmp_path.iterdir()) - set(parts)}
        whole = whole or made
        assert (result.code, made) in ((0, whole), (4, {})), f"{opening}: {result.stderr}"
        codes.append(result.code)
        for path in made:
            (tmp_path / path).unlink()
    assert len(whole) == 5 and codes[:2] == [0, 4] and codes.count(4) > 1


def test_a_killed_part_is_none(run, tmp_path, film):
    running = subprocess.Popen([tools.SLUICE, film("b.mp4"), "out.mp4", "--shard", "1/2", "-f",
                                "gaussian=60,gaussian=60", "--backend", "scalar"], cwd=tmp_path,
                               stderr=subprocess.DEVNULL, env=tools.environment())
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob(".out*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    running.kill()
    running.wait(20)
    assert not list(tmp_path.glob("out*"))
    make_parts(run, film("b.mp4"), "out.mp4", 2)
    joined(run, "out.mp4")


# ---- what is refused ----

REFUSED = {
    "0/3": (["--shard", "0/3"], "part I of N"),
    "4/3": (["--shard", "4/3"], "part I of N"),
    "half": (["--shard", "half"], "part I of N"),
    "3": (["--shard", "3"], "part I of N"),
    "start": (["--shard", "1/3", "--start", "1"], "--start"),
    "frames": (["--shard", "1/3", "--frames", "1"], "--frames"),
    "live": (["--shard", "1/3", "--live"], "--live"),
    "two outputs": (["--shard", "1/3", "-o", "more.mkv"], "one output"),
    "tee": (["--shard", "1/3", "-f", "gray,tee=more.mkv"], "tees"),
    "segments": (["--shard", "1/3", "--segment", "1"], "--segment"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_made_in_parts(run, tmp_path, film, case):
    options, words = REFUSED[case]
    result = run(film("b.mp4"), "out.mkv", *options)
    assert result.code == 2 and words in result.stderr, result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("source, output", [("-", "out.mkv"), ("rtsp://127.0.0.1:9/a", "out.mkv"),
                                            ("lavfi:testsrc", "out.mkv"), (None, "out%03d.png"), (None, "out.m3u8"),
                                            (None, "out.apng"), (None, "out.webp"),
                                            (None, "udp://127.0.0.1:9"), (None, "-")])
def test_names_that_have_no_parts(run, tmp_path, film, source, output):
    more = ["-F", "matroska"] if output == "-" else []
    result = run(source or film("b.mp4"), output, *more, "--shard", "1/2")
    assert result.code == 2 and "part" in result.stderr, result.stderr
    assert not list(tmp_path.iterdir())


def test_null_keeps_nothing(run, tmp_path, film):
    """The frames of the part are filtered, as many as are between its cuts."""
    counts = []
    for k in (1, 2, 3):
        assert run(film("b.mp4"), "null:", "--shard", f"{k}/3", "-q", "--json", f"{k}.json").code == 0
        counts.append(tools.load(tmp_path / f"{k}.json")["frames"]["in"])
    assert sum(counts) == 150 and all(counts)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["1.json", "2.json", "3.json"]


# ---- found by who read it ----


def test_join_writes_over_nothing_that_it_reads(run, tmp_path, film):
    """Neither the source nor a report takes the place of what is joined, whatever -y says."""
    shutil.copy(film("b.mp4"), tmp_path / "src.mp4")
    make_parts(run, "src.mp4", "o.mp4", 2, "-f", "stats=report=rep.mp4")
    before = (tmp_path / "src.mp4").read_bytes()
    refused = run("join", "src.mp4", *sorted(tmp_path.glob("o.mp4.part-*")), "-y")
    assert refused.code == 2 and "src.mp4" in refused.stderr
    assert (tmp_path / "src.mp4").read_bytes() == before
    refused = run("join", "rep.mp4", *sorted(tmp_path.glob("o.mp4.part-*")), "-y")
    assert refused.code == 2 and not (tmp_path / "rep.mp4").exists()


@pytest.mark.parametrize("output", ["hash:-", "hash:/dev/stdout", "hash:/dev/fd/1", "hash:/dev/null", "hash:fifo", "-",
                                    "fifo"])
def test_join_refuses_what_has_no_place_for_a_manifest(run, tmp_path, film, output):
    os.mkfifo(tmp_path / "fifo")
    make_parts(run, film("b.mp4"), "hash:out.txt", 2)
    parts = sorted(tmp_path.glob("out.txt.part-*"))
    refused = run("join", output, *parts)
    assert refused.code == 2 and "manifest beside it" in refused.stderr and not refused.stdout, refused.stderr
    assert sorted(tmp_path.iterdir()) == sorted([*parts, tmp_path / "fifo"])


def test_an_altered_report_leaves_the_old_output(run, tmp_path, film):
    make_parts(run, film("b.mp4"), "out.mp4", 2, "-f", "stats=report=s.txt")
    (tmp_path / "out.mp4").write_text("old")
    report = tmp_path / "out.mp4.part-2-of-2" / "report-0"
    report.write_text(report.read_text() + "{}\n")
    refused = run("join", "out.mp4", "-y")
    assert refused.code == 4 and "report-0" in refused.stderr
    assert (tmp_path / "out.mp4").read_text() == "old" and not (tmp_path / "s.txt").exists()


def test_audit_reads_what_it_speaks_of(run, tmp_path, film, three):
    """An altered list of hashes, and packets at other times, are found."""
    make_parts(run, film("b.mp4"), "hash:out.txt", 2)
    joined(run, "hash:out.txt")
    assert run("audit", "hash:out.txt").code == 0
    rewrite(tmp_path / "out.txt", "\n5, ", "\n6, ")
    assert run("audit", "hash:out.txt").code == 1
    (tmp_path / "out.txt").unlink()
    assert run("audit", "hash:out.txt").code == 4

    shutil.copytree(three, tmp_path, dirs_exist_ok=True)
    joined(run, "out.mp4")
    (tmp_path / "out.mp4").rename(tmp_path / "fast.mp4")
    tools.ffmpeg("-i", tmp_path / "fast.mp4", "-map", "0:v", "-c", "copy", "-bsf:v", "setts=pts=PTS*2:dts=DTS*2",
                 tmp_path / "out.mp4")
    assert run("audit", "out.mp4").code == 1


@pytest.mark.parametrize("changes", [{"format": "nonsense"}, {"codec": "aac"}, {"width": -1}, {"delay": 2 ** 31},
                                     {"sar_num": -4}, {"codec": "vp9", "format": "none"}])
def test_hostile_manifests(run, tmp_path, three, changes):
    xxhash = pytest.importorskip("xxhash")
    shutil.copytree(three, tmp_path, dirs_exist_ok=True)
    for k in (1, 2, 3):
        file = tmp_path / f"out.mp4.part-{k}-of-3" / "manifest"
        lines = file.read_text().splitlines()
        identity, end = json.loads(lines[0]), json.loads(lines[-1])
        end["video"].update(changes)
        del end["seal"]
        dump = functools.partial(json.dumps, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        end["seal"] = xxhash.xxh3_128_hexdigest(dump([identity, end]).encode())
        file.write_text("\n".join([*lines[:-1], dump(end)]) + "\n")
    result = run("join", "out.mp4")
    assert result.code == 4 and "how the video is encoded" in result.stderr
    assert not (tmp_path / "out.mp4").exists()


# ---- bisect ----


@pytest.mark.parametrize("other, words", [
    ("gray,gaussian=1.4,sobel", "the same 150 frames"),
    ("gray,gaussian=1.4,sobel=l2", "stage 3 (sobel, and sobel): plane 0, row"),
    ("gray,gaussian=1.5,sobel", "stage 2 (gaussian, and gaussian): plane 0, row"),
    ("gray,gaussian=1.4,sobel,invert", "stage 4 (the format of the output, and invert): plane 0, row 0, column 0"),
])
def test_bisect_names_frame_stage_and_sample(run, tmp_path, film, other, words):
    for name, chain in (("a", "gray,gaussian=1.4,sobel"), ("b", other)):
        make_parts(run, film("b.mp4"), f"hash:{name}.txt", 2, "-f", chain)
        joined(run, f"hash:{name}.txt")
    found = run("bisect", "hash:a.txt", "hash:b.txt")
    assert found.code == (0 if "same" in words else 1) and words in found.text, found
    if found.code:
        assert found.text.startswith("frame 0, pts 0")


def test_bisect_finds_a_missing_frame_and_a_wrong_one(run, tmp_path, film):
    for name, chain in (("a", "gray"), ("b", "gray,invert")):
        make_parts(run, film("b.mp4"), f"hash:{name}.txt", 2, "-f", chain)
        joined(run, f"hash:{name}.txt")
    seal(tmp_path / "b.txt.manifest", chain="gray")
    wrong = run("bisect", "hash:a.txt", "hash:b.txt")
    assert wrong.code == 1 and "that of b.txt is not what its source and chain give" in wrong.text
    make_parts(run, film("late.mp4"), "hash:c.txt", 2, "-f", "gray")
    joined(run, "hash:c.txt")
    assert run("bisect", "hash:a.txt", "hash:c.txt").code == 4
