"""Streams that the CUDA array interface names, with a driver that is none: a library that notes what it is asked."""

import ctypes
import shutil

import numpy as np
import pytest

import sluice
import sluice.filter
import tools
from conftest import noise
from sluice import _cuda
from test_known import OnHost

OURS, THEIRS = 0x7F0123456780, 0x7F0123456790
DRIVER = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static char told[1000];
static int context, event, fails_in, foreign;
#define TELL(...) (snprintf(told + strlen(told), sizeof told - strlen(told), __VA_ARGS__), 0)
char *fake_told(void) { return told; }
void fake_begin(int fails) { told[0] = 0; fails_in = fails; }
int cuInit(unsigned flags) { return flags != 0; }
void fake_lender(int is_foreign) { foreign = is_foreign; }
int cuPointerGetAttribute(void *value, int what, uint64_t at)
{
    if (what == 1)
        *(void **)value = foreign ? &foreign : &context;
    else
        *(int *)value = 3;
    return (what == 1 || what == 9) && at ? 0 : 1;
}
int cuDeviceGet(int *device, int number) { *device = number + 40; return 0; }
int cuDevicePrimaryCtxRetain(void **to, int device) { *to = &context; return TELL("retain %d\n", device); }
int cuDevicePrimaryCtxRelease_v2(int device) { return TELL("release %d\n", device); }
int cuCtxPushCurrent_v2(void *which) { return TELL("push %d\n", which == &context); }
int cuCtxPopCurrent_v2(void **which) { *which = &context; return TELL("pop\n"); }
int cuEventCreate(void **to, unsigned flags) { *to = &event; return TELL("create %u\n", flags); }
int cuEventRecord(void *which, void *stream)
{
    return fails_in ? fails_in : TELL("record %d on %p\n", which == &event, stream);
}
int cuStreamWaitEvent(void *stream, void *which, unsigned flags)
{
    return flags ? 1 : TELL("%p waits for %d\n", stream, which == &event);
}
int cuEventDestroy_v2(void *which) { return TELL("destroy %d\n", which == &event); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(DRIVER)
    done = tools.execute(["cc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "driver.c"])
    assert done.code == 0, done.stderr
    return folder / "libcuda.so.1"


@pytest.fixture
def driver(library, monkeypatch):
    """The driver, and an engine that takes frames of a GPU's memory from the host's."""
    monkeypatch.setattr(_cuda, "DRIVER", str(library))
    monkeypatch.setattr(sluice.filter, "Engine", OnHost)
    _cuda._driver.cache_clear()
    fake = ctypes.CDLL(str(library))
    fake.fake_told.restype = ctypes.c_char_p
    fake.fake_begin(0)
    fake.fake_lender(0)
    yield fake
    _cuda._driver.cache_clear()


class OnGpu:
    def __init__(self, array, *stream):
        self.array = array
        self.__cuda_array_interface__ = {"data": (array.ctypes.data, False), "shape": array.shape, "strides": None,
                                         "typestr": "|u1", "version": 3, **{"stream": s for s in stream}}


class Lent:
    """Memory as PyAV's decoder lends it: DLPack that makes no stream wait."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return 2, 3

    def __dlpack__(self, stream=None):
        if stream is not None:
            raise NotImplementedError("no stream")
        return self.array.__dlpack__()


def told(driver):
    """What the driver was asked to do."""
    return driver.fake_told().decode().splitlines()


def waits(ours, theirs):
    return ["retain 43", "push 1", "create 2", f"record 1 on {theirs:#x}", f"{ours:#x} waits for 1", "destroy 1", "pop",
            "release 43"]


# stream= of the call, those of the frame's and the target's interface, on which it is filtered, who waits for whom
STREAMS = {
    "another one": (OURS, [THEIRS], [], OURS, waits(OURS, THEIRS)),
    "another one of the target": (OURS, [], [THEIRS], OURS, waits(OURS, THEIRS)),
    "other ones of both": (OURS, [THEIRS], [THEIRS + 16], OURS, waits(OURS, THEIRS) + waits(OURS, THEIRS + 16)),
    "the same": (OURS, [OURS], [OURS], OURS, []),
    "none": (OURS, [None], [], OURS, []),
    "not given": (None, [THEIRS], [], THEIRS, []),
    "not given, another target": (None, [THEIRS], [OURS], THEIRS, waits(THEIRS, OURS)),
    "the default ones": (0, [1], [1], 0, []),
    "the legacy default one": (OURS, [1], [], OURS, waits(OURS, 1)),
    "the default one of the thread": (0, [2], [], 0, waits(1, 2)),
}


@pytest.mark.parametrize("case", STREAMS)
def test_streams(driver, case):
    stream, of_frame, of_target, on, wanted = STREAMS[case]
    frame, out = noise(20, 30), np.zeros((20, 30), np.uint8)
    filter = sluice.Filter("invert")
    for turn in range(2):
        driver.fake_begin(0)
        filter(OnGpu(frame, *of_frame), out=OnGpu(out, *of_target), stream=stream)
        assert told(driver) == wanted
    assert np.array_equal(out, 255 - frame)
    assert filter._newest.streams == [on] * 2 and filter._newest.key.device == 3


ASKS = ["retain 43", "push 1", "pop", "release 43"] # which context is the primary one
LENDS = {
    "on another stream": (0, OURS, [*ASKS, *waits(OURS, 1)], waits(1, OURS)),
    "on the default one": (0, 0, ASKS, []),
    "in a context of its own": (
        1, OURS, [*ASKS, "push 0", "create 2", "record 1 on 0x1", "retain 43", "push 1", f"{OURS:#x} waits for 1",
                  "pop", "release 43", "destroy 1", "pop"],
        ["retain 43", "push 1", "create 2", f"record 1 on {OURS:#x}", "push 0", "0x1 waits for 1", "pop", "destroy 1",
         "pop", "release 43"]),
    "in a context of its own, on the default one": (
        1, 0, [*ASKS, "push 0", "create 2", "record 1 on 0x1", "retain 43", "push 1", "0x1 waits for 1", "pop",
               "release 43", "destroy 1", "pop"],
        ["retain 43", "push 1", "create 2", "record 1 on 0x1", "push 0", "0x1 waits for 1", "pop", "destroy 1", "pop",
         "release 43"]),
}


@pytest.mark.parametrize("case", LENDS)
def test_memory_that_a_decoder_lends(driver, case):
    foreign, stream, lends, takes_back = LENDS[case]
    driver.fake_lender(foreign)
    frame, out = noise(20, 30), np.zeros((20, 30), np.uint8)
    filter = sluice.Filter("invert")
    for _ in range(2):
        driver.fake_begin(0)
        filter(Lent(frame), out=OnGpu(out), stream=stream)
        assert told(driver) == lends + takes_back
    driver.fake_begin(0)
    filter.submit(Lent(frame), OnGpu(out), stream=stream)
    assert told(driver) == lends
    driver.fake_begin(0)
    filter.receive()
    assert told(driver) == takes_back
    assert np.array_equal(out, 255 - frame)


def test_planes_of_several_streams(driver):
    planes = [noise(20, 30), noise(10, 15), noise(10, 15)]
    frame = [OnGpu(plane, THEIRS + 16 * k) for k, plane in enumerate(planes)]
    sluice.Filter("invert", pixfmt="yuv420p")(frame, out=frame)
    assert told(driver) == [*waits(THEIRS, THEIRS + 16), *waits(THEIRS, THEIRS + 32)] * 2


def test_a_driver_that_fails(driver):
    frame = noise(20, 30)
    filter = sluice.Filter("invert")
    driver.fake_begin(700)
    with pytest.raises(sluice.DeviceError, match=r"cuEventRecord\(\) with status 700"):
        filter(OnGpu(frame, THEIRS), out=OnGpu(frame), stream=OURS)
    assert told(driver) == ["retain 43", "push 1", "create 2", "destroy 1", "pop", "release 43"]


def test_no_driver(monkeypatch, driver):
    monkeypatch.setattr(_cuda, "DRIVER", "/nowhere/libcuda.so.1")
    _cuda._driver.cache_clear()
    with pytest.raises(sluice.DeviceError, match="there is no CUDA driver: /nowhere/libcuda.so.1"):
        sluice.Filter("invert")(OnGpu(noise(20, 30), THEIRS), out=OnGpu(noise(20, 30)), stream=OURS)
