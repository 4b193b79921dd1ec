"""The older program: built once from a pinned commit of this repository, and kept."""

import os
import shutil
import subprocess
import tarfile
import time

# The last commit whose members know of no levels. It agrees on the version of the members' protocol (from 3 on) and reads
# every format of the first level, so a group of its members is what a group of the release before looks like. It moves on to the
# commit of a release once there is one.
PINNED = "e2f48c37483a8cd25f33f6dbce824982908f34c9"


def program(root, commit=None, cargo="cargo"):
    """Its path. Built where it is not there yet: some ten minutes on two cores, once."""
    commit = full_name(root, commit or PINNED)
    place = root / "target/upgrade" / commit[:12]
    built = place / "clover"
    if built.exists():
        return built
    print(f"building {commit[:12]}, once: some ten minutes on two cores", flush=True)
    begun = time.monotonic()
    source, build = place / "source", place / "build"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    extract(root, commit, source)
    environment = {**os.environ, "CARGO_TARGET_DIR": str(build)}
    subprocess.run(["nice", "-n", "10", cargo, "build", "--quiet", "--locked", "--bin", "clover"], cwd=source, env=environment, check=True)
    place.joinpath("clover.new").unlink(missing_ok=True)
    shutil.copy2(build / "debug/clover", place / "clover.new")
    (place / "clover.new").rename(built)
    shutil.rmtree(build)
    print(f"built in {time.monotonic() - begun:.0f} s: {built}", flush=True)
    return built


def full_name(root, commit):
    asked = subprocess.run(["git", "rev-parse", "--verify", f"{commit}^{{commit}}"], cwd=root, capture_output=True, text=True)
    if asked.returncode:
        raise SystemExit(f"{commit} is not in this repository's history: a shallow clone? `git fetch --unshallow` brings it")
    return asked.stdout.strip()


def extract(root, commit, into):
    """The files as of that commit. They are of this moment to cargo, which goes by the times of files."""
    with subprocess.Popen(["git", "archive", commit], cwd=root, stdout=subprocess.PIPE) as archive:
        with tarfile.open(fileobj=archive.stdout, mode="r|") as files:
            files.extractall(into, filter="data")
    if archive.returncode:
        raise SystemExit(f"git archive {commit} failed")
    now = time.time()
    for file in into.rglob("*"):
        if file.is_file() and not file.is_symlink():
            os.utime(file, (now, now))
