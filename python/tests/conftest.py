"""Fixtures of the package's own tests, which tests/test_python.py runs with the installed wheel."""

import pathlib

import numpy as np
import pytest

import sluice


def pytest_report_header():
    return [f"{sluice.version()}, package at {pathlib.Path(sluice.__file__).parent}"]


class Producer:
    """What speaks DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Interface:
    """What has an array interface and nothing else."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


@pytest.fixture(params=["numpy", "dlpack", "interface", "torch"])
def kind(request):
    """A function from NumPy's arrays to another kind, and the type of its results."""
    if request.param != "torch":
        return {"numpy": np.asarray, "dlpack": Producer, "interface": Interface}[request.param], np.ndarray
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.from_numpy, torch.Tensor


def noise(*shape, dtype="u1", seed=1):
    levels = 256 if dtype == "u1" else 65536
    return np.random.default_rng(seed).integers(0, levels, shape).astype(dtype)
