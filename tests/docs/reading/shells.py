"""A shell that stays open, as the reader's does: what one command exports the next one sees."""

import os
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

PATIENCE_S = 90
# A further machine: a network of its own, and files of its own where its configuration and its data are.
MACHINE = ["unshare", "--mount", "--net", "sh", "-c", """
set -e
mkdir -p /tmp/.machines/$0
mount -t tmpfs tmpfs /tmp/.machines/$0
cp -a /etc/. /tmp/.machines/$0
mount --bind /tmp/.machines/$0 /etc
mount -t tmpfs tmpfs /var/lib
exec bash --norc
"""]


class Shell:
    def __init__(self, machine, home, quiet=False):
        command = [*MACHINE, machine] if machine else ["bash", "--norc"]
        self.home = home
        self.machine = machine
        self.quiet = quiet
        self.process = subprocess.Popen(command, cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.run("true")

    def run(self, text):
        """The exit code, and all that was printed."""
        self.tell(f"{self.machine}$ {text}")
        mark = uuid.uuid4().hex
        # The commands read nothing from the terminal, and their input is not what the shell reads next.
        self.process.stdin.write(f"{{ {text}\n}} </dev/null\nprintf '\\n%s %s\\n' {mark} $?\n")
        self.process.stdin.flush()
        lines, begun = [], time.monotonic()
        while True:
            line = self.process.stdout.readline()
            assert line, f"the shell has ended after {''.join(lines)}"
            if line.startswith(mark):
                break
            lines.append(line)
            assert time.monotonic() - begun < PATIENCE_S, f"`{text}` takes longer than {PATIENCE_S} s"
        printed = "".join(lines)
        self.tell(printed.rstrip())
        return int(line.split()[1]), printed

    def start(self, text):
        """Leaves it running, with what the shell has exported."""
        self.tell(f"{self.machine}$ {text} &")
        return Server(text, ["nsenter", f"--mount=/proc/{self.process.pid}/ns/mnt", f"--net=/proc/{self.process.pid}/ns/net", "--wd=" + str(self.home)], self.process.pid)

    def tell(self, text):
        if not self.quiet:
            print(text, flush=True)

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def file(self, path):
        """Where this machine's file of that name is for us."""
        if not os.path.isabs(path):
            return self.home / path
        return Path(f"/proc/{self.process.pid}/root{path}") if self.machine else Path(path)


class Server:
    def __init__(self, text, enter, shell):
        self.text = text
        self.log = tempfile.NamedTemporaryFile(prefix="server-", suffix=".log", dir="/tmp", mode="w+")
        self.process = subprocess.Popen([*enter, "bash", "--norc", "-c", text], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)

    def said(self):
        return Path(self.log.name).read_text(errors="replace")

    def interrupt(self, seconds):
        """^C goes to all that the command has started."""
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"`{self.text}` does not end with ^C: {self.said()}") from None
