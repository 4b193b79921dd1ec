"""What a client was told that is neither a result nor a plain no. A story names those that it allows."""

# Documented: "come again". A stock client retries them itself; an application sees them when its retries are used up.
RETRIABLE = frozenset({"error:RetriableException", "error:StandbyException", "error:SafeModeException"})


def all_errors(histories, names=None):
    return [
        operation
        for history in histories
        for operation in history
        if operation.outcome.startswith("error:") and (names is None or operation.name in names)
    ]


def violations(histories, allowed=frozenset()):
    return [str(operation) for operation in all_errors(histories) if operation.outcome not in allowed]


def unanswered(histories):
    """Calls that were never answered, long after the load had ended."""
    return [str(operation) for history in histories for operation in history if operation.outcome == "waiting"]
