"""The JVM that runs test classes against a URI, and what it says of each test."""

import os
import shutil
import subprocess
import sys
import zipfile

from harness.clients import environment

from .control import Control

# The whole of it takes some ten minutes on two slow cores.
TIMEOUT_S = 3600
# A class that has a JVM of its own may wait for what never comes, without a look at JUnit's time-out.
ALONE_TIMEOUT_S = 300

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
"""


class Judge:
    def __init__(self, clients, version, work):
        self.jars = clients / f"contract-{version}"
        self.classes = clients / f"contract-classes-{version}"
        if not self.classes.is_dir():
            raise SystemExit(f"{self.classes} is missing: run scripts/setup-test {version}")
        self.work = work
        self.conf = work / "judge-conf"
        self.conf.mkdir()
        (self.conf / "log4j.properties").write_text(LOGGING)
        temporary = f"<property><name>hadoop.tmp.dir</name><value>{work / 'tmp'}</value></property>"
        (self.conf / "core-site.xml").write_text(f"<configuration>{temporary}</configuration>\n")
        (self.conf / "hdfs-site.xml").write_text("<configuration/>\n")

    def java(self, parts, *arguments, heap_mib=512, properties=()):
        """A command that runs a class, with some of our directories of classes before Hadoop's jars."""
        ours = ":".join(str(self.classes / part) for part in parts)
        options = [f"-Xmx{heap_mib}m", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8", *OPENS, *properties]
        return ["java", *options, "-cp", f"{self.conf}:{ours}:{self.jars}/*", *map(str, arguments)]

    def run(self, cluster, groups, column):
        """Runs the classes on a cluster, a JVM a group, and returns (class, test) -> (result, reason, milliseconds)."""
        found = {}
        with Control(cluster.restart_metadata) as control, open(self.work / f"{column}.log", "wb") as log:
            for names in groups:
                print(f"{column}: {names[0].rsplit('.', 1)[-1]}" + (f" and {len(names) - 1} more" if names[1:] else ""), file=sys.stderr, flush=True)
                for key, row in self.run_group(cluster.uri, control.port, names, column, log):
                    # Repeated runs of one name: the worst counts.
                    before = found.get(key)
                    if before is None or ORDER.index(row[0]) > ORDER.index(before[0]):
                        found[key] = row
        return found

    def run_group(self, uri, port, names, column, log):
        results, place = self.work / f"{column}.tsv", self.work / f"{column}-cwd"
        self.lay_out(place)
        properties = [
            f"-Dclover.contract.uri={uri}",
            f"-Dclover.contract.control={port}",
            f"-Dtest.cache.data={place / 'cache'}",
            f"-Dtest.build.data={place / 'data'}",
            f"-Dhadoop.log.dir={place / 'logs'}",
        ]
        command = self.java(["shim", "bind", "judge"], "Judge", results, *names, properties=properties)
        variables = {**environment(), "USER": os.environ.get("USER", "root")}
        process = subprocess.Popen(command, cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=variables)
        code, limit_s = None, TIMEOUT_S if names[1:] else ALONE_TIMEOUT_S
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            if names[1:]:
                raise
        finally:
            process.kill()
        if code:
            raise SystemExit(f"the judge ended with {code} at {', '.join(names)}; see {log.name}")
        shutil.rmtree(place, ignore_errors=True)
        for line in results.read_text().splitlines():
            name, test, result, millis, reason = line.split("\t")
            yield (name, test), (result, reason, int(millis))
        if code is None:
            yield (names[0].rsplit(".", 1)[-1], "the rest"), ("failed", f"not done after {limit_s} s", limit_s * 1000)

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
