"""How long a client saw nothing done: the longest time between two completed metadata operations near a fault."""

from typing import NamedTuple

from .history import METADATA


class Outage(NamedTuple):
    gap_ms: float
    began: int
    slowest_ms: float


def of(history, begin, end):
    """The longest gap of one client that touches [begin, end), and its slowest call that was under way then."""
    done = sorted(
        operation.ended
        for operation in history
        if operation.name in METADATA and operation.ended is not None and not operation.is_unknown
    )
    gap, began = 0, begin
    inside = [moment for moment in done if begin <= moment < end]
    # What was slow before the fault is not its doing, nor what is slow after the next one.
    moments = [begin, *inside, end]
    for earlier, later in zip(moments, moments[1:]):
        if later - earlier > gap:
            gap, began = later - earlier, earlier
    slowest = max(
        (
            operation.ended - operation.begun
            for operation in history
            if operation.name in METADATA and operation.ended is not None and operation.begun < end and operation.ended > begin
        ),
        default=0,
    )
    return Outage(gap / 1e6, began, slowest / 1e6)


def rate(history, begin, end):
    """Completed metadata operations a second."""
    count = sum(
        1 for o in history if o.name in METADATA and o.ended is not None and not o.is_unknown and begin <= o.ended < end
    )
    return count / max(1e-9, (end - begin) / 1e9)
