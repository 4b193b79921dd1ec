"""No acknowledged operation is lost: what a client was told is done, is found by it later, and at the end."""

from . import private

NAME = "lost"


def violations(histories, listing):
    return [finding.sentence for finding in private.replay(histories, listing) if finding.kind == "lost"]
