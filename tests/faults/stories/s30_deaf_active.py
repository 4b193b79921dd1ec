"""No data server reaches the active, then none reaches any member: the first has it hand over, the second changes nothing."""

from harness.report import Failure, check

ITEM = "30"
IN_SLICE = False
NEEDS_CABLES = True
# Their machine; no member has such a number.
DATA = 60
TROUBLE = "no data server"


def run(scene_of):
    scene = scene_of(members=3)
    cluster, network = scene.cluster, scene.options.network
    cluster.data_machine = DATA
    with scene:
        load = scene.start_load("before")
        scene.start_native()
        scene.rest(1, 2)
        active = cluster.wait_active()
        scene.fault(f"nothing that data servers send reaches m{active}, the active", deafen, network, [active])
        said = wait_for_trouble(scene, active)
        scene.say(f"m{active} says: {said}")
        heir = cluster.wait_active(other_than=active, seconds=30)
        scene.wait_progress()
        scene.say(f"m{active} has handed over to m{heir}")
        check(cluster.members[active].process.is_running, f"m{active} has ended")
        cluster.wait_roles({active: "standby"})
        scene.note_end()
        scene.keep_takeovers()
        trigger = next(takeover for takeover in scene.takeovers if takeover["epoch"] == cluster.view()["epoch"])
        check("hand-over" in str(trigger), f"the takeover was none by a hand-over: {trigger}")

        # The data servers are gone for everybody: nobody else would do better.
        network.heal()
        cluster.wait_settled()
        load.end()
        # It has ended; its history counts.
        load.end = lambda: None
        scene.start_load("names-only", size=scene.options.size._replace(data=0, stream=0))
        epoch = cluster.view()["epoch"]
        scene.fault("nothing that data servers send reaches any member", deafen, network, list(cluster.members))
        # Longer than an active waits that has got the lead by a hand-over.
        scene.rest(25)
        check(cluster.view()["epoch"] == epoch, f"the group has moved from epoch {epoch} to {cluster.view()['epoch']}")
        check(cluster.active() == heir, f"m{heir} was active, and now {cluster.roles()}")
        network.heal()
        cluster.wait_settled()
        scene.wait_progress()
        scene.note_end()
        scene.say(f"m{heir} has stayed active in epoch {epoch}")
        scene.patient.add(load.name)
        return scene.verdict(goal_ms=2000)


def deafen(network, members):
    for number in members:
        network.drop(number, network.member(DATA), "in")


def wait_for_trouble(scene, number):
    for _ in range(600):
        health = scene.cluster.members[number].health() or {}
        if TROUBLE in str(health.get("trouble", "")):
            return health["trouble"]
        scene.rest(0.05)
    raise Failure(f"m{number} says nothing of it: {health}")
