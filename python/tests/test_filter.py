"""sluice.Filter: the program's results from arrays of every kind; chains, changes, analysis, threads."""

import ctypes
import gc
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import sluice
import tools
from conftest import Producer, noise
from sluice._engine import Engine, _noting
from sluice._objects import Objects
from sluice._under_way import UnderWay
from sluice.errors import DeviceError

CHAIN = "gray,gaussian=2,sobel"
FORMATS = [  # of frames, chains, and what comes out
    ("gray", (75, 101), CHAIN, "gray"), ("gray", (75, 101), "gaussian=1.4,threshold=20:240", "gray"),
    ("rgb24", (75, 101, 3), "gaussian=2,sharpen=0.8", "rgb24"), ("rgb24", (75, 101, 3), CHAIN, "gray"),
    ("rgba", (33, 64, 4), "brightness=20", "rgba"), ("gray16le", (75, 101), CHAIN, "gray16le"),
    ("rgb48le", (20, 31, 3), "gaussian=1.4", "rgb48le"),
]


def by_program(folder, frame, pixfmt, chain, result):
    """The frame through the program: as raw video, in and out."""
    flat = frame.reshape(frame.shape[0], -1)
    width = frame.shape[1]
    raw, target = folder / "in.raw", folder / "out.raw"
    raw.write_bytes(np.ascontiguousarray(flat).tobytes())
    tools.sluice_whole("-q", "-F", "rawvideo", "--size", f"{width}x{frame.shape[0]}", "--pixfmt", pixfmt, raw,
                       "-F", "rawvideo", "--pix-fmt", result, target, "-y", "-f", chain)
    shape = frame.shape[:2] if result.startswith("gray") else frame.shape
    return np.frombuffer(target.read_bytes(), frame.dtype).reshape(shape)


@pytest.mark.parametrize("pixfmt, shape, chain, result", FORMATS, ids=[f"{f[0]}: {f[2]}" for f in FORMATS])
def test_equals_the_program(tmp_path, kind, pixfmt, shape, chain, result):
    make, made = kind
    frame = noise(*shape, dtype="<u2" if "16" in pixfmt or "48" in pixfmt else "u1")
    filter = sluice.Filter(chain)
    try:
        found = filter(make(frame))
    except TypeError as problem:  # torch's own, of torch.from_numpy()
        pytest.skip(f"this torch has no uint16: {problem}")
    assert type(found) is made and filter.output_pixfmt == result
    wanted = by_program(tmp_path, frame, pixfmt, chain, result)
    assert np.array_equal(np.asarray(found), wanted)
    assert np.array_equal(np.asarray(filter(make(frame.copy()))), wanted)  # one of a layout that came before


@pytest.mark.parametrize("pixfmt", ["yuv420p", "yuv422p10le", "gbrp"])
@pytest.mark.parametrize("chain", [CHAIN, "gaussian=2"])
def test_planes_equal_the_program(tmp_path, pixfmt, chain):
    planes = [tools.random_picture(rows, columns, k, 1024 if "10" in pixfmt else 256, dtype)
              for k, (rows, columns, dtype) in enumerate(tools.planes_of(pixfmt, 65, 43))]
    filter = sluice.Filter(chain, pixfmt=pixfmt)
    found = filter(tuple(planes))
    found = found if isinstance(found, tuple) else (found,)
    wanted = tools.filter_raw(tmp_path, [planes], pixfmt, chain, filter.output_pixfmt, "--pix-fmt",
                              filter.output_pixfmt)[0]
    assert len(found) == len(wanted)
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted))


def test_semiplanar_chroma_has_an_axis_of_pairs():
    luma, chroma = noise(16, 32), noise(8, 16, 2)
    brighter = sluice.Filter("brightness=20", pixfmt="nv12")
    result = brighter((luma, chroma))
    assert [plane.shape for plane in result] == [(16, 32), (8, 16, 2)]
    assert np.array_equal(result[1], chroma) and not np.array_equal(result[0], luma)
    flat = brighter((luma, chroma.reshape(8, 32)))
    assert np.array_equal(flat[0], result[0])


# ---- where results go ----


def test_out_and_in_place():
    frame = noise(40, 52)
    edges = sluice.Filter("gaussian=2,sobel")
    wanted, out = edges(frame), np.zeros((40, 52), np.uint8)
    assert edges(frame, out=out) is out and np.array_equal(out, wanted)
    assert edges(frame, out=frame) is frame and np.array_equal(frame, wanted)


def test_part_of_a_picture_in_place():
    picture = noise(60, 80, 3)
    before, blur = picture.copy(), sluice.Filter("gaussian=2")
    part = picture[10:50, 20:70]
    wanted = blur(part.copy())
    blur(part, out=part)
    assert np.array_equal(picture[10:50, 20:70], wanted)
    picture[10:50, 20:70] = before[10:50, 20:70]
    assert np.array_equal(picture, before)


VIEWS = {"rows upside down": lambda a: a[::-1], "every second row": lambda a: a[::2],
         "columns mirrored": lambda a: a[:, ::-1], "every third column": lambda a: a[:, ::3],
         "turned": lambda a: a.transpose(1, 0, *range(2, a.ndim)), "one row": lambda a: a[3:4],
         "one column": lambda a: a[:, 5:6], "one row again and again": lambda a: np.broadcast_to(a[:1], a.shape)}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("shape, dtype", [((41, 53), "u1"), ((41, 53, 3), "u1"), ((41, 53), "u2")])
def test_views(view, shape, dtype):
    frame = VIEWS[view](noise(*shape, dtype=dtype))
    edges = sluice.Filter(CHAIN)
    assert np.array_equal(edges(frame), edges(np.ascontiguousarray(frame)))


def test_upside_down_in_place():
    frame = noise(30, 40)
    blur = sluice.Filter("gaussian=3")
    wanted = blur(np.ascontiguousarray(frame[::-1]))
    blur(frame[::-1], out=frame[::-1])
    assert np.array_equal(frame[::-1], wanted)


def test_bgr_of_opencv(tmp_path):
    frame = noise(30, 40, 3)
    found = sluice.Filter(CHAIN, pixfmt="bgr24")(frame)
    assert np.array_equal(found, by_program(tmp_path, frame, "bgr24", CHAIN, "gray"))
    assert np.array_equal(found, sluice.Filter(CHAIN)(frame[:, :, ::-1]))


def test_output_pixfmt():
    frame = noise(30, 40)
    found = sluice.Filter("gaussian=1", output_pixfmt="rgb24")(frame)
    assert np.array_equal(found, np.repeat(sluice.Filter("gaussian=1")(frame)[:, :, None], 3, axis=2))


@pytest.mark.parametrize("name, planes", [("gray10", [(20, 30)]), ("gray16", [(20, 30)]), ("ya16", [(20, 30, 2)]),
                                          ("rgb48", [(20, 30, 3)]), ("yuv420p10", [(20, 30), (10, 15), (10, 15)]),
                                          ("p010", [(20, 30), (10, 15, 2)])])
def test_names_without_a_byte_order_are_of_the_machines(name, planes):
    frame = tuple(noise(*shape, dtype="u2", seed=k) >> (0 if "16" in name or "48" in name else 6)
                  for k, shape in enumerate(planes))
    short, whole = (sluice.Filter("gaussian=2", pixfmt=name + order) for order in ("", sys.byteorder[0] + "e"))
    for turn in range(2):
        found, wanted = short(frame), whole(frame)
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted)) and len(found) == len(wanted)
    assert short._newest.key == whole._newest.key and short.output_pixfmt == whole.output_pixfmt
    result = sluice.Filter("gray", pixfmt=name, output_pixfmt="gray16")(frame)
    assert (result.shape, result.dtype) == ((20, 30), np.uint16)


# ---- what is refused ----

READ_ONLY = noise(20, 30)
READ_ONLY.flags.writeable = False
FRAME = noise(20, 30)
REFUSED = {
    "float": (lambda f: f(np.zeros((20, 30))), "uint8 and uint16"),
    "another byte order": (lambda f: f(FRAME.astype(">u2")), "uint8 and uint16"),
    "no array": (lambda f: f("in.png"), "is no array"),
    "no picture": (lambda f: f(np.zeros(20, np.uint8)), "height x width"),
    "two channels": (lambda f: f(np.zeros((20, 30, 2), np.uint8)), "3 or 4 channels"),
    "no rows": (lambda f: f(np.zeros((0, 30), np.uint8)), ""),
    "planes without a name": (lambda f: f((FRAME, FRAME, FRAME)), "pixfmt="),
    "a small target": (lambda f: f(FRAME, out=np.zeros((20, 29), np.uint8)), "wanted is 20 x 30 uint8"),
    "a target of words": (lambda f: f(FRAME, out=np.zeros((20, 30), np.uint16)), "wanted is 20 x 30 uint8"),
    "a target with gaps": (lambda f: f(FRAME, out=np.zeros((20, 60), np.uint8)[:, ::2]), "gaps"),
    "a target for reading": (lambda f: f(FRAME, out=READ_ONLY), "may not be written"),
    "a DLPack target": (lambda f: f(FRAME, out=Producer(FRAME[:, :29])), "wanted is 20 x 30"),
    "a shifted target": (lambda f: f(FRAME[:-1], out=FRAME[1:]), ""),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_frames(what):
    call, words = REFUSED[what]
    edges = sluice.Filter(CHAIN)
    with pytest.raises(sluice.UsageError) as problem:
        call(edges)
    assert words in str(problem.value) and problem.value.status == 5 and len(str(problem.value)) > 20
    assert edges(FRAME).shape == (20, 30)  # it works on


def test_refused_planes():
    yuv = sluice.Filter("null", pixfmt="yuv420p")
    with pytest.raises(sluice.UsageError, match="has 2 planes, yuv420p has 3"):
        yuv((noise(20, 30), noise(10, 15)))
    with pytest.raises(sluice.UsageError, match="plane 1 .* wanted is 10 x 15 uint8"):
        yuv((noise(20, 30), noise(20, 30), noise(10, 15)))


@pytest.mark.parametrize("pixfmt, dtype", [("yuyv422", "u1"), ("uyvy422", "u1"), ("y210le", "u2")])
def test_packed_pairs_of_pixels(pixfmt, dtype):
    """Rows of an odd width are as long as those of the even one behind it, which an array does not tell apart."""
    pack, unpack = sluice.Filter("null", output_pixfmt=pixfmt), sluice.Filter("null", pixfmt=pixfmt)
    even, odd = (pack(noise(8, width, 3)) for width in (6, 5))
    assert even.shape == (8, 6, 2) and even.dtype == dtype and np.array_equal(unpack(even), even)
    assert odd.size == even.size and pack(noise(8, 5, 3), out=odd) is odd
    for frame in (odd, even.reshape(8, 12), even.reshape(8, 3, 4), even[:, :5].copy()):
        with pytest.raises(sluice.UsageError, match=f"{pixfmt} is height x width x 2 .* even width: .*av.VideoFrame"):
            unpack(frame)


@pytest.mark.parametrize("arguments, words", [
    ({"chain": "gray,gausian=2"}, "gausian"), ({"chain": "gaussian=sigma=-1"}, "sigma"),
    ({"pixfmt": "gray9000"}, "gray9000"), ({"backend": "gpu"}, "auto, cuda, cpu, scalar"),
    ({"range": "half"}, "limited"), ({"output_pixfmt": "pal9"}, "pal9"), ({"chain": "tee=out.mkv"}, "tee"),
    ({"chain": "match=logo"}, "logo")])
def test_refused_filters(arguments, words):
    with pytest.raises(ValueError) as problem:
        sluice.Filter(**arguments)
    assert isinstance(problem.value, sluice.UsageError) and words in str(problem.value)


def test_a_gpu_that_is_not_there(tmp_path):
    if tools.has_cuda():
        pytest.skip("there is one")
    with pytest.raises(sluice.DeviceError):
        sluice.Filter(CHAIN, backend="cuda")

    class OnGpu:
        __cuda_array_interface__ = {"data": (1 << 40, False), "shape": (20, 30), "typestr": "|u1",
                                    "version": 3, "strides": None, "stream": 1}

    with pytest.raises(sluice.DeviceError):
        sluice.Filter(CHAIN)(OnGpu())
    with pytest.raises(sluice.UsageError, match="one of the CPU"):
        sluice.Filter(CHAIN, backend="cpu")(OnGpu())


# ---- chains ----


def test_options_change_between_frames():
    frame, filter = noise(30, 40), sluice.Filter("gray,gaussian=2,threshold=20:240")
    filter.set("gaussian.sigma=3, threshold.t1=30")
    wanted = sluice.Filter("gray,gaussian=3,threshold=30:240")
    assert np.array_equal(filter(frame), wanted(frame))
    small = noise(12, 14)
    assert np.array_equal(filter(small), wanted(small))  # another size has the new options, too
    filter.set("gaussian.sigma=1")
    assert np.array_equal(filter(frame), sluice.Filter("gray,gaussian=1,threshold=30:240")(frame))
    assert sluice.Filter(filter.chain)(frame).tobytes() == filter(frame).tobytes()
    with pytest.raises(sluice.UsageError, match="sigma"):
        filter.set("gaussian.sigma=-4")
    assert np.array_equal(filter(small), sluice.Filter("gray,gaussian=1,threshold=30:240")(small))


def test_an_error_tells_of_itself_only():
    filter, frame = sluice.Filter("gaussian=2"), noise(40, 30)
    filter(frame[:30])
    with pytest.raises(sluice.UsageError, match="bogus"):
        filter.set("bogus")
    with pytest.raises(sluice.UsageError, match="overlaps") as problem:
        filter(frame[:30], frame[5:35])
    assert "bogus" not in str(problem.value)


def test_another_chain():
    frame, filter = noise(30, 40, 3), sluice.Filter("gaussian=2")
    assert filter(frame).shape == (30, 40, 3)
    filter.chain = "gaussian=3"
    assert np.array_equal(filter(frame), sluice.Filter("gaussian=3")(frame))
    filter.chain = "gray,sobel"  # another format comes out
    assert np.array_equal(filter(frame), sluice.Filter("gray,sobel")(frame))
    with pytest.raises(sluice.UsageError, match="sobell"):
        filter.chain = "gray,sobell"
    assert np.array_equal(filter(frame), sluice.Filter("gray,sobel")(frame))


def test_texts():
    filter = sluice.Filter()
    assert filter.chain.startswith("gray,gaussian=") and "1920x1080" in filter.plan
    filter(noise(30, 40))
    assert "40x30" in filter.plan and "separable" in filter.plan and filter.backend
    assert repr(sluice.Filter("gray")) == "sluice.Filter('gray')"
    assert {"gray", "rgb24", "nv12"} <= set(sluice.formats()) and f"sluice {sluice.__version__} " in sluice.version()


def test_sizes_are_kept_and_forgotten():
    filter = sluice.Filter(CHAIN, sizes=2)
    for turn in range(2):
        for size in (8, 16, 24):
            frame = noise(size, size)
            assert np.array_equal(filter(frame), sluice.Filter(CHAIN)(frame))
            list(filter.map([frame]))
            assert len(filter._engines) <= 4  # with those of calls


def engines():
    return [one for one in gc.get_objects() if isinstance(one, Engine)]


def test_close_frees_and_the_filter_works_on():
    gc.collect()
    before, frame = len(engines()), noise(30, 40)
    filter = sluice.Filter("stats,gaussian=2", frames_in_flight=1)
    wanted = filter(frame)
    filter.set("gaussian.sigma=3")
    filter(frame[:20]), filter.submit(frame)
    with pytest.raises(sluice.Full):
        filter.submit(frame)
    chain = filter.chain
    assert len(engines()) > before and filter.analysis
    filter.close()
    assert len(engines()) == before and filter.analysis == () and filter.chain == chain
    assert len(engines()) == before and filter.under_way == 0
    assert "1920x1080" in filter.plan and filter.backend and filter.output_pixfmt and filter.frames_in_flight == 1
    filter.set("gaussian.sigma=2")
    filter.close()
    assert np.array_equal(filter(frame), wanted) and filter.analysis[0].mean == pytest.approx(frame.mean())
    filter.close()
    filter.chain = "gray,gaussian=1"
    chain = filter.chain
    filter.close()
    assert filter.chain == chain == "gray,gaussian=sigma=1"
    assert np.array_equal(filter(frame), sluice.Filter("gray,gaussian=1")(frame))


# ---- many under way ----


def test_submit_and_receive():
    frames = [noise(20 + k % 2, 30, seed=k) for k in range(7)]
    wanted = [sluice.Filter(CHAIN)(frame) for frame in frames]
    filter, results = sluice.Filter(CHAIN, frames_in_flight=3), []
    for k, frame in enumerate(frames):
        try:
            filter.submit(frame, pts=100 * k, opaque=("frame", k))
        except sluice.Full:
            results.append(filter.receive())
            filter.submit(frame, pts=100 * k, opaque=("frame", k))
    with pytest.raises(sluice.UsageError, match="under way"):
        filter(frames[0])
    while filter.under_way:
        results.append(filter.receive())
    assert [r.pts for r in results] == [100 * k for k in range(7)]
    assert [r.opaque for r in results] == [("frame", k) for k in range(7)]
    assert all(np.array_equal(r.frame, w) for r, w in zip(results, wanted))
    with pytest.raises(IndexError):
        filter.receive()


def test_full():
    filter = sluice.Filter(CHAIN, frames_in_flight=2)
    frame = noise(20, 30)
    with pytest.raises(sluice.Full, match="receive"):
        for _ in range(100):
            filter.submit(frame)
    assert filter.under_way == filter.frames_in_flight
    filter.close()
    assert filter.under_way == 0


def test_ctrl_c_at_any_time():
    """Whenever it comes: frames are those of their pts, and in the end none is under way."""
    armed = False

    def interrupt(*_):
        nonlocal armed
        if armed:
            armed = False  # once: the next signal may come before what follows is caught
            raise KeyboardInterrupt

    filter, frame, number, received = sluice.Filter(CHAIN, frames_in_flight=3), noise(8, 10), 0, []
    filter(frame)

    def work():  # a function of its own: CPython 3.13 lets what comes at the end of a `while` past its `try`
        nonlocal armed, number
        armed = True
        signal.setitimer(signal.ITIMER_REAL, 1e-4 + turn * 1e-6)
        end = time.monotonic() + 0.1  # a finalizer may have swallowed it
        while time.monotonic() < end:
            number += 1
            while filter.under_way == 3:
                received.append(filter.receive())
            filter.submit(frame, pts=number, opaque=number)
        armed = False  # a busy machine may tell of it later still

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for turn in range(400):
            try:
                work()
            except KeyboardInterrupt:
                armed = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    while filter.under_way:
        received.append(filter.receive())
    assert len(received) > 100 and all(r.pts == r.opaque for r in received)
    assert np.array_equal(filter(frame), received[-1].frame)


def test_map():
    frames = [noise(20, 30, seed=k) for k in range(70)]
    wanted = [sluice.Filter(CHAIN)(frame) for frame in frames]
    filter = sluice.Filter(CHAIN)
    assert all(np.array_equal(a, b) for a, b in zip(filter.map(iter(frames)), wanted))
    assert len(list(filter.map(frames))) == 70
    for _ in filter.map(frames):
        break
    gc.collect()
    assert filter.under_way == 0


def test_a_batch_that_fails_leaves_nothing_under_way(monkeypatch):
    filter, frame = sluice.Filter(CHAIN), noise(20, 30)

    def fail(*arguments):
        monkeypatch.undo()
        raise sluice.Error("failed")

    monkeypatch.setattr(Engine, "run", fail)
    with pytest.raises(sluice.Error, match="failed"):
        filter.batch([frame] * 5)
    assert filter.under_way == 0 and len(filter.batch([frame] * 5)) == 5


@pytest.mark.parametrize("count", [1, 5, 70])
def test_batches_in_arrays_one_after_another(count):
    """Other arrays of the same layout, other layouts, other chains: each is filtered as its frames are one by one."""
    filter, single = sluice.Filter(CHAIN, frames_in_flight=3), sluice.Filter(CHAIN)
    for turn in range(6):
        if turn == 3:
            filter.set("gaussian.sigma=3")
            single.set("gaussian.sigma=3")
        frames = noise(2 * count, 20, 30, seed=turn)
        for some in (frames[:count], frames[::2], frames[::2, :, ::-1], frames[::-1][:count]):
            wanted, out = np.stack([single(frame) for frame in some]), np.zeros((count, 20, 30), np.uint8)
            found = filter.batch(some)
            assert type(found) is np.ndarray and np.array_equal(found, wanted)
            assert filter.batch(some, out=out) is out and np.array_equal(out, wanted)
            assert filter.under_way == 0
        frozen = frames[:count].copy()
        frozen.flags.writeable = False
        wanted = np.stack([single(frame) for frame in frozen])
        assert np.array_equal(filter.batch(frozen), wanted)
        with pytest.raises(sluice.UsageError):
            filter.batch(frames[:count], out=frozen)
        own = frames[:count]
        assert filter.batch(own, out=own) is own and np.array_equal(own, wanted)


def test_batches_of_frames_that_lie_elsewhere():
    """Arrays of arrays, whose own memory holds addresses; the same arrays with other elements; lists of both kinds."""
    filter = sluice.Filter("invert")
    for turn in range(4):
        frames = np.empty(3, object)
        for k in range(3):
            frames[k] = np.full((20, 30), 10 * turn + k, np.uint8)
        for _ in range(2):
            assert [int(found[0, 0]) for found in filter.batch(frames)] == [255 - 10 * turn - k for k in range(3)]
            frames[1] = np.full((20, 30), 10 * turn + 1, np.uint8)
        out = [np.zeros((20, 30), np.uint8) for _ in range(3)]
        stack = np.stack(list(frames))
        for given in (out, tuple(out), {k: o for k, o in enumerate(out)}.values()):
            for source in (stack, list(frames)):
                for o in out:
                    o[:] = 0
                assert filter.batch(source, out=given) is given
                assert [int(o[5, 5]) for o in out] == [255 - 10 * turn - k for k in range(3)]
        mixed = [stack[0], np.full((33, 40), 7, np.uint8), stack[1]]
        assert [int(found[3, 3]) for found in filter.batch(mixed)] == [255 - 10 * turn, 248, 254 - 10 * turn]


def test_a_frame_is_read_once_of_those_that_are_made_when_asked_for():
    class Made:
        asked = 0

        def __len__(self):
            return 5

        def __getitem__(self, k):
            if k >= 5:
                raise IndexError(k)
            self.asked += 1
            return np.full((20, 30), k, np.uint8)

    filter, made = sluice.Filter("invert"), Made()
    for turn in range(1, 4):
        assert [int(found[0, 0]) for found in filter.batch(made)] == [255, 254, 253, 252, 251]
        assert made.asked <= 6 * turn  # the first one, too, to find out what results are


@pytest.mark.parametrize("planes", [False, True])
def test_frames_live_until_they_are_filtered(planes, monkeypatch):
    """Whatever another thread does to the list that they came in."""
    filter = sluice.Filter("gaussian=2", pixfmt="yuv420p" if planes else None)
    call = filter if planes else filter.batch
    shapes = [(20, 30), (10, 15), (10, 15)] if planes else [(20, 30)] * 3
    for turn in range(3):
        frames, lived = [noise(*shape, seed=turn) for shape in shapes], []
        alive = [weakref.ref(frame) for frame in frames]

        def checking(how):
            def run(self, *arguments):
                frames.clear()
                lived.append(all(frame() is not None for frame in alive))
                return how(self, *arguments)
            return run

        with monkeypatch.context() as patch:
            patch.setattr(Engine, "run", checking(Engine.run))
            call(frames)
        assert lived == [True]


def test_a_filter_that_is_used_again_while_it_is_called(monkeypatch):
    """By a signal's handler, or what the collector of garbage ends."""
    filter = sluice.Filter("invert")
    a, b = (np.full((3, 20, 30), value, np.uint8) for value in (10, 200))
    for call in (lambda some: filter.batch(some), lambda some: filter.batch(list(some)), lambda some: filter(some[0])):
        call(a), call(a)
        inner = []

        def again(how):
            def run(self, *arguments):
                if not inner:
                    inner.append(None)
                    inner[0] = np.asarray(call(b))
                return how(self, *arguments)
            return run

        with monkeypatch.context() as patch:
            patch.setattr(Engine, "run", again(Engine.run))
            patch.setattr(Objects, "filtered", again(Objects.filtered))
            outer = np.asarray(call(a))
        assert np.all(outer == 245) and np.all(inner[0] == 55)


def test_batch():
    frames = noise(70, 20, 30)
    filter = sluice.Filter(CHAIN)
    wanted = np.stack([filter(frame) for frame in frames])
    found = filter.batch(frames)
    assert type(found) is np.ndarray and np.array_equal(found, wanted)
    listed = filter.batch(list(frames))
    assert type(listed) is list and np.array_equal(np.stack(listed), wanted)
    assert filter.batch(frames, out=frames) is frames and np.array_equal(frames, wanted)
    assert filter.batch([]) == []
    mixed = [noise(20, 30), noise(10, 12), noise(20, 30, 3)]
    assert all(np.array_equal(a, filter(b)) for a, b in zip(filter.batch(mixed), mixed))


def test_memory_that_is_copied_fastest():
    filter = sluice.Filter("gaussian=2,sobel")
    frame = noise(20, 30)
    source, target = filter.buffers(frame)
    handle = weakref.ref(filter._newest._handle)
    source[:] = frame
    assert source.shape == target.shape == (20, 30) and source.ctypes.data % 64 == 0
    assert np.array_equal(filter(source, out=target), filter(frame))
    filter.close()
    target[:] = 7  # it outlives its filter
    assert source.sum() == frame.sum() and target.mean() == 7 and handle() is not None
    del source, target
    assert handle() is None


# ---- frames of which nobody wants to hear any more ----

LARGE = """
import builtins, ctypes, gc, mmap, signal, sys
import numpy as np
import sluice

SIZE = 2000

def filter(chain="gaussian=30,gaussian=29,box=15", frames_in_flight=3):
    return sluice.Filter(chain, backend="cpu", frames_in_flight=frames_in_flight)

def frame():
    # Its memory is unmapped as soon as nobody has it.
    return np.frombuffer(mmap.mmap(-1, SIZE * SIZE), np.uint8).reshape(SIZE, SIZE)

class Closing:
    # Its finalizer unmaps it, and may be called before those of all others in a cycle.
    def __init__(self):
        self.memory = mmap.mmap(-1, SIZE * SIZE)
        at = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.__array_interface__ = dict(data=(at, False), shape=(SIZE, SIZE), typestr="|u1", version=3)

    def __del__(self):
        self.memory.close()

class Owner:
    pass
"""
DROPPED = {
    "by a function": "def drop(): filter().submit(frame())\ndrop()",
    "by an exception": """
def drop():
    blur = filter()
    for _ in range(3):
        blur.submit(frame())
    raise ValueError
try:
    drop()
except ValueError:
    pass
""",
    "by the end of the program": """
blur = filter()
for _ in range(3):
    blur.submit(frame())
del filter, frame, Closing, Owner  # whose globals would be left to the collector of garbage
""",
    "behind the end of all modules": """
builtins.kept = filter()
for _ in range(3):
    builtins.kept.submit(frame())
""",
    "by a map() whose end is interrupted": """
signal.signal(signal.SIGALRM, signal.default_int_handler)
for _ in filter().map(frame() for _ in range(9)):
    signal.setitimer(signal.ITIMER_REAL, 1e-3)
    break
""",
    "in a cycle with a frame that has a finalizer": """
owner = Owner()
owner.me, owner.frames, owner.filter = owner, [Closing() for _ in range(3)], filter()
for each in owner.frames:
    owner.filter.submit(each, np.empty((SIZE, SIZE), np.uint8))
del owner, each
gc.collect()
""",
    "by Ctrl-C between any two lines": """
def interrupt(*_):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt
def drop():
    blur = filter("gaussian=9", 8)
    for _ in range(8):
        blur.submit(frame())
SIZE, armed = 300, False
signal.signal(signal.SIGALRM, interrupt)
for turn in range(150):
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, 1e-3 + turn * 2e-5)
        drop()
        armed = False
    except KeyboardInterrupt:
        pass
signal.setitimer(signal.ITIMER_REAL, 0)
""",
}


@pytest.mark.parametrize("how", DROPPED)
def test_a_filter_that_is_dropped_with_frames_under_way(how):
    """The library has their memory until it has filtered them."""
    done = python(LARGE + DROPPED[how] + "\nprint('end')")
    assert (done.code, done.text) == (0, "end\n"), done.stderr
    assert "signal" in DROPPED[how] or done.stderr == ""  # a finalizer tells of one that it has swallowed


def test_a_filter_that_is_dropped_leaves_nothing():
    alive = []
    for own in (False, True):
        filter, frame = sluice.Filter("gaussian=3", frames_in_flight=2), noise(300, 400)
        source, target = filter.buffers(frame) if own else (frame, np.empty_like(frame))
        filter.submit(source, target)
        alive += [weakref.ref(one) for one in (source, target, filter._newest, filter._newest._handle)]
        del filter, frame, source, target
    assert [one() for one in alive] == [None] * 8


@pytest.mark.parametrize("how", ["one too many", "a GPU that fails"])
def test_memory_of_a_filter_that_is_dropped_goes_with_it(how):
    """It keeps the filter, and frames under way keep the memory: neither may keep the other for good."""
    filter, frame = sluice.Filter("gaussian=3", frames_in_flight=2), noise(300, 400)
    memory = [filter.buffers(frame) for _ in range(3)]
    for source, target in memory[:2]:
        filter.submit(source, target)
    if how == "one too many":
        with pytest.raises(sluice.Full):
            filter.submit(*memory[2])
    else:
        ended, receive = filter._newest._ended, _noting("sluice_filter_receive", [])
        filter._newest._receive = lambda *to: (receive(*to), ended.append(DeviceError.status))
        with pytest.raises(DeviceError):
            filter.receive()
    alive = [weakref.ref(one) for pair in memory for one in pair] + [weakref.ref(filter._newest._handle)]
    del filter, memory, source, target
    gc.collect()  # the exceptions' frames
    assert [one() is None for one in alive] == [True] * 7


@pytest.mark.parametrize("said", [0, 3, DeviceError.status])
def test_arrays_that_the_library_may_have_still(said):
    """A receive gives a frame back whatever it says, also of a GPU that has failed."""
    arrays, begun, ended = UnderWay(), [], []
    arrays.begin(begun, ["first", "second"])
    assert arrays.count() == 0
    begun.append(0)
    assert arrays.count() == arrays.count() == 2
    arrays.end(ended)
    assert arrays.count() == 2
    ended.append(said)
    assert arrays.count() == arrays.count() == 1


# ---- analysis ----


def test_statistics():
    filter = sluice.Filter("stats,gaussian=2")
    assert filter.analysis == ()
    frame = noise(30, 40, 3)
    filter(frame)
    found = filter.analysis
    assert [s.component for s in found] == ["R", "G", "B"]
    for k, s in enumerate(found):
        plane = frame[:, :, k]
        assert isinstance(s, sluice.Statistics) and (s.stage, s.width, s.height) == ("stats", 40, 30)
        assert (s.min, s.max) == (plane.min(), plane.max()) and s.histogram.sum() == plane.size
        assert s.mean == pytest.approx(plane.mean()) and s.deviation == pytest.approx(plane.std(), rel=1e-3)
        assert np.array_equal(s.histogram, np.histogram(plane, len(s.histogram), (0, 256))[0])


def test_matches():
    frame = noise(60, 80)
    logo, mask = frame[21:37, 33:53].copy(), np.ones((16, 20), np.uint8)
    mask[:4] = 0
    for picture in ({"logo": logo}, lambda name: logo if name == "logo" else None, {"logo": (logo, mask)},
                    {"logo": np.asfortranarray(logo)}):
        filter = sluice.Filter("match=logo", picture=picture)
        filter(frame)
        (found,) = filter.analysis
        assert isinstance(found, sluice.Matches) and len(found) >= 1
        assert (round(found[0].x), round(found[0].y)) == (33, 21) and found[0].score > 0.99
        assert [m.number for m in found] == [0] * len(found)


@pytest.mark.parametrize("rows, columns", [(1100, 40), (40, 2000)])
@pytest.mark.parametrize("pixfmt", [None, "gray", "rgb24"])
def test_templates_larger_than_1080p(pixfmt, rows, columns):
    """A filter is tried before there is a frame: the trial has room for them."""
    frame = noise(rows + 10, columns + 10)
    logo = {"logo": frame[7:7 + rows, 9:9 + columns].copy(), "small": frame[:8, :8].copy()}
    of_options, of_chain = (sluice.Filter(chain, pixfmt=pixfmt, picture=logo, backend="cpu")
                            for chain in ("match=logo", "gray,match=small"))
    of_chain.chain = "match=logo"
    for filter in (of_options, of_chain):
        filter(frame if pixfmt != "rgb24" else np.repeat(frame[:, :, None], 3, axis=2))
        (found,) = filter.analysis
        assert (round(found[0].x), round(found[0].y)) == (9, 7) and found[0].score > 0.99
    with pytest.raises(sluice.UsageError, match="sobell"):
        sluice.Filter("match=logo,sobell", pixfmt=pixfmt, picture=logo)


def test_a_picture_that_is_none():
    with pytest.raises(sluice.UsageError, match="uint8"):
        sluice.Filter("match=logo", picture={"logo": np.zeros((8, 8))})


def test_wavelet():
    frame = noise(60, 80)
    filter = sluice.Filter("wavelet=1:2:4", wavelet_planes=True)
    filter(frame)
    (found,) = filter.analysis
    assert isinstance(found, sluice.Wavelet) and list(found.scales) == [1, 2, 4]
    assert found.planes.shape == (3, 60, 80) and found.planes.dtype == np.float32
    assert found.energy == pytest.approx((found.planes.astype(float) ** 2).mean(axis=(1, 2)), rel=1e-3)
    without = sluice.Filter("wavelet=1:2:4")
    without(frame)
    assert without.analysis[0].planes is None


# ---- threads, and what is not there ----


def test_other_threads_run_while_a_frame_is_filtered():
    slow, frame = sluice.Filter("gaussian=30", backend="scalar"), noise(1080, 1920)
    done, turns = threading.Event(), 0
    thread = threading.Thread(target=lambda: (slow(frame), done.set()))
    thread.start()
    while not done.is_set():
        turns += 1
        time.sleep(0.001)
    thread.join()
    assert turns > 10  # one or two, where calls keep the GIL


def test_two_threads_filter_at_once():
    frames = [noise(50, 60, seed=k) for k in range(40)]
    wanted = [sluice.Filter(CHAIN)(frame) for frame in frames]
    shared, found = sluice.Filter(CHAIN), {}

    def work(name, filter):
        found[name] = [filter(frame) for frame in frames]

    threads = [threading.Thread(target=work, args=(k, shared if k < 2 else sluice.Filter(CHAIN, threads=1)))
               for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for results in found.values():
        assert all(np.array_equal(a, b) for a, b in zip(results, wanted))
    assert len(found) == 4


def test_one_thread_submits_and_another_receives():
    frames, results = [noise(50, 60, seed=k) for k in range(60)], []
    filter, room = sluice.Filter(CHAIN, frames_in_flight=4), threading.Semaphore(4)
    ready = threading.Semaphore(0)

    def receive():
        for _ in frames:
            ready.acquire()
            results.append(filter.receive().frame)
            room.release()

    thread = threading.Thread(target=receive)
    thread.start()
    for frame in frames:
        room.acquire()
        filter.submit(frame)
        ready.release()
    thread.join()
    assert all(np.array_equal(a, sluice.Filter(CHAIN)(b)) for a, b in zip(results[::20], frames[::20]))


def python(code, **env):
    return tools.execute([sys.executable, "-c", code], env=env)


def test_numpy_is_not_needed_to_import():
    done = python("import sys; sys.modules['numpy'] = None; import sluice\n"
                  "print(sluice.stage('gaussian').summary)\n"
                  "memory = bytearray(range(64))\n"
                  "class Frame:\n"
                  "    import ctypes\n"
                  "    at = ctypes.addressof((ctypes.c_char * 64).from_buffer(memory))\n"
                  "    __array_interface__ = dict(data=(at, False), shape=(8, 8), typestr='|u1', version=3)\n"
                  "sluice.Filter('invert')(Frame(), out=Frame()); print(list(memory[:3]))")
    assert done.code == 0, done.stderr
    assert done.text.splitlines()[1] == "[255, 254, 253]"


def test_a_library_that_is_not_there():
    done = python("import sluice\ntry: sluice.Filter()\nexcept sluice.LibraryMissing as e: print(e)",
                  SLUICE_LIBRARY="/nowhere/libsluice.so.1")
    assert "SLUICE_LIBRARY" in done.text and "/nowhere/libsluice.so.1" in done.text, done.stderr


def test_frames_of_pyav():
    av = pytest.importorskip("av", reason="av (PyAV) is not installed")
    planes = [noise(48, 64), noise(24, 32), noise(24, 32)]
    frame = av.VideoFrame.from_ndarray(np.concatenate([p.ravel() for p in planes]).reshape(72, 64), "yuv420p")
    frame.pts = 77
    found = sluice.Filter("gaussian=2")(frame)
    wanted = sluice.Filter("gaussian=2", pixfmt="yuv420p")(tuple(planes))
    assert isinstance(found, av.VideoFrame) and found.pts == 77
    assert np.array_equal(found.to_ndarray(), np.concatenate([p.ravel() for p in wanted]).reshape(72, 64))
    gray = sluice.Filter(CHAIN)(frame)
    assert gray.format.name == "gray"
    assert np.array_equal(gray.to_ndarray(), sluice.Filter(CHAIN, pixfmt="yuv420p")(tuple(planes)))
    with pytest.raises(sluice.UsageError, match="out= is a frame of 64x48 yuv420p"):
        sluice.Filter(CHAIN)(frame, out=av.VideoFrame(64, 48, "yuv420p"))
    sluice.Filter("gaussian=2")(frame, out=frame)
    assert np.array_equal(frame.to_ndarray(), found.to_ndarray())


def test_packed_pairs_of_an_odd_width_by_pyav():
    av = pytest.importorskip("av", reason="av (PyAV) is not installed")
    frame, colours = av.VideoFrame(5, 8, "yuyv422"), noise(8, 5, 3)
    places = frame.planes[0].buffer_ptr, frame.planes[0].line_size
    pack, unpack = sluice.Filter("null", output_pixfmt="yuyv422"), sluice.Filter("null", output_pixfmt="rgb24")
    rows = np.ctypeslib.as_array((ctypes.c_uint8 * (8 * places[1])).from_address(places[0])).reshape(8, places[1])
    pack(colours, out=rows[:, :12])
    wanted = sluice.Filter("null", output_pixfmt="yuv422p")(colours)
    wanted = sluice.Filter("null", pixfmt="yuv422p", output_pixfmt="rgb24")(wanted)
    assert np.array_equal(unpack(frame).to_ndarray(), wanted)


@pytest.mark.parametrize("options, word", [
    ({"threads": 2**32 + 1}, "threads"), ({"device": 2**32}, "device"), ({"frames_in_flight": 2**31}, "frames_in_flight"),
    ({"threads": 1.5}, "threads"), ({"pixfmt": "gray\0x"}, "pixfmt"), ({"pixfmt": 3}, "pixfmt"),
    ({"chain": "gray\0,zzz"}, "chain"), ({"chain": b"invert"}, "chain"), ({"chain": 3}, "chain"),
    ({"chain": "inv\udc80"}, "Unicode")])
def test_what_c_would_cut_is_refused(options, word):
    with pytest.raises(sluice.UsageError, match=word):
        sluice.Filter(**{"backend": "cpu", **options})


def test_changes_that_c_would_cut_are_refused():
    gray = sluice.Filter("gaussian=1", backend="cpu")
    frame, before = np.zeros((8, 8), np.uint8), gray.chain
    with pytest.raises(sluice.UsageError, match="zero"):
        gray.set("gaussian.sigma=2\0foo")
    with pytest.raises(sluice.UsageError, match="text"):
        gray.chain = 3
    with pytest.raises(sluice.UsageError, match="64 bits"):
        gray.submit(frame, pts=2**70 + 5)
    assert gray.chain == before and gray(frame).shape == frame.shape


@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_alpha_stays_in_rows_longer_than_are_made_at_once(dtype):
    frame = noise(5, 5000, 4, dtype=dtype)
    wanted = np.iinfo(frame.dtype).max - frame
    wanted[..., 3] = frame[..., 3]
    invert = sluice.Filter("invert", backend="cpu", threads=1)
    assert np.array_equal(invert(frame), wanted)
    assert np.array_equal(invert(frame, out=frame), wanted)
