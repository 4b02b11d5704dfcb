"""Pictures that leave a chain on its way: each is what the chain up to there gives, and an output like
any other."""

import json
import os
import socket

import numpy as np
import pytest

import live
import tools

PLAIN = "lavfi:color=c=gray:size=160x120:rate=25"
BACKENDS = ["scalar", "cpu"] + ["cuda"] * tools.has_cuda()


# ---- the edge filter of the article, and the brightened picture beside it ----


def brightened(rgb, n):
    return np.clip(rgb.astype(np.int16) + n, 0, 255).astype(np.uint8)


def edges(rgb, t1, t2):
    """Mean of R, G, B; Sobel's |gx| + |gy| with zeros around; double threshold."""
    height, width, _ = rgb.shape
    gray = np.zeros((height + 2, width + 2), np.int32)
    gray[1:-1, 1:-1] = (rgb.sum(axis=2, dtype=np.int32) + 1) // 3
    a, b, c = (gray[:, k:k + width] for k in range(3))
    across, along = c - a, a + 2 * b + c
    gx = across[:-2] + 2 * across[1:-1] + across[2:]
    gy = along[2:] - along[:-2]
    sum = np.minimum(np.abs(gx) + np.abs(gy), 255)
    return np.where(sum < t1, 0, np.where(sum > t2, 255, sum)).astype(np.uint8)


def read_pnm(file):
    with open(file, "rb") as source:
        kind, size, most = source.readline(), source.readline(), source.readline()
        width, height = map(int, size.split())
        assert most == b"255\n"
        data = np.frombuffer(source.read(), np.uint8)
    return data.reshape((height, width, 3) if kind == b"P6\n" else (height, width))


def article(folder, rgb, n, t1, t2, *more):
    """The program's edges and brightened picture."""
    height, width, _ = rgb.shape
    rgb.tofile(folder / "in.raw")
    tools.sluice_whole("-F", "rawvideo", "--size", f"{width}x{height}", "--pixfmt", "rgb24", "in.raw",
                       "edges.pgm", "-q", "-y", "-f",
                       f"brightness={n},tee=bright.ppm,gray=mean,sobel=l1:border=zero,"
                       f"threshold={t1}:{t2}", *more, cwd=folder, timeout=300)
    return read_pnm(folder / "edges.pgm"), read_pnm(folder / "bright.ppm")


def check_article(folder, rgb, n, t1, t2, *more, rows=500):
    got, bright = article(folder, rgb, n, t1, t2, *more)
    height = rgb.shape[0]
    for y in range(0, height, rows): # by strips, so that the largest fits
        first, last = max(y - 1, 0), min(y + rows + 1, height)
        want = brightened(rgb[first:last], n)
        strip = edges(want, t1, t2)
        begin, end = y - first, min(y + rows, height) - first
        assert np.array_equal(bright[y:y + rows], want[begin:end]), y
        assert np.array_equal(got[y:y + rows], strip[begin:end]), y


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("n", [0, 40, -40, 255])
@pytest.mark.parametrize("width, height", [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (5, 1), (1, 7), (31, 33),
                                           (64, 64), (257, 255), (640, 480)])
def test_edge_filter_of_the_article(tmp_path, backend, width, height, n):
    rgb = np.random.default_rng(width * height + n + 300).integers(0, 256, (height, width, 3), np.uint8)
    check_article(tmp_path, rgb, n, 60, 200, "--backend", backend)


@pytest.mark.parametrize("t1, t2", [(0, 255), (128, 128), (20, 240), (255, 255)])
def test_thresholds_of_the_article(tmp_path, t1, t2):
    rgb = np.random.default_rng(t1).integers(0, 256, (120, 160, 3), np.uint8) // 4 + 90
    check_article(tmp_path, rgb, 10, t1, t2)


@pytest.mark.parametrize("width, height", [(3840, 2160), (16000, 9000)])
def test_large_pictures_of_the_article(tmp_path, width, height):
    tile = np.random.default_rng(5).integers(0, 256, (701, 997, 3), np.uint8)
    rgb = np.tile(tile, (height // 701 + 1, width // 997 + 1, 1))[:height, :width]
    check_article(tmp_path, rgb, 30, 60, 200, "--backend", "cpu")
    for file in tmp_path.iterdir(): # a gigabyte
        file.unlink()


# ---- a tee is the chain up to there ----

CHAINS = ["tee,invert", "brightness=40,tee", "gray,tee,sobel", "gaussian=1.4,tee,gray,tee,sobel,tee",
          "gray=mean,tee,tee,gaussian=30,tee,threshold=20:240",
          "contrast=2,tee,laplacian,tee,brightness=-20,convolve='1 2 3/4 5 6/7 8 9',tee,gamma=2"]
FORMATS = ["yuv420p", "yuv422p10le", "yuva420p", "gray", "gray16le", "rgb24", "rgba", "gbrp", "ya8"]


def named_taps(chain):
    """The chain with tees that have names, and the chain up to each of them."""
    links, upto = [], []
    for link in chain.split(","):
        if link == "tee":
            link = f"tee='hash:{len(upto)}.txt'"
            upto.append(",".join(x for x in links if not x.startswith("tee")) or "null")
        links.append(link)
    return ",".join(links), upto


def check_taps(folder, source, chain, *more):
    named, upto = named_taps(chain)
    whole = ",".join(link for link in chain.split(",") if link != "tee")
    tools.sluice_whole(*source, "hash:all.txt", "-q", "-y", "-f", named, *more, cwd=folder)
    for k, part in enumerate([*upto, whole]):
        tools.sluice_whole(*source, "hash:alone.txt", "-q", "-y", "-f", part, cwd=folder)
        name = f"{k}.txt" if k < len(upto) else "all.txt"
        assert (folder / name).read_text() == (folder / "alone.txt").read_text(), (name, part)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("pixfmt", FORMATS)
def test_each_tap_is_the_chain_up_to_there(tmp_path, pixfmt, chain, backend):
    random = np.random.default_rng(3)
    most = {"yuv422p10le": 1 << 10}.get(pixfmt, 1 << 16)
    frames = [[random.integers(0, min(most, 1 << 8 * sample.itemsize), (rows, columns)).astype(sample)
               for rows, columns, sample in tools.planes_of(pixfmt, 50, 38)] for _ in range(3)]
    tools.write_raw(tmp_path / "in.raw", frames)
    source = ["-F", "rawvideo", "--size", "50x38", "--pixfmt", pixfmt, "in.raw"]
    check_taps(tmp_path, source, chain, "--backend", backend, "--verify=1")


@pytest.mark.parametrize("name", ["plain.mp4", "deep.mp4", "full.mp4", "odd.mkv", "interlaced-h264.mkv",
                                  "interlaced-ffv1.mkv", "resized.ts", "vfr.mkv", "still-palette.png",
                                  "still-alpha.png", "rotated.mp4"])
def test_taps_of_films(tmp_path, clips, name):
    check_taps(tmp_path, [clips[name]], "gaussian=2,tee,gray,sobel,tee", "--verify=5")


@pytest.mark.parametrize("threads, ring", [(1, 1), (2, 3), (5, 7)])
def test_taps_do_not_depend_on_threads(tmp_path, clips, threads, ring):
    check_taps(tmp_path, [clips["plain.mp4"]], CHAINS[3], "--threads", threads, "--ring", ring)


def test_taps_of_one_picture_share_what_makes_it(run):
    text = run("plan", "-f", "gray,sobel,tee=a.mkv,tee=b.mkv,invert").text
    assert "-> tee 1 Y, tee 2 Y" in text and text.count("gradient") == 1
    assert "tee 1 -> a.mkv: gray full range" in text and "2 passes, 0 buffers" in text


# ---- outputs like others ----


def test_each_picture_has_the_format_that_its_output_likes(tmp_path, clips):
    tools.sluice_whole(clips["film.mkv"], "edges.mkv", "-q", "-f",
                       "brightness=20,tee=bright.mp4,tee=%03d.png,gray,tee=gray.y4m,sobel",
                       "-c:v", "ffv1", cwd=tmp_path)
    kinds = {name: tools.probe(tmp_path / name, "-show_streams")["streams"]
             for name in ("edges.mkv", "bright.mp4", "001.png", "gray.y4m")}
    assert [kinds[name][0]["pix_fmt"] for name in kinds] == ["gray", "yuv420p", "rgb24", "gray"]
    assert {"audio"} <= {stream["codec_type"] for stream in kinds["bright.mp4"]} # sound goes along
    assert len(list(tmp_path.glob("*.png"))) == 50
    assert len(tools.decode_hashes(tmp_path / "bright.mp4")) == 50


def test_figures_tell_taps_from_outputs(tmp_path, clips):
    told = json.loads(tools.sluice_whole(clips["plain.mp4"], "a.mkv", "-q", "-f",
                                         "gray,tee=b.mkv,sobel,tee='hash:c.txt'", "-o", "null:",
                                         "--json", "-", cwd=tmp_path).text)
    assert {one["name"]: one["tee"] for one in told["outputs"]} == {
        "a.mkv": False, "null:": False, "b.mkv": True, "hash:c.txt": True}
    assert [one["frames"] for one in told["outputs"]] == [50] * 4
    assert told["frames"]["in"] == told["frames"]["out"] == 50


def test_images_at_both_ends_are_one_frame(tmp_path, clips):
    result = tools.sluice_whole(clips["plain.mp4"], "a.png", "-f", "tee=b.png,gray", cwd=tmp_path)
    assert "a.png holds one picture" in result.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.png", "b.png"]


MANY = ",".join(f"tee={k}.mkv" for k in range(15))


@pytest.mark.parametrize("chain, sentence", [
    ("tee", "tee needs a value: tee=output"),
    ("tee=out.mkv", "out.mkv is named twice as an output"),
    ("tee=a.mkv,tee=a.mkv", "a.mkv is named twice as an output"),
    ("tee=a.mkv,stats=a.mkv", "a.mkv is named twice as an output"),
    ("tee=there.mkv", "there.mkv exists; -y replaces it"),
    ("tee=gone/a.mkv", "gone/a.mkv cannot be written"),
    ("tee=a.nothing", "the extension of a.nothing says no format"),
    ("tee='http://127.0.0.1/a'", "cannot be published to"),
    (MANY + ",tee=x.mkv", "a chain has up to 15 tees"),
])
def test_what_cannot_be_is_refused_before_the_first_frame(tmp_path, clips, chain, sentence):
    (tmp_path / "there.mkv").write_text("kept")
    result = tools.sluice(clips["plain.mp4"], "out.mkv", "-f", chain, cwd=tmp_path)
    assert result.code in (2, 5) and sentence in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["there.mkv"]
    assert (tmp_path / "there.mkv").read_text() == "kept"


def test_as_many_outputs_as_there_may_be(tmp_path, clips):
    names = MANY.replace(".mkv", ".txt").replace("tee=", "tee=hash:").replace("hash:", "'hash:")
    chain = names.replace(".txt", ".txt'")
    tools.sluice_whole(clips["plain.mp4"], "hash:all.txt", "-q", "-f", chain, "--frames", 3, cwd=tmp_path)
    assert len({file.read_text() for file in tmp_path.iterdir()}) == 1
    result = tools.sluice(clips["plain.mp4"], "null:", "-o", "hash:b.txt", "-y", "-f", chain, cwd=tmp_path)
    assert result.code == 2 and "a job writes up to 16 outputs" in result.stderr


def test_the_input_is_not_tapped_into(tmp_path, clips):
    (tmp_path / "in.mp4").write_bytes(clips["plain.mp4"].read_bytes())
    result = tools.sluice("in.mp4", "out.mkv", "-y", "-f", "tee=in.mp4", cwd=tmp_path)
    assert result.code == 2 and "input and output are the same file, in.mp4" in result.stderr


def test_what_failed_leaves_no_tap(tmp_path, clips):
    result = tools.sluice(clips["plain.mp4"], "out.mkv", "-f", "tee=/dev/full", "-y", cwd=tmp_path)
    assert result.code == 2 # it has no format
    os.symlink("/dev/full", tmp_path / "full.mkv")
    result = tools.sluice(clips["plain.mp4"], "out.mkv", "-f", "tee=full.mkv", "-y", cwd=tmp_path)
    assert result.code == 5 and "full.mkv" in result.stderr


def test_bench_writes_nothing(tmp_path):
    text = tools.sluice_whole("bench", "--quick", "--size", "64x64", "-f",
                              "gray,tee=a.mkv,stats=b,sobel", cwd=tmp_path, timeout=120).text
    assert "gray,stats,sobel" in text and not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["rtmp://user:geheim@127.0.0.1:1/live/s",
                                  "rtmp://127.0.0.1:1/live/s?streamkey=geheim"])
def test_secrets_of_a_tap_are_not_shown(tmp_path, clips, name):
    result = tools.sluice(clips["plain.mp4"], "a.mkv", "-f", f"gray,tee='{name}',sobel", "--json",
                          tmp_path / "run.json", cwd=tmp_path)
    assert result.code == 5
    assert "geheim" not in result.stderr + result.text + (tmp_path / "run.json").read_text()


def test_secrets_of_a_tap_are_not_shown_in_refusals(tmp_path, clips):
    (tmp_path / "j").write_text('{"pts_us": 0, "chain": "gray"}\n')
    result = tools.sluice(clips["plain.mp4"], "a.mkv", "--replay", "j", "-f",
                          "tee='rtmp://user:geheim@127.0.0.1:1/live/s'", cwd=tmp_path)
    assert result.code == 2 and "geheim" not in result.stderr
    assert "tee=rtmp://user:***@127.0.0.1:1/live/s cannot be left out" in result.stderr


# ---- live ----


def test_a_tap_that_nobody_reads_holds_up_nothing(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = "tcp://127.0.0.1:%d" % server.getsockname()[1]
        chain = f"tee='{url}',gray,sobel"
        with live.Job(tmp_path, "lavfi:testsrc2=size=640x480:rate=25", "out.mkv", "-f", chain) as job:
            server.settimeout(10)
            with server.accept()[0]:
                job.await_frames(60, limit=40)
                told = job.stop()
    main = next(one for one in told["outputs"] if not one["tee"])
    assert main["dropped"] == 0 and main["frames"] == told["frames"]["out"] >= 60


def test_changes_reach_taps_and_taps_stay(tmp_path):
    chain = "brightness=10,tee='hash:a.txt',sobel"
    with live.Job(tmp_path, PLAIN, "hash:b.txt", "--control", "c", "-f", chain) as job:
        job.await_frames(5)
        for line, words in (("set tee.output=c.mkv", "tee=c.mkv cannot be changed"),
                            ("chain sobel", "tee=hash:a.txt cannot be left out"),
                            ("chain tee=hash:a.txt,tee=n.mkv", "tee=n.mkv cannot be added")):
            line = line.replace("hash:a.txt", "'hash:a.txt'")
            result = tools.sluice("ctl", "c", *line.split(" ", 1), cwd=tmp_path)
            assert result.code and words in result.text + result.stderr
        tools.sluice_whole("ctl", "c", "set", "brightness.offset=99", cwd=tmp_path)
        job.await_frames(int(json.loads(tools.sluice("ctl", "c", "stats", cwd=tmp_path).text)["out"]) + 30)
        told = job.stop()
    tees, mains = (tools.read_hashes((tmp_path / name).read_text()) for name in ("a.txt", "b.txt"))
    both = min(len(tees), len(mains)) # where a stop cuts off, each ends by itself
    assert [row[:2] for row in tees[:both]] == [row[:2] for row in mains[:both]]
    assert 30 <= both <= told["frames"]["out"]
    assert [a[3] != b[3] for a, b in zip(tees, tees[1:])].count(True) == 1 # another gray, once
    assert len({row[3] for row in mains}) == 1
    assert sorted(file.name for file in tmp_path.glob("*.txt")) == ["a.txt", "b.txt"]


@live.needs_rtsp
@pytest.mark.parametrize("gap", ["freeze", "black"])
def test_gaps_are_filled_in_all_pictures(tmp_path, gap):
    with live.rtsp(live.SMALL) as server, live.Job(tmp_path, server.urls[0], "hash:b.txt", "--gap", gap,
                                                   "-f", "tee='hash:a.txt',gray") as job:
        job.lose(server, away=2.5)
        told = job.stop()
    tees, mains = (tools.read_hashes((tmp_path / name).read_text()) for name in ("a.txt", "b.txt"))
    both = min(len(tees), len(mains))
    assert told["frames"]["filled"] > 10 and both > told["frames"]["filled"]
    assert [row[1] for row in tees[:both]] == [row[1] for row in mains[:both]]
    repeated = [sum(a[3] == b[3] for a, b in zip(rows, rows[1:])) for rows in (tees, mains)]
    assert min(repeated) >= told["frames"]["filled"] - 2


def test_a_journal_is_replayed_with_its_taps(tmp_path, clips):
    chain = "brightness=10,tee='hash:a.txt',sobel,stats=s"
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir(), second.mkdir()
    tools.sluice_whole(clips["plain.mp4"], "hash:b.txt", "-q", "--journal", "j", "-f", chain, cwd=first)
    tools.sluice_whole(clips["plain.mp4"], "hash:b.txt", "-q", "--replay", first / "j", cwd=second)
    for name in ("a.txt", "b.txt", "s"):
        assert (first / name).read_text() == (second / name).read_text(), name
    result = tools.sluice(clips["plain.mp4"], "hash:c.txt", "--replay", first / "j", "-f", "gray", cwd=second)
    assert result.code == 2 and "cannot be added" in result.stderr
