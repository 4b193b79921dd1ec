"""The histories that the load clients write: see tests/faults/java/History.java for the format."""

from typing import NamedTuple

# What asks or changes the namespace only: the operations whose completions tell whether the service is there.
METADATA = frozenset({"create", "mkdir", "rename", "delete", "stat"})


REFUSED = "A file that is being written cannot be renamed into a directory of another group"


class Operation(NamedTuple):
    client: str
    thread: str
    name: str
    begun: int
    ended: int | None
    outcome: str
    value: str
    arguments: tuple

    @property
    def path(self):
        return self.arguments[0]

    @property
    def is_unknown(self):
        """No answer that says what became of it."""
        return self.outcome == "waiting" or self.outcome.startswith("error:")

    def __str__(self):
        took = "no answer" if self.ended is None else f"{(self.ended - self.begun) / 1e6:.0f} ms"
        said = " ".join(filter(None, (self.outcome, self.value)))
        return f"{self.client} {self.thread}: {self.name} {' '.join(self.arguments)} -> {said} ({took}, begun at {self.begun})"


def read(path):
    """All operations of one client, in the order of their ends."""
    operations = []
    # A client that was cut off leaves half a line.
    text = path.read_text(errors="replace")
    for line in text[: text.rfind("\n") + 1].splitlines():
        thread, name, begun, ended, outcome, value, *arguments = line.split("\t")
        end = int(ended)
        # How a file is refused that exists and is still being written.
        if name == "create" and value.startswith("Failed to CREATE_FILE"):
            outcome = "exists"
        # How a name is refused that holds a directory and not a file, or the other way round.
        if name == "rename" and "must both be directories" in value:
            outcome = "exists"
        # The history does not say which files are open, so a rename between homes may be refused at any time: docs/hadoop-differences.md.
        if name == "rename" and REFUSED in value:
            outcome = "refused"
        operations.append(
            Operation(path.stem, thread, name, int(begun), end if end >= 0 else None, outcome, value, tuple(arguments))
        )
    return operations


class Entry(NamedTuple):
    """One line of the namespace's listing at the end."""

    is_directory: bool
    inode: str
    size: int
    sum: str


def read_listing(path):
    listing = {}
    for line in path.read_text(errors="replace").splitlines():
        name, kind, inode, size, checksum = line.split("\t", 4)
        listing[name] = Entry(kind == "d", inode, int(size), checksum)
    return listing
