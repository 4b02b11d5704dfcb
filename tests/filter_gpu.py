"""Frames in a GPU's memory through libsluice-filter: filter_gpu.py LIBRARY

Planes are PyTorch's. A line a check, "N passed, N failed, N skipped" as the last one. Results equal those
of host frames and of the scalar backend, and nothing waits for the GPU.
"""

import ctypes as c
import sys
import time

OK, HOST, DEVICE, CUDA, SCALAR = 0, 0, 1, 1, 3
SLEEP_MS, CYCLES_A_MS = 200, 2_000_000


class Format(c.Structure):
    _fields_ = [("size", c.c_size_t), ("pixfmt", c.c_char_p), ("width", c.c_int), ("height", c.c_int),
                ("range", c.c_int), ("matrix", c.c_int), ("siting", c.c_int)]


class Frame(c.Structure):
    _fields_ = [("size", c.c_size_t), ("data", c.c_void_p * 4), ("stride", c.c_ssize_t * 4),
                ("memory", c.c_int), ("interlaced", c.c_bool), ("pts", c.c_int64),
                ("opaque", c.c_void_p)]


LOG = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p)


class Config(c.Structure):
    _fields_ = [("size", c.c_size_t), ("chain", c.c_char_p), ("input", Format),
                ("output_pixfmt", c.c_char_p), ("output_range", c.c_int), ("backend", c.c_int),
                ("device", c.c_int), ("threads", c.c_int), ("frames_in_flight", c.c_int),
                ("wavelet_planes", c.c_bool), ("picture", c.c_void_p), ("log", LOG),
                ("opaque", c.c_void_p)]


class Analysis(c.Structure):
    _fields_ = [("size", c.c_size_t), ("kind", c.c_int), ("stage", c.c_char_p), ("width", c.c_int),
                ("height", c.c_int), ("component", c.c_char_p), ("min", c.c_double),
                ("max", c.c_double), ("mean", c.c_double), ("deviation", c.c_double)]


class Filter:
    """One struct sluice_filter; `said` is what it logged last."""

    def __init__(self, chain, pixfmt, width, height, backend=CUDA, in_flight=0, device=0):
        self.said = ""
        self.log = LOG(self.note)
        self.format = Format(c.sizeof(Format), pixfmt.encode(), width, height, 0, 0, 0)
        config = Config(size=c.sizeof(Config), chain=chain.encode(), input=self.format,
                        backend=backend, device=device, frames_in_flight=in_flight, log=self.log)
        self.handle = c.c_void_p()
        status = lib.sluice_filter_create(c.byref(config), c.byref(self.handle))
        assert status == OK, self.said
        self.output = Format(size=c.sizeof(Format))
        assert lib.sluice_filter_output(self.handle, c.byref(self.output)) == OK

    def note(self, _opaque, _level, sentence):
        self.said = sentence.decode()

    def submit(self, sources, targets, stream):
        n = len(sources)
        return lib.sluice_filter_submit_many(self.handle, (Frame * n)(*sources),
                                             (Frame * n)(*targets), n, c.c_void_p(stream))

    def receive(self):
        frame = Frame(size=c.sizeof(Frame))
        assert lib.sluice_filter_receive(self.handle, c.byref(frame)) == OK, self.said
        return frame

    def run(self, source, target, stream):
        assert self.submit([source], [target], stream) == OK, self.said
        return self.receive()

    def __del__(self):
        if self.handle:
            lib.sluice_filter_destroy(c.byref(self.handle))


def planes(form):
    """(bytes of a row, rows) of each plane."""
    found, row, rows = [], c.c_size_t(), c.c_int()
    while lib.sluice_format_plane(c.byref(form), len(found), c.byref(row), c.byref(rows)) == OK:
        found.append((row.value, rows.value))
    return found


class Picture:
    """Planes in one array of bytes, host's or device's, with 0xa5 around the rows. `offset`: of the
    first plane, `gap`: bytes between rows, `flip`: upside down."""

    def __init__(self, form, where, offset=0, gap=0, flip=False):
        self.shape, self.where = planes(form), where
        self.place, self.stride, at = [], [], 256 + offset
        for row, rows in self.shape:
            stride = row + gap
            self.place.append(at + (rows - 1) * stride if flip else at)
            self.stride.append(-stride if flip else stride)
            at += rows * stride + 256
        self.bytes = np.full(at, 0xa5, np.uint8)
        self.memory = self.bytes if where == HOST else torch.from_numpy(self.bytes).cuda()

    def frame(self, **more):
        base = self.memory.ctypes.data if self.where == HOST else self.memory.data_ptr()
        made = Frame(size=c.sizeof(Frame), memory=self.where, **more)
        made.owner = self  # the planes live as long as what points at them
        for p, place in enumerate(self.place):
            made.data[p], made.stride[p] = base + place, self.stride[p]
        return made

    def rows(self, p, of):
        """Plane p of an array of bytes that lies as this one, as rows from the top."""
        row, rows = self.shape[p]
        stride = abs(self.stride[p])
        first = self.place[p] - (rows - 1) * stride if self.stride[p] < 0 else self.place[p]
        view = np.lib.stride_tricks.as_strided(of[first:], (rows, row), (stride, 1))
        return view[::-1] if self.stride[p] < 0 else view

    def fill(self, contents):
        for p, plane in enumerate(contents):
            self.rows(p, self.bytes)[:] = plane
        if self.where != HOST:
            self.memory.copy_(torch.from_numpy(self.bytes))
        return self

    def planes(self):
        """The planes, after a look that the bytes around them are as they were."""
        found = self.memory if self.where == HOST else self.memory.cpu().numpy()
        around = found.copy()
        made = [self.rows(p, found).copy() for p in range(len(self.shape))]
        for p in range(len(self.shape)):
            self.rows(p, around)[:] = 0xa5
        assert (around == 0xa5).all(), "bytes around the rows were written"
        return made


def noise(form, seed):
    """Random planes; of more than 8 bits none above its depth."""
    random = np.random.default_rng(seed)
    made = [random.integers(0, 256, (rows, row), np.uint8) for row, rows in planes(form)]
    if form.pixfmt.endswith(b"10le"):
        for plane in made:
            plane[:, 1::2] &= 3
    return made


def equal(a, b, what):
    for p, (one, other) in enumerate(zip(a, b, strict=True)):
        wrong = np.argwhere(one != other)
        assert not len(wrong), f"{what}: plane {p} differs at row, byte {wrong[0]}, and {len(wrong)} in all"


def reference(chain, pixfmt, width, height, contents, backend=SCALAR):
    scalar = Filter(chain, pixfmt, width, height, backend)
    source, target = Picture(scalar.format, HOST).fill(contents), Picture(scalar.output, HOST)
    scalar.run(source.frame(), target.frame(), None)
    return target.planes()


# ---- checks ----

CASES = [("gray,gaussian=1.4,sobel,threshold=20:240", "rgb24"), ("gaussian=2", "gray"),
         ("brightness=20", "yuv420p"), ("gaussian=10", "gray10le"), ("sobel", "nv12"),
         ("gray,box=9,invert", "gbrp"), ("sharpen", "p010le"), ("emboss", "gray"),
         ("wavelet=1:4:8", "gray"), ("gray", "yuv444p10le")]
LAYOUTS = [{}, {"gap": 1}, {"offset": 2, "gap": 14}, {"gap": 64, "flip": True}, {"offset": 1, "gap": 3}]


def results_equal():
    for chain, pixfmt in CASES:
        for width, height in (641, 97), (64, 64):
            stage = Filter(chain, pixfmt, width, height)
            contents = noise(stage.format, 1)
            want = reference(chain, pixfmt, width, height, contents)
            host = Picture(stage.output, HOST)
            stage.run(Picture(stage.format, HOST).fill(contents).frame(), host.frame(), None)
            what = f"{chain} of {pixfmt}, {width}x{height}"
            if not chain.startswith("wavelet"):  # exact to 1e-4
                equal(host.planes(), want, what + ", from the host")
            for n, layout in enumerate(LAYOUTS):
                source = Picture(stage.format, DEVICE, **LAYOUTS[-n - 1]).fill(contents)
                target = Picture(stage.output, DEVICE, **layout)
                stage.run(source.frame(), target.frame(), stream())
                equal(target.planes(), host.planes(), f"{what}, {layout}")


def mixed_memory():
    """From the host to the device, and back."""
    stage = Filter("gaussian=2", "yuv420p", 333, 111)
    contents = noise(stage.format, 2)
    want = reference("gaussian=2", "yuv420p", 333, 111, contents)
    for source, target in (HOST, DEVICE), (DEVICE, HOST):
        made = Picture(stage.output, target, gap=5)
        stage.run(Picture(stage.format, source).fill(contents).frame(), made.frame(), stream())
        equal(made.planes(), want, f"memory {source} to {target}")


def in_place():
    for chain, pixfmt in ("brightness=20", "rgb24"), ("gaussian=2", "yuv420p"), ("sobel", "gray10le"), \
                         ("contrast=1.5,gaussian=1", "gbrp"):
        stage = Filter(chain, pixfmt, 323, 65)
        contents = noise(stage.format, 3)
        picture = Picture(stage.format, DEVICE, gap=7 if pixfmt != "gray10le" else 6).fill(contents)
        stage.run(picture.frame(), picture.frame(), stream())
        equal(picture.planes(), reference(chain, pixfmt, 323, 65, contents), f"{chain} in place")


def batches():
    """Eight at once and more, with pts and opaque."""
    stage = Filter("gaussian=1.4", "gray", 96, 64, in_flight=24)
    contents = [noise(stage.format, 10 + k) for k in range(20)]
    sources = [Picture(stage.format, DEVICE).fill(planes_) for planes_ in contents]
    targets = [Picture(stage.output, DEVICE, gap=4) for _ in contents]
    assert stage.submit([s.frame(pts=k, opaque=k + 1) for k, s in enumerate(sources)],
                        [t.frame() for t in targets], stream()) == OK, stage.said
    for k, target in enumerate(targets):
        frame = stage.receive()
        assert (frame.pts, frame.opaque) == (k, k + 1)
        assert frame.data[0] == target.frame().data[0]
    for k, target in enumerate(targets):
        equal(target.planes(), reference("gaussian=1.4", "gray", 96, 64, contents[k]), f"frame {k}")


def no_waiting():
    """Submit and receive return while a long kernel holds the stream; results are of what comes
    behind it, and are there for what is put on the stream next. On a stream of its own, and on the
    default one."""
    stage = Filter("gaussian=10", "gray", 1920, 1080)
    old, new = noise(stage.format, 20), noise(stage.format, 21)
    want = reference("gaussian=10", "gray", 1920, 1080, new, CUDA)
    fresh = Picture(stage.format, DEVICE).fill(new)
    for on in torch.cuda.Stream(), torch.cuda.default_stream():
        source, target = Picture(stage.format, DEVICE).fill(old), Picture(stage.output, DEVICE)
        stage.run(source.frame(), target.frame(), on.cuda_stream)  # the first of its kind loads kernels
        torch.cuda.synchronize()
        with torch.cuda.stream(on):
            torch.cuda._sleep(SLEEP_MS * CYCLES_A_MS)
            source.memory.copy_(fresh.memory)
            begin = time.perf_counter()
            stage.run(source.frame(), target.frame(), on.cuda_stream)
            took = (time.perf_counter() - begin) * 1e3
            busy = not on.query()
            target.memory = target.memory.clone()
        torch.cuda.synchronize()
        assert busy and took < SLEEP_MS / 4, f"submit and receive took {took:.1f} ms, stream busy: {busy}"
        equal(target.planes(), want, f"behind a long kernel, {took:.3f} ms")


def reuse_without_waiting():
    """Each seat many times over, on two streams, from the device and from the host."""
    stage = Filter("gaussian=10,sobel", "gray", 640, 480, in_flight=4)
    contents = [noise(stage.format, 30 + k) for k in range(6)]
    want = [reference("gaussian=10,sobel", "gray", 640, 480, planes_, CUDA) for planes_ in contents]
    for where in DEVICE, HOST:
        sources = [Picture(stage.format, where).fill(planes_) for planes_ in contents]
        targets = [Picture(stage.output, DEVICE) for _ in range(48)]
        streams = [torch.cuda.Stream(), torch.cuda.Stream()]
        torch.cuda.synchronize()
        for k, target in enumerate(targets):
            if k >= 3:
                stage.receive()
            on = streams[k // 2 % 2].cuda_stream
            assert stage.submit([sources[k % 6].frame()], [target.frame()], on) == OK, stage.said
        for _ in range(3):
            stage.receive()
        torch.cuda.synchronize()
        for k, target in enumerate(targets):
            equal(target.planes(), want[k % 6], f"frame {k} from memory {where}")


def one_at_a_time():
    """One seat, whose frames come on one stream after the other."""
    stage = Filter("gaussian=10", "gray", 640, 480, in_flight=1)
    contents = [noise(stage.format, 50 + k) for k in range(3)]
    want = [reference("gaussian=10", "gray", 640, 480, planes_, CUDA) for planes_ in contents]
    sources = [Picture(stage.format, DEVICE).fill(planes_) for planes_ in contents]
    targets = [Picture(stage.output, DEVICE) for _ in range(30)]
    streams = [torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.default_stream()]
    torch.cuda.synchronize()
    for k, target in enumerate(targets):
        stage.run(sources[k % 3].frame(), target.frame(), streams[k // 2 % 3].cuda_stream)
    torch.cuda.synchronize()
    for k, target in enumerate(targets):
        equal(target.planes(), want[k % 3], f"frame {k}")


def wrong_memory():
    """Each is refused with a sentence, and the next frame is filtered."""
    stage = Filter("invert", "gray", 64, 64)
    contents = noise(stage.format, 4)
    right = Picture(stage.format, DEVICE).fill(contents)
    target = Picture(stage.output, DEVICE)
    managed = c.c_void_p()
    assert c.CDLL("libcuda.so.1").cuMemAllocManaged(c.byref(managed), c.c_size_t(4096), 1) == 0

    def wrong(frame, *words):
        assert stage.submit([frame], [target.frame()], stream()) != OK, f"{words} was taken"
        missing = [word for word in words if word not in stage.said]
        assert not missing, f"'{stage.said}' lacks {missing}"

    host = Picture(stage.format, HOST).fill(contents).frame()
    host.memory = DEVICE
    wrong(host, "plane 0 of `in` is host memory")
    device = right.frame()
    device.memory = HOST
    wrong(device, "plane 0 of `in` is memory of the GPU")
    between = right.frame()
    between.data[0] = managed.value
    wrong(between, "managed memory")
    nowhere = right.frame()
    nowhere.data[0] = None
    wrong(nowhere, "has no address")
    short = right.frame()
    short.stride[0] = 63
    wrong(short, "stride", "63")
    stage.run(right.frame(), target.frame(), stream())
    equal(target.planes(), [255 - contents[0]], "after what was refused")


def wrong_streams():
    """One that is being captured, and another GPU's, are refused with a sentence; the next frame is filtered."""
    stage = Filter("gaussian=2", "gray", 64, 64)
    contents = noise(stage.format, 8)
    source, target = Picture(stage.format, DEVICE).fill(contents), Picture(stage.output, DEVICE)
    stage.run(source.frame(), target.frame(), stream())
    graph, on = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=on):
        assert stage.submit([source.frame()], [target.frame()], on.cuda_stream) != OK, "a stream under capture was taken"
        assert "captured" in stage.said, stage.said
    if torch.cuda.device_count() > 1:
        with torch.cuda.device(1):
            other = torch.cuda.Stream()
        assert stage.submit([source.frame()], [target.frame()], other.cuda_stream) != OK, "another GPU's was taken"
        assert "another GPU" in stage.said, stage.said
    target = Picture(stage.output, DEVICE)
    stage.run(source.frame(), target.frame(), stream())
    equal(target.planes(), reference("gaussian=2", "gray", 64, 64, contents, CUDA), "after what was refused")


def streams_come_and_go():
    """Seats that were used on streams that are gone, whose handles others have now."""
    stage = Filter("gaussian=10,sobel", "gray", 640, 480, in_flight=2)
    contents = [noise(stage.format, 60 + k) for k in range(3)]
    want = [reference("gaussian=10,sobel", "gray", 640, 480, planes_, CUDA) for planes_ in contents]
    sources = [Picture(stage.format, DEVICE).fill(planes_) for planes_ in contents]
    targets = [Picture(stage.output, DEVICE) for _ in range(40)]
    driver = c.CDLL("libcuda.so.1")
    torch.cuda.synchronize()
    for k, target in enumerate(targets):
        on = c.c_void_p()
        assert driver.cuStreamCreate(c.byref(on), 1) == 0
        stage.run(sources[k % 3].frame(), target.frame(), on.value)
        assert driver.cuStreamDestroy_v2(on) == 0
    torch.cuda.synchronize()
    for k, target in enumerate(targets):
        equal(target.planes(), want[k % 3], f"frame {k}")


def live_change():
    """Options change between frames under way."""
    stage = Filter("gaussian=1", "gray", 320, 200, in_flight=4)
    contents = noise(stage.format, 5)
    source = Picture(stage.format, DEVICE).fill(contents)
    targets = [Picture(stage.output, DEVICE) for _ in range(3)]
    sigmas, why = (1, 4, 12), c.create_string_buffer(256)
    for sigma, target in zip(sigmas, targets):
        assert lib.sluice_filter_set(stage.handle, f"gaussian.sigma={sigma}".encode(), why, 256) == OK, why.value
        assert stage.submit([source.frame()], [target.frame()], stream()) == OK, stage.said
    for sigma, target in zip(sigmas, targets):
        stage.receive()
        equal(target.planes(), reference(f"gaussian={sigma}", "gray", 320, 200, contents), f"sigma {sigma}")


def analysis():
    stage = Filter("stats", "gray", 300, 200)
    contents = noise(stage.format, 6)
    source, target = Picture(stage.format, DEVICE).fill(contents), Picture(stage.output, DEVICE)
    stage.run(source.frame(), target.frame(), stream())
    found = Analysis(size=c.sizeof(Analysis))
    assert lib.sluice_filter_analysis(stage.handle, 0, c.byref(found)) == OK
    assert abs(found.mean - contents[0].mean()) < 1e-6, (found.mean, contents[0].mean())
    equal(target.planes(), contents, "a picture that is analysed")


def current_device():
    """Another GPU filters; the caller's stays current."""
    if torch.cuda.device_count() < 2:
        raise NotImplementedError("one GPU")
    stage = Filter("invert", "gray", 64, 64, device=1)
    contents = noise(stage.format, 7)
    with torch.cuda.device(1):
        source, target = Picture(stage.format, DEVICE).fill(contents), Picture(stage.output, DEVICE)
        on = torch.cuda.Stream()
        torch.cuda.synchronize()
    stage.run(source.frame(), target.frame(), on.cuda_stream)
    made = torch.zeros(1, device="cuda")
    assert made.device.index == 0 and torch.cuda.current_device() == 0
    on.synchronize()
    equal(target.planes(), [255 - contents[0]], "on the second GPU")


CHECKS = [results_equal, mixed_memory, in_place, batches, no_waiting, reuse_without_waiting, one_at_a_time,
          wrong_memory, wrong_streams, streams_come_and_go, live_change, analysis, current_device]


def stream():
    return torch.cuda.current_stream().cuda_stream


def main():
    passed = failed = skipped = 0
    if not torch.cuda.is_available():
        print(f"{len(CHECKS)} checks: skipped, PyTorch finds no GPU\n0 passed, 0 failed, {len(CHECKS)} skipped")
        return 0
    for check in CHECKS:
        begin = time.perf_counter()
        try:
            check()
        except NotImplementedError as error:
            skipped += 1
            print(f"skipped {check.__name__}: {error}")
            continue
        except AssertionError as error:
            failed += 1
            print(f"FAILED {check.__name__}: {error}")
            continue
        passed += 1
        print(f"passed {check.__name__} ({time.perf_counter() - begin:.1f} s)", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    try:
        import numpy as np
        import torch
    except ImportError as error:
        print(f"{len(CHECKS)} checks: skipped, {error}\n0 passed, 0 failed, {len(CHECKS)} skipped")
        sys.exit(0)
    lib = c.CDLL(sys.argv[1])
    lib.sluice_filter_destroy.restype = None
    sys.exit(main())
