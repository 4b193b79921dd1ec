"""The active is cut from its standbys, from one, from ZooKeeper; packets vanish in one direction; a link flaps; a firewall rejects."""

ITEM = "8"
IN_SLICE = False
NEEDS_CABLES = True
LIMIT_S = 900


def run(scene_of):
    with scene_of(members=3) as scene:
        scene.start_load()
        scene.start_native()
        cuts = [from_all, from_one, from_zookeeper, outwards, inwards, cable, flapping, rejecting]
        for cut in cuts:
            scene.rest(1, 2)
            active = scene.cluster.wait_active()
            standbys = [number for number in scene.cluster.members if number != active]
            cut(scene, scene.options.network, active, standbys)
            scene.note_end()
            scene.options.network.heal()
            scene.cluster.wait_settled()
            scene.wait_progress()
        scene.keep_takeovers()
        return scene.verdict(goal_ms=2000)


def cut_off(scene, what, number, addresses, direction="both"):
    def drop():
        for address in addresses:
            scene.options.network.drop(number, address, direction)

    scene.fault(what, drop)
    scene.rest(3, 4)
    scene.wait_progress()


def from_all(scene, network, active, standbys):
    cut_off(scene, f"m{active}, the active, is cut from all standbys", active, map(network.member, standbys))


def from_one(scene, network, active, standbys):
    one = scene.chance.choice(standbys)
    cut_off(scene, f"m{active}, the active, is cut from one standby, m{one}", active, [network.member(one)])


def from_zookeeper(scene, network, active, standbys):
    cut_off(scene, f"m{active}, the active, is cut from ZooKeeper", active, [network.zookeeper])


def outwards(scene, network, active, standbys):
    what = f"what m{active}, the active, sends to its standbys vanishes"
    cut_off(scene, what, active, map(network.member, standbys), "out")


def inwards(scene, network, active, standbys):
    what = f"what the standbys send to m{active}, the active, vanishes"
    cut_off(scene, what, active, map(network.member, standbys), "in")


def cable(scene, network, active, standbys):
    scene.fault(f"the cable of m{active}, the active, is out", network.unplug, active)
    scene.rest(4, 5)
    scene.wait_progress()


def flapping(scene, network, active, standbys):
    def flap():
        for _ in range(4):
            network.unplug(active)
            scene.rest(1)
            network.plug(active)
            scene.rest(1)

    scene.fault(f"the cable of m{active}, the active, goes out and in each second", flap)
    scene.wait_progress()


def rejecting(scene, network, active, standbys):
    """To the standbys it looks as if the active's process had ended, and it lives, with clients that read."""

    def reject():
        for standby in standbys:
            network.reject(active, network.member(standby))

    scene.fault(f"a firewall of m{active}, the active, resets all connections with its standbys", reject)
    scene.rest(3, 4)
    scene.wait_progress()
