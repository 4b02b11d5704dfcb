"""What is made of the tables of options and stages: manual pages, docs/stages.md, and completions,
which the shells themselves are asked for."""

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import termios
import time
from pathlib import Path

import pytest

import tools

GENERATED = Path(tools.SLUICE).resolve().parent / "generated"
TABLES = [tools.ROOT / "app" / f"options_{name}.c"
          for name in ("filtering", "input", "live", "output", "page", "parts", "farm", "running",
                       "benchmark")]
MANUALS = ["sluice.1", "sluice-stages.7"]
SHELLS = ["bash", "zsh", "fish"]

pytestmark = pytest.mark.skipif(not TABLES[0].exists(), reason="no sources here")


def rows():
    """The rows of the tables, as text: name and what follows."""
    text = "".join(file.read_text() for file in TABLES)
    for row in re.findall(r"\{\s*\.name = \"([^\"]+)\",(.*?)(?=\{\s*\.name =|\{0\})", text, re.S):
        if ".help =" in row[1]: # else it is a former name
            yield row


OPTIONS = [("-" if ":" in name else "--") + name for name, _ in rows()]
LETTERS = ["-" + letter for _, row in rows() for letter in re.findall(r"\.letter = '(.)'", row)]
CHOICES = {name: re.findall(r"\{+\s*\"(\w+)\",", row.partition(".choices = ")[2].partition("}}")[0])
           for name, row in rows() if ".choices = " in row}


def generated(name):
    return (GENERATED / name).read_text()


def test_the_tables_are_read():
    assert len(OPTIONS) > 50 and "-c:v" in OPTIONS and set(LETTERS) > {"-f", "-o", "-y"}
    assert CHOICES["backend"] == ["auto", "cuda", "cpu", "scalar"] and len(CHOICES) == 9


# ---- documents ----


@pytest.mark.parametrize("name", MANUALS)
def test_manual_is_clean(name):
    if not shutil.which("mandoc"):
        pytest.skip("no mandoc")
    result = tools.execute(["mandoc", "-T", "lint", "-W", "warning", GENERATED / name])
    assert result.code == 0 and not result.text, result.text


def page(name):
    text = tools.execute(["mandoc", "-T", "ascii", GENERATED / name]).text
    return re.sub(".\x08", "", text) # bold letters are struck twice


def test_every_option_is_in_the_manual_and_in_the_help(run):
    manual, overview, everything = page("sluice.1"), run("--help").text, run("help", "all").text
    for option in OPTIONS + LETTERS:
        word = re.escape(option) + r"(?![\w-])"
        assert re.search(rf"^     (-\w.*, )?{word}", manual, re.M), option
        assert re.search(rf"^  .* {word}", overview, re.M), option
        assert re.search(rf"^  +(-\w, )?{word}", everything, re.M), option


def test_the_manual_shows_choices_and_defaults():
    manual = " ".join(page("sluice.1").split())
    for name, choices in CHOICES.items():
        for choice in choices:
            assert re.search(rf" {choice} +[A-Z0-9]", manual), (name, choice)
    assert "Default:gray,gaussian=1.4,sobel,threshold=20:240." in manual.replace(" ", "")  # lines end behind commas
    assert "129, 130, 143" in manual and "NO_COLOR" in manual


def stages(run):
    return re.findall(r"^([a-z]+)(?:=.*)?$", run("stages", "all").text, re.M)


def flat(text):
    return re.sub(r"[^\w.|=]", "", text.replace("\\", ""))


@pytest.mark.parametrize("name", ["sluice-stages.7", "stages.md"])
def test_every_stage_is_in_its_documents(run, name):
    text = page(name) if name.endswith("7") else generated(name)
    for stage in stages(run):
        words = run("help", stage).text
        assert re.search(rf"^ *(## )?{stage}$", text, re.M), stage
        assert flat(words.splitlines()[0]) in flat(text), stage
        for option in re.findall(r"\w+", words.splitlines()[0].partition("=")[2]):
            row = re.search(rf"^    {option:<10} (\S.*)$((\n {{15}}.*)*)", words, re.M)
            about, values, default = re.fullmatch(
                r"(.*); (.*), (?:default (.*)|required)", " ".join((row[1] + row[2]).split())).groups()
            for part in (about[1:], values, default or "required"):
                assert flat(part) in flat(text), (stage, option, part)


def test_stages_document_is_up_to_date():
    assert (tools.ROOT / "docs/stages.md").read_text() == generated("stages.md"), \
        "make docs/stages.md writes it anew"


def test_help_on_a_stage_is_its_table(run):
    """Held against the table's source, whose strings may be in pieces."""
    source = (tools.ROOT / "stages/gaussian.c").read_text()
    strings = flat("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', source)))
    text = run("help", "gaussian").text
    summary, formula = text.split("\n    ")[1], " ".join(text.split("source:")[0].split())
    assert flat(summary) in strings
    assert flat(formula.partition(summary)[2]) in strings
    assert text == run("stages", "gaussian").text
    for words in ("source: R. C. Gonzalez, R. E. Woods, Digital", "sigma standard deviation; 0.1 .. 250 pixels, required",
                  "radius where the weights are cut off; 1 .. 16384 pixels, default round(6 sigma + 1) / 2",
                  "replicate|zero|reflect|mirror|wrap, default replicate"):
        assert words in " ".join(text.split())


def test_an_unknown_document_is_refused():
    assert tools.execute([GENERATED.parent / "generate", "sluice.2", "today"]).code == 2


def test_install_brings_them(tmp_path):
    """Of this build, without building anything."""
    result = tools.execute(["make", "-C", tools.ROOT, f"BUILD={GENERATED.parent}", "-o",
                            "all", "install-generated", "PREFIX=/usr", f"DESTDIR={tmp_path}"])
    assert result.code == 0, result.stderr
    installed = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert installed == {f"usr/share/{name}" for name in (
        "man/man1/sluice.1", "man/man7/sluice-stages.7", "bash-completion/completions/sluice",
        "zsh/site-functions/_sluice", "fish/vendor_completions.d/sluice.fish")}


# ---- completions ----


class Terminal:
    """A shell at a terminal, in which `sluice` writes its arguments down, a line each."""

    def __init__(self, command, folder, setup):
        self.folder, self.said = folder, folder.parent / "said"
        try:
            pid, self.fd = pty.fork()
        except OSError as error:
            pytest.skip(f"no terminal: {error}")
        if pid == 0:
            os.chdir(folder)
            env = {"HOME": str(folder.parent), "TERM": "vt100", "PATH": os.environ["PATH"],
                   "LC_ALL": "C.UTF-8", "INPUTRC": "/dev/null", "SAID": str(self.said)}
            os.execvpe(command[0], command, env)
        self.pid = pid
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", 100, 200, 0, 0))
        script = folder.parent / "setup"
        script.write_text("\n".join([*setup, 'sluice() { printf "%s\\n" "$@" > $SAID.new; '
                                     'mv $SAID.new $SAID; }\n']))
        self.await_silence(1)
        self.type(f"source {script}; sluice ready")

    def await_silence(self, seconds=0.2):
        text = b""
        while select.select([self.fd], [], [], seconds)[0]:
            text += os.read(self.fd, 65536)
        return text.decode(errors="replace")

    def await_file(self, file):
        text, end = b"", time.monotonic() + 20
        while not file.exists():
            assert time.monotonic() < end, text.decode(errors="replace")
            if select.select([self.fd], [], [], 0.02)[0]:
                text += os.read(self.fd, 65536)

    def type(self, line):
        """Run a line with keys in it; returns the arguments that sluice was given."""
        self.said.unlink(missing_ok=True)
        os.write(self.fd, line.encode() + b"\r")
        self.await_file(self.said)
        self.await_silence()
        return self.said.read_text().splitlines()

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


class Bash(Terminal):
    def __init__(self, folder):
        super().__init__(["bash", "--norc", "--noprofile", "-i"], folder, [
            "bind 'set enable-bracketed-paste off'", "bind 'set bell-style none'",
            f"source {GENERATED}/sluice.bash"])

    def candidates(self, line):
        """Meta-* puts all of them into the line."""
        return self.type(line + "\x1b*")[len(line[:line.rindex(" ")].split()) - 1:]


class Zsh(Terminal):
    # Control-T notes what is added as a match, and clears the line.
    SETUP = """
    unset zle_bracketed_paste
    setopt no_beep no_auto_menu no_auto_list
    fpath=(GENERATED $fpath)
    autoload -Uz compinit
    compinit -u -D
    zstyle ':completion:*' insert-tab false
    compadd() {
        if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return $?; fi
        local -a found
        builtin compadd -A found "$@"
        for match in $found; do print -r -- "$IPREFIX$match" >> $SAID.new; done
        builtin compadd "$@"
    }
    note() { : > $SAID.new; zle complete-word; BUFFER=; mv $SAID.new $SAID; }
    zle -N note
    bindkey '^T' note"""

    def __init__(self, folder):
        super().__init__(["zsh", "-f", "-i"], folder,
                         self.SETUP.replace("GENERATED", str(GENERATED)).splitlines())

    def candidates(self, line):
        self.said.unlink(missing_ok=True)
        os.write(self.fd, line.encode() + b"\x14")
        self.await_file(self.said)
        return self.said.read_text().splitlines()


class Fish:
    def __init__(self, folder):
        self.folder = folder

    def candidates(self, line):
        result = tools.execute(["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]",
                                GENERATED / "sluice.fish", line], cwd=self.folder)
        assert result.code == 0 and not result.stderr, result.stderr
        return [line.split("\t")[0] for line in result.text.splitlines()]

    def close(self):
        pass


@pytest.fixture(scope="module", params=SHELLS)
def shell(request, tmp_path_factory):
    if not shutil.which(request.param):
        pytest.skip(f"no {request.param}")
    folder = tmp_path_factory.mktemp(request.param) / "here"
    folder.mkdir()
    (folder / "movie.mp4").touch()
    (folder / "moving.mkv").touch()
    terminal = {"bash": Bash, "zsh": Zsh, "fish": Fish}[request.param](folder)
    yield terminal
    terminal.close()


def offered(shell, line):
    """The candidates for the last word."""
    return set(shell.candidates(f"sluice {line}"))


def test_shell_offers_every_option(shell):
    found = offered(shell, "-")
    assert found == set(OPTIONS + LETTERS)


def test_shell_offers_the_values_of_choices(shell):
    for name, choices in CHOICES.items():
        assert offered(shell, f"--{name} ") == set(choices)
        assert offered(shell, f"a b --{name} {choices[0][:1]}") == {
            choice for choice in choices if choice[0] == choices[0][0]}


def test_shell_offers_stages_in_chains(shell, run):
    assert offered(shell, "-f ") == offered(shell, "plan a --filter ") == set(stages(run))
    assert offered(shell, "-f ga") == offered(shell, "-f 'ga") == {"gamma", "gaussian"}
    assert offered(shell, "-f 'gray,ga") == {"gray,gamma", "gray,gaussian"}
    assert {word.rstrip("=") for word in offered(shell, 'a b --filter "gray,so')} == {"gray,sobel"}


def last(candidates):
    """Shells may leave out what stands ahead of the last part of a word, and add "=" later."""
    return {re.split("[=:]", word.rstrip("="))[-1] for word in candidates}


def test_shell_offers_options_of_stages(shell):
    borders = {"replicate", "zero", "reflect", "mirror", "wrap"}
    assert last(offered(shell, "-f 'gray,gaussian=1.4:bor")) == {"border"}
    assert last(offered(shell, "-f gray,gaussian=1.4:bor")) == {"border"}
    assert last(offered(shell, "-f 'gray,gaussian=1.4:border=")) == borders
    assert last(offered(shell, "-f 'sobel=border=re")) == {"replicate", "reflect"}
    assert last(offered(shell, "-f 'gaussian=1:2:")) == borders | {"sigma", "radius", "border"}
    assert last(offered(shell, "-f gray=")) == {"luma", "mean", "mode"}
    assert last(offered(shell, "--backend=c")) == {"cuda", "cpu"}


def test_shell_offers_files_and_commands(shell, run):
    assert offered(shell, "mov") == {"movie.mp4", "moving.mkv"}
    assert offered(shell, "in.mp4 mov") == offered(shell, "--json mov") == {"movie.mp4", "moving.mkv"}
    assert offered(shell, "b") == {"bench", "bisect"} and offered(shell, "ct") == {"ctl"}
    assert offered(shell, "ctl socket ") == {"get", "set", "chain", "stats", "snapshot", "quit"}
    assert offered(shell, "farm ") == {"submit", "status", "resume", "print"}
    assert offered(shell, "farm status mov") == {"movie.mp4", "moving.mkv"}
    assert offered(shell, "stages ga") == {"gamma", "gaussian"}
    assert {"all", "live", "--gap", "-c:v", "gaussian", "bench"} < offered(shell, "help ")
    assert offered(shell, "help --crf") == {"--crf"}
    assert "libx264" in offered(shell, "a b -c:v lib")


def test_shell_completes_a_typed_line(shell):
    """By Tab, and runs it."""
    if isinstance(shell, Fish): # which is no terminal here
        assert offered(shell, "movie") == {"movie.mp4"} and offered(shell, "--hwd") == {"--hwdec"}
        return
    assert shell.type("sluice -f 'gray,gauss\t=2' movie\t") == ["-f", "gray,gaussian=2", "movie.mp4"]
    assert shell.type("sluice movie\tout.mp4 --hwd\trequ\t-c:\tffv\t") == [
        "movie.mp4", "out.mp4", *{Bash: ["--hwdec", "require"], Zsh: ["--hwdec=require"]}[type(shell)],
        "-c:v", "ffv1"]


def test_man_finds_the_pages(tmp_path):
    """As installed; groff's reading of them has no complaints either."""
    if not shutil.which("groff"):
        pytest.skip("no groff")
    for name in MANUALS:
        # Lines are not adjusted: a list of faults has no space to widen.
        result = tools.execute(["groff", "-mdoc", "-dAD=l", "-Tutf8", "-ww", "-z", GENERATED / name])
        assert result.code == 0 and not result.stderr, result.stderr
