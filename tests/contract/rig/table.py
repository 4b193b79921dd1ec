"""Both columns side by side, and what counts as worse."""

RESULTS = ("passed", "failed", "skipped")


def keep(path, found):
    """Puts what was found into the stored column, in the place of what it held of the same classes."""
    new = {name for name, _ in found}
    old = {key: row for key, row in read(path).items() if key[0] not in new} if path.exists() else {}
    rows = {**old, **{key: row for key, row in found.items()}}
    lines = [f"{name}\t{test}\t{row[0]}" for (name, test), row in sorted(rows.items())]
    path.write_text("\n".join(lines) + "\n")


def read(path):
    found = {}
    for line in path.read_text().splitlines():
        name, test, result = line.split("\t")
        found[name, test] = (result, "", 0)
    return found


def show(names, theirs, ours, version, permitted):
    """Prints the table and each test that differs; returns how many are worse here than they may be."""
    simple = [name.rsplit(".", 1)[-1] for name in names]
    width = max(map(len, simple))
    print(f"\n{'class'.ljust(width)}  {'Hadoop ' + version:>22}  {'Clover':>22}")
    print(f"{''.ljust(width)}  {'passed failed skipped':>22}  {'passed failed skipped':>22}")
    totals = [[0] * 3, [0] * 3]
    for name in simple:
        counts = [count(column, name) for column in (theirs, ours)]
        for total, of_class in zip(totals, counts):
            for index, value in enumerate(of_class):
                total[index] += value
        print(f"{name.ljust(width)}  {figures(counts[0])}  {figures(counts[1])}")
    print(f"{'all'.ljust(width)}  {figures(totals[0])}  {figures(totals[1])}")

    worse = 0
    for key in sorted({*(key for key in theirs if key[0] in simple), *ours}):
        there, (here, reason, _) = theirs.get(key, ("unknown",))[0], ours.get(key, ("missing", "", 0))
        if there == here:
            continue
        # A test that fails on Hadoop too judges nobody: it reaches into servers that are elsewhere.
        bad = (there, here) not in {("failed", "passed"), ("failed", "skipped"), ("failed", "missing"), ("skipped", "passed"), ("unknown", "passed")}
        row = permitted.pop(f"{key[0]}.{key[1]}", None) if bad else None
        worse += bad and not row
        label = f"known ({row})" if row else "WORSE" if bad else "other"
        print(f"{label}: {key[0]}.{key[1]}: {there} on Hadoop, {here} here. {reason[:200]}".rstrip())
    for key in permitted:
        if key.split(".")[0] in simple:
            worse += 1
            print(f"GONE: {key}: passes now, or is no test; take it out of the list of those that do not")
    return worse


def count(column, name):
    return [sum(1 for key, row in column.items() if key[0] == name and row[0] == result) for result in RESULTS]


def figures(counts):
    return f"{counts[0]:6} {counts[1]:6} {counts[2]:8}"
