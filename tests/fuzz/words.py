"""Write the dictionaries of the fuzzers that follow from tables: words.py, in the repository's root.

The chain's words come from the tables of stages/ and stages/chain/, those of the command line from
app/options_*.c.
"""

import pathlib
import re

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]


def write(name, words):
    lines = [f'"{word}"' for word in sorted(set(words)) if '"' not in word and "\\" not in word]
    (HERE / f"{name}.dict").write_text("\n".join(lines) + "\n")


def words_of(files, pattern):
    return [word for file in sorted(ROOT.glob(files))
            for found in re.findall(pattern, file.read_text())
            for word in re.split(r"[|:]", found) if word]


def main():
    stages = words_of("stages/*.c", r'\.(?:name|alias|choices) = "([^"]+)"')
    stages += words_of("stages/*.c", r"OPTION\(struct \w+, (\w+)")
    stages += words_of("stages/chain/alias_table.c", r'\.(?:name|options) = "([^"]+)"')
    marks = [",", ":", "=", "/", "#2.", "'", "border=", "nan", "inf", "1e300", "-0", "0x1p9", "t8x8.1",
             "t9x7m2", "1 2 1/2 4 2/1 2 1"]
    write("chain", stages + marks + words_of("stages/stage.h", r'\.choices = "([^"]+)"'))
    options = words_of("app/options_*.c", r'\.name = "([\w-]+)"')
    options = [f"--{name}" for name in options] + words_of("app/options_*.c", r'\{"([\w.-]+)", \w+')
    write("options", options + ["-f", "-F", "-y", "-o", "--", "null:", "1/4", "50%", "30000/1001"])


if __name__ == "__main__":
    main()
