"""Several groups: their actives are cut from each other, one way and both, from ZooKeeper, and from everybody; whole groups are cut apart."""

from rig.groups import ROOT

ITEM = "42"
IN_SLICE = False
NEEDS_CABLES = True
LIMIT_S = 900


def run(scene_of):
    with scene_of(members=3, groups=2) as scene:
        cluster = scene.cluster
        scene.start_loads_of_groups()
        cuts = [apart, deaf_home, deaf_root, groups_apart, home_from_zookeeper, root_from_zookeeper, home_cable, root_cable, both_cables]
        for cut in cuts:
            scene.rest(1, 2)
            root, home = (cluster.wait_active_of(group) for group in (ROOT, max(cluster.groups)))
            cut(scene, scene.options.network, root, home)
            # Where both actives stay what they are, some calls wait for the end of the cut.
            scene.options.network.heal()
            cluster.wait_settled()
            scene.wait_progress()
            scene.note_end()
        return scene.verdict()


def drop(scene, what, number, addresses, direction="both"):
    network = scene.options.network
    scene.fault(what, lambda: [network.drop(number, address, direction) for address in addresses])
    scene.rest(3, 5)


def apart(scene, network, root, home):
    drop(scene, f"m{home}, a home's active, is cut from m{root}, the root group's", home, [network.member(root)])


def deaf_home(scene, network, root, home):
    drop(scene, f"what m{root}, the root group's active, sends to m{home}, a home's, vanishes", home, [network.member(root)], "in")


def deaf_root(scene, network, root, home):
    drop(scene, f"what m{home}, a home's active, sends to m{root}, the root group's, vanishes", home, [network.member(root)], "out")


def groups_apart(scene, network, root, home):
    first, last = (list(scene.cluster.members_of(group)) for group in (ROOT, max(scene.cluster.groups)))

    def cut():
        for number in last:
            for other in first:
                network.drop(number, network.member(other))

    scene.fault("all members of the root group are cut from all of the other one", cut)
    scene.rest(3, 5)


def home_from_zookeeper(scene, network, root, home):
    drop(scene, f"m{home}, a home's active, is cut from ZooKeeper", home, [network.zookeeper])


def root_from_zookeeper(scene, network, root, home):
    drop(scene, f"m{root}, the root group's active, is cut from ZooKeeper", root, [network.zookeeper])


def home_cable(scene, network, root, home):
    unplug(scene, f"the cable of m{home}, a home's active, is out", [home])


def root_cable(scene, network, root, home):
    unplug(scene, f"the cable of m{root}, the root group's active, is out", [root])


def both_cables(scene, network, root, home):
    unplug(scene, f"the cables of m{root} and m{home}, the actives of both groups, are out", [root, home])


def unplug(scene, what, numbers):
    scene.fault(what, lambda: [scene.options.network.unplug(number) for number in numbers])
    scene.rest(1)
    # Others have taken over.
    scene.wait_progress()
