"""What stories look at in a member's directory, and copies of it, from outside."""

import shutil
import struct
import subprocess

from harness.report import check


def generation(member):
    """By the member's own state, as docs/format/journal.md has it; the copy that was written more often counts."""
    copies = []
    for name in ("member.0", "member.1"):
        content = (member.directory / "group-1" / name).read_bytes()
        copies.append((struct.unpack_from("<Q", content, 16)[0], struct.unpack_from("<Q", content, 80)[0]))
    return max(copies)[1]


def check_nothing_put_aside(cluster):
    for member in cluster.members.values():
        aside = sorted(path.name for path in (member.directory / "group-1").glob("set-aside-*"))
        check(not aside, f"{member.name} has put aside what it held: {aside}")


def snapshot(process, directory, to):
    """A copy of a directory as it was at one moment, as a snapshot of the disk below a running process is."""
    process.freeze()
    try:
        copy(directory, to)
    finally:
        process.thaw()


def put_back(copied, directory):
    """The copy, in the place of what is there now."""
    shutil.rmtree(directory)
    copy(copied, directory)


def copy(directory, to):
    done = subprocess.run(["cp", "-a", "--sparse=always", directory, to], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    check(done.returncode == 0, f"cp {directory}: {done.stderr}")
