"""What can be said of the image without building it: that needs base images from a registry."""

import fnmatch
import json
import re
import shutil
import subprocess
from pathlib import Path

import yaml
from chart.render import CHART, ROOT
from harness.report import check

DOCKERFILE = ROOT / "packaging/container/Dockerfile"
HADOLINT = ROOT / "target/clients/helm-venv/bin/hadolint"


def run(report, work):
    with report.case("image", "hadolint"):
        done = subprocess.run([HADOLINT, DOCKERFILE], capture_output=True, text=True)
        check(done.returncode == 0 and not done.stdout, f"{done.stdout}{done.stderr}")
    with report.case("image", "versions and the user are those of the sources and of the chart"):
        text = DOCKERFILE.read_text()
        channel = re.search(r'channel = "([^"]+)"', (ROOT / "rust-toolchain.toml").read_text())[1]
        check(f"ARG RUST={channel}\n" in text, f"the toolchain is {channel}")
        release = re.search(r'^version = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        check(chart["appVersion"] == release, f"the chart is for {chart['appVersion']}, and the release is {release}")
        user = yaml.safe_load((CHART / "values.yaml").read_text())["podSecurityContext"]
        check(f"\nUSER {user['runAsUser']}:{user['runAsGroup']}\n" in text, "the image's user is the chart's")
        check(user["runAsUser"] >= 10000, "a user that no machine has")
        check('\nENTRYPOINT ["/usr/bin/clover"]\n' in text, "the program is in the PATH, where the chart's commands look")
    with report.case("image", "cargo takes the sources that the build is given") as note:
        note.text = context(work / "context")


def context(directory):
    """Lays out what .dockerignore lets through, and has cargo read it: all manifests, and the lock file that fits them."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    taken = [name for name in tracked if name and is_taken(name)]
    for name in taken:
        if (ROOT / name).is_file():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, directory / name)
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE.read_text(), re.MULTILINE):
        for name in source.split():
            check((directory / name).exists(), f"COPY {name}: the build is not given that")
    words = ["cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    targets = {target["name"]: Path(target["src_path"]) for it in json.loads(done.stdout)["packages"] for target in it["targets"]}
    check(targets["clover"].is_file(), "the program's first file is there")
    shutil.rmtree(directory)
    return f"{len(taken)} of {len(tracked)} files"


def is_taken(name):
    """The rules of .dockerignore as far as ours go: the last line that matches the name, or a directory that it is in, counts."""
    taken = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        parts = name.split("/")
        if any(fnmatch.fnmatchcase("/".join(parts[: count + 1]), pattern) for count in range(len(parts))):
            taken = line.startswith("!")
    return taken
