"""Files of a process that fail on demand, without a disk of their own: a small library stands between it and the system."""

import shutil
import subprocess
from pathlib import Path

from harness.report import check

SOURCE = Path(__file__).resolve().parents[1] / "c/failing_files.c"


def why_not():
    """Why there can be no such library here; None where there can."""
    return None if shutil.which("cc") else "it compiles a small C library, which needs cc"


class FailingFiles:
    """What fails is the same for all processes that run `within` it, and changes at one moment."""

    def __init__(self, directory):
        self.directory = directory
        self.order = directory / "fails"
        self.library = directory / "failing_files.so"

    def make(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        command = ["cc", "-O1", "-shared", "-fPIC", "-o", self.library, SOURCE, "-ldl"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL)
        check(done.returncode == 0, f"{SOURCE} cannot be compiled: {done.stderr}")

    def within(self, below):
        """Words before a command: files below this directory fail when they are told to."""
        return ["env", f"LD_PRELOAD={self.library}", f"FAILING_FILES={self.order}", f"FAILING_BELOW={below}/"]

    def fail(self, what):
        """`log`, `sync`, `prepare`, `blocks-read`, `blocks-write` or `blocks-slow`, from now on: see the library."""
        new = self.order.with_suffix(".new")
        new.write_text(what)
        new.rename(self.order)

    def heal(self):
        self.order.unlink(missing_ok=True)
