"""A backup of a lone server: what is refused, what is damaged, what is taken up again, and a look at the past."""

import json
import shutil
import signal
import subprocess
import time

from harness.report import check
from stand import admin, clover, fs, until, uri

IN_SLICE = True


def run(make):
    cluster = make.start(members=1, data=1)
    member = cluster.members[1]
    backup = make.directory / "backup"

    def archive(*words, directory=backup, settings=member.settings, of=cluster):
        return clover(of, "admin", "--fs", uri(of), "backup", directory, "--config", settings, *words)

    letter = make.directory / "letter"
    letter.write_text("hello\n" * 100)
    fs(cluster, "-put", letter, "/letter").works()
    fs(cluster, "-put", letter, "/another").works()
    archive().works("Archived", "can be restored")
    before = json.loads(clover(cluster, "meta", "backup", "list", "--json", backup).works().out)["ranges"][0]
    fs(cluster, "-rm", "-skipTrash", "/letter").works()
    fs(cluster, "-mkdir", "/later").works()

    # A program that does not know the secret gets nothing, and no other directory is touched.
    guess = make.directory / "guess"
    guess.write_text("one of thirty-two letters or so\n")
    clover(cluster, "admin", "--fs", uri(cluster), "backup", make.directory / "x", "--secret-file", guess).is_refused("another one than this cluster's")
    clover(cluster, "admin", "--fs", uri(cluster), "backup", make.directory / "x").is_refused("--secret-file")
    full = make.directory / "full"
    full.mkdir()
    (full / "mine").write_text("mine")
    archive(directory=full).is_refused("is not empty (it holds mine)")
    check([path.name for path in full.iterdir()] == ["mine"], list(full.iterdir()))

    # Killed at any moment, it is taken up again.
    for pause in (0.02, 0.1, 0.3):
        fs(cluster, "-mkdir", f"/later/{pause}").works()
        follower = subprocess.Popen(
            [cluster.clover, "admin", "--fs", uri(cluster), "backup", backup, "--follow", "--config", member.settings],
            stderr=subprocess.DEVNULL,
        )
        time.sleep(pause)
        follower.kill()
        follower.wait()
    said = make.directory / "follower.err"
    follower = subprocess.Popen(
        [cluster.clover, "admin", "--fs", uri(cluster), "backup", backup, "--follow", "--config", member.settings], stderr=said.open("wb")
    )
    until("it follows", lambda: "archived up to" in said.read_text())
    archive().is_refused("another process adds to")
    follower.send_signal(signal.SIGINT)
    check(follower.wait(timeout=20) == 0, "^C is its ordinary end")
    archive().works()
    clover(cluster, "meta", "backup", "verify", "--deep", backup).works("verdict: sound")

    # What was there, and what became of it.
    last = before["last_sn"]
    look = ("meta", "backup", "look", backup)
    clover(cluster, *look, "--entry", last).works("/letter").does_not_say("/later")
    clover(cluster, *look).works("/later").does_not_say("/letter")
    clover(cluster, *look, "-R").works("/later/0.3")
    clover(cluster, *look, "--summary").works("5 directories, 1 files")
    clover(cluster, *look, "--gone-since", "--entry", last).works("/letter", "1 of 1 blocks gone")
    clover(cluster, *look, "--entry", 10**9).is_refused("its last entry is")
    clover(cluster, *look, "--at", "1999-01-01T00:00:00Z").is_refused("begins later")
    clover(cluster, *look, "--at", "2999-01-01T00:00:00Z").is_refused("does not go on so far")
    clover(cluster, *look, "/nothing").is_refused("/nothing")

    # As another cluster, to look with any client.
    side = make.cluster("side", members=1, data=0)
    side.directory.mkdir(parents=True)
    other = side.members[1]
    other.configure([], None)
    clover(side, "meta", "restore", backup, "--config", other.settings, "--entry", last, "--cluster-id", "look").works("Restored cluster look")
    other.start()
    until("it serves", lambda: other.said_role() is not None)
    fs(side, "-ls", "/").works("/letter")
    fs(side, "-mkdir", "/refused").is_refused("afe mode")
    archive(settings=other.settings, of=side).is_refused("is a backup of cluster")

    # A byte that has changed and a file that is gone are named; nothing is restored from what is not sound.
    spoilt = make.directory / "spoilt"
    shutil.copytree(backup, spoilt)
    segment = max((spoilt / "log").iterdir(), key=lambda path: path.stat().st_size)
    bytes_of = bytearray(segment.read_bytes())
    bytes_of[4200] ^= 1
    segment.write_bytes(bytes_of)
    clover(cluster, "meta", "backup", "verify", spoilt).is_refused(segment.name, "NOT SOUND")
    fresh = make.cluster("fresh", members=1, data=0)
    fresh.directory.mkdir(parents=True)
    fresh.members[1].configure([], None)
    clover(cluster, "meta", "restore", spoilt, "--config", fresh.members[1].settings).is_refused(segment.name)
    check(not any(fresh.members[1].directory.glob("*")), "nothing is left behind")
    segment.unlink()
    clover(cluster, "meta", "backup", "verify", spoilt).is_refused("NOT SOUND", "are missing")
    (spoilt / "manifest.0").write_text("nonsense\n")
    clover(cluster, "meta", "backup", "list", spoilt).works("WARNING")
    (spoilt / "manifest.1").unlink()
    clover(cluster, "meta", "backup", "list", spoilt).is_refused("neither copy of the manifest")
    archive(directory=spoilt).is_refused("neither copy of the manifest")
    clover(cluster, "meta", "backup", "list", full).is_refused("holds no backup")

    # In its own place, as a lone server: what had been there, with deletions off.
    member.process.end()
    aside = member.directory.rename(make.directory / "aside")
    clover(cluster, "meta", "restore", backup, "--config", member.settings).works("Restored cluster")
    member.start()
    until("it serves", lambda: member.said_role() is not None)
    fs(cluster, "-test", "-d", "/later").works()
    admin(cluster, "blocks", "allow-deletions").says("Deletions are held back since epoch")
    check(aside.exists(), aside)
