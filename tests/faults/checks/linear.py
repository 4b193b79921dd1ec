"""The histories of names that clients share are linearizable: there is one order of all operations, each at a moment
between its begin and its end, in which every answer is right.

Just-in-time linearization: calls and returns are walked in order of time with the set of all configurations that are
still possible. At each return, every configuration must have that operation done. Cells share no name, so each is
checked alone.

An operation without a clear answer may take effect at any later moment, or never. Those of the same kind on the same
names are interchangeable, so a configuration only counts them; and one that reached the same state with fewer of them
can do all that one with more can, so only the most frugal are kept. Without that the set grows without end.
"""

from typing import NamedTuple

# Beyond this the history cannot be judged, which is a finding: the story left too much unclear.
WORK_MAX = 400_000
# What an unanswered create made: learnt at its first sight. Where a name may hold a file or a directory, what it holds begins with an f or a d.
UNSEEN = "?"
OPERATIONS = {"cell": ("create", "delete", "stat", "rename"), "mixed": ("create", "mkdir", "delete", "stat", "rename")}


class TooMany(Exception):
    pass


class Work:
    """Counts configurations looked at, so that no history takes all time or memory."""

    def __init__(self):
        self.done = 0

    def step(self):
        self.done += 1
        if self.done > WORK_MAX:
            raise TooMany


class Step(NamedTuple):
    name: str
    outcome: str
    value: str
    names: tuple


class Configuration(NamedTuple):
    state: frozenset  # of (name, inode)
    done: frozenset  # operations under way that have taken effect
    used: tuple  # sorted pairs of unclear step and how many of it have taken effect


def violations(histories):
    cells = {}
    for history in histories:
        for operation in history:
            if operation.name in OPERATIONS.get(operation.thread.split("-")[0], ()):
                cells.setdefault(cell_of(operation.path), []).append(operation)
    return [f"{cell}: {sentence}" for cell, operations in sorted(cells.items()) if (sentence := check_cell(operations))]


def check_cell(operations):
    """A sentence about the first answer that no order explains; None where there is an order."""
    operations = [o for o in operations if not (o.name == "stat" and o.is_unknown)]
    events = []
    for number, operation in enumerate(operations):
        events.append((operation.begun, 0, number))
        if not operation.is_unknown:
            events.append((operation.ended, 1, number))
    # At the same moment a begin comes first: that allows more orders, never fewer.
    events.sort()
    steps = [
        Step(o.name, "unknown", kind_made(o), names_of(o)) if o.is_unknown else Step(o.name, o.outcome, o.value, names_of(o))
        for o in operations
    ]
    pending, unclear, work = set(), {}, Work()
    possible = {Configuration(frozenset(), frozenset(), ())}
    for _, is_return, number in events:
        if is_return:
            try:
                reached = closure(possible, pending, unclear, steps, number, work)
            except TooMany:
                return f"too many orders are possible to judge this history, from: {operations[number]}"
            possible = frugal(c._replace(done=c.done - {number}) for c in reached if number in c.done)
            pending.discard(number)
            if not possible:
                return f"no order of the operations explains: {operations[number]}"
        elif operations[number].is_unknown:
            unclear[steps[number]] = unclear.get(steps[number], 0) + 1
        else:
            pending.add(number)
    return None


def cell_of(path):
    """`cells/N`."""
    return "/".join(path.split("/")[:2])


def kind_made(operation):
    """The letter with which the value of a name begins that the operation makes: f for a file, where a name may hold a file or a directory."""
    return "f" if operation.thread.startswith("mixed-") and operation.name == "create" else ""


def names_of(operation):
    """What stands behind the cell: a name, or one in a directory of its own."""
    return tuple(argument.split("/", 2)[2] for argument in operation.arguments)


def closure(possible, pending, unclear, steps, wanted, work):
    """All configurations reachable by doing operations under way, none beyond the one that is wanted."""
    best = {}
    ready = []

    def offer(configuration):
        work.step()
        key, used = (configuration.state, configuration.done), dict(configuration.used)
        known = best.setdefault(key, [])
        if any(is_frugal(other, used) for other in known):
            return
        known[:] = [other for other in known if not is_frugal(used, other)] + [used]
        if wanted not in configuration.done:
            ready.append(configuration)

    for configuration in possible:
        offer(configuration)
    while ready:
        configuration = ready.pop()
        for number in pending - configuration.done:
            after = apply(configuration.state, steps[number])
            if after is not None:
                offer(configuration._replace(state=after, done=configuration.done | {number}))
        used = dict(configuration.used)
        for step, count in unclear.items():
            after = apply_unclear(configuration.state, step) if used.get(step, 0) < count else None
            if after is not None:
                more = {**used, step: used.get(step, 0) + 1}
                offer(Configuration(after, configuration.done, tuple(sorted(more.items()))))
    return [
        Configuration(state, done, tuple(sorted(used.items()))) for (state, done), all_used in best.items() for used in all_used
    ]


def is_frugal(one, other):
    """Whether the first used no more of anything than the second."""
    return all(count <= other.get(step, 0) for step, count in one.items())


def frugal(configurations):
    best = {}
    for configuration in configurations:
        known = best.setdefault((configuration.state, configuration.done), [])
        used = dict(configuration.used)
        if not any(is_frugal(dict(other.used), used) for other in known):
            known[:] = [other for other in known if not is_frugal(used, dict(other.used))] + [configuration]
    return [configuration for known in best.values() for configuration in known]


def apply(state, step):
    """The state after a step, or None where its answer would have been another."""
    tree = dict(state)
    name = step.names[0]
    if step.name == "create":
        if step.outcome == "exists":
            return state if name in tree else None
        if step.outcome != "ok" or name in tree:
            return None
        tree[name] = step.value
    elif step.name == "mkdir":
        # Made again, a directory is there: that is fine. Its number is learnt later.
        is_fine = tree.get(name, "d").startswith("d")
        if is_fine != (step.outcome == "ok"):
            return None
        if is_fine:
            tree.setdefault(name, "d" + UNSEEN)
    elif step.name == "delete":
        if (name in tree) != (step.outcome == "ok"):
            return None
        tree.pop(name, None)
    elif step.name == "stat":
        if step.outcome == "missing":
            return state if name not in tree else None
        if not fits(tree.get(name), step.value):
            return None
        tree[name] = step.value
    elif step.name == "rename" and step.outcome != "refused":
        does = name in tree and step.names[1] not in tree
        if does != (step.outcome == "ok"):
            return None
        if does:
            tree[step.names[1]] = tree.pop(name)
    return frozenset(tree.items())


def fits(known, seen):
    return known == seen or known == UNSEEN or (known in ("f?", "d?") and known[0] == seen[0])


def apply_unclear(state, step):
    """What it may have done; nothing at all is the same as not having happened."""
    tree = dict(state)
    name = step.names[0]
    if step.name == "create" and name not in tree:
        tree[name] = step.value + UNSEEN
    elif step.name == "mkdir" and name not in tree:
        tree[name] = "d" + UNSEEN
    elif step.name == "delete" and name in tree:
        del tree[name]
    elif step.name == "rename" and name in tree and step.names[1] not in tree:
        tree[step.names[1]] = tree.pop(name)
    else:
        return None
    return frozenset(tree.items())
