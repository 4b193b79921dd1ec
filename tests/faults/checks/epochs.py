"""An epoch has one active: no two members ever said that they served in the same one."""

import re

SERVES = re.compile(r"is active in epoch (\d+) and serves")


def violations(logs):
    """`logs` are the texts of the members' logs by the member's name."""
    served = {}
    for name, text in logs.items():
        for epoch in SERVES.findall(text):
            served.setdefault(int(epoch), set()).add(name)
    return [f"epoch {epoch} was served by {' and '.join(sorted(names))}" for epoch, names in sorted(served.items()) if len(names) > 1]
