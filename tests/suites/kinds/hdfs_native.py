"""The tests of hdfs-native, which its crate brings along: each starts a cluster of its own, with the features that it needs.

On Hadoop a program of ours starts that cluster: theirs wants jars of the router, the KMS and Kerberos as well, for tests that are left out here.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from harness.clients import call, environment
from rig.judge import Judge

VERSION = "0.14.8"
# Those that want a cluster.
TESTS = ["test_failover", "test_integration", "test_read", "test_read_resiliency", "test_trash", "test_write", "test_write_resiliency"]
# Left out by their names, for what Clover has not: erasure coding, several name services, Kerberos and what rests on it.
NOT_BUILT = ["aes", "cipher", "ec_", "encryption", "integrity", "kerberos", "keytab", "kms", "privacy", "rbf", "sasl", "security", "striped", "token", "viewfs"]
LINE = re.compile(r"^test (?:test::)?(\S+) \.\.\. (?:.*\b)?(ok|FAILED|ignored)", re.MULTILINE)
RESULTS = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
TIMEOUT_S = 1800


def on_clover(stock, work):
    work.mkdir()
    return run(stock, work, {"SUITE_CLOVER": str(stock.clover)})


def on_hadoop(stock, work):
    work.mkdir()
    command = Judge(stock.clients, stock.hadoop, work).java(["hadoop"], "Featured", heap_mib=768)
    return run(stock, work, {"SUITE_HADOOP": json.dumps(command)})


def run(stock, work, variables):
    """Test -> (result, what it said)."""
    path = work / "path"
    path.mkdir()
    (path / "mvn").symlink_to(Path(__file__).with_name("stand-in-mvn").resolve())
    variables = {**variables, "PATH": f"{path}:{os.environ['PATH']}", "SUITE_WORK": str(work)}
    source = work / "source"
    shutil.copytree(unpacked(work / "crate"), source)
    # Below our own root cargo would take it for a member of our workspace.
    with open(source / "Cargo.toml", "a") as manifest:
        manifest.write("\n[workspace]\n")
    there = {**environment(), "CARGO_TARGET_DIR": str(stock.clients / "hdfs-native-tests"), "CARGO_TERM_COLOR": "never", **variables}
    found = {}
    for test in TESTS:
        command = ["cargo", "test", "--locked", "--features", "integration-test", "--test", test, "--"]
        command += [word for name in NOT_BUILT for word in ("--skip", name)]
        log = work / f"{test}.log"
        with open(log, "wb") as out:
            # It ends with 101 where a test fails, which is what its lines tell.
            subprocess.run(command, cwd=source, env=there, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=TIMEOUT_S)
        said = log.read_text(errors="replace")
        lines = LINE.findall(said)
        if not lines:
            raise RuntimeError(f"{test} ran no test; see {log}")
        for name, result in lines:
            found[f"{test}/{name}"] = (RESULTS[result], said)
    return found


def unpacked(probe):
    """Where cargo has unpacked the crate."""
    (probe / "src").mkdir(parents=True)
    (probe / "src/lib.rs").write_text("")
    (probe / "Cargo.toml").write_text(
        f'[package]\nname = "probe"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n[dependencies]\nhdfs-native = "={VERSION}"\n'
    )
    found = json.loads(call(["cargo", "metadata", "--format-version", "1"], cwd=probe))
    return Path(next(package["manifest_path"] for package in found["packages"] if package["name"] == "hdfs-native")).parent
