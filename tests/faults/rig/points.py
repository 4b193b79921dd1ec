"""Points in a server's work at which it kills itself, freezes or waits: crates/metad/src/points.rs names them, and says what may be asked for.

Only a program that was built for it looks.
"""

import itertools
import time

from harness.report import Failure

VARIABLE = "CLOVER_FAILPOINTS"
# Until load has brought a server to any of them.
REACHED_S = 90


def environment(member):
    return {VARIABLE: str(file_of(member))}


def file_of(member):
    return member.directory.with_suffix(".failpoints")


class Trap:
    """Lines that all members of a group read. Only the active passes steps. All members get the lines, because on a busy machine another member may become the active meanwhile."""

    # Servers count the passings of each line, also of one that they have seen in an earlier trap.
    numbers = itertools.count(1)

    def __init__(self, members, line, *others, after_ms=0):
        """`line`: the step, the number of its passing, and the action. `after_ms`: how long after the passing the action follows. `others`: further lines that stand in the file as well."""
        self.members = list(members)
        self.line = f"{line} {after_ms} trap-{next(self.numbers)}"
        lines = [self.line, *others]
        self.ends = {member.number: member.log.stat().st_size for member in self.members}
        for member in self.members:
            file = file_of(member)
            new = file.with_suffix(".new")
            new.write_text("".join(f"{line}\n" for line in lines))
            new.replace(file)

    def spring(self):
        """Takes the lines away. A thread that the trap holds goes on."""
        for member in self.members:
            file_of(member).unlink(missing_ok=True)

    def dead(self):
        return [member for member in self.members if not member.process.is_running]

    def wait_dead(self):
        """The first who has ended."""
        return self.wait(lambda: next(iter(self.dead()), None))

    def wait_reached(self):
        """The first who has come to the step, as its log says."""
        return self.wait(lambda: next((member for member in self.members if self.has_reached(member)), None))

    def has_reached(self, member):
        with open(member.log, "rb") as log:
            log.seek(self.ends[member.number])
            return f"failpoint reached: {self.line}".encode() in log.read()

    def wait(self, found):
        deadline = time.monotonic() + REACHED_S
        while not (member := found()):
            if time.monotonic() > deadline:
                raise Failure(f"none of {', '.join(member.name for member in self.members)} came to {self.line} within {REACHED_S} s")
            time.sleep(0.002)
        return member
