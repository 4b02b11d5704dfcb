"""DLPack as producers may give it, which NumPy does not: offsets, no strides, other memories, both versions."""

import ctypes

import numpy as np
import pytest

import sluice
import tools
from conftest import Producer, noise
from sluice._arrays import _Tensor, _Versioned

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class HandMade:
    """A tensor of DLPack, made member by member."""

    def __init__(self, array, versioned=False, flags=0, strides=True, offset=0, device=1, code=1, bits=None):
        self.array, self.asked = array, None
        count = array.ndim
        tensor = _Tensor(array.ctypes.data - offset, device, 0, count, code, bits or 8 * array.itemsize, 1,
                         (ctypes.c_int64 * count)(*array.shape), None, offset)
        if strides:
            tensor.strides = (ctypes.c_int64 * count)(*(step // array.itemsize for step in array.strides))
        self.versioned = versioned
        self.struct = _Versioned(1, 0, None, None, flags, tensor) if versioned else tensor

    def __dlpack__(self, **arguments):
        self.asked = arguments
        if not self.versioned and "max_version" in arguments:
            raise TypeError("max_version is not known")
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        return new_capsule(ctypes.addressof(self.struct), name, None)

    def __dlpack_device__(self):
        return (self.struct.tensor if self.versioned else self.struct).device_type, 0


@pytest.mark.parametrize("arguments", [{}, {"versioned": True}, {"offset": 64}, {"offset": 64, "versioned": True},
                                       {"strides": False}, {"device": 3}], ids=str)
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_capsules(arguments, dtype):
    frame, blur = noise(20, 30, 3, dtype=dtype), sluice.Filter("gaussian=2")
    made = HandMade(frame, **arguments)
    assert np.array_equal(blur(made), blur(frame))
    assert made.asked == ({"max_version": (1, 0)} if made.versioned else {})
    out = np.zeros_like(frame)
    blur(frame, out=HandMade(out, **arguments))
    assert np.array_equal(out, blur(frame))


def test_rows_apart():
    frame, blur = noise(20, 30)[::2, 3:20], sluice.Filter("gaussian=2")
    assert np.array_equal(blur(HandMade(frame)), blur(frame))


@pytest.mark.parametrize("arguments, words", [
    ({"code": 0}, "uint8 and uint16"), ({"code": 2, "bits": 32}, "uint8 and uint16"), ({"bits": 4}, "uint8"),
    ({"device": 4}, "neither the host nor a CUDA GPU")])
def test_refused_capsules(arguments, words):
    with pytest.raises(sluice.UsageError, match=words):
        sluice.Filter("invert")(HandMade(noise(20, 30), **arguments))


@pytest.mark.parametrize("flags", [1, 2])
def test_targets_that_are_read_only_or_copies(flags):
    frame = noise(20, 30)
    sluice.Filter("invert")(HandMade(frame, versioned=True, flags=flags))
    with pytest.raises(sluice.UsageError, match="may not be written"):
        sluice.Filter("invert")(frame, out=HandMade(frame, versioned=True, flags=flags))


def test_producers_that_refuse():
    frame = noise(20, 30)

    class Refusing(Producer):
        def __dlpack__(self, **arguments):
            raise BufferError("the tensor wants a gradient")

    with pytest.raises(sluice.UsageError, match="wants a gradient"):
        sluice.Filter("invert")(Refusing(frame))


class Torchlike:
    cuda_stream = 4096


class Cupylike:
    ptr = 4096


class Standard:
    def __cuda_stream__(self):
        return 0, 4096


@pytest.mark.parametrize("stream, number", [(None, 1), (0, 1), (2, 2), (4096, 4096), (Torchlike(), 4096),
                                            (Cupylike(), 4096), (Standard(), 4096)])
def test_producers_on_a_gpu_are_told_the_stream(stream, number):
    made = HandMade(noise(20, 30), device=2)
    if tools.has_cuda():
        pytest.skip("the address is none of the GPU's")
    with pytest.raises(sluice.DeviceError):
        sluice.Filter("invert")(made, stream=stream)
    assert made.asked["stream"] == number


def test_frames_and_targets_in_different_memories():
    frame = noise(20, 30)
    with pytest.raises(sluice.UsageError, match="another memory"):
        sluice.Filter("invert")(frame, out=HandMade(frame, device=2))
