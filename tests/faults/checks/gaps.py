"""What clients felt of all faults of one kind, from the median to the worst."""

import math
import re


def kind_of(label):
    """Faults that differ in the members' and groups' numbers only are of one kind."""
    label = label.split(":")[0]
    return re.sub(r"\b(m|group |passing |data-)\d+\b", r"\1*", label)


def rank(values, share):
    return sorted(values)[math.ceil(len(values) * share) - 1]


def sentences(felt):
    """One about each kind of fault, and one about all."""
    kinds = {}
    for row in felt:
        kinds.setdefault(kind_of(row["fault"]), []).append(row)
    if len(felt) > 1:
        kinds["all faults"] = felt
    return [f"{kind}: {spread(rows, 'gap_ms')} ms without service; slowest calls {spread(rows, 'slowest_ms')} ms" for kind, rows in kinds.items()]


def spread(rows, what):
    values = [row[what] for row in rows]
    return f"p50 {rank(values, 0.5)}, p90 {rank(values, 0.9)}, max {max(values)}"
