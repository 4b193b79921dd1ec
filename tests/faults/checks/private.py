"""What a thread that shares no name with anyone must have been told, and must find at the end.

Such a thread has one operation under way at a time, so that its answers are known in advance. This replays them; what
differs is either something lost or something done twice, and `lost.py` and `doubled.py` report one kind each.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

KINDS = ("own-", "data-", "stream-")


class Finding(NamedTuple):
    kind: str  # "lost" or "doubled"
    sentence: str


@dataclass
class File:
    inode: str
    size_min: int = 0
    size: int | None = None
    sum: str | None = None
    is_open: bool = True


@dataclass
class Thread:
    name: str
    directories: set = field(default_factory=set)
    files: dict = field(default_factory=dict)
    # Names of which nobody knows whether they are there, because an operation on them had no clear answer.
    unclear: set = field(default_factory=set)
    findings: list = field(default_factory=list)

    def play(self, operation):
        getattr(self, operation.name)(operation)

    def says(self, kind, operation, why):
        self.findings.append(Finding(kind, f"{why}: {operation}"))
        self.forget(*operation.arguments[:2])

    def forget(self, *paths):
        for path in paths:
            self.files.pop(path, None)
            self.directories.discard(path)
            self.unclear.add(path)

    def mkdir(self, operation):
        if operation.outcome == "ok":
            self.directories.add(operation.path)
            self.unclear.discard(operation.path)
        elif operation.is_unknown:
            self.unclear.add(operation.path)
        else:
            self.says("lost" if operation.outcome == "missing" else "doubled", operation, "a fresh directory was refused")

    def create(self, operation):
        if operation.outcome == "ok":
            self.files[operation.path] = File(operation.value)
        elif operation.is_unknown:
            self.unclear.add(operation.path)
        elif operation.outcome == "missing":
            self.says("lost", operation, "its directory was acknowledged")
        else:
            self.says("doubled", operation, "nobody else makes this name")

    def write(self, operation):
        if operation.outcome == "missing":
            self.says("lost", operation, "the file was acknowledged")

    def flush(self, operation):
        file = self.files.get(operation.path)
        if operation.outcome == "ok" and file:
            file.size_min = int(operation.arguments[1])
        elif operation.outcome == "missing":
            self.says("lost", operation, "the file was acknowledged")

    def close(self, operation):
        file = self.files.get(operation.path)
        if file is None:
            return
        if operation.outcome == "ok":
            file.is_open, file.size, file.sum = False, int(operation.arguments[1]), operation.arguments[2]
        elif operation.outcome == "missing":
            self.says("lost", operation, "the file was acknowledged")

    def rename(self, operation):
        source, target = operation.arguments
        if operation.outcome == "ok":
            if source in self.files:
                self.files[target] = self.files.pop(source)
        elif operation.is_unknown:
            self.forget(source, target)
        else:
            self.says("doubled", operation, "the source was there and the target was not")

    def delete(self, operation):
        if operation.outcome == "ok":
            self.files.pop(operation.path, None)
        elif operation.is_unknown:
            self.forget(operation.path)
        else:
            self.says("doubled", operation, "the file was there")

    def stat(self, operation):
        if operation.is_unknown or operation.path in self.unclear:
            return
        file = self.files.get(operation.path)
        if file and operation.outcome == "missing":
            self.says("lost", operation, "the file was acknowledged")
        elif file and operation.value != file.inode:
            self.says("doubled", operation, f"the file that was acknowledged has inode {file.inode}")
        elif not file and operation.outcome == "ok":
            self.says("doubled", operation, "the file was moved away or deleted")

    def read(self, operation):
        if operation.outcome in ("missing", "other"):
            self.says("lost", operation, "other bytes than were written")

    def compare(self, listing):
        """The namespace at the end against what was acknowledged."""
        for path in self.directories:
            entry = listing.get(path)
            if entry is None or not entry.is_directory:
                self.findings.append(Finding("lost", f"directory {path} of {self.name} is gone"))
        for path, file in self.files.items():
            self.compare_file(path, file, listing.get(path))
        for path, entry in listing.items():
            if not (path in self.files or path in self.directories or path in self.unclear):
                self.findings.append(Finding("doubled", f"{path} is there, but nobody made it or it was deleted: {entry}"))

    def compare_file(self, path, file, entry):
        if entry is None or entry.is_directory:
            self.findings.append(Finding("lost", f"file {path} of {self.name} is gone"))
        elif entry.inode != file.inode:
            self.findings.append(Finding("doubled", f"{path} has inode {entry.inode}, acknowledged was {file.inode}"))
        elif not file.is_open and (entry.size, entry.sum) != (file.size, file.sum):
            self.findings.append(Finding("lost", f"{path} is {entry.size} bytes, {entry.sum}; written were {file.size}, {file.sum}"))
        elif file.is_open and entry.size < file.size_min and "unreadable" in entry.sum:
            self.findings.append(Finding("lost", f"{path}: {file.size_min} bytes were flushed, and it is {entry.sum}"))


def replay(histories, listing):
    """All findings of all private threads of all clients. Without a listing only the answers are judged."""
    threads = {}
    for history in histories:
        for operation in history:
            if operation.thread.startswith(KINDS):
                threads.setdefault(operation.thread, Thread(operation.thread)).play(operation)
    for thread in threads.values():
        if listing is not None:
            mine = {path: entry for path, entry in listing.items() if path.split("/")[0] == thread.name}
            thread.compare(mine)
    return [finding for thread in threads.values() for finding in thread.findings]
