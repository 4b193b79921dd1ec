"""Stock writers that do one thing after the other when a story tells them to; java/Pens.java has the other side."""

import itertools
import queue
import subprocess
import threading
import time

from harness.process import die_with_parent
from harness.report import Failure

# Longer than a stock client goes on trying with the time limits that stories give it.
ANSWER_S = 150


class Refused(Failure):
    """The client's exception as it told it: `CLASS: sentence`."""


class Pens:
    """One JVM with as many writers as a story wants. It ends with the `with` block."""

    def __init__(self, scene, **properties):
        java, conf = scene.options.java, scene.conf(**properties)
        command = java.command(conf, "pens", "/")
        self.log = scene.directory / "clients" / "pens.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=die_with_parent
            )
        self.answers, self.lock, self.numbers = {}, threading.Lock(), itertools.count(1)
        threading.Thread(target=self.listen, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()

    def pen(self):
        name = f"p{next(self.numbers)}"
        self.answers[name] = queue.Queue()
        return Pen(self, name)

    def send(self, line):
        with self.lock:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()

    def listen(self):
        for line in self.process.stdout:
            name, _, answer = line.rstrip("\n").partition(" ")
            self.answers[name].put(answer)


class Pen:
    """One writer, and its file while that is open. What it writes at a place is known from the place."""

    def __init__(self, pens, name):
        self.pens, self.name = pens, name

    def begin(self, *words):
        """Gives the order; `end` waits for the answer."""
        self.pens.send(" ".join(map(str, (self.name, *words))))

    def end(self, seconds=ANSWER_S):
        try:
            answer = self.pens.answers[self.name].get(timeout=seconds)
        except queue.Empty:
            tail = self.pens.log.read_text(errors="replace")[-2000:]
            raise Failure(f"a writer has no answer after {seconds} s:\n{tail}") from None
        outcome, _, value = answer.partition(" ")
        if outcome != "ok":
            raise Refused(value)
        return value

    def does(self, *words):
        self.begin(*words)
        return self.end()

    def ports(self, *words):
        """The transfer ports that `pipeline` or `places PATH` names, once there are any."""
        for _ in range(200):
            if value := self.does(*words):
                return [int(port) for port in value.split(",")]
            time.sleep(0.02)
        raise Failure(f"there is no answer to {' '.join(words)}")

    def length(self, path):
        """Reads all of a file that pens have written; fails where a byte is wrong."""
        return int(self.does("read", path).split()[0])
