"""What happens on both clusters: files are written, lost and damaged, and `hdfs fsck` is asked about them with all its options."""

import getpass
import json
import re
import time
import urllib.parse
import urllib.request

from rig import shell
from rig.layout import Layout

# Longer than anything takes that is waited for.
PATIENCE_S = 120
BLOCK = 1 << 20
USER = "ann"
SIZES = {"empty": 0, "small": 11, "blocks": 2 * BLOCK + BLOCK // 2}

# What is told while a server leaves.
SHOWN_LEAVING = [
    "",
    "-maintenance",
    "-files -blocks -replicaDetails",
    "-files -blocks -replicaDetails -maintenance",
    "-files -blocks -racks",
    "-storagepolicies",
]

KEYS = [
    "data=3",
    "racks=/r1,/r1,/r2",
    "dfs.namenode.fs-limits.min-block-size=1024",
    # Nothing is copied while it is looked at.
    "dfs.heartbeat.interval=1",
]

# What a command is asked to show, alone and together.
SHOWN = [
    "",
    "-files",
    "-files -blocks",
    "-files -blocks -locations",
    "-files -blocks -racks",
    "-files -blocks -replicaDetails",
    "-files -blocks -racks -replicaDetails -upgradedomains -maintenance",
    "-files -blocks -upgradedomains",
    "-storagepolicies",
    "-maintenance",
    "-showprogress",
    "-openforwrite",
    "-openforwrite -files -blocks",
    "-includeSnapshots",
    "-includeSnapshots -files",
    "-list-corruptfileblocks",
    "-list-corruptfileblocks -includeSnapshots",
    "-replicate",
]


class Place:
    """One cluster, the stock tools in a JVM, and all that they said."""

    def __init__(self, judge, cluster, local):
        self.cluster, self.name = cluster, type(cluster).__name__
        self.hosts = local.with_suffix(".hosts")
        self.hosts.write_text("")
        provider = "org.apache.hadoop.hdfs.server.blockmanagement.CombinedHostFileManager"
        cluster.lay_out(Layout.parse([*KEYS, f"dfs.hosts={self.hosts}", f"dfs.namenode.hosts.provider.classname={provider}"]))
        self.shell = shell.Stock(judge, cluster.uri, local, local.with_suffix(".log"))
        local.mkdir(parents=True, exist_ok=True)
        self.local = local
        self.said = []
        self.transcript = open(local.with_suffix(".txt"), "w")
        self.wait("the file system can be written", lambda: self.quiet("", "dfs", "-mkdir", "-p", "/ready").code == 0)
        self.wait("all data servers are there", lambda: "Number of data-nodes:\t3" in self.page("/"))

    def close(self):
        self.shell.close()
        self.transcript.close()

    def quiet(self, user, tool, *words, text=""):
        """A command whose words are not compared."""
        return self.shell.run(user, tool, text, list(map(str, words)))

    def must(self, tool, *words, text=""):
        answer = self.quiet("", tool, *words, text=text)
        if answer.code:
            raise SystemExit(f"{self.name}: {tool} {words} ended with {answer.code}:\n{answer.out}{answer.err}")

    def put(self, size, path, *options):
        source = self.local / "source"
        source.write_bytes((b"0123456789abcdef" * (size // 16 + 1))[:size])
        self.must("dfs", f"-Ddfs.blocksize={BLOCK}", *options, "-put", source, path)

    def fsck(self, *words, user="", shown=None, has_code=True):
        """A command that is compared. `shown` is what the comparison calls it, where it has ids of blocks in it. Without `has_code` the exit
        code is left out: it depends on which replica is told last."""
        answer = self.quiet(user, "fsck", f"-Ddfs.namenode.http-address={self.cluster.http}", *words)
        if "Exception in thread" in answer.err:
            raise SystemExit(f"{self.name}: fsck {words} got no answer:\n{answer.err}")
        lines = [f"exit {answer.code if has_code else 'any'}", *plain(answer.out, self.cluster.uri)]
        command = f"{f'[{user}] ' if user else ''}fsck {shown or ' '.join(words)}"
        self.said.append((command, lines))
        print(f"$ {command}\n{answer.out}\n{answer.err}", file=self.transcript, flush=True)

    def shows(self, *words):
        """Another command that is compared."""
        answer = self.quiet("", "dfs", *words)
        self.said.append((" ".join(words), [f"exit {answer.code}", *plain(answer.out, self.cluster.uri)]))

    def page(self, path, *options):
        """`/fsck` as it comes, by the name of the superuser."""
        query = urllib.parse.urlencode({"ugi": getpass.getuser(), "path": path, **{option: 1 for option in options}})
        with urllib.request.urlopen(f"http://{self.cluster.http}/fsck?{query}", timeout=60) as answer:
            return answer.read().decode()

    def blocks(self, path):
        """The ids of a file's blocks, in their order."""
        return re.findall(r"^\d+\. \S*:(blk_\d+)_\d+ ", self.page(path, "files", "blocks"), flags=re.M)

    def wait(self, what, is_so):
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                if is_so():
                    return
            except OSError:
                pass
            time.sleep(0.3)
        raise SystemExit(f"{self.name}: after {PATIENCE_S} s not yet: {what}\n{self.page('/')[-3000:]}")

    def wait_for(self, path, *words):
        self.wait(f"{path} has {words}", lambda: all(word in self.page(path) for word in words))

    def order(self, state):
        """Orders the first data server into this state."""
        ports = [int(port) for port, _ in self.cluster.data()]
        servers = [{"hostName": "127.0.0.1", "port": port} for port in ports]
        servers[0] |= {"adminState": state} if state else {}
        self.hosts.write_text(json.dumps(servers))
        self.cluster.refresh_nodes()

    def replicas(self, block):
        """The files of a block's replicas on all disks."""
        for _, places in self.cluster.data():
            for place in places:
                base = type(self.local)(place)
                yield from base.rglob(block)
                yield from base.rglob(f"{block}_*.meta")

    def replaced(self, change):
        """All data servers go, their disks change, and they come back."""
        for number in range(3):
            self.cluster.stop_data(number)
        change()
        # What a DataNode writes down about its replicas when it ends would hide the change.
        for _, places in self.cluster.data():
            for place in places:
                for cache in type(self.local)(place).rglob("replicas"):
                    cache.unlink()
        for number in range(3):
            self.cluster.start_data(number)


def plain(text, uri):
    """The lines without what differs between any two clusters."""
    text = re.sub(r"DatanodeInfoWithStorage\[[^],]*,[^],]*,(\w+)\]", r"STORAGE<\1>", text)
    text = re.sub(r"\bBP-\d+-[\d.]+-\d+", "BP-N", text)
    text = re.sub(r"\bin \d+ milliseconds", "in MS milliseconds", text)
    text = re.sub(r"from /[\d.:a-f]+", "from /IP", text)
    text = re.sub(r"(Block replica on datanode/rack: )[^/\n]*(/\S+)", r"\1HOST\2", text)
    text = re.sub(r"(/r\d)/[\d.]+:\d+", r"\1/PLACE", text)
    text = shell.normal(text, uri, "LOCAL DIRECTORY")
    # Where the only replica is, and which of several is told first, is chance.
    text = re.sub(r"\[/r\d(/PLACE[^],\n]*)\]", r"[/rN\1]", text)
    text = re.sub(r"\[(\S[^\]\n]*)\]", lambda found: f"[{', '.join(sorted(found[1].split(', ')))}]", text)
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if line.startswith("Block replica on") and (at == 0 or not lines[at - 1].startswith("Block replica on")):
            end = at
            while end < len(lines) and lines[end].startswith("Block replica on"):
                end += 1
            lines[at:end] = sorted(lines[at:end])
            if end == at + 1:
                lines[at] = re.sub(r"/r\d ", "/rN ", lines[at])
    return lines


def tell(place, is_slice, can_order):
    healthy(place)
    if can_order:
        leaving(place)
    if not is_slice:
        losses(place)


def healthy(place):
    for directory in ("/good/sub/deep", "/few", "/snap", "/cold", "/private"):
        place.must("dfs", "-mkdir", "-p", directory)
    for name, size in SIZES.items():
        place.put(size, f"/good/{name}", "-Ddfs.replication=3")
        place.put(size, f"/good/sub/{name}", "-Ddfs.replication=3")
    place.put(SIZES["blocks"], "/few/nine", "-Ddfs.replication=3")
    place.must("dfs", "-setrep", 9, "/few/nine")
    place.put(SIZES["small"], "/snap/shown", "-Ddfs.replication=3")
    place.must("dfsadmin", "-allowSnapshot", "/snap")
    place.must("dfs", "-createSnapshot", "/snap", "first")
    place.must("dfs", "-rm", "-skipTrash", "/snap/shown")
    place.put(SIZES["small"], "/snap/later", "-Ddfs.replication=3")
    place.put(SIZES["small"], "/cold/file", "-Ddfs.replication=3")
    place.must("storagepolicies", "-setStoragePolicy", "-path", "/cold/file", "-policy", "ONE_SSD")
    place.put(SIZES["small"], "/private/file", "-Ddfs.replication=3")
    place.must("dfs", "-chmod", "700", "/private")
    place.must("hold", f"-Ddfs.blocksize={BLOCK}", "-Ddfs.replication=3", "/open", text="x" * (BLOCK + 1000))
    place.wait_for("/", "HEALTHY", " Under-replicated blocks:\t3 ")

    for words in SHOWN:
        place.fsck("/", *words.split())
    for path in ("/good", "/good/blocks", "/good/empty", "/open", "/snap", "/snap/.snapshot/first", "/nowhere", "/good/sub/deep"):
        place.fsck(path)
        place.fsck(path, "-files", "-blocks", "-openforwrite")
    place.fsck("/nowhere", "-list-corruptfileblocks")
    place.fsck("/snap", "-includeSnapshots", "-files", "-blocks", "-racks")
    [block] = place.blocks("/good/small")
    place.fsck("/", "-blockId", block, shown="-blockId of a good block")
    place.fsck("/", "-blockId", block, "-maintenance", shown="-blockId of a good block, with maintenance")
    place.fsck("/", "-blockId", "nonsense", "blk_1", block, shown="-blockId nonsense blk_1 and a good block")
    place.fsck("/", "-blockId", "nonsense")
    place.fsck("/", "-blockId", "blk_1")
    place.fsck("/", "-delete")
    place.fsck("/", "-move")
    # Others than the superuser.
    place.fsck("/good", "-files", user=USER)
    place.fsck("/private", user=USER)
    place.fsck("/", user=USER)
    place.fsck("/", "-list-corruptfileblocks", user=USER)
    place.fsck("/", "-blockId", block, user=USER, shown="-blockId of a good block")


def leaving(place):
    """A data server that cannot leave for good, since no other one can take its replicas; and that is in maintenance."""
    [block] = place.blocks("/good/small")
    for state, word in (("DECOMMISSIONED", "(DECOMMISSIONING)"), ("IN_MAINTENANCE", "(IN MAINTENANCE)")):
        place.order(state)
        place.wait(f"a server is {word}", lambda: word in place.page("/good/small", "files", "blocks", "replicadetails", "maintenance"))
        for words in SHOWN_LEAVING:
            place.fsck("/", *words.split(), shown=f"/ {words} while a server is {word}")
        for words in ([], ["-maintenance"]):
            shown = f"-blockId {' '.join(words)} while a server is {word}"
            place.fsck("/", "-blockId", block, *words, shown=shown, has_code=False)
        place.order(None)
        place.wait("all servers are back", lambda: "(LIVE)" in (page := place.page("/good/small", "files", "blocks", "replicadetails", "maintenance")) and word not in page)


def losses(place):
    place.must("dfs", "-mkdir", "-p", "/lost/d")
    place.put(3 * BLOCK, "/lost/d/missing", "-Ddfs.replication=1")
    place.put(100, "/lost/damaged", "-Ddfs.replication=1")
    place.put(100, "/lost/whole", "-Ddfs.replication=3")
    place.must("dfsadmin", "-allowSnapshot", "/lost")
    place.must("dfs", "-createSnapshot", "/lost", "before")
    _, middle, _ = place.blocks("/lost/d/missing")
    [damaged] = place.blocks("/lost/damaged")

    def change():
        gone = list(place.replicas(middle))
        assert len(gone) == 2, gone
        for path in gone:
            path.unlink()
        [data] = [path for path in place.replicas(damaged) if path.name == damaged]
        data.chmod(0o644)
        data.write_bytes(b"damaged!" + data.read_bytes()[8:])

    place.replaced(change)
    place.wait_for("/lost", " Missing blocks:\t\t1\n")
    # Its reader tells that it is damaged.
    place.quiet("", "dfs", "-cat", "/lost/damaged")
    place.wait_for("/lost", " Corrupt blocks:\t\t1\n")
    place.wait_for("/", " Under-replicated blocks:\t3 ")
    for words in SHOWN:
        place.fsck("/lost", *words.split())
    place.fsck("/")
    place.fsck("/", "-list-corruptfileblocks")
    place.fsck("/lost/whole")
    place.fsck("/lost", "-blockId", middle, shown="-blockId of a missing block")
    place.fsck("/lost", "-blockId", damaged, shown="-blockId of a damaged block")
    place.fsck("/lost", "-blockId", damaged, middle, shown="-blockId of a damaged and a missing block")

    place.fsck("/lost/d", "-move")
    place.shows("-ls", "-R", "-C", "/lost+found")
    place.shows("-checksum", "/lost+found/lost/d/missing/0", "/lost+found/lost/d/missing/1")
    place.fsck("/lost/d", "-move")
    place.fsck("/lost/damaged", "-move")
    place.shows("-ls", "-R", "-C", "/lost+found")
    place.fsck("/lost/d", "-move", user=USER)
    place.fsck("/lost", "-delete", user=USER)
    place.must("dfsadmin", "-allowSnapshot", "/good")
    place.fsck("/lost", "-delete", "-files")
    place.shows("-ls", "-R", "-C", "/lost")
    place.fsck("/lost")
    place.fsck("/lost", "-includeSnapshots")
    place.fsck("/lost", "-list-corruptfileblocks", "-includeSnapshots")
