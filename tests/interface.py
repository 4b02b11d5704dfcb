"""The interface of a release as text that compilers hold against later headers.

    interface.py v0.1.0 > tests/reference/interface-0.1.0.inc      when a version is released

What is printed is included behind <sluice/sluice.h>. It declares every function once more, as it
was, and says of every struct where its members lay, of every enumerator and macro what it was. What came
since then is not mentioned, and may come; what changed does not compile. Symbols and their versions are in
tests/symbols-*.txt.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = """\
// The interface of {0}, by `python3 tests/interface.py {0}`: compiled behind <sluice/sluice.h>.

#define ENUMERATOR(name) _Static_assert((int)name == (int)FORMER_##name, #name " is another number")
#define SIZE(tag, as) \\
    _Static_assert(sizeof(struct tag) as sizeof(struct former_##tag), #tag " has another size")
#define PLACE(tag, member) \\
    _Static_assert(offsetof(struct tag, member) == offsetof(struct former_##tag, member), \\
                   #tag "." #member " lies elsewhere")
#define NOW(tag, member) (((struct tag *)0)->member)
#define THEN(tag, member) (((struct former_##tag *)0)->member)
#define TYPE(tag, member) \\
    _Static_assert(__builtin_types_compatible_p(__typeof__(NOW(tag, member)), __typeof__(THEN(tag, member))), \\
                   #tag "." #member " has another type")
#define ROOM(tag, member) \\
    _Static_assert(sizeof(NOW(tag, member)) == sizeof(THEN(tag, member)), #tag "." #member " has another size")

// ---- numbers: a macro that is another one now is defined twice ----

"""


def headers_of(tag):
    """The text of the headers, without comments."""
    git = ["git", "-C", ROOT]
    names = subprocess.run([*git, "ls-tree", "--name-only", tag, "include/sluice/"], capture_output=True, text=True,
                           check=True).stdout.split()
    text = "\n".join(subprocess.run([*git, "show", f"{tag}:{name}"], capture_output=True, text=True, check=True).stdout
                     for name in names)
    return re.sub(r"//[^\n]*", "", text)


def members(body):
    """(name, declaration) of each member; rows of declarators (`int num, den`) one by one."""
    for declaration in filter(None, (part.strip() for part in body.split(";"))):
        pointer = re.search(r"\(\*(\w+)\)", declaration)
        for part in [declaration] if pointer else declaration.split(","):
            yield (pointer[1] if pointer else re.search(r"(\w+)\s*(?:\[\w+\])?$", part.strip())[1]), declaration


def struct_lines(tag, body, embedded):
    yield f"struct former_{tag} {{\n{body.rstrip()}\n}};"
    grows = re.match(r"\s*size_t size;", body) and tag not in embedded
    yield f"SIZE({tag}, {'>=' if grows else '=='});"
    for name, declaration in members(body):
        if not name.startswith("reserved"): # room for members to come
            yield f"PLACE({tag}, {name});"
            yield f"{'ROOM' if 'struct former_' in declaration else 'TYPE'}({tag}, {name});"


def record(text):
    structs = []
    flat = text
    while inner := re.search(r"\bstruct (sluice_\w+) \{([^{}]*)\}( *\w+)?;", flat): # from the inside
        structs.append((inner[1], inner[2]))
        member = f"struct {inner[1]}{inner[3]};" if inner[3] else ""
        flat = flat[:inner.start()] + member + flat[inner.end():]
    by_value = re.compile(r"\bstruct (sluice_\w+)(?= \w+[;\[])")
    embedded = {tag for _, body in structs for tag in by_value.findall(body)}

    yield from re.findall(r"(?m)^#define SLUICE_(?!API)\w+.*", text)
    for body in re.findall(r"\benum \w* ?\{([^}]*)\}", text):
        yield "enum {" + re.sub(r"\bSLUICE_", "FORMER_SLUICE_", body).rstrip() + "\n};"
        names = re.findall(r"\bSLUICE_\w+", re.sub(r"=[^,]*", "", body))
        yield from (f"ENUMERATOR({name});" for name in names if not name.endswith("_COUNT"))

    yield "\n// ---- structs ----\n"
    for tag, body in structs:
        former = re.sub(r"\bSLUICE_", "FORMER_SLUICE_", by_value.sub(r"struct former_\1", body))
        yield from struct_lines(tag, former, embedded)

    yield "\n// ---- functions ----\n"
    for declaration in re.findall(r"^SLUICE_API [^;]*;", text, re.M):
        yield re.sub(r"\s+", " ", declaration)


def document(tag):
    lines = "\n".join(record(headers_of(tag)))
    return HEAD.replace("{0}", tag) + re.sub(r" +$|\n *(?=\n)", "", lines, flags=re.M) + "\n"


if __name__ == "__main__":
    print(document(sys.argv[1]), end="")
