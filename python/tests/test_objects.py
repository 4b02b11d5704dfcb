"""Arrays that tell in C where they lie, by DLPack's exchange API or by Python's buffers: the same results and checks,
without a look by Python. Those with the API are played by a class of the tests, and by torch's where they have it (from
2.10 on)."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

import sluice
from conftest import noise
from sluice import _known
from sluice._arrays import _Tensor
from sluice._engine import Engine
from sluice._objects import Objects, _Api
from test_arrays import new_capsule

CHAIN = "gaussian=2,sobel"
Tell = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_Tensor))


class Tensor:
    """A tensor of host memory. `told` counts how often C asked, `looks` how often Python did."""

    told = looks = 0
    is_cuda, device, tells = False, "cpu", True

    def __init__(self, array):
        self.array, self.dtype = array, array.dtype
        self.extent = (ctypes.c_int64 * (2 * array.ndim))(
            *array.shape, *(step // array.itemsize for step in array.strides))

    shape = property(lambda self: self.array.shape)

    def data_ptr(self):
        Tensor.looks += 1
        return self.array.ctypes.data

    def is_contiguous(self):
        return self.array.flags.c_contiguous

    def stride(self):
        return tuple(self.extent[self.array.ndim:])

    def __len__(self):
        return len(self.array)

    def __getitem__(self, k):
        return Tensor(self.array[k])

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return 1, 0


def _tell(thing, to):
    Tensor.told += 1
    if not thing.tells:
        return -1
    array, word = thing.array, ctypes.POINTER(ctypes.c_int64)
    extent = ctypes.addressof(thing.extent)
    to[0] = _Tensor(array.ctypes.data, 1, 0, array.ndim, array.dtype.kind == "u", 8 * array.itemsize, 1, ctypes.cast(extent, word),
                    ctypes.cast(extent + 8 * array.ndim, word), 0)
    return 0


TELL = Tell(_tell)
API = _Api(major=1, minor=3, tensor=ctypes.cast(TELL, ctypes.c_void_p), stream=1)  # which host memory has not
LATER = _Api(major=2, before=ctypes.addressof(API))


@pytest.fixture(params=["api", "a later one before it", "torch", "numpy"])
def tensor(request, monkeypatch):
    """A function from NumPy's arrays to those that tell."""
    if request.param == "numpy":
        return np.asarray
    if request.param == "torch":
        torch = pytest.importorskip("torch", reason="torch is not installed")
        if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
            pytest.skip(f"torch {torch.__version__} has no exchange API")
        return torch.from_numpy
    api = API if request.param == "api" else LATER
    module = types.ModuleType("torch")
    module.Tensor, module.uint8, module.uint16 = Tensor, np.dtype("u1"), np.dtype("u2")
    module.version = types.SimpleNamespace(hip=None)
    module._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 0, _cuda_getDevice=lambda: 0)
    module.empty = lambda shape, dtype, device: Tensor(np.zeros(shape, dtype))
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(_known, "_finders", {})
    monkeypatch.setattr(sluice._objects, "_apis", {})
    monkeypatch.setattr(Tensor, "__dlpack_c_exchange_api__",
                        new_capsule(ctypes.addressof(api), b"dlpack_exchange_api", None), raising=False)
    return Tensor


@pytest.fixture
def looks(monkeypatch):
    """How often Python looked at arrays: a list of one number."""
    count, look = [0], sluice.filter._kind_of

    def counting(*arguments, **more):
        count[0] += 1
        return look(*arguments, **more)

    monkeypatch.setattr(sluice.filter, "_kind_of", counting)
    return count


def plain(thing):
    return thing if isinstance(thing, np.ndarray) else thing.array if isinstance(thing, Tensor) else thing.numpy()


@pytest.mark.parametrize("shape", [(30, 40), (30, 40, 3), (1, 7), (9, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_python_does_not_look_at_frames_of_the_last_layout(tensor, looks, shape, dtype):
    filter, wanted = sluice.Filter("gaussian=2"), sluice.Filter("gaussian=2")
    for turn in range(6):
        frame = noise(*shape, dtype=dtype, seed=turn)
        try:
            made, out = tensor(frame), tensor(np.zeros(shape, dtype))
        except TypeError as problem:
            pytest.skip(f"this torch has no uint16: {problem}")
        before, told = looks[0], Tensor.told
        assert filter(made, out=out) is out and (looks[0] > before) == (turn < 2)
        assert tensor is not Tensor or turn < 2 or Tensor.told == told + 2
        assert np.array_equal(plain(out), wanted(frame))


def test_new_results(tensor, looks):
    filter, wanted = sluice.Filter("gray,gaussian=2"), sluice.Filter("gray,gaussian=2")
    for turn in range(4):
        frame, before = noise(30, 40, 3, seed=turn), looks[0]
        result = filter(tensor(frame))
        assert (looks[0] > before) == (turn < 2)
        assert type(result) is type(tensor(frame)) and np.array_equal(plain(result), wanted(frame))


def test_a_frame_of_another_size_has_no_result_of_the_last_ones(tensor, monkeypatch):
    filter, large, small = sluice.Filter("invert"), noise(300, 400), noise(3, 4)
    for turn in range(3):
        filter(tensor(large))
    monkeypatch.setattr(filter._repeats.call, "_new", lambda: pytest.fail("the last frame's result was made anew"))
    assert np.array_equal(plain(filter(tensor(small))), 255 - small)


def test_results_over_their_sources(tensor):
    filter, frame = sluice.Filter(CHAIN), noise(30, 40)
    made, wanted = tensor(frame.copy()), frame
    for turn in range(4):
        wanted = sluice.Filter(CHAIN)(wanted)
        assert filter(made, out=made) is made and np.array_equal(plain(made), wanted)


def test_layouts_take_turns(tensor):
    filter = sluice.Filter(CHAIN, sizes=8)
    picture, deep = noise(61, 83, 3), noise(31, 42, dtype="u2")
    frames = [picture, picture, deep, picture[3:40, 5:50], deep, deep, deep[:, :30], picture[:, :, 1].copy(), picture]
    for turn in range(3):
        for frame in frames:
            try:
                made = tensor(frame)
            except TypeError:
                continue  # a torch without uint16
            wanted = sluice.Filter(CHAIN)(np.ascontiguousarray(frame))
            assert np.array_equal(plain(filter(made)), wanted)
            assert np.array_equal(plain(filter(made, out=tensor(np.zeros_like(wanted)))), wanted)


def test_batches_in_one_array(tensor, looks):
    filter, wanted = sluice.Filter(CHAIN), sluice.Filter(CHAIN)
    for turn in range(5):
        frames = noise(7, 30, 40, seed=turn)
        expected = np.stack([wanted(frame) for frame in frames])
        out, before = tensor(np.zeros_like(frames)), looks[0]
        assert filter.batch(tensor(frames), out=out) is out and np.array_equal(plain(out), expected)
        assert turn < 2 or looks[0] == before
    for turn in range(4):
        assert np.array_equal(plain(filter.batch(tensor(frames))), expected)
        assert np.array_equal(plain(filter.batch(tensor(frames[:3]))), expected[:3])
    assert len(filter.batch(tensor(frames[:0]))) == 0


def test_targets_are_refused_after_others_were_taken(tensor):
    frame, filter = noise(20, 30), sluice.Filter("invert")
    for turn in range(3):
        filter(tensor(frame), out=tensor(np.zeros_like(frame)))
        for out, words in ((tensor(np.zeros((19, 30), np.uint8)), "wanted is 20 x 30"),
                           (tensor(np.zeros((20, 60), np.uint8)[:, ::2]), "gaps"),
                           (tensor(np.zeros((20, 30), np.int8)), "uint8 and uint16")):
            with pytest.raises(sluice.UsageError, match=words):
                filter(tensor(frame), out=out)
    whole = np.zeros((21, 30), np.uint8)
    whole[:20] = frame
    filter(tensor(whole[:20]), out=tensor(np.zeros_like(frame)))
    with pytest.raises(sluice.UsageError, match="overlaps"):
        filter(tensor(whole[:20]), out=tensor(whole[1:]))
    assert np.array_equal(plain(filter(tensor(frame))), 255 - frame)


def test_changes_between_frames_of_a_layout(tensor):
    frame, filter = noise(30, 40), sluice.Filter("stats,gaussian=2")
    for sigma in (3, 1, 5):
        for turn in range(3):
            assert np.array_equal(plain(filter(tensor(frame))), sluice.Filter(filter.chain)(frame))
            assert turn == 0 or filter._repeats.call is not None
            assert filter.analysis[0].mean == pytest.approx(frame.mean())
        filter.set(f"gaussian.sigma={sigma}")
    filter.close()
    assert filter._repeats.call is None and np.array_equal(plain(filter(tensor(frame))), sluice.Filter(filter.chain)(frame))


def test_subclasses_and_other_arrays_are_looked_at(tensor):
    frame, filter = noise(30, 40), sluice.Filter("invert")
    made = tensor(frame)
    for turn in range(3):
        filter(made, out=tensor(np.zeros_like(frame)))
        assert np.array_equal(filter(frame), 255 - frame)  # NumPy's
        out = np.zeros_like(frame)
        assert filter(made, out=out) is out and np.array_equal(out, 255 - frame)
    if tensor is Tensor:
        told = Tensor.told
        other = type("Other", (Tensor,), {})
        for turn in range(3):
            assert np.array_equal(plain(filter(other(frame))), 255 - frame)
        assert Tensor.told == told


def test_a_frame_under_way_is_no_call(tensor):
    frame, filter = noise(30, 40), sluice.Filter("invert")
    for turn in range(3):
        filter(tensor(frame), out=tensor(np.zeros_like(frame)))
        filter.submit(tensor(frame))
        with pytest.raises(sluice.UsageError, match="under way"):
            filter(tensor(frame), out=tensor(np.zeros_like(frame)))
        assert np.array_equal(plain(filter.receive().frame), 255 - frame)


# ---- types that cannot tell ----


@pytest.mark.parametrize("api, name", [
    (_Api(major=2), b"dlpack_exchange_api"), (_Api(major=1, stream=1), b"dlpack_exchange_api"), (API, b"another")],
    ids=["version", "no function", "name"])
def test_other_apis_are_not_used(tensor, monkeypatch, api, name):
    if tensor is not Tensor:
        pytest.skip("others' ways are what they are")
    monkeypatch.setattr(Tensor, "__dlpack_c_exchange_api__", new_capsule(ctypes.addressof(api), name, None))
    frame, filter, told = noise(30, 40), sluice.Filter("invert"), Tensor.told
    for turn in range(4):
        assert np.array_equal(plain(filter(tensor(frame))), 255 - frame)
    assert filter._repeats.call is None and Tensor.told == told


def test_what_does_not_tell_is_looked_at(tensor):
    if tensor is not Tensor:
        pytest.skip("they always tell")
    filter = sluice.Filter("invert")
    for turn in range(4):
        frame = noise(30, 40, seed=turn)
        made, silent = tensor(frame), tensor(frame)
        silent.tells = False
        for source in made, made, silent:
            looks = Tensor.looks
            assert np.array_equal(plain(filter(source, out=tensor(np.zeros_like(frame)))), 255 - frame)
            assert turn == 0 or (Tensor.looks > looks) == (source is silent)


READ_ONLY = noise(30, 40)
READ_ONLY.flags.writeable = False


def test_buffers_of_other_samples_are_looked_at():
    """Some that have buffers are no frames, and some frames have other ones than NumPy's usual arrays."""
    frame, filter, out = noise(30, 40, dtype="u2"), sluice.Filter("invert"), np.zeros((30, 40), "u2")
    for turn in range(3):
        assert np.array_equal(filter(frame, out=out), 65535 - frame) and (filter._repeats.call is None) == (turn == 0)
        for other in (frame.view("i2"), frame.astype(">u2"), frame.view("S2"), frame.astype("f2")):
            with pytest.raises(sluice.UsageError):
                filter(other, out=out)
        with pytest.raises(sluice.UsageError):
            filter(frame, out=out.view("i2"))
    assert np.array_equal(filter(READ_ONLY), 255 - READ_ONLY) and np.array_equal(filter(READ_ONLY), 255 - READ_ONLY)
    filter(READ_ONLY.copy(), out=READ_ONLY.copy()), filter(READ_ONLY.copy(), out=READ_ONLY.copy())
    for turn in range(2):
        with pytest.raises(sluice.UsageError, match="may not be written"):
            filter(READ_ONLY.copy(), out=READ_ONLY)
    odd = np.zeros(2 * 30 * 40 + 1, "u1")[1:].view("u2").reshape(30, 40)  # at no multiple of its samples
    odd[:] = frame
    for turn in range(3):
        assert np.array_equal(filter(odd), 65535 - frame)


def test_a_buffer_is_let_go():
    """An array may be resized again when the call is over, and so it may when the call was refused."""
    frame, filter = noise(30, 40), sluice.Filter("invert")
    out = np.zeros_like(frame)
    for turn in range(3):
        filter(frame, out=out)
    assert filter._repeats.call is not None
    small = np.zeros((29, 40), np.uint8)
    with pytest.raises(sluice.UsageError):
        filter(frame, out=small)
    for array in out, small:
        array.resize((10, 40), refcheck=False)
    assert np.array_equal(filter(frame), 255 - frame)


def test_several_threads(tensor):
    """Each with a filter of its own, and all with one: their calls wait for each other."""
    shared, right = sluice.Filter(CHAIN), []

    def work(number):
        own, frame = sluice.Filter(CHAIN), noise(30, 40, seed=number)
        wanted = sluice.Filter(CHAIN)(frame)
        for turn in range(200):
            for filter in (own, shared):
                out = tensor(np.zeros_like(frame))
                assert filter(tensor(frame), out=out) is out and np.array_equal(plain(out), wanted)
        right.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(right) == [0, 1, 2, 3]


# ---- what a signal's handler does meanwhile ----


class Interrupted(Exception):
    """A handler's."""


def test_an_exception_of_a_handler_is_raised():
    """And what it interrupted has happened once: a frame that is inverted in place is not inverted back."""
    filter, frame = sluice.Filter("invert"), noise(1500, 2000)
    for turn in range(3):
        filter(frame, out=frame)

    def interrupt(number, stack):
        raise Interrupted

    was = signal.signal(signal.SIGALRM, interrupt)
    raised = 0
    try:
        for turn in range(20):
            before = frame.copy()
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0001)
                filter(frame, out=frame)
                while True:
                    pass
            except Interrupted:
                raised += 1
            assert np.array_equal(frame, before) or np.array_equal(frame, 255 - before)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, was)
    assert raised == 20


CHANGES = {"chain": lambda filter: setattr(filter, "chain", "gray,invert"), "close": lambda filter: filter.close(),
           "set": lambda filter: filter.set("gaussian.sigma=5")}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("calls", [1, 2, 3])
@pytest.mark.parametrize("batch", [False, True], ids=["call", "batch"])
def test_a_change_during_a_call_stays(tensor, monkeypatch, change, calls, batch):
    """By a handler or a finalizer, which come between any two lines: here within the call of the library."""
    filter, frames = sluice.Filter("gaussian=2"), noise(4, 30, 40, 3)
    call = (lambda: filter.batch(tensor(frames))) if batch else (lambda: filter(tensor(frames[0])))
    for turn in range(calls - 1):
        call()

    def changing(how):
        def run(self, *arguments):
            result = how(self, *arguments)
            CHANGES[change](filter)
            return result
        return run

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "run", changing(Engine.run))
        patch.setattr(Objects, "filtered", changing(Objects.filtered))
        call()
    chain = {"chain": "gray,invert", "close": "gaussian=sigma=2", "set": "gaussian=sigma=5"}[change]
    assert filter.chain == chain
    for turn in range(3):
        wanted = [sluice.Filter(chain)(frame) for frame in frames]
        assert np.array_equal(plain(call()), np.stack(wanted) if batch else wanted[0])


def test_the_end_of_the_interpreter(tmp_path):
    """Functions that a cycle keeps go after the globals of the package: their method's memory has to be there."""
    program = tmp_path / "end.py"
    program.write_text("""
import numpy as np, sluice
f = sluice.Filter("invert"); a = np.zeros((8, 8), np.uint8)
for _ in range(3): f(a)
assert f._repeats.call is not None
class N: pass
n = N(); n.f = f; n.me = n
def g(): return f
""")
    env = {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "255", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
           "PYTHONPATH": os.pathsep.join(sys.path)}
    for attempt in range(12):  # one in three finds what is missing
        done = subprocess.run([sys.executable, program], env={**os.environ, **env}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
