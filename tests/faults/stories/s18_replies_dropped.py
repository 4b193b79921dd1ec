"""The first reply of every call is swallowed, for every operation: the retry gets the same answer, with one effect."""

from harness.report import check
from rig.proxy import Dropper, Proxy

ITEM = "18"
IN_SLICE = False
NEEDS_CABLES = False
MUST_HAVE_MET = {"create", "complete", "mkdirs", "rename", "rename2", "delete", "getFileInfo", "addBlock", "getBlockLocations"}


def run(scene_of):
    with scene_of(members=3) as scene:
        hub, dropper = scene.options.network.hub, Dropper()
        members = scene.cluster.members.values()
        proxies = [Proxy(dropper, hub, (member.address, member.rpc_port)) for member in members]
        scene.proxied = [f"{hub}:{proxy.port}" for proxy in proxies]
        try:
            size = scene.options.size._replace(own=2, cell=2, data=1, stream=1)
            # A call whose neighbours lose their connection again and again needs more patience than any other.
            patience = {"dfs.client.failover.max.attempts": 5000, "dfs.client.failover.sleep.max.millis": 50}
            scene.start_load(size=size, **patience)
            scene.rest(120 if scene.options.is_long else 20)
            if scene.options.is_long:
                scene.kill_active()
                scene.wait_progress()
            scene.say("swallowed: " + ", ".join(f"{count} {name}" for name, count in dropper.methods.most_common()))
            met = set(dropper.methods)
            missing = MUST_HAVE_MET - met - {"rename" if "rename2" in met else "rename2"}
            check(not missing, f"never met: {sorted(missing)}")
            scene.conf("configured", **patience)
            return scene.verdict()
        finally:
            for proxy in proxies:
                proxy.close()
