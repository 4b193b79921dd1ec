"""A small disk of a server's own that fails on demand: ext4 on a loop device, whose image lies on a tmpfs of its own."""

import fcntl
import os
import struct
import subprocess
from pathlib import Path

from harness.report import check

# What a disk seems to hold, and what there really is room for.
SIZE, ROOM = "1g", "640m"
# The ioctl that ends a file system at once, without writing anything more, and its flag for that.
_SHUTDOWN, _NO_FLUSH = 0x8004587D, 2


def why_not():
    """Why there can be no such disks here; None where there can."""
    if os.geteuid() != 0:
        return "it mounts disks of its own, which needs root"
    if not Path("/dev/loop-control").exists():
        return "it mounts disks of its own, which needs loop devices"
    return None


def fill(path, leave=0, piece=1 << 16):
    """Makes a file that takes all of its disk but so many bytes. Never any other disk than a small one that was mounted for a story."""
    check(path.parent.is_mount(), f"{path.parent} is not the small disk of this story")
    piece = bytes(piece)
    with open(path, "wb", buffering=0) as file:
        while piece:
            try:
                file.write(piece)
            except OSError:
                piece = piece[: len(piece) // 2]
        if leave:
            file.truncate(max(file.tell() - leave, 0))


class Disk:
    def __init__(self, directory):
        self.backing = directory.with_name(f"{directory.name}.backing")
        self.directory = directory

    def make(self):
        self.backing.mkdir(parents=True)
        run("mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", self.backing)
        self.directory.mkdir(parents=True)
        self.begin()

    def begin(self):
        """An empty disk, as a new one."""
        image = self.backing / "image"
        image.unlink(missing_ok=True)
        run("truncate", "--size", SIZE, image)
        run("mkfs.ext4", "-q", "-m", "0", image)
        self.mount()

    def mount(self):
        # An error makes ext4 refuse all writes, as it does by default on most machines.
        run("mount", "-o", "loop,errors=remount-ro", self.backing / "image", self.directory)

    # The faults. All but the first last until the disk is repaired or replaced.

    def freeze(self):
        """Nothing that is written gets anywhere, and no sync returns."""
        run("fsfreeze", "--freeze", self.directory)

    def thaw(self):
        run("fsfreeze", "--unfreeze", self.directory)

    def turn_read_only(self):
        """The file system has met an error, and refuses every write from now on."""
        Path(f"/sys/fs/ext4/{self.device()}/trigger_fs_error").write_text("a test")

    def break_off(self):
        """Every write and every sync is an input/output error."""
        at = os.open(self.directory, os.O_RDONLY)
        try:
            fcntl.ioctl(at, _SHUTDOWN, struct.pack("I", _NO_FLUSH))
        finally:
            os.close(at)

    def lose_writes(self):
        """Writes succeed, into memory; the medium takes none that needs a place of its own, and the sync says so."""
        fill(self.backing / "filler", piece=1 << 20)

    def repair(self):
        """The same disk with what it holds, once whoever used it is gone."""
        (self.backing / "filler").unlink(missing_ok=True)
        run("umount", self.directory)
        # 1: errors were corrected.
        done = subprocess.run(["e2fsck", "-fy", self.backing / "image"], capture_output=True, stdin=subprocess.DEVNULL)
        check(done.returncode in (0, 1), f"e2fsck: {done.stdout.decode(errors='replace')}")
        self.mount()

    def replace(self):
        """A new, empty one in its place."""
        (self.backing / "filler").unlink(missing_ok=True)
        run("umount", self.directory)
        self.begin()

    def device(self):
        for line in Path("/proc/mounts").read_text().splitlines():
            device, where, *_ = line.split()
            if where == str(self.directory):
                return os.path.basename(device)
        raise AssertionError(f"{self.directory} is not mounted")

    def remove(self):
        for where in (self.directory, self.backing):
            # Not waiting for whoever still has a file open there: the run is over.
            subprocess.run(["umount", "--lazy", where], capture_output=True)


def run(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, stdin=subprocess.DEVNULL)
    check(done.returncode == 0, f"{' '.join(map(str, words))}: {done.stderr.decode(errors='replace').strip()}")
