"""What a thread that shares no name with anyone must have been told, and must find at the end.

Such a thread has one operation under way at a time, so that its answers are known in advance. This replays them; what
differs is either something lost or something done twice, and `lost.py` and `doubled.py` report one kind each.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

KINDS = ("own-", "data-", "stream-", "tree-")


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
    # Names of which nobody knows whether they are there, nor what is below them, because an operation on them had no clear answer.
    unclear: set = field(default_factory=set)
    findings: list = field(default_factory=list)

    def play(self, operation):
        getattr(self, operation.name)(operation)

    def says(self, kind, operation, why):
        self.findings.append(Finding(kind, f"{why}: {operation}"))
        self.forget(*operation.arguments[:2])

    def forget(self, *paths):
        for path in paths:
            self.drop(path)
            self.unclear.add(path)

    def drop(self, path):
        """Forgets a name and all names below it. Returns the files and directories that were there."""
        below = f"{path}/"
        files = [name for name in self.files if name == path or name.startswith(below)]
        directories = {name for name in self.directories if name == path or name.startswith(below)}
        self.directories -= directories
        return {name: self.files.pop(name) for name in files}, directories

    def is_unclear(self, path):
        return any(path == name or path.startswith(f"{name}/") for name in self.unclear)

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
            files, directories = self.drop(source)
            self.files |= {target + name[len(source) :]: file for name, file in files.items()}
            self.directories |= {target + name[len(source) :] for name in directories}
            self.unclear |= {target + name[len(source) :] for name in self.unclear if name.startswith(f"{source}/")}
        elif operation.is_unknown:
            self.forget(source, target)
        else:
            self.says("doubled", operation, "the source was there and the target was not")

    def delete(self, operation):
        if operation.outcome == "ok":
            self.drop(operation.path)
        elif operation.is_unknown:
            self.forget(operation.path)
        else:
            self.says("doubled", operation, "it was there")

    def concat(self, operation):
        target, size, checksum, *sources = operation.arguments
        if operation.is_unknown:
            return self.forget(target, *sources)
        if operation.outcome != "ok":
            self.says("lost", operation, "all its files were acknowledged")
            return self.forget(*sources)
        for source in sources:
            self.drop(source)
        if file := self.files.get(target):
            file.size, file.sum = int(size), checksum

    def list(self, operation):
        if operation.is_unknown or self.is_unclear(operation.path):
            return
        if operation.outcome == "missing":
            return self.says("lost", operation, "the directory was acknowledged")
        if operation.outcome == "twice":
            return self.says("doubled", operation, "one name twice")
        above = f"{operation.path}/"
        known = {name[len(above) :] for name in (*self.files, *self.directories) if name.startswith(above)}
        known = {name for name in known if "/" not in name}
        found = set(filter(None, operation.value.split(",")))
        for name in sorted(known - found):
            self.findings.append(Finding("lost", f"{name} is not listed: {operation}"))
        for name in sorted(name for name in found - known if not self.is_unclear(above + name)):
            self.findings.append(Finding("doubled", f"{name} is listed, but nobody made it or it was moved or deleted: {operation}"))

    def stat(self, operation):
        if operation.is_unknown or self.is_unclear(operation.path):
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
            if not (path in self.files or path in self.directories or self.is_unclear(path)):
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
