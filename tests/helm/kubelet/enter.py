"""enter NETNS ROOT UID GID COMMAND…: becomes the command as a container runs it: in this network, with this root directory, as this user and no
other group, without any capability, and never with more rights than that."""

import ctypes
import os
import sys

CLONE_NEWNET = 0x40000000
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38

libc = ctypes.CDLL(None, use_errno=True)


def must(outcome):
    if outcome != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def main():
    netns, root, uid, gid, *command = sys.argv[1:]
    with open(netns) as namespace:
        must(libc.setns(namespace.fileno(), CLONE_NEWNET))
    last = int(open("/proc/sys/kernel/cap_last_cap").read())
    os.chroot(root)
    os.chdir("/")
    for capability in range(last + 1):
        must(libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0))
    os.setgroups([int(gid)])
    os.setresgid(int(gid), int(gid), int(gid))
    os.setresuid(int(uid), int(uid), int(uid))
    must(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    os.umask(0o022)
    # Nothing of Python is there any more.
    places = [f"{directory}/{command[0]}" for directory in os.environ["PATH"].split(":")]
    program = next((place for place in places if os.access(place, os.X_OK)), command[0])
    os.execve(program, command, os.environ)


main()
