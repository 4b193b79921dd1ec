"""Every client stores, every client reads what every other stored, and the sums agree."""

import time

from .clients import call
from .report import check


def run(report, stock, cluster, sources):
    clients = stock.all()
    # An attached cluster may hold what an earlier run has stored.
    top = f"/interop-{time.time_ns():x}"
    for kind, who in (
        ("tree", clients),
        ("small", [client for client in clients if client.takes_many]),
        ("large", [client for client in clients if client.takes_large]),
    ):
        for writer in who:
            exchange(report, stock, cluster, sources[kind], writer, who, top)


def exchange(report, stock, cluster, tree, writer, readers, top):
    remote = f"{top}/{tree.name} of {writer.name}"
    stored = False
    with report.case(writer.name, f"stores {tree.name}: {tree}"):
        writer.put(cluster.uri, tree.path, remote, tree.block_size)
        stored = True
    for reader in readers:
        with report.case(reader.name, f"reads {tree.name} of {writer.name}"):
            check(stored, "there is nothing to read")
            compare(tree.sums, reader.sums(cluster.uri, remote))
    if tree.name == "large":
        # Room for the next one, and a look at deletion on the way.
        with report.case("hadoop fs", f"deletes {tree.name} of {writer.name}"):
            delete(stock, cluster.uri, remote)


def delete(stock, uri, remote):
    call(stock.shell(uri, "-rm", "-r", "-f", "-skipTrash", remote))


def compare(expected, found):
    missing = sorted(expected.keys() - found.keys())
    extra = sorted(found.keys() - expected.keys())
    check(not missing and not extra, f"missing: {missing[:10]}, not expected: {extra[:10]}")
    different = [path for path in expected if expected[path] != found[path]]
    lines = [f"{path!r}: {expected[path]} stored, {found[path]} read" for path in different[:10]]
    check(not different, f"{len(different)} of {len(expected)} differ:\n" + "\n".join(lines))
