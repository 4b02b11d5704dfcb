"""What is linked into what was built, as an SPDX 2.3 document (JSON) on standard output.

    sbom.py BUILD VERSION [NVCC]      make sbom

The programs and libraries of BUILD, with their sums; every library that they name as needed, and those that
they open by name where they are there, with the Debian package, version and licence that dpkg knows; CUDA's
runtime, where it is linked statically; the compilers. SOURCE_DATE_EPOCH is the date, if it is set.
"""
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

PRODUCTS = ("sluice", "libsluice.so.1", "libsluice-filter.so.1", "libsluice.a", "libsluice-filter.a")
OPENED = {"fftw3": "large kernels", "avutil": "large kernels without FFTW", "SDL2-2.0": "windows",
          "avdevice": "cameras and screens"}
# Debian's short names, and those of SPDX.
LICENCES = {"LGPL-2.1+": "LGPL-2.1-or-later", "LGPL-2.1": "LGPL-2.1-only", "LGPL-2+": "LGPL-2.0-or-later",
            "GPL-2+": "GPL-2.0-or-later", "GPL-3+": "GPL-3.0-or-later", "LGPL-3+": "LGPL-3.0-or-later",
            "Expat": "MIT", "MIT": "MIT", "BSD-2-clause": "BSD-2-Clause", "BSD-3-clause": "BSD-3-Clause",
            "Zlib": "Zlib", "zlib": "Zlib", "zlib/libpng": "Zlib", "Apache-2.0": "Apache-2.0"}
CUDA_TERMS = "LicenseRef-NVIDIA-CUDA-EULA"


def output_of(*command):
    """What it prints; "" where the program is not there."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
                              env={**os.environ, "LC_ALL": "C"}).stdout
    except OSError:
        return ""


def needed(file):
    """{soname: path} of what the file itself asks the loader for."""
    names = re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-W", "-d", file))
    told = output_of("ldd", file)
    paths = dict(re.findall(r"(\S+) => (/\S+)", told))
    paths |= {path.rsplit("/", 1)[1]: path for path in re.findall(r"^\s+(/\S+) \(", told, re.M)} # the loader itself
    return {name: paths.get(name, name) for name in names}


def opened_libraries():
    """{soname: (path, purpose)} of what is opened by name, where it is there."""
    known = output_of("/sbin/ldconfig", "-p")
    found = {name: re.search(rf"(lib{re.escape(name)}\.so\.\d+) .*=> (\S+)", known) for name in OPENED}
    return {row[1]: (row[2], OPENED[name]) for name, row in found.items() if row}


def names_of(path):
    """The names by which dpkg may know a file, where /lib is a link to /usr/lib and where it is not."""
    real = os.path.realpath(path)
    return real, real.removeprefix("/usr"), path, "/usr" + real


def owners_of(paths):
    """{path: the package that it is of}, without those that dpkg does not know."""
    told = output_of("dpkg", "-S", *sorted({name for path in paths for name in names_of(path)}))
    owners = {name: owner for owner, name in re.findall(r"^([\w.+-]+)[^ ]*: (/.*)$", told, re.M)}
    return {path: owners[name] for path in paths for name in names_of(path) if name in owners}


def licence_of(package):
    """(SPDX's expression, Debian's words) by the first paragraph of its copyright file."""
    file = Path("/usr/share/doc") / package / "copyright"
    text = file.read_text(errors="replace") if file.exists() else ""
    words = re.search(r"^Files: *\*.*?^License: *(.*?)$", text, re.M | re.S)
    return (LICENCES.get(words[1].strip(), "NOASSERTION"), words[1].strip()) if words else ("NOASSERTION", "")


def configured_licence(path):
    """FFmpeg's libraries say under which licence they were configured; None: others do not."""
    said = re.search(rb"lib\w+ license: (L?GPL) version (\S+) or later", Path(path).read_bytes())
    return said and f"{said[1].decode()}-{said[2].decode() if b'.' in said[2] else said[2].decode() + '.0'}-or-later"


def reference(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def package_row(name, version, licence="NOASSERTION", **more):
    return {"SPDXID": reference("Package-" + name), "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
            "licenseDeclared": licence, "copyrightText": "NOASSERTION", **more}


def debian_row(package, vendor):
    fields = output_of("dpkg-query", "-W", "-f", "${Version}\n${Architecture}\n${source:Package}\n${Homepage}\n", package)
    version, arch, source, homepage = (fields.splitlines() + [""] * 4)[:4]
    licence, words = licence_of(package)
    comment = f"Debian's copyright file says {words}; " if words else ""
    purl = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": f"pkg:deb/{vendor}/{package}@{version.replace(':', '%3A')}?arch={arch}"}
    return package_row(package, version, licence, licenseComments=f"{comment}source package {source}",
                       externalRefs=[purl], **({"homepage": homepage} if homepage else {}))


def file_row(file):
    data = file.read_bytes()
    sums = [{"algorithm": name.upper(), "checksumValue": hashlib.new(name, data).hexdigest()}
            for name in ("sha1", "sha256")]
    return {"SPDXID": reference("File-" + file.name), "fileName": "./" + file.name, "checksums": sums,
            "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION", "fileTypes": ["BINARY"]}


def vendor_name():
    found = re.search(r"^ID=\"?(\w+)", Path("/etc/os-release").read_text(), re.M)
    return found[1] if found else "linux"


class Document:
    def __init__(self, build, version, nvcc):
        self.build, self.version, self.nvcc, self.vendor = Path(build), version, nvcc, vendor_name()
        self.packages, self.relations = {}, []
        self.files = [file_row(self.build / name) for name in PRODUCTS if (self.build / name).exists()]

    def relate(self, one, kind, other, comment=None):
        row = {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
        if comment:
            row["comment"] = comment
        if row not in self.relations:
            self.relations.append(row)

    def library(self, soname, path):
        """The identifier of the package that a library is of."""
        name = self.owners.get(path)
        row = debian_row(name, self.vendor) if name else package_row(soname, "unknown")
        row["licenseConcluded"] = configured_licence(path) or "NOASSERTION"
        return self.packages.setdefault(row["name"], row)["SPDXID"]

    def add_libraries(self):
        linked = {name: needed(self.build / name) for name in PRODUCTS
                  if (self.build / name).exists() and not name.endswith(".a")}
        opened = opened_libraries()
        self.owners = owners_of({*(path for paths in linked.values() for path in paths.values()),
                                 *(path for path, _ in opened.values())})
        for name, paths in linked.items():
            for soname, path in paths.items():
                self.relate(reference("File-" + name), "DYNAMIC_LINK", self.library(soname, path), soname)
        for soname, (path, purpose) in opened.items():
            self.relate(self.library(soname, path), "OPTIONAL_DEPENDENCY_OF", self.ours["SPDXID"],
                        f"{soname}, opened at run time for {purpose}")

    def add_tool(self, name, version, licence="NOASSERTION"):
        row = self.packages.setdefault(name, package_row(name, version, licence))
        self.relate(row["SPDXID"], "BUILD_TOOL_OF", self.ours["SPDXID"])

    def add_compilers(self):
        comment = output_of("readelf", "-W", "-p", ".comment", self.build / "sluice")
        for line in sorted(set(re.findall(r"\] +(\w+: .*)", comment))):
            compiler, _, words = line.partition(": ")
            self.add_tool(compiler, words.strip(), "GPL-3.0-or-later WITH GCC-exception-3.1" if compiler == "GCC"
                          else "NOASSERTION")
        if not (self.build / "kernels" / "executor" / "cuda.o").exists():
            return
        release = re.search(r"release .*, V([\d.]+)", output_of(self.nvcc or "nvcc", "--version"))
        version = release[1] if release else "unknown"
        self.add_tool("nvcc", version, CUDA_TERMS)
        runtime = self.packages.setdefault("cudart_static", package_row("cudart_static", version, CUDA_TERMS))
        for name in PRODUCTS:
            if (self.build / name).exists() and not name.endswith(".a"):
                self.relate(reference("File-" + name), "STATIC_LINK", runtime["SPDXID"])

    def make(self):
        sums = sorted(row["checksums"][0]["checksumValue"] for row in self.files)
        code = hashlib.sha1("".join(sums).encode()).hexdigest()
        self.ours = package_row("sluice", self.version, "BSD-2-Clause", filesAnalyzed=True,
                                packageVerificationCode={"packageVerificationCodeValue": code},
                                copyrightText="2026, the sluice authors")
        self.relate("SPDXRef-DOCUMENT", "DESCRIBES", self.ours["SPDXID"])
        for row in self.files:
            self.relate(self.ours["SPDXID"], "CONTAINS", row["SPDXID"])
        self.add_libraries()
        self.add_compilers()
        epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp())
        created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        document = {
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"sluice-{self.version}",
            "documentNamespace": f"https://sluice.example/spdx/sluice-{self.version}-{code}",
            "creationInfo": {"created": created, "creators": [f"Tool: sluice-sbom-{self.version}"]},
            "packages": [self.ours, *self.packages.values()], "files": self.files, "relationships": self.relations,
        }
        if "cudart_static" in self.packages:
            document["hasExtractedLicensingInfos"] = [{
                "licenseId": CUDA_TERMS, "name": "NVIDIA CUDA Toolkit End User License Agreement",
                "extractedText": "https://docs.nvidia.com/cuda/eula/; its attachment A lists the static runtime "
                                 "as distributable."}]
        return document


if __name__ == "__main__":
    json.dump(Document(*(sys.argv[1:] + [None])[:3]).make(), sys.stdout, indent=1)
    print()
