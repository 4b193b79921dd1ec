"""Every client changes files: appends, flushes, truncates, renames, concatenates; and every client reads what came of it.

Where a client appends, files end inside a chunk, at its edge, inside a block and at its edge.
"""

import hashlib
import random
import time

from .cases import compare
from .clients import HadoopShell, call
from .report import check

# The least that a NameNode takes by default.
BLOCK = 1 << 20
LENGTHS = [0, 1, 511, 512, 700, BLOCK - 1, BLOCK, BLOCK + 700]
# Within a chunk, up to its edge, and over the edge of a block.
PIECES = [100, 412, BLOCK + 5]
# Where files are cut: at the edge of a block, of a chunk, and inside both.
CUTS = [BLOCK, 512, 300]


class Files:
    """What a client's files must hold, by name, and their local copies to be stored."""

    def __init__(self, directory):
        bytes_of = random.Random(5)
        self.stored, self.pieces = directory / "stored", directory / "pieces"
        self.stored.mkdir(parents=True)
        self.pieces.mkdir()
        self.contents = {f"{length} bytes": bytes_of.randbytes(length) for length in LENGTHS}
        for name, content in self.contents.items():
            (self.stored / name).write_bytes(content)
        for number, length in enumerate(PIECES):
            (self.pieces / f"{number}").write_bytes(bytes_of.randbytes(length))
        self.all_pieces = b"".join(path.read_bytes() for path in sorted(self.pieces.iterdir()))

    def sums(self, contents):
        return {name: (len(content), hashlib.sha256(content).hexdigest()) for name, content in contents.items()}


def run(report, stock, cluster, work, little):
    """A little: without Hadoop's shell, which takes seconds for each command and changes files as its API does."""
    files = Files(work / "changes")
    clients = [client for client in stock.all() if not (little and isinstance(client, HadoopShell))]
    top = f"/changes-{time.time_ns():x}"
    for client in clients:
        story = Story(report, stock, cluster.uri, client, clients, files, f"{top}/{client.name}")
        with report.case(client.name, "stores the files to be changed"):
            client.put(cluster.uri, files.stored, story.remote, BLOCK)
            story.stored = True
        for change in ("append", "flush", "truncate", "rename", "concat"):
            if change in client.changes and story.stored:
                getattr(story, change)()


class Story:
    """One client's changes, one after the other to the same files."""

    def __init__(self, report, stock, uri, client, readers, files, remote):
        self.report, self.stock, self.uri, self.client, self.readers = report, stock, uri, client, readers
        self.files, self.remote, self.contents = files, remote, dict(files.contents)
        self.stored = False

    def path(self, name):
        return f"{self.remote}/{name}"

    def append(self):
        how = "in one go" if self.client.appends_at_once else "one after the other"
        with self.report.case(self.client.name, f"appends {len(PIECES)} pieces {how} to files of {LENGTHS} bytes"):
            self.client.append(self.uri, self.files.pieces, [self.path(name) for name in self.contents])
            self.contents = {name: content + self.files.all_pieces for name, content in self.contents.items()}
            self.read_by_all()

    def flush(self):
        name = "700 bytes"
        piece = self.files.pieces / "0"
        with self.report.case(self.client.name, "flushes, and another client reads it before the file is closed"):
            self.contents[name] += piece.read_bytes()
            with self.client.flushed(self.uri, piece, self.path(name)):
                found = call(self.stock.shell(self.uri, "-cat", self.path(name)))
                check(found == self.contents[name], f"{len(self.contents[name])} bytes written, {len(found)} read")
            self.read_by_all()

    def truncate(self):
        names = list(self.contents)[-len(CUTS) :]
        with self.report.case(self.client.name, f"truncates files to {CUTS} bytes, and appends to them again"):
            for name, length in zip(names, CUTS):
                self.client.truncate(self.uri, length, self.path(name))
                self.contents[name] = self.contents[name][:length]
            self.read_by_all()
            if "append" in self.client.changes:
                self.client.append(self.uri, self.files.pieces, [self.path(name) for name in names])
                for name in names:
                    self.contents[name] += self.files.all_pieces
                self.read_by_all()

    def rename(self):
        old, new = "512 bytes", "renamed, and longer than 512 bytes"
        with self.report.case(self.client.name, "renames a file"):
            self.client.rename(self.uri, self.path(old), self.path(new))
            self.contents[new] = self.contents.pop(old)
            self.read_by_all()

    def concat(self):
        target, *sources = ["1 bytes", "511 bytes", f"{BLOCK} bytes"]
        with self.report.case(self.client.name, "moves the blocks of two files behind a third"):
            self.client.concat(self.uri, self.path(target), [self.path(source) for source in sources])
            for source in sources:
                self.contents[target] += self.contents.pop(source)
            self.read_by_all()

    def read_by_all(self):
        """Hadoop's shell takes seconds to start, and reads as its API does."""
        for reader in self.readers:
            if reader.takes_many:
                compare(self.files.sums(self.contents), reader.sums(self.uri, self.remote))
