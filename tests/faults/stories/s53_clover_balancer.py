"""Two empty data servers join a cluster to which nobody writes; `clover balancer` evens them out, and no two balancers work at once."""

import json
import subprocess

from harness.report import check
from rig import balancing, replicas
from rig.after import After

ITEM = "53"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
DISK_BYTES = 192 << 20
FILES = 64
THRESHOLD = 5

why_not = balancing.why_not


def run(scene_of):
    with scene_of(members=1, **balancing.two_join(DISK_BYTES)) as scene:
        cluster = scene.cluster
        contents = balancing.fill(scene, "/old", FILES)
        cluster.join()
        before = cluster.used_percent()
        balancing.tell(scene, "before", before)
        held = replicas.on_disk(cluster)
        code, events = balance(scene, "--dry-run")
        check(code == 0 and events[-1]["end"] == "planned" and events[0]["flows"], f"a dry run shows what would be moved: {events}")
        check(replicas.on_disk(cluster) == held, "and moves nothing")
        # Slowly at first, so that others find it at work.
        first = begin(scene, "--bandwidth", "1m")
        wait_for_round(first)
        code, events = balance(scene)
        check(code == 255 and events[-1]["end"] == "already_running", f"a second one is refused: {code}, {events}")
        code, text, _ = balancing.Stock(scene).balance(THRESHOLD)
        # Its exit code for that is the one of any I/O error.
        check(code == 252 and "Another Balancer is running" in text, f"Hadoop's is refused: {code}, {text[-2000:]}")
        first.kill()
        first.wait_gone()
        code, events = ends_balanced(scene, "--bandwidth", "100m")
        rounds = [event for event in events if event["event"] == "round_done"]
        moved = sum(event["moved_bytes"] for event in rounds)
        seconds = sum(event["took_ms"] for event in rounds) / 1000
        balancing.wait_whole(scene, 3)
        after = cluster.used_percent()
        balancing.tell(scene, "after", after)
        scene.say(f"clover balancer: {moved / 2**20:.0f} MiB in {len(rounds)} rounds, {moved / seconds / 2**20:.1f} MiB a second while it moved")
        check(balancing.spread(after) < THRESHOLD + 2, f"the servers are not balanced: {balancing.said(after)}")
        replicas.check_files(scene, contents)
        code, text, _ = balancing.Stock(scene).balance(THRESHOLD)
        check(code == 0 and balancing.moved_by(text) == 0, "Hadoop's balancer finds nothing to do")
        return scene.verdict(after=After(contents))


def command(scene, *words):
    given = ["--threshold", THRESHOLD, "--min-block", 1, "--pause", 2, "--json", *words]
    return list(map(str, [scene.options.clover, "balancer", "--conf", scene.conf(), *given]))


def balance(scene, *words):
    """Its exit code, and what it told."""
    done = subprocess.run(command(scene, *words), capture_output=True, text=True, timeout=balancing.BALANCER_S, stdin=subprocess.DEVNULL)
    (scene.directory / "clover-balancer.out").write_text(done.stdout + done.stderr)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    check(events, f"clover balancer said nothing: {done.returncode}, {done.stderr}")
    return done.returncode, events


def begin(scene, *words):
    return balancing.Process("clover-balancer", command(scene, *words), scene.directory / "clover-balancer.log")


def wait_for_round(process):
    balancing.wait_until(lambda: '"event":"round"' in process.log.read_text(), 30, "a round begins")


def ends_balanced(scene, *words):
    """The one that was killed holds its file until its lease may be taken from it; then the next goes on where it was."""
    found = []

    def is_balanced():
        found[:] = balance(scene, *words)
        check(found[0] in (0, 255), f"clover balancer ended with {found[0]}: {found[1][-1]}")
        return found[0] == 0

    balancing.wait_until(is_balanced, 240, "the killed balancer's file can be taken")
    return found
