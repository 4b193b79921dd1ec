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
    """What is allowed is an outcome, or words of what the client was told."""

    def is_allowed(operation):
        return operation.outcome in allowed or any(words in operation.value for words in allowed)

    return [str(operation) for operation in all_errors(histories) if not is_allowed(operation)]


def unanswered(histories):
    """Calls that were never answered, long after the load had ended."""
    return [str(operation) for history in histories for operation in history if operation.outcome == "waiting"]
