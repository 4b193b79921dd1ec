"""No operation is applied twice: a repeated call is answered as the first was, and has one effect."""

from . import private

NAME = "doubled"


def violations(histories, listing):
    return [finding.sentence for finding in private.replay(histories, listing) if finding.kind == "doubled"]
