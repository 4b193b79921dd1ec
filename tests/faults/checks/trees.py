"""Servers that have come to one place in a log have equal trees: the members of a group in its own log, all servers in the directory log."""

import re

END = re.compile(r"failpoint end: at (\S+) (\w+), directories at (\S+) (\w+)")


def violations(logs_by_group):
    """`logs_by_group` are the texts of the members' logs by the member's name, for each group. A server says at its end how its tree is."""
    sentences, everywhere = [], {}
    for logs in logs_by_group:
        group = {}
        for name, text in logs.items():
            ends = END.findall(text)
            if not ends:
                sentences.append(f"{name} has not said how its tree was at the end")
                continue
            own, digest, dix, directories = ends[-1]
            group.setdefault(own, {})[name] = digest
            everywhere.setdefault(dix, {})[name] = directories
        sentences += differing(group, "trees")
    if len(everywhere) > 1:
        sentences.append(f"servers have come to different places in the directory log: {everywhere}")
    return sentences + differing(everywhere, "directories")


def differing(found, what):
    return [f"{what} differ at {place}: {digests}" for place, digests in found.items() if len(set(digests.values())) > 1]
