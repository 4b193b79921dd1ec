"""What starts servers again that have ended, as systemd does with `Restart=always`."""

import threading
import time


class Service:
    """Starts each member again that ends by itself, a second later, until the `with` block ends."""

    PAUSE_S = 1

    def __init__(self, members):
        self.members = list(members)
        self.starts = {member.number: 0 for member in self.members}
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        for member in self.members:
            member.may_end = True
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.ending.set()
        self.thread.join()
        for member in self.members:
            member.may_end = False

    def watch(self):
        ended = {}
        while not self.ending.wait(0.05):
            for member in self.members:
                if member.process.is_running:
                    ended.pop(member.number, None)
                elif time.monotonic() >= ended.setdefault(member.number, time.monotonic() + self.PAUSE_S):
                    member.start()
                    self.starts[member.number] += 1
