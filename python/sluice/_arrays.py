"""Arrays of every kind as addresses: NumPy, torch, CuPy, and whatever speaks DLPack or the array interfaces."""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from functools import partial
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from ._cuda import DEFAULT_STREAM, Lender, device_of, lender_of, let_wait
from ._known import finder_of
from .errors import UsageError

NUMPY, TORCH, CUPY, OTHER = "numpy", "torch", "cupy", "other"


class View(NamedTuple):
    """Where the samples of one plane lie. It owns nothing; `keep` holds what does."""

    data: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]  # in bytes
    bytes: int  # of a sample
    writable: bool
    device: Optional[int]  # the GPU; None: host memory
    keep: Any
    lender: Optional[Lender] = None  # who reuses the memory; None: who has seen the last of `keep`


# ---- DLPack: github.com/dmlc/dlpack, include/dlpack/dlpack.h ----


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", ctypes.POINTER(c_int64)), ("strides", ctypes.POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p),
                ("deleter", c_void_p), ("flags", c_uint64), ("tensor", _Tensor)]


_READ_ONLY, _COPIED = 1, 2
_UNSIGNED = 1
_HOSTS, _CUDA, _MANAGED = (1, 3), 2, 13  # 3: pinned by CUDA

_api = ctypes.pythonapi
_valid, _pointer = _api.PyCapsule_IsValid, _api.PyCapsule_GetPointer
_valid.argtypes = _pointer.argtypes = [ctypes.py_object, c_char_p]
_valid.restype, _pointer.restype = ctypes.c_int, c_void_p


def _capsule(array: Any, arguments: Dict[str, Any]) -> Any:
    """What array.__dlpack__() gives, of the newest version that it knows."""
    try:
        return array.__dlpack__(max_version=(1, 0), **arguments)
    except TypeError:  # of before 1.0
        return array.__dlpack__(**arguments)


def _tensor(capsule: Any) -> Tuple[_Tensor, int]:
    """A capsule's tensor and flags. The capsule stays its owner: it is not marked as used."""
    if _valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise UsageError(f"DLPack of version {versioned.major}.{versioned.minor} is not known")
        return versioned.tensor, versioned.flags
    return _Tensor.from_address(_pointer(capsule, b"dltensor")), 0


def _from_dlpack(array: Any, stream: Optional[int]) -> View:
    where, number = (int(part) for part in array.__dlpack_device__())
    if where not in (*_HOSTS, _CUDA, _MANAGED):
        raise UsageError(f"{name_of(array)} lies in memory of DLPack's device {where}, which is neither "
                         "the host nor a CUDA GPU: move it there")
    on_gpu, lends = where not in _HOSTS, False
    stream = stream or DEFAULT_STREAM
    try:
        try:
            capsule = _capsule(array, {"stream": stream} if on_gpu else {})
        except NotImplementedError:  # PyAV makes no stream wait: what it decoded is on the default one
            capsule, lends = _capsule(array, {"stream": None}), True
    except (BufferError, RuntimeError, AttributeError) as problem:
        raise UsageError(f"{name_of(array)} gives no DLPack tensor: {problem}") from problem
    tensor, flags = _tensor(capsule)
    if tensor.code != _UNSIGNED or tensor.lanes != 1 or tensor.bits not in (8, 16):
        raise UsageError(f"{name_of(array)} has other samples than uint8 and uint16: convert it")
    size = tensor.bits // 8
    shape = tuple(tensor.shape[: tensor.ndim])
    steps = tensor.strides[: tensor.ndim] if tensor.strides else None
    strides = tuple(step * size for step in steps) if steps else packed(shape, size)
    data = (tensor.data or 0) + tensor.byte_offset
    lender = lender_of(data, number) if lends else None
    if lender is not None:
        lender.lend(stream)
    return View(data, shape, strides, size, not flags & (_READ_ONLY | _COPIED), number if on_gpu else None,
                (array, capsule), lender)


# ---- array interfaces: numpy.org/doc/stable/reference/arrays.interface.html, and Numba's for CUDA ----

_SIZES = {"|u1": 1, "<u1": 1, "<u2": 2}


def _from_interface(array: Any, interface: Dict[str, Any], device: Optional[int]) -> View:
    data, shape = interface.get("data"), interface["shape"]
    size = _SIZES.get(interface["typestr"])
    if size is None:
        raise UsageError(f"{name_of(array)} has samples of type {interface['typestr']}: sluice filters uint8 "
                         "and uint16, convert it")
    if not isinstance(data, tuple):  # a picture of PIL
        return view_of(_numpy().asarray(array), None)
    strides = interface.get("strides") or packed(shape, size)
    return View(data[0] or 0, shape, strides, size, not data[1], device, array)


def _from_cuda_interface(array: Any, interface: Dict[str, Any], stream: Optional[int]) -> View:
    """`stream` is made to wait for the one that the producer names, if it names one."""
    device = device_of(interface["data"][0] or 0)
    view = _from_interface(array, interface, device)
    producer = interface.get("stream")
    if stream is not None and producer is not None:
        ours, theirs = stream or DEFAULT_STREAM, producer or DEFAULT_STREAM
        if ours != theirs:
            let_wait(ours, theirs, device)
    return view


def packed(shape: Tuple[int, ...], size: int) -> Tuple[int, ...]:
    """Strides without gaps."""
    strides = []
    for length in reversed(shape):
        strides.append(size)
        size *= length
    return tuple(reversed(strides))


# ---- kinds ----


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as problem:
        raise UsageError("results of this kind are NumPy arrays: install numpy") from problem
    return numpy


def name_of(array: Any) -> str:
    return f"a frame of type {type(array).__module__}.{type(array).__qualname__}"


def kind_of(array: Any) -> str:
    """Whose array it is. What is not imported has made none."""
    for kind, name in ((NUMPY, "ndarray"), (TORCH, "Tensor"), (CUPY, "ndarray")):
        module = sys.modules.get(kind)
        if module is not None and isinstance(array, getattr(module, name, ())):
            return kind
    return OTHER


def view_of(array: Any, stream: Optional[int]) -> View:
    """Where an array lies. On a GPU `stream` waits for what its producer says makes it."""
    host = getattr(array, "__array_interface__", None)
    if isinstance(host, dict):
        return _from_interface(array, host, None)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(array, stream)
    device = getattr(array, "__cuda_array_interface__", None)
    if isinstance(device, dict):
        return _from_cuda_interface(array, device, stream)
    raise UsageError(f"{name_of(array)} is no array: wanted is one with __dlpack__, __array_interface__ or "
                     "__cuda_array_interface__, or a tuple of them, a plane each")


def stream_of(array: Any, stream: Any) -> int:
    """The caller's CUDA stream as a number: the one that was given, or the current one of the array's library."""
    if stream is not None:
        return _handle(stream)
    finder = finder_of(array)
    if finder is not None:
        return finder.stream(array)
    kind = kind_of(array)
    if kind == TORCH and array.is_cuda:
        return int(sys.modules["torch"].cuda.current_stream(array.device).cuda_stream)
    if kind == CUPY:
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    interface = None if hasattr(array, "__dlpack__") else getattr(array, "__cuda_array_interface__", None)
    return int((interface or {}).get("stream") or 0)


def stream_of_results(device: int) -> int:
    """The current stream of what makes results for arrays of other kinds in that GPU's memory, see maker()."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and cupy is None:
        return int(torch.cuda.current_stream(device).cuda_stream)
    if cupy is not None:
        with cupy.cuda.Device(device):
            return int(cupy.cuda.get_current_stream().ptr)
    return 0


def _handle(stream: Any) -> int:
    for member in ("cuda_stream", "ptr", "handle"):  # torch, CuPy, CUDA Python
        if hasattr(stream, member):
            return int(getattr(stream, member))
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    return int(stream)


def maker(like: Any, device: Optional[int], shape: Tuple[int, ...], size: int) -> Callable[[], Any]:
    """What makes new arrays of the kind and in the memory of `like`."""
    kind = kind_of(like)
    dtype = "uint8" if size == 1 else "uint16"
    if kind == TORCH:
        return _torch_maker(like.device, shape, dtype)
    if device is None:
        return partial(_numpy().empty, shape, _numpy().dtype(dtype))
    if "cupy" in sys.modules and (kind == CUPY or "torch" not in sys.modules):
        return partial(_cupy_empty, device, shape, dtype)
    if "torch" in sys.modules:
        return _torch_maker(f"cuda:{device}", shape, dtype)
    raise UsageError(f"results of {name_of(like)} in a GPU's memory need out=, or torch or CuPy imported")


def as_array(buffer: Any, shape: Tuple[int, ...], size: int) -> Any:
    """A NumPy array in a buffer, which it keeps."""
    return _numpy().frombuffer(buffer, f"u{size}").reshape(shape)


def _cupy_empty(device: int, shape: Tuple[int, ...], dtype: str) -> Any:
    with sys.modules["cupy"].cuda.Device(device):
        return sys.modules["cupy"].empty(shape, dtype)


def _torch_maker(device: Any, shape: Tuple[int, ...], dtype: str) -> Callable[[], Any]:
    torch = sys.modules["torch"]
    if not hasattr(torch, dtype):
        raise UsageError(f"this version of torch has no {dtype}: give out=, or a NumPy array")
    return partial(torch.empty, shape, dtype=getattr(torch, dtype), device=device)


def without_gaps(array: Any) -> Any:
    """A copy whose rows have no gaps between samples."""
    kind = kind_of(array)
    if kind == TORCH:
        return array.contiguous() if not array.is_contiguous() else array.clone()
    if kind == CUPY:
        return array.copy(order="C")
    if getattr(array, "__array_interface__", None) is not None:
        return _numpy().array(array, order="C")
    raise UsageError(f"{name_of(array)} has gaps between samples: give one whose rows have none")
