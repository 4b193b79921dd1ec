"""Stories for the shell: how they are written, who carries the commands out, and what two clusters' answers have in common.

A story file has a line a command; the file's name is the story's, and its own directory is `/NAME` in the cluster. `LOCAL`
is a local directory of the story's own.

    dfs -put LOCAL/poem /writing        what follows the tool's name is split as a shell would
    [alice] dfs -rm /writing/poem       as another user
    dfs -put - /writing/x <<< "a\\nb"     with standard input
    local write LOCAL/poem "a\\nb"       write, cat, ls, mkdir: on this machine
    # a remark
"""

import base64
import re
import shlex
import shutil
import subprocess
import threading
from dataclasses import dataclass

from harness.clients import environment

COMMAND_S = 120

# The exit code of commands that make no sense, -1 in Java.
USAGE = 255


@dataclass(frozen=True)
class Command:
    story: str
    line: int
    text: str

    @property
    def key(self):
        return f"{self.story}: {self.text}"


@dataclass
class Answer:
    code: int
    out: str
    err: str

    def without_usage(self):
        """A command that is spelt wrong is told so by both, each in its own words."""
        return Answer(self.code, "", "") if self.code == USAGE else self

    def lines(self):
        return [f"exit {self.code}", *(f"  {line}" for line in self.out.splitlines()), *(f"! {line}" for line in self.err.splitlines())]


def stories(directory, only):
    """All commands, in order; a text that comes twice in a story gets a number, so that each has a name."""
    found = []
    for path in sorted(directory.glob("*.txt")):
        if only and path.stem not in only:
            continue
        seen = {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            text = line.strip()
            if text and not text.startswith("#"):
                seen[text] = seen.get(text, 0) + 1
                again = f"  # {seen[text]}" if seen[text] > 1 else ""
                found.append(Command(path.stem, number, text + again))
    return found


def parsed(command, local):
    """User, tool, standard input, words."""
    words = shlex.split(command.text, comments=True)
    user = words.pop(0).strip("[]") if words[0].startswith("[") else ""
    text = ""
    if "<<<" in words:
        at = words.index("<<<")
        text = unescaped(words[at + 1])
        del words[at : at + 2]
    words = [word.replace("LOCAL", str(local)) for word in words]
    return user, words[0], text, words[1:]


def unescaped(text):
    return text.replace("\\n", "\n").replace("\\t", "\t")


class Column:
    """One way to carry commands out, on one cluster."""

    def __init__(self, local, uri):
        self.local = local
        self.uri = uri
        shutil.rmtree(local, ignore_errors=True)

    def call(self, command):
        place = self.local / command.story
        place.mkdir(parents=True, exist_ok=True)
        user, tool, text, words = parsed(command, place)
        if tool == "local":
            return on_this_machine(words)
        answer = self.run(user, tool, text, words)
        if answer is None:
            return None
        answer = Answer(answer.code, *(normal(part, self.uri, place) for part in (answer.out, answer.err)))
        if words[:1] in (["-report"], ["-df"]) and tool in ("dfs", "dfsadmin"):
            answer.out = without_figures(answer.out)
        return answer


class Stock(Column):
    """Hadoop's command lines in one JVM."""

    def __init__(self, judge, uri, local, log):
        super().__init__(local, uri)
        with open(log, "wb") as err:
            command = judge.java(["shell"], "Shell", uri, properties=[f"-Duser.dir={local}"])
            self.process = subprocess.Popen(
                command, cwd=judge.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True, env=environment()
            )
        self.log = log

    def run(self, user, tool, text, words):
        request = "\t".join([user, tool, encoded(text), *map(encoded, words)])
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        # A command that hangs takes the whole JVM with it: there is no going on with half a command running.
        timer = threading.Timer(COMMAND_S, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if not line:
            raise SystemExit(f"the shell's JVM ended at: {tool} {shlex.join(words)}; see {self.log}")
        code, out, err = line.rstrip("\n").split("\t")
        # As a process would tell it.
        return Answer(int(code) & 0xFF, decoded(out), decoded(err))

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Native(Column):
    """`clover fs`, a process a command. What it has no command for is left to Hadoop's shell, so that the story goes on, and not judged."""

    def __init__(self, clover, uri, local, stock):
        super().__init__(local, uri)
        self.clover = clover
        self.stock = stock

    def run(self, user, tool, text, words):
        answer = self.native(user, text, words) if tool == "dfs" else None
        if answer is None:
            self.stock.run(user, tool, text, words)
        return answer

    def native(self, user, text, words):
        command = [str(self.clover), "fs", "-fs", self.uri, *words]
        extra = {"HADOOP_USER_NAME": user} if user else {}
        done = subprocess.run(
            command, input=text.encode(), capture_output=True, timeout=COMMAND_S, env={**environment(), **extra}, cwd=self.local
        )
        said = done.stderr.decode(errors="replace")
        if "error: unrecognized subcommand" in said:
            return None
        return Answer(done.returncode, done.stdout.decode(errors="replace"), said)

    def close(self):
        self.stock.close()


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def decoded(text):
    return base64.b64decode(text).decode(errors="replace")


def on_this_machine(words):
    """Sets the scene for a story, and looks at what a command left behind."""
    verb, path, *rest = words
    try:
        match verb:
            case "write":
                with open(path, "w") as file:
                    file.write(unescaped(rest[0]))
                return Answer(0, "", "")
            case "mkdir":
                from pathlib import Path

                Path(path).mkdir(parents=True)
                return Answer(0, "", "")
            case "cat":
                with open(path, errors="replace") as file:
                    return Answer(0, file.read(), "")
            case "ls":
                import os

                return Answer(0, "\n".join(sorted(os.listdir(path))), "")
    except OSError as error:
        return Answer(1, "", error.strerror)
    raise SystemExit(f"no such verb: local {verb}")


def without_figures(text):
    """What is left of a report once the sizes of somebody's disks are out of it."""
    text = re.sub(r"-?\d+(\.\d+)? \(-?[\d.]+ [KMGTP]?B\)", "SIZE", text)
    text = re.sub(r"(-?\d+\.\d+|-?\d+|NaN)%", "PERCENT", text)
    text = re.sub(r"^(\s*(Pending deletion blocks|Num of Blocks|Xceivers|.*low redundancy.*): )\d+$", r"\1N", text, flags=re.I | re.M)
    text = re.sub(r"^(hdfs://CLUSTER) .*PERCENT$", r"\1 FIGURES", text, flags=re.M)
    return re.sub(r" {2,}", " ", text)


# What differs between any two clusters, however alike: where they are, when it was, and the numbers that they count up.
# Times that a story sets are long ago, and stay.
NORMAL = [
    (r"\b(localhost|127\.0\.0\.1)(/127\.0\.0\.1)?:\d+", "HOST:PORT"),
    (r"\b20(2[5-9]|[3-9]\d)-\d\d-\d\d \d\d:\d\d(:\d\d(\.\d+)?)?", "DATE"),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} \d\d \d\d:\d\d:\d\d \w+ \d{4}", "DATE"),
    (r"\bs\d{8}-\d{6}\.\d{3}\b", "sDATE"),
    (r"(\.Trash/)(\d{12,14}|\d{2}\d{10})\b", r"\1STAMP"),
    (r"(?<!\d)1[7-9]\d{11}(?!\d)", "MILLIS"),
    (r"\bblk_\d+(_\d+)?", "blk_N"),
    (r"\bBP-\d+-[\d.]+-\d+", "BP-N"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (r"\binode (\d+)", "inode N"),
    (r"\btxid \d+", "txid N"),
    # A dot for each ten seconds that it took.
    (r"(?m)\.+ done$", ". done"),
    # A server in Java appends its stack to some errors.
    (r"\n(\s*at [\w.$<>/]+\([^)\n]*\)\n)+", ""),
    (r"(?m)^\s*\.\.\. \d+ more\n", ""),
    (r"DFSClient_\w+", "DFSClient"),
]


def normal(text, uri, local):
    text = text.replace(str(local), "LOCAL").replace(uri, "hdfs://CLUSTER")
    for pattern, word in NORMAL:
        text = re.sub(pattern, word, text)
    # Where a stack stood at the end, an empty line is left of it.
    return re.sub(r"\n+$", "\n", text)
