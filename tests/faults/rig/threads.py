"""One thread of a process, frozen or ended while the others go on: what SIGSTOP and kill do to whole processes only."""

import ctypes
import os
import time
from pathlib import Path

from harness.report import Failure

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_LIBC.ptrace.restype = ctypes.c_long
_GETREGS, _SETREGS, _ATTACH, _DETACH = 12, 13, 16, 17
_WALL = 0x40000000
_EXIT = 60
# read, poll, recvfrom, futex, clock_nanosleep: where threads wait for work, or until it is time.
_WAITING = {0, 7, 45, 202, 230}
# A syscall instruction has two bytes, and a thread that waits stands behind it.
_SYSCALL_BYTES = 2


class _Registers(ctypes.Structure):
    """user_regs_struct of x86-64."""

    _fields_ = [
        (name, ctypes.c_ulonglong)
        for name in "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss"
        " fs_base gs_base ds es fs gs".split()
    ]


def why_not():
    """Why no thread can be frozen here; None where one can."""
    if os.uname().machine != "x86_64":
        return "it knows the registers of x86-64 only"
    if os.geteuid() != 0:
        return "it traces threads, which needs root"
    return None


def find(pid, name):
    """The thread of that name; the kernel keeps 15 bytes of it."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name[:15]:
            return int(task.name)
    raise Failure(f"process {pid} has no thread {name}")


def _ptrace(request, tid, data=None):
    if _LIBC.ptrace(request, tid, None, data) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"ptrace {request} of thread {tid}: {os.strerror(error)}")


class Frozen:
    """A thread that stands still until it is let go, or its process ends."""

    def __init__(self, pid, name):
        self.tid = find(pid, name)
        _ptrace(_ATTACH, self.tid)
        os.waitpid(self.tid, _WALL)

    def let_go(self):
        _ptrace(_DETACH, self.tid)

    def wait_end(self, seconds):
        """Until it has ended with its process, which does not go while nobody waits for its traced thread."""
        deadline = time.monotonic() + seconds
        while os.waitpid(self.tid, _WALL | os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                self.let_go()
                raise Failure(f"the process of the frozen thread {self.tid} lives on after {seconds} s")
            time.sleep(0.005)

    def waits(self):
        """Whether it was frozen while it waited for work, and not in the midst of some."""
        registers = _Registers()
        _ptrace(_GETREGS, self.tid, ctypes.byref(registers))
        return registers.orig_rax in _WAITING

    def end(self):
        """Ends this thread alone, without a word: it makes the system call for that as soon as it is let go."""
        registers = _Registers()
        _ptrace(_GETREGS, self.tid, ctypes.byref(registers))
        registers.rip -= _SYSCALL_BYTES
        registers.rax, registers.rdi, registers.orig_rax = _EXIT, 0, 2**64 - 1
        _ptrace(_SETREGS, self.tid, ctypes.byref(registers))
        self.let_go()


def end(pid, name, tries=1000):
    """Ends a thread while it waits for work."""
    for _ in range(tries):
        thread = Frozen(pid, name)
        if thread.waits():
            return thread.end()
        thread.let_go()
    raise Failure(f"thread {name} of process {pid} never waits")
