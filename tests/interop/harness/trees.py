"""The local trees that clients store, and their sums."""

import hashlib
import os
import random
from pathlib import Path

# The least that a NameNode takes by default, so that ordinary jars have several blocks.
BLOCK_SIZE = 1 << 20
# The large file has many blocks whatever its size.
LARGE_BLOCKS = 64

NAMES = [
    "with spaces in it.txt",
    " a leading and a trailing space ",
    "Straße und Plätze.txt",
    "файл с данными.bin",
    "日本語のファイル.txt",
    "🍀 clover 🍀",
    "100%, a+b=c & d#e;f@g!.txt",
    "it's ~quoted~.txt",
    "e\u0301 decomposed and \u00e9 composed",
    ".hidden",
    # The longest that Hadoop's shell can store: it writes under the name with `._COPYING_` first, and 255 is the limit.
    "n" * 245,
]


class Tree:
    """A local directory, and what a reader of its copy must find."""

    def __init__(self, name, path, block_size, sums_of_files):
        self.name = name
        self.path = path
        self.block_size = block_size
        self.sums = sums_of_files
        self.files = sum(1 for path in sums_of_files if not path.endswith("/"))
        self.size = sum(size for size, _ in sums_of_files.values())

    def __str__(self):
        return f"{self.files} files, {self.size / (1 << 20):.1f} MiB"


def make(root, where, chosen):
    """The jars with odd names and edge sizes; many small files; one large file."""
    made = {}
    for name, build, block_size in (
        ("tree", lambda path: make_tree(root / "target/clients/tree", path, chosen.slice), BLOCK_SIZE),
        ("small", lambda path: make_small(path, chosen.small_files), BLOCK_SIZE),
        ("large", lambda path: make_large(path, chosen.large_mib), large_block_size(chosen.large_mib)),
    ):
        path = where / name
        path.mkdir(parents=True)
        build(path)
        made[name] = Tree(name, path, block_size, sums(path))
    return made


def make_tree(jars, path, little):
    copied = 0
    for source in sorted(jars.rglob("*")):
        if not source.is_file() or (little and (copied >= 60 or source.stat().st_size > 3 * BLOCK_SIZE)):
            continue
        target = path / "repository" / source.relative_to(jars)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(source, target)
        copied += 1
    names = path / "names and Namen und 名前"
    names.mkdir()
    for name in NAMES:
        (names / name).write_text(name)
    (path / "an empty directory").mkdir()
    edges = path / "edges"
    edges.mkdir()
    bytes_of = random.Random(7)
    around = [512, 64 << 10, BLOCK_SIZE, 2 * BLOCK_SIZE]
    for size in [0, 1, *(edge + step for edge in around for step in (-1, 0, 1))]:
        (edges / f"{size} bytes").write_bytes(bytes_of.randbytes(size))


def make_small(path, count):
    for number in range(count):
        directory = path / f"{number // 1000:03}"
        directory.mkdir(exist_ok=True)
        (directory / f"small-{number:06}").write_bytes(b"%d\n" % number * (number % 300))


def large_block_size(mib):
    """A divisor that leaves the last block short, in whole MiB."""
    return max(1, mib // LARGE_BLOCKS) << 20


def make_large(path, mib):
    bytes_of = random.Random(11)
    with open(path / "large", "wb") as file:
        for _ in range(mib):
            file.write(bytes_of.randbytes(1 << 20))
        file.write(b"and a bit")


def sums(path):
    """What the clients' drivers print, computed here: path -> (size, sha256); a directory ends with a slash."""
    found = {}
    for directory, directories, names in os.walk(path):
        for name in directories:
            found[str((Path(directory) / name).relative_to(path)) + "/"] = (0, "")
        for name in names:
            file = Path(directory) / name
            digest = hashlib.sha256()
            with open(file, "rb") as reader:
                while piece := reader.read(1 << 20):
                    digest.update(piece)
            found[str(file.relative_to(path))] = (file.stat().st_size, digest.hexdigest())
    return found
