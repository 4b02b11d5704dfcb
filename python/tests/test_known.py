"""Frames of layouts that came before: the same results, checks and order on streams, at the cost of an address.

Arrays in a GPU's memory are played by classes like torch's and CuPy's whose memory is the host's, and so is the engine
that filters them: where they ask DLPack, and where not, shows without a GPU.
"""

import gc
import sys
import types
import weakref

import numpy as np
import pytest

import sluice
import sluice.filter
from conftest import noise
from sluice import _known
from sluice._engine import Engine
from sluice._library import DEVICE, HOST, Frame
from test_arrays import HandMade

CHAIN = "gaussian=2,sobel"
STREAM = 4096


class OnHost(Engine):
    """An engine that takes what lies in a GPU's memory from the host's, and notes the streams."""

    def __init__(self, key, chain, settings):
        super().__init__(key._replace(device=None), chain, settings)
        self.key, self.streams = key, []

    def run(self, sources, targets, count, stream):
        self._on_host((Frame * count).from_buffer(sources), (Frame * count).from_buffer(targets), stream)
        super().run(sources, targets, count, 0)

    def submit(self, source, target, stream):
        self._on_host([source], [target], stream)
        super().submit(source, target, 0)

    def _on_host(self, sources, targets, stream):
        self.streams.append(stream)
        for frame in [*sources, *targets]:
            assert frame.memory == (HOST if self.key.device is None else DEVICE)
            frame.memory = HOST


class Memory(HandMade):
    """An array of the pretended GPU, by DLPack."""

    asks = 0  # of all of them
    current = 0  # GPU

    def __init__(self, array, number=0):
        super().__init__(array, versioned=True, device=2)
        self.number, self.shape, self.dtype = number, array.shape, array.dtype

    def __dlpack__(self, **arguments):
        Memory.asks += 1
        return super().__dlpack__(**arguments)

    def __dlpack_device__(self):
        return 2, self.number


def torchlike():
    """A module like torch."""

    class Tensor(Memory):
        is_cuda = True
        device = property(lambda self: ("cuda", self.number))

        def get_device(self):
            return self.number

        def data_ptr(self):
            return self.array.ctypes.data

        def is_contiguous(self):
            return self.array.flags.c_contiguous

        def stride(self):
            return tuple(step // self.array.itemsize for step in self.array.strides)

    module = types.ModuleType("torch")
    module.Tensor, module.uint8 = Tensor, "u1"
    module.version = types.SimpleNamespace(hip=None)
    module._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: STREAM, 
                                      _cuda_getDevice=lambda: Memory.current)
    module.cuda = types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=STREAM),
                                        current_device=lambda: Memory.current)
    module.empty = lambda shape, dtype, device: Tensor(np.zeros(shape, dtype), device[1])
    return "torch", module, Tensor


def older_torchlike():
    """One whose module in C has no such functions."""
    name, module, kind = torchlike()
    module._C = types.SimpleNamespace()
    return name, module, kind


def cupylike():
    class ndarray(Memory):
        strides = property(lambda self: self.array.strides)
        data = property(lambda self: types.SimpleNamespace(ptr=self.array.ctypes.data, device_id=self.number))

    class Device:
        def __init__(self, number):
            self.number = number

        def __enter__(self):
            return self

        def __exit__(self, *problem):
            pass

    module = types.ModuleType("cupy")
    module.ndarray = ndarray
    module.empty = lambda shape, dtype: ndarray(np.zeros(shape, dtype))
    module.cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(is_hip=False), Device=Device,
                                        get_current_stream=lambda: types.SimpleNamespace(ptr=STREAM))
    return "cupy", module, ndarray


@pytest.fixture(params=[torchlike, older_torchlike, cupylike])
def gpu(request, monkeypatch):
    """The type of arrays in the memory of a GPU that is none."""
    name, module, kind = request.param()
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sluice.filter, "Engine", OnHost)
    monkeypatch.setattr(_known, "_finders", {})
    monkeypatch.setattr(Memory, "asks", 0)
    monkeypatch.setattr(Memory, "current", 0)
    return kind


def test_arrays_on_a_gpu_are_asked_once(gpu):
    filter, plain = sluice.Filter(CHAIN), sluice.Filter(CHAIN)
    for turn in range(4):
        frame, out = noise(30, 40, seed=turn), gpu(np.zeros((30, 40), np.uint8))
        made, wanted = gpu(frame), plain(frame)
        assert filter(made, out=out) is out and np.array_equal(out.array, wanted)
        result = filter(made)
        assert type(result) is gpu and np.array_equal(result.array, wanted)
        assert filter(made, out=made) is made and np.array_equal(made.array, wanted)
        asked = gpu.asks if turn == 0 else asked
    assert asked > 0 and gpu.asks == asked
    assert filter._newest.streams == [STREAM] * 12


def test_many_arrays_on_a_gpu(gpu):
    filter, plain = sluice.Filter(CHAIN, frames_in_flight=3), sluice.Filter(CHAIN)
    frames = [noise(30, 40, seed=k) for k in range(9)]
    wanted = [plain(frame) for frame in frames]
    for results in (filter.map(map(gpu, frames)), filter.batch([gpu(frame) for frame in frames])):
        assert all(np.array_equal(result.array, w) for result, w in zip(list(results), wanted))
    assert gpu.asks == 2  # the first frame and its result


def test_many_frames_in_one_array_on_a_gpu(gpu, monkeypatch):
    monkeypatch.setattr(gpu, "__len__", lambda self: len(self.array), raising=False)
    monkeypatch.setattr(gpu, "__getitem__", lambda self, k: gpu(self.array[k], self.number), raising=False)
    filter, plain = sluice.Filter(CHAIN, frames_in_flight=3), sluice.Filter(CHAIN)
    for turn in range(3):
        frames = noise(7, 30, 40, seed=turn)
        wanted = np.stack([plain(frame) for frame in frames])
        results, out = filter.batch(gpu(frames)), gpu(np.zeros_like(frames))
        assert type(results) is gpu and np.array_equal(results.array, wanted)
        assert filter.batch(gpu(frames), out=out) is out and np.array_equal(out.array, wanted)
        asked = gpu.asks if turn == 0 else asked
    assert asked > 0 and gpu.asks == asked
    assert filter._newest.streams == [STREAM] * 6


def test_planes_on_a_gpu(gpu):
    planes = [noise(30, 40), noise(15, 20), noise(15, 20)]
    filter = sluice.Filter("gaussian=2", pixfmt="yuv420p")
    wanted = sluice.Filter("gaussian=2", pixfmt="yuv420p")(tuple(planes))
    for turn in range(3):
        found = filter([gpu(plane) for plane in planes])
        assert all(np.array_equal(a.array, b) for a, b in zip(found, wanted))
    assert gpu.asks == 6


def test_other_streams_are_left_to_dlpack(gpu):
    filter, made = sluice.Filter(CHAIN), gpu(noise(30, 40))
    filter(made), filter(made, stream=STREAM)
    for turn in range(3):
        asked = gpu.asks
        filter(made, stream=STREAM + 16)
        assert gpu.asks == asked + 2 and made.asked["stream"] == STREAM + 16
    assert filter._newest.streams == [STREAM] * 2 + [STREAM + 16] * 3


@pytest.mark.parametrize("gpu", [torchlike, older_torchlike], indirect=True)
def test_tensors_of_another_gpu_are_left_to_dlpack(gpu):
    filter, made = sluice.Filter(CHAIN), gpu(noise(30, 40), 1)
    for turn in range(3):
        asked = gpu.asks
        filter(made, out=gpu(np.zeros((30, 40), np.uint8), 1))
        assert gpu.asks == asked + 2
    with pytest.raises(sluice.UsageError, match="another memory"):
        filter(made, out=gpu(np.zeros((30, 40), np.uint8), 0))


def test_gpus_by_turns(gpu):
    filter, frame = sluice.Filter(CHAIN), noise(30, 40)
    wanted = sluice.Filter(CHAIN)(frame)
    for turn in range(3):
        asked = gpu.asks
        for Memory.current in 0, 1:
            out = gpu(np.zeros((30, 40), np.uint8), Memory.current)
            assert np.array_equal(filter(gpu(frame, Memory.current), out=out).array, wanted)
            assert filter._newest.key.device == Memory.current
            with pytest.raises(sluice.UsageError, match="another memory"):
                filter(frame, out=out)
    assert gpu.asks == asked + 2  # the two that are refused


def test_tensors_without_strides_are_left_to_dlpack(monkeypatch):
    """As torch's sparse ones."""
    name, module, kind = torchlike()

    def none(self):
        raise RuntimeError("there are no strides")

    kind.stride = kind.is_contiguous = none
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(_known, "_finders", {})
    monkeypatch.setattr(Memory, "asks", 0)
    monkeypatch.setattr(sluice.filter, "Engine", OnHost)
    filter, out = sluice.Filter(CHAIN), kind(np.zeros((30, 40), np.uint8))
    for turn in range(2):
        assert filter(kind(noise(30, 40)), out=out) is out
    assert Memory.asks == 4


def test_subclasses_are_left_to_dlpack(gpu):
    filter, made = sluice.Filter(CHAIN), type("Other", (gpu,), {})(noise(30, 40))
    out = gpu(np.zeros((30, 40), np.uint8))
    for turn in range(3):
        filter(made, out=out)
    assert gpu.asks == 6


# ---- in host memory ----


def test_layouts_take_turns():
    """Each is filtered as a filter that has seen no other filters it."""
    picture, deep = noise(61, 83, 3), noise(31, 42, dtype="u2")
    read_only = picture.copy()
    read_only.flags.writeable = False
    kinds = {"whole": picture, "part": picture[3:40, 5:50], "upside down": picture[::-1], "deep": deep,
             "gaps": picture[:, ::2], "turned": picture.transpose(1, 0, 2), "gray": picture[:, :, 1].copy(),
             "plane": picture[:, :, 1], "read-only": read_only, "rows again": np.broadcast_to(picture[:1], (9, 83, 3))}
    wanted = {name: sluice.Filter(CHAIN)(np.ascontiguousarray(frame)) for name, frame in kinds.items()}
    filter, outs = sluice.Filter(CHAIN, sizes=8), {name: np.zeros_like(result) for name, result in wanted.items()}
    for turn in range(3):
        for name, frame in kinds.items():
            assert np.array_equal(filter(frame), wanted[name]), name
            assert filter(frame, out=outs[name]) is outs[name] and np.array_equal(outs[name], wanted[name]), name
            outs[name][:] = 0


def test_frames_at_other_addresses():
    filter = sluice.Filter("invert")
    for frame in noise(50, 20, 30):
        assert np.array_equal(filter(frame), 255 - frame)
        out = np.zeros((40, 60), np.uint8)
        assert np.array_equal(filter(frame, out=out[7:27, 5:35]), 255 - frame)
        assert out.sum() == (255 - frame).sum(dtype=int)


FRAME = noise(20, 30)
READ_ONLY = FRAME.copy()
READ_ONLY.flags.writeable = False
REFUSED = {"read-only": (READ_ONLY, "may not be written"), "small": (FRAME[:-1].copy(), "wanted is 20 x 30"),
           "words": (FRAME.astype("u2"), "wanted is 20 x 30"), "signed": (FRAME.astype("i1"), "uint8 and uint16"),
           "gaps": (np.zeros((20, 60), np.uint8)[:, ::2], "gaps"), "planes": ((FRAME, FRAME), "planes"),
           "text": (np.full((20, 30), "a"), "uint8 and uint16"), "times": (FRAME.astype("M8[s]"), "uint8 and uint16")}


@pytest.mark.parametrize("what", REFUSED)
def test_targets_are_refused_after_others_were_taken(what):
    out, words = REFUSED[what]
    filter = sluice.Filter("invert")
    for turn in range(3):
        filter(FRAME, out=FRAME.copy()), filter(FRAME)
        with pytest.raises(sluice.UsageError, match=words):
            filter(FRAME, out=out)


def test_another_chain_between_frames_of_a_layout():
    frame, small = noise(30, 40), noise(12, 14)
    filter = sluice.Filter("gaussian=2")
    for sigma in (3, 1, 5):
        filter(frame), filter(frame), filter(small), filter(small)
        filter.set(f"gaussian.sigma={sigma}")
        for each in (frame, small):
            assert np.array_equal(filter(each), sluice.Filter(f"gaussian={sigma}")(each))
        filter.chain = "gaussian=2"
        for each in (frame, small):
            assert np.array_equal(filter(each), sluice.Filter("gaussian=2")(each))
    filter.close()
    assert np.array_equal(filter(frame), sluice.Filter("gaussian=2")(frame))


def test_the_size_that_was_used_last_is_kept():
    filter, frames = sluice.Filter("invert", sizes=1), [noise(8 * k, 8) for k in (1, 2, 3)]
    for frame in (frames[0], frames[1], frames[0], frames[1]):
        filter(frame)
    last = filter._newest
    assert "8x16" in filter.plan
    filter(frames[2])  # frames[0] goes: two are kept
    filter(frames[1])
    assert filter._newest is last and "8x16" in filter.plan


def test_calls_and_many_under_way_by_turns():
    filter, frame = sluice.Filter("invert", backend="cpu", threads=2), noise(20, 30)
    for turn in range(3):
        assert np.array_equal(filter(frame), 255 - frame) and filter.frames_in_flight == 1
        filter.submit(frame)
        assert np.array_equal(filter.receive().frame, 255 - frame) and filter.frames_in_flight > 1


def test_not_all_layouts_are_kept():
    filter, picture = sluice.Filter("invert"), noise(20, 400)
    for width in range(20, 400):
        wide = np.resize(picture, (20, width))[:, :16]  # strides of their own
        assert np.array_equal(filter(wide), 255 - wide)
    assert 0 < len(filter._ways._ways) <= 64 and len(filter._engines) == 1


def test_no_array_is_kept():
    filter, frame = sluice.Filter("invert"), noise(20, 30)
    for _ in range(3):
        out = filter(frame)
    alive = weakref.ref(frame), weakref.ref(out)
    del frame, out
    gc.collect()
    assert alive[0]() is None and alive[1]() is None


def test_planes_of_a_list_live_until_they_are_received():
    filter = sluice.Filter("gaussian=9", pixfmt="gbrp", frames_in_flight=2)
    for turn in range(3):
        planes = [noise(400, 500, seed=k) for k in range(3)]
        alive = weakref.ref(planes[0])
        filter.submit(planes)
        planes.clear()
        assert alive() is not None
        filter.receive()
        assert alive() is None
