"""A process that is started, frozen and killed. None outlives the run, however the run ends."""

import ctypes
import os
import signal
import subprocess

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


def die_with_parent():
    """Called in the child: the kernel kills it when the run is gone, even by SIGKILL."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    def __init__(self, name, command, log, environment=None, stdin=subprocess.DEVNULL):
        self.name = name
        self.log = log
        self.is_frozen = False
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(
                [str(word) for word in command],
                stdin=stdin,
                stdout=out,
                stderr=out,
                env={**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})},
                preexec_fn=die_with_parent,
            )

    @property
    def pid(self):
        return self.popen.pid

    @property
    def is_running(self):
        return self.popen.poll() is None

    def kill(self):
        """SIGKILL, without waiting for its end: the moment of the fault is now."""
        if self.is_running:
            os.kill(self.pid, signal.SIGKILL)

    def freeze(self):
        os.kill(self.pid, signal.SIGSTOP)
        self.is_frozen = True

    def thaw(self):
        if self.is_running and self.is_frozen:
            os.kill(self.pid, signal.SIGCONT)
        self.is_frozen = False

    def end(self, seconds=20):
        """Asks it to end, and kills it if it does not."""
        self.thaw()
        if self.is_running:
            self.popen.terminate()
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.popen.wait()

    def wait_gone(self, seconds=60):
        return self.popen.wait(seconds)

    def tail(self, size=3000):
        return self.log.read_text(errors="replace")[-size:]
