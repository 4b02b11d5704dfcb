"""The Debian packages, as far as can be said without building them: tests/package.sh builds, installs and
purges them. And the container files."""

import fnmatch
import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import tools

ROOT = tools.ROOT
DEBIAN = ROOT / "debian"
MAKEFILE = (ROOT / "Makefile").read_text()
BUILD = Path(tools.SLUICE).resolve().parent
CUDA_BUILT = (BUILD / "kernels" / "executor" / "cuda.o").exists()
# The release that brought a node of symbols, and the package that a library is in.
RELEASES = {"SLUICE_1.0": "0.1.0", "SLUICE_1.1": "0.2.0", "SLUICE_FILTER_1.1": "0.2.0"}
LIBRARIES = {"libsluice1": "pipeline/sluice.map", "libsluice-filter1": "filter/sluice-filter.map"}
ESSENTIAL = {"gcc", "libc6-dev", "gzip"} # what build-essential and Debian have
RENAMED = {"pkg-config": "pkgconf"}


def paragraphs(file):
    """The fields of each paragraph of a control file; lists stay text."""
    for part in re.split(r"\n{2,}", file.read_text().strip()):
        yield {key: value.strip() for key, value in re.findall(r"^([\w-]+):((?:.*)(?:\n[ \t].*)*)", part, re.M)}


def names(field):
    """The packages of a dependency field, without versions, profiles and substitutions."""
    return {re.match(r"[\w.+-]+", part.strip())[0] for part in field.split(",")
            if part.strip() and not part.strip().startswith("$")}


SOURCE, *PACKAGES = paragraphs(DEBIAN / "control")
BY_NAME = {package["Package"]: package for package in PACKAGES}


def needs(variable):
    """The packages of a NEED_ row of the Makefile."""
    rows = re.search(rf"^{variable} = ((?:.*\\\n)*.*)", MAKEFILE, re.M)[1]
    return {RENAMED.get(name, name) for name in re.findall(r"\|([\w.+-]+)'", rows)}


def symbols_of(map_file):
    """(name, node) of a version script."""
    text = re.sub(r"#.*", "", (ROOT / map_file).read_text())
    for node, body in re.findall(r"(\w+\.\d+) \{(.*?)\}", text, re.S):
        for name in re.findall(r"\w+", body.partition("local:")[0].replace("global:", "")):
            yield name, node


def test_build_dependencies_are_those_of_the_makefile():
    wanted = needs("NEED_COMPILE") - ESSENTIAL
    there = names(SOURCE["Build-Depends"])
    assert wanted <= there, f"debian/control does not name {wanted - there}"
    known = set.union(*map(needs, re.findall(r"^(NEED_\w+) =", MAKEFILE, re.M)))
    assert {name for name in there - known if name.endswith("-dev")} == set(), "the Makefile does not ask for them"


def test_versions_are_the_same():
    version = re.search(r"^VERSION = (\S+)", MAKEFILE, re.M)[1]
    assert re.match(r"sluice \((\S+)\)", (DEBIAN / "changelog").read_text())[1] == version


@pytest.mark.parametrize("package", LIBRARIES)
def test_symbols_are_those_of_the_map(package):
    wanted = set()
    for name, node in symbols_of(LIBRARIES[package]):
        wanted |= {f"{name}@{node} {RELEASES[node]}", f"{node}@{node} {RELEASES[node]}"}
    head, *lines = (DEBIAN / f"{package}.symbols").read_text().splitlines()
    soname = head.split()[0]
    assert head == f"{soname} {package} #MINVER#"
    assert package == re.sub(r"\.so\.", "", soname) # libx.so.1 is in libx1
    assert {line.strip() for line in lines if not line.startswith("*")} == wanted


def test_every_soname_has_its_package():
    sonames = {f"lib{name}.so" for name in re.findall(r"\$\(BUILD\)/lib([\w-]+)\.so\.\$\(SOVERSION\)", MAKEFILE)}
    assert {file.read_text().split()[0].rpartition(".")[0] for file in DEBIAN.glob("*.symbols")} == sonames
    assert LIBRARIES.keys() == {file.stem for file in DEBIAN.glob("*.symbols")}


def test_licence_is_ours():
    text = " ".join((ROOT / "LICENSE").read_text().split("\n\n", 2)[2].split())
    there = " ".join(word for word in (DEBIAN / "copyright").read_text().split() if word != ".")
    assert text in there


def places():
    """What debian/rules tells `make install`."""
    rules = (DEBIAN / "rules").read_text().replace("\\\n", " ").replace("$(DEB_HOST_MULTIARCH)", "here-linux-gnu")
    return re.search(r"^PLACES = (.*)", rules, re.M)[1].split()


@pytest.mark.skipif(not (BUILD / "libsluice.so.1").exists() or not shutil.which("make"), reason="nothing is built")
def test_every_file_is_in_one_package(tmp_path):
    cuda = [] if CUDA_BUILT else ["CUDA=no"]
    told = tools.execute(["make", "-C", ROOT, *cuda, f"BUILD={BUILD}", "-o", "all", "install", f"DESTDIR={tmp_path}",
                          *places()])
    assert told.code == 0, told.stderr
    installed = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if not file.is_dir()}
    patterns = [(file.name, line.split()[0]) for file in [*DEBIAN.glob("*.install"), DEBIAN / "not-installed"]
                for line in file.read_text().splitlines() if line and "dist-info" not in line] # which rules make
    for name in sorted(installed):
        owners = {owner for owner, pattern in patterns
                  if fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, pattern + "/*")}
        assert len(owners) == 1, f"{name}: in {sorted(owners) or 'no package'}"
    hosts = {"frei0r-sluice.install": "frei0r/sluice.so", # built where their headers are
             "gstreamer1.0-sluice.install": "gstreamer/libgstsluice.so"}
    for owner, pattern in patterns:
        if owner in hosts and not (BUILD / "hosts" / hosts[owner]).exists():
            continue
        assert any(ROOT.glob(pattern)) or fnmatch.filter(installed, pattern) or \
            fnmatch.filter(installed, pattern + "/*"), f"{owner}: there is no {pattern}"


def test_descriptions_are_whole():
    assert {"sluice", "libsluice1", "libsluice-filter1", "libsluice-dev", "python3-sluice", "sluice-doc",
            "frei0r-sluice", "gstreamer1.0-sluice"} <= BY_NAME.keys()
    for package in PACKAGES:
        synopsis, *rest = package["Description"].split("\n")
        assert len(synopsis) <= 60 and not synopsis.endswith("."), synopsis
        assert len(rest) >= 3 and all(len(line) <= 80 for line in rest)
        assert "${misc:Depends}" in package["Depends"]


@pytest.mark.skipif(not shutil.which("dh"), reason="no debhelper")
def test_debhelper_understands_the_rules(tmp_path):
    tools.copy_sources(tmp_path, without=("tests", "docs", "media"))
    for target in ("build", "binary"):
        told = tools.execute(["dh", target, "--no-act"], cwd=tmp_path, env={"DEB_BUILD_OPTIONS": "nocheck"})
        assert told.code == 0, told.stderr
    told = tools.execute(["dpkg-source", "--print-format", tmp_path], env={"HOME": os.environ.get("HOME", "/")})
    assert told.text.strip() == "3.0 (native)", told


# ---- the list of what is linked ----


@pytest.fixture(scope="module")
def sbom():
    if not (BUILD / "libsluice.so.1").exists() or not shutil.which("readelf"):
        pytest.skip("nothing is built, or no binutils")
    told = tools.execute([sys.executable, ROOT / "packaging" / "sbom.py", BUILD, "1.2.3"],
                         env={"SOURCE_DATE_EPOCH": "86400"})
    assert told.code == 0, told.stderr
    return json.loads(told.text)


def test_sbom_has_what_spdx_wants(sbom):
    assert (sbom["spdxVersion"], sbom["dataLicense"], sbom["SPDXID"]) == ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT")
    assert sbom["creationInfo"]["created"] == "1970-01-02T00:00:00Z" and sbom["creationInfo"]["creators"]
    rows = sbom["packages"] + sbom["files"]
    names = [row["SPDXID"] for row in rows]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) for name in names)
    for row in sbom["packages"]:
        assert row["downloadLocation"] and row["versionInfo"] and {"licenseDeclared", "licenseConcluded"} <= row.keys()
    for row in sbom["relationships"]:
        assert {row["spdxElementId"], row["relatedSpdxElement"]} <= {*names, "SPDXRef-DOCUMENT"}
    licences = {row["licenseDeclared"] for row in sbom["packages"]}
    extracted = {row["licenseId"] for row in sbom.get("hasExtractedLicensingInfos", [])}
    assert {name for name in licences if name.startswith("LicenseRef")} == extracted


def test_sbom_names_every_needed_library(sbom):
    links = {(row["spdxElementId"], row.get("comment")) for row in sbom["relationships"]
             if row["relationshipType"] == "DYNAMIC_LINK"}
    for name in ("sluice", "libsluice.so.1", "libsluice-filter.so.1"):
        needed = re.findall(r"NEEDED.*\[(.*)\]", tools.execute(["readelf", "-d", BUILD / name]).text)
        assert needed and {(f"SPDXRef-File-{name}", soname) for soname in needed} <= links
    assert any(row["name"].startswith("libavcodec") or row["name"].startswith("libavcodec.so")
               for row in sbom["packages"])
    assert ("cudart_static" in {row["name"] for row in sbom["packages"]}) == CUDA_BUILT


def test_sbom_has_the_sums_of_the_files(sbom):
    for row in sbom["files"]:
        data = (BUILD / row["fileName"]).read_bytes()
        sums = {entry["algorithm"]: entry["checksumValue"] for entry in row["checksums"]}
        assert sums == {"SHA1": hashlib.sha1(data).hexdigest(), "SHA256": hashlib.sha256(data).hexdigest()}
    code = hashlib.sha1("".join(sorted(row["checksums"][0]["checksumValue"] for row in sbom["files"])).encode())
    ours = next(row for row in sbom["packages"] if row["name"] == "sluice")
    assert ours["packageVerificationCode"]["packageVerificationCodeValue"] == code.hexdigest()


# ---- containers ----


def instructions(file):
    """(instruction, words) of a Dockerfile, without comments, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", file.read_text(), flags=re.M).replace("\\\n", " ")
    for line in filter(str.strip, text.splitlines()):
        name, _, rest = line.partition(" ")
        yield name, rest.strip()


CONTAINERS = sorted((ROOT / "packaging").glob("Dockerfile*"))


@pytest.mark.parametrize("file", CONTAINERS, ids=lambda file: file.name)
def test_container_files_are_sound(file):
    rows = list(instructions(file))
    known = {"FROM", "ARG", "WORKDIR", "COPY", "RUN", "ENV", "USER", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    assert {name for name, _ in rows} <= known
    stages = [rest.split() for name, rest in rows if name == "FROM"]
    assert stages[-2][1:] == ["AS", "build"] and len(stages[-1]) == 1
    assert all(":" in stage[0] and not stage[0].endswith(":latest") for stage in stages)
    last = dict(rows[max(k for k, (name, _) in enumerate(rows) if name == "FROM"):])
    assert last["USER"].isdigit() and int(last["USER"]) > 0
    assert json.loads(last["ENTRYPOINT"]) == ["sluice"] and json.loads(last["CMD"])
    health = json.loads(last["HEALTHCHECK"].partition(" CMD ")[2])
    assert tools.execute(["bash", "-n", "-c", health[2]]).code == 0
    assert "-devel" not in stages[-1][0] and "COPY" not in last # only packages reach what is passed on


@pytest.mark.parametrize("file", CONTAINERS, ids=lambda file: file.name)
def test_packages_of_container_files_exist(file):
    wanted = {word for _, rest in instructions(file) for part in re.findall(r"apt-get install ([^&]*)", rest)
              for word in part.split() if not word.startswith(("-", "/", "$"))}
    assert "build-essential" in wanted
    assert wanted - {"build-essential"} <= names(BY_NAME["sluice"]["Recommends"])
    there = set(tools.execute(["apt-cache", "pkgnames"]).text.split()) if shutil.which("apt-cache") else set()
    if "libfftw3-double3" in there: # it has the lists of the archive
        assert wanted <= there
