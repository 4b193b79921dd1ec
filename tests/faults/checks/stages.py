"""A takeover in the stages of the paper's Figure 7: noticing, election of the active, switching to it, and what the
clients needed on top until their calls were answered again."""


def of(takeover):
    """Milliseconds of each stage. Moments within a takeover are counted from the one at which the old active was given up."""
    claim, sync = takeover["claim_ms"], takeover["sync_ms"]
    return {"noticed": takeover["detect_ms"], "election": claim, "switching": max(0, sync - claim)}


def sentence(takeover, gap_ms=None):
    stages = of(takeover)
    told = ", ".join(f"{name} {took} ms" for name, took in stages.items())
    if gap_ms is not None:
        told += f", reconnection {max(0, round(gap_ms) - sum(stages.values()))} ms"
    return f"epoch {takeover['epoch']} by m{takeover['member']} ({takeover['trigger']}): {told}"
