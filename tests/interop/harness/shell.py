"""A story told to Hadoop's own shell, as a person would type it."""

import tempfile
from pathlib import Path

from .clients import call
from .report import check

POEM = "Four leaves,\nthree copies,\nno loss.\n"


def run(report, stock, cluster):
    with report.case("hadoop fs", "mkdir, put, ls, cat, stat, chmod, mv, count, rm"):
        tell(stock, cluster.uri)
    if stock.clover:
        with report.case("hadoop fs", "finds the cluster by the XML files of clover client-config"):
            find(stock, cluster.uri)


def find(stock, uri):
    with tempfile.TemporaryDirectory() as scratch:
        conf = Path(scratch) / "conf"
        call([stock.clover, "client-config", conf, "--target", uri])
        shell = stock.java("org.apache.hadoop.fs.FsShell", "-mkdir", "-p", "/found/by configuration", conf=conf)
        call(shell)
        listing = call(stock.shell(uri, "-ls", "/found")).decode()
        check("/found/by configuration" in listing, listing)


def tell(stock, uri):
    def fs(*words):
        return call(stock.shell(uri, *words)).decode()

    with tempfile.TemporaryDirectory() as scratch:
        local = Path(scratch) / "poem.txt"
        local.write_text(POEM)
        fs("-mkdir", "-p", "/story/a b/ünder")
        fs("-put", local, "/story/a b/ünder/poem.txt")
        listing = fs("-ls", "-R", "/story")
        check("/story/a b/ünder/poem.txt" in listing and f" {len(POEM)} " in listing, listing)
        check(fs("-cat", "/story/a b/ünder/poem.txt") == POEM, "cat gives other bytes")
        fs("-chmod", "640", "/story/a b/ünder/poem.txt")
        check(fs("-stat", "%a %b %r", "/story/a b/ünder/poem.txt").split()[:2] == ["640", str(len(POEM))], "stat")
        fs("-mv", "/story/a b/ünder/poem.txt", "/story/poem")
        check(fs("-count", "/story").split()[:3] == ["3", "1", str(len(POEM))], fs("-count", "/story"))
        fs("-get", "/story/poem", Path(scratch) / "back")
        check((Path(scratch) / "back").read_text() == POEM, "get gives other bytes")
        fs("-rm", "-r", "-skipTrash", "/story")
        check("story" not in fs("-ls", "/"), "rm left it there")
