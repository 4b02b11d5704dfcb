"""Makes the wheel: the package, and libsluice-filter in it. `make wheel` runs this, and so does
`pip install ./python`, as a build backend (PEP 517). The same sources and library give the same bytes.

    python3 build_wheel.py FOLDER LIBRARY
"""
import base64
import hashlib
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent
LIBRARY = "libsluice-filter.so.1"


def version():
    return re.search(r"^VERSION *= *(\S+)", (TOP / "Makefile").read_text(), re.M)[1]


def stripped(library):
    """Its bytes without what debuggers want."""
    with tempfile.TemporaryDirectory() as folder:
        to = pathlib.Path(folder) / LIBRARY
        subprocess.run(["strip", "--strip-unneeded", "-o", to, library], check=True)
        return to.read_bytes()


def platform_tag(binary):
    """manylinux (PEP 600) of the newest version of glibc whose symbols the library needs."""
    needed = re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?=[.\0])", binary)
    major, minor = max((int(a), int(b)) for a, b in needed)
    return f"manylinux_{major}_{minor}_{platform.machine()}"


def metadata():
    return f"""Metadata-Version: 2.1
Name: sluice
Version: {version()}
Summary: Filter pictures and video exactly, at the speed of the hardware
License: BSD-2-Clause
License-File: LICENSE
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
Classifier: License :: OSI Approved :: BSD License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Multimedia :: Video
Classifier: Topic :: Scientific/Engineering :: Image Processing
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{(HERE / "README.md").read_text()}"""


def contents(library):
    """Each file's bytes by name, without RECORD, and the wheel's tag."""
    binary = stripped(library)
    tag = f"py3-none-{platform_tag(binary)}"
    info = f"sluice-{version()}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: sluice {version()}\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = {f"sluice/{file.name}": file.read_bytes()
             for file in (HERE / "sluice").iterdir() if file.suffix in (".py", ".typed")}
    files[f"sluice/{LIBRARY}"] = binary
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = wheel.encode()
    files[f"{info}/licenses/LICENSE"] = (TOP / "LICENSE").read_bytes()
    rows = [f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in sorted(files.items())]
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    return files, tag


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write_wheel(folder, library):
    """The wheel's name in the folder."""
    files, tag = contents(library)
    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))  # 1980: zip's first year
    name = f"sluice-{version()}-{tag}.whl"
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as to:
        for file in sorted(files, key=lambda file: (".dist-info/" in file, file.endswith("RECORD"), file)):
            entry = zipfile.ZipInfo(file, when[:6])
            entry.external_attr = (0o100755 if file.endswith(LIBRARY) else 0o100644) << 16
            entry.create_system, entry.compress_type = 3, zipfile.ZIP_DEFLATED
            to.writestr(entry, files[file], compresslevel=9)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """For pip, which asks for the library that `make` builds."""
    library = os.environ.get("SLUICE_FILTER_LIBRARY")
    if not library:
        build = os.environ.get("BUILD", "build")
        subprocess.run(["make", "-C", TOP, f"BUILD={build}", f"{build}/{LIBRARY}"], check=True, stdout=sys.stderr)
        library = TOP / build / LIBRARY
    return write_wheel(wheel_directory, library)


if __name__ == "__main__":
    print(pathlib.Path(sys.argv[1]) / write_wheel(sys.argv[1], sys.argv[2]))
