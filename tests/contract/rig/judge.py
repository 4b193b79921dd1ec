"""The JVM that runs test classes against a URI, and what it says of each test."""

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile

from harness.clients import environment
from harness.cluster import free_port

from .control import Control
from .layout import DATA_KEYS, KEYS, THEIRS

# The whole of it takes some ten minutes on two slow cores.
TIMEOUT_S = 3600

# A test in a class alone, which a minute is enough for unless it waits for what the stand-in for a server's inside will never do.
ALONE_TEST_S = 60
# A JVM writes its threads' stacks in so long.
DUMP_S = 2

# Modules that Hadoop's own build opens for its tests.
OPENS = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.io", "java.math", "java.net", "java.text", "java.util", "java.util.zip", "sun.security.x509")
]

LOGGING = """\
log4j.rootLogger=WARN,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
log4j.logger.org.apache.hadoop.cli=INFO
# A test reads where a file went.
log4j.logger.org.apache.hadoop.fs.TrashPolicyDefault=INFO
"""


class Judge:
    def __init__(self, clients, version, work):
        self.jars = clients / f"contract-{version}"
        self.classes = clients / f"contract-classes-{version}"
        if not self.classes.is_dir():
            raise SystemExit(f"{self.classes} is missing: run scripts/setup-test {version}")
        self.work = work
        # Where a cluster asks for the groups of a user.
        self.groups_port = free_port()
        self.conf = work / "judge-conf"
        self.conf.mkdir(exist_ok=True)
        (self.conf / "log4j.properties").write_text(LOGGING)
        temporary = f"<property><name>hadoop.tmp.dir</name><value>{work / 'tmp'}</value></property>"
        (self.conf / "core-site.xml").write_text(f"<configuration>{temporary}</configuration>\n")
        (self.conf / "hdfs-site.xml").write_text("<configuration/>\n")

    def java(self, parts, *arguments, heap_mib=512, properties=()):
        """A command that runs a class, with some of our directories of classes before Hadoop's jars."""
        ours = ":".join(str(self.classes / part) for part in parts)
        # Nothing here runs for long enough that the second compiler would pay.
        options = [f"-Xmx{heap_mib}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8", *OPENS, *properties]
        return ["java", *options, "-cp", f"{self.conf}:{ours}:{self.jars}/*", *map(str, arguments)]

    def run(self, cluster, groups, column, limit_s, keep=lambda found: None):
        """Runs the classes on a cluster, a JVM a group, and returns (class, test) -> (result, reason, milliseconds). What an earlier run
        in this directory has found stands. A class alone has `limit_s` seconds; `keep` hears of each group's end."""
        found = {}
        results, logs = self.work / f"{column}-results", self.work / f"{column}-logs"
        results.mkdir(exist_ok=True)
        logs.mkdir(exist_ok=True)
        with Control(cluster) as control:
            for number, names in enumerate(groups, 1):
                first = simple(names[0])
                path = results / f"{first}.tsv"
                title = f"{column}: {number} of {len(groups)}: {first}" + (f" and {len(names) - 1} more" if names[1:] else "")
                is_kept = path.exists()
                print(title, end=" (kept): " if is_kept else ": ", file=sys.stderr, flush=True)
                begun = time.monotonic()
                if not is_kept:
                    self.run_group(cluster, control.port, names, logs / f"{first}.log", path, limit_s)
                of_group = read(path)
                found.update(of_group)
                counts = [sum(row[0] == result for row in of_group.values()) for result in ORDER]
                spent = round(time.monotonic() - begun)
                print(f"{counts[0]} passed, {counts[2]} failed, {counts[1]} skipped, {spent} s", file=sys.stderr, flush=True)
                keep(of_group)
        return found

    def run_group(self, cluster, port, names, log, path, limit_s):
        """Leaves the rows in `path` once the classes have ended in one way or another."""
        results, place = path.with_suffix(".part"), self.work / f"{log.parent.name}-cwd"
        shutil.rmtree(place, ignore_errors=True)
        results.unlink(missing_ok=True)
        self.lay_out(place)
        alone = not names[1:]
        properties = [
            f"-Dclover.contract.uri={cluster.uri}",
            f"-Dclover.contract.http={cluster.http}",
            f"-Dclover.contract.control={port}",
            f"-Dclover.contract.groups={self.groups_port}",
            f"-Dclover.contract.keys={','.join(KEYS + DATA_KEYS + THEIRS)}",
            # Those that share a JVM share a cluster as it is, too.
            f"-Dclover.contract.layouts={'true' if alone else 'false'}",
            *([f"-Dclover.contract.limit={ALONE_TEST_S}"] if alone else []),
            f"-Dtest.cache.data={place / 'cache'}",
            f"-Dtest.build.data={place / 'data'}",
            f"-Dhadoop.log.dir={place / 'logs'}",
        ]
        command = self.java(["shim", "bind", "judge"], "Judge", results, *names, properties=properties)
        variables = {**environment(), "USER": os.environ.get("USER", "root")}
        with open(log, "wb") as written:
            process = subprocess.Popen(command, cwd=place, stdin=subprocess.DEVNULL, stdout=written, stderr=written, env=variables)
        code = None
        limit_s = limit_s if alone else TIMEOUT_S
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            if not alone:
                raise
            # Where it stands is what one wants to know.
            process.send_signal(signal.SIGQUIT)
            time.sleep(DUMP_S)
        finally:
            process.kill()
            process.wait()
        if code and not alone:
            raise SystemExit(f"the judge ended with {code} at {', '.join(names)}; see {log}")
        shutil.rmtree(place, ignore_errors=True)
        if code != 0:
            why = f"not done after {limit_s} s" if code is None else f"the JVM ended with {code}"
            with open(results, "a") as rows:
                rows.write(f"{simple(names[0])}\tthe rest\tfailed\t{limit_s * 1000}\t{why}\n")
            cluster.renew()
        results.rename(path)

    def lay_out(self, place):
        """The files beside the test sources, which Hadoop's build copies to where the tests look for them."""
        cache = place / "cache"
        cache.mkdir(parents=True)
        for jar in sorted(self.jars.glob("*-test-sources.jar")):
            with zipfile.ZipFile(jar) as sources:
                for name in sources.namelist():
                    if "/" not in name and not name.endswith(".java"):
                        sources.extract(name, cache)


ORDER = ("passed", "skipped", "failed")


def simple(name):
    return name.rsplit(".", 1)[-1]


def read(path):
    found = {}
    for line in path.read_text().splitlines():
        name, test, result, millis, reason = line.split("\t")
        # Repeated runs of one name: the worst counts.
        before = found.get((name, test))
        if before is None or ORDER.index(result) > ORDER.index(before[0]):
            found[name, test] = (result, reason, int(millis))
    return found
