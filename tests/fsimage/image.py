"""An image as the stock viewer prints it, put into a form in which two file systems can be compared.

Inodes, blocks and stamps are numbered anew in the order of their numbers: both file systems were told the tree in one order. Times of
this century become one word, lists without an order are sorted, and references stand where they are used.
"""

import re
import xml.etree.ElementTree as ET

from harness.report import check

# Milliseconds from here on are times that a clock has given; the layout sets others.
CLOCK_MS = 1_500_000_000_000
# Numbers that each cluster draws, or that tell how it came there.
LEFT_OUT = {
    "version": {"onDiskVersion", "oivRevision"},
    "NameSection": {"namespaceId", "txid", "genstampV2", "genstampV1", "lastAllocatedBlockId"},
    "INodeSection": {"lastInodeId"},
    "SecretManagerSection": {"currentId", "tokenSequenceNumber"},
}
# The attributes of an inode, in the inode itself and in a copy for a snapshot.
ATTRIBUTES = {"atime", "mtime", "permission", "preferredBlockSize", "replication", "storagePolicyId", "acls", "xattrs", "nsquota", "dsquota", "typeQuota"}


def read(path):
    """The facts of an image: a line each, by section."""
    root = ET.parse(path).getroot()
    return Facts(root).all()


def counters(path):
    """The last numbers that were given out, by an image, and the greatest ones that are in use."""
    root = ET.parse(path).getroot()
    last = [int(root.findtext(at)) for at in ("INodeSection/lastInodeId", "NameSection/lastAllocatedBlockId", "NameSection/genstampV2")]
    blocks = list(root.iter("block"))
    ids = [int(inode.findtext("id")) for inode in root.find("INodeSection").findall("inode")]
    check(len(ids) == len(set(ids)), "two inodes have one number")
    used = [max(ids), max(int(block.findtext("id")) for block in blocks), max(int(block.findtext("genstamp")) for block in blocks)]
    check(all(one >= other for one, other in zip(last, used)), f"the last inode, block and stamp given out are {last}, and in use are {used}")
    return last


class Facts:
    def __init__(self, root):
        self.sections = {section.tag: section for section in root}
        numbers = lambda values: {value: f"#{rank}" for rank, value in enumerate(sorted(set(values), key=int))}
        inodes = self.sections["INodeSection"]
        self.inodes = numbers(inode.findtext("id") for inode in inodes.findall("inode"))
        blocks = [block for section in self.sections.values() for block in section.iter("block")]
        self.blocks = numbers(block.findtext("id") for block in blocks)
        self.stamps = numbers(block.findtext("genstamp") for block in blocks)
        snapshots = self.sections["SnapshotSection"]
        self.snapshots = {one.findtext("id"): one.findtext("root/name") for one in snapshots.findall("snapshot")}
        references = self.sections.get("INodeReferenceSection")
        self.references = [] if references is None else [self.reference(one) for one in references]

    def reference(self, one):
        facts = [f"of {self.inodes.get(one.findtext('referredId'), '?')}"]
        for tag in ("name", "dstSnapshotId", "lastSnapshotId"):
            text = one.findtext(tag)
            if text is not None:
                facts.append(f"{tag} {self.snapshots.get(text, text) if tag.endswith('Id') else text!r}")
        return "reference " + ", ".join(facts)

    def all(self):
        found = {}
        for tag, section in self.sections.items():
            handler = getattr(self, tag.lower(), None)
            lines = handler(section) if handler else self.plain(section)
            found[tag] = sorted(lines)
        return found

    def plain(self, section):
        skipped = LEFT_OUT.get(section.tag, set())
        return [self.text(child) for child in section if child.tag not in skipped]

    def text(self, element, skipped=()):
        """An element in one line: children in the order of their texts, where order says nothing."""
        if len(element) == 0:
            return f"{element.tag}={self.value(element.tag, element.text or '')!r}"
        children = [self.text(child) for child in element if child.tag not in skipped]
        if element.tag != "blocks":
            children.sort()
        return f"{element.tag}({' '.join(children)})"

    def value(self, tag, text):
        if tag in ("mtime", "atime") and int(text) >= CLOCK_MS:
            return "now"
        if tag in ("id", "inodeId", "parent", "child", "deletedInode", "dir", "referredId") and text in self.inodes:
            return self.inodes[text]
        if tag == "genstamp":
            return self.stamps[text]
        # Lease holders are named after a draw.
        return re.sub(r"DFSClient_NONMAPREDUCE_-?\d+_\d+", "DFSClient", text)

    def block(self, block):
        return f"{self.blocks[block.findtext('id')]}_{self.stamps[block.findtext('genstamp')]}:{block.findtext('numBytes')}"

    def inodesection(self, section):
        lines = [self.text(child) for child in section if child.tag not in ("inode", *LEFT_OUT["INodeSection"])]
        for inode in section.findall("inode"):
            blocks = [self.block(block) for block in inode.iter("block")]
            lines.append(f"{self.text(inode, {'blocks'})} blocks {blocks}")
        return lines

    def inodedirectorysection(self, section):
        lines = []
        for entry in section:
            parent = self.inodes[entry.findtext("parent")]
            # A NameNode looks for a child by its place among these.
            children = [self.inodes[child.text] for child in entry.findall("child")]
            references = sorted(self.references[int(one.text)] for one in entry.findall("refChild"))
            lines.append(f"{parent}: {children} {references}")
        return lines

    def inodereferencesection(self, section):
        return self.references

    def snapshotsection(self, section):
        lines = []
        for child in section:
            if child.tag == "snapshot":
                lines.append(f"snapshot {self.snapshots[child.findtext('id')]!r} of {self.text(child.find('root'))}")
            elif child.tag == "snapshottableDir":
                lines.append("snapshottable " + " ".join(sorted(self.inodes[one.text] for one in child)))
            else:
                lines.append(self.text(child))
        return lines

    def snapshotdiffsection(self, section):
        """What differs in a snapshot from the time after it. Hadoop also notes inodes that were deleted or moved unchanged: such notes say nothing."""
        inodes = {inode.findtext("id"): inode for inode in self.sections["INodeSection"].findall("inode")}
        lines = []
        for entry in section:
            number = entry.findtext("inodeId")
            inode = inodes[number]
            later = (self.attributes(inode), self.length(inode), list(inode.iter("block")))
            # The latest comes first.
            for diff in entry:
                if diff.tag not in ("dirDiff", "fileDiff"):
                    continue
                later, facts = self.file_diff(diff, later) if diff.tag == "fileDiff" else self.directory_diff(diff, later)
                if facts:
                    snapshot = self.snapshots.get(diff.findtext("snapshotId"), diff.findtext("snapshotId"))
                    lines.append(f"{self.inodes[number]} in {snapshot!r}: {' '.join(sorted(facts))}")
        return lines

    def attributes(self, element):
        return sorted(self.text(child) for child in element if child.tag in ATTRIBUTES)

    def length(self, element):
        return sum(int(block.findtext("numBytes")) for block in element.iter("block"))

    def file_diff(self, diff, later):
        # Without blocks of its own it has those of later.
        size, blocks = int(diff.findtext("size")), list(diff.iter("block")) or later[2]
        copy = diff.find("snapshotCopy")
        now = (later[0] if copy is None else self.attributes(copy), size, blocks)
        if now[:2] == later[:2] and self.first(now) == self.first(later):
            return now, []
        return now, [f"name {diff.findtext('name')!r}", f"length {size}", f"blocks {self.first(now)}", *now[0]]

    def first(self, state):
        """The blocks that hold the bytes."""
        found, offset = [], 0
        for block in state[2]:
            if offset >= state[1]:
                break
            offset += int(block.findtext("numBytes"))
            found.append(self.block(block))
        return found

    def directory_diff(self, diff, later):
        skipped = ("snapshotId", "deletedInoderef", "deletedInode", "snapshotCopy", "name", "childrenSize", "createdListSize")
        facts = [self.text(child) for child in diff if child.tag not in skipped]
        facts += ["gone " + self.inodes[one.text] for one in diff.findall("deletedInode")]
        facts += ["gone " + self.references[int(one.text)] for one in diff.findall("deletedInoderef")]
        copy = diff.find("snapshotCopy")
        now = later if copy is None else (self.attributes(copy), *later[1:])
        if now != later:
            facts += [f"name {diff.findtext('name')!r}", *now[0]]
        return now, [*facts, self.text(diff.find("childrenSize"))] if facts else []


def table(path):
    """The lines of `oiv -p Delimited` but for the times that clocks gave, sorted."""
    lines = path.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    times = re.compile(r"20[2-9]\d-\d\d-\d\d \d\d:\d\d")
    return sorted(times.sub("now", line) for line in lines)
