"""What is played: an installation, two pods that go while a client writes, a volume that is lost, and a member more."""

import threading
import time

from harness.report import check

PATIENCE_S = 90


def tell(root, clover, work):
    from chart.render import PLAYED, render
    from kubelet.world import World

    begun = time.monotonic()
    world = World(root, clover, work)
    world.start_zookeeper()
    rendered = render(PLAYED, work)
    play = Play(world, rendered)
    for scene in (play.install, play.look_inside, play.upgrade_members, play.upgrade_data_servers, play.crash, play.lose_a_volume, play.grow, play.shrink, play.count):
        print(f"pods: {scene.__doc__.splitlines()[0]}", flush=True)
        started = time.monotonic()
        scene()
        print(f"pods: … {time.monotonic() - started:.1f} s", flush=True)
    print(f"pods: all as it must be, after {time.monotonic() - begun:.0f} s", flush=True)
    return 0


def until(what, wanted, seconds=PATIENCE_S, every=0.2):
    deadline = time.monotonic() + seconds
    while not (found := wanted()):
        check(time.monotonic() < deadline, f"after {seconds} s it is not so that {what}")
        time.sleep(every)
    return found


class Writer(threading.Thread):
    """A client that stores one file after the other. Each must be stored at the first try."""

    def __init__(self, client, first):
        super().__init__(daemon=True)
        self.client, self.number = client, first
        self.stored, self.failed, self.longest = 0, [], 0.0
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.is_set():
            begun = time.monotonic()
            said = self.client.exec("clover", "fs", "-put", "-", f"/orders/{self.number}", stdin=f"order {self.number}\n")
            self.longest = max(self.longest, time.monotonic() - begun)
            if said.code != 0:
                self.failed.append(str(said))
            self.stored += 1
            self.number += 1

    def end(self):
        self.is_over.set()
        self.join()
        check(not self.failed, f"{len(self.failed)} of {self.stored} files were not stored: {self.failed[:1]}")
        check(self.stored >= 3, f"only {self.stored} files were stored")
        print(f"pods: the client stored {self.stored} files, the slowest in {self.longest:.1f} s", flush=True)
        return self.number


class Play:
    def __init__(self, world, rendered):
        self.world, self.rendered = world, rendered
        self.meta, self.data = {}, {}
        self.files = 0
        [status] = rendered.all("Pod")
        self.client = self.pod(status)

    def pod(self, owner, number=None):
        from kubelet.pod import Pod

        return Pod(self.world, self.rendered, owner, number)

    def member(self, number):
        """The pod of a member, with its init container run."""
        pod = self.meta[number] = self.pod(self.rendered.of("meta"), number)
        return pod, pod.init()

    def all_ready(self, pods):
        until("all pods are ready", lambda: all(pod.is_ready() for pod in pods.values()))

    def active(self):
        found = [number for number, pod in self.meta.items() if pod.page("/isActive", 9870)[0] == 200]
        return found[0] if len(found) == 1 else None

    def writing(self, work, longest):
        """Carries it out while a client writes. No file may take longer than so many seconds, which is patience for a busy machine."""
        writer = Writer(self.client, self.files)
        writer.start()
        until("the client has begun", lambda: writer.stored > 0)
        try:
            work()
        finally:
            self.files = writer.end()
        check(writer.longest < longest, f"a file took {writer.longest:.1f} s")

    def install(self):
        """Three members and three data servers are installed; the members that are started first wait for the one that makes the cluster."""
        waiting = {}
        for number in (2, 3):
            pod = self.meta[number] = self.pod(self.rendered.of("meta"), number)
            [init] = pod.spec["initContainers"]
            waiting[number] = pod.begin(init)
        def waits(number):
            said = self.meta[number].log.read_text()
            check(waiting[number].poll() is None, f"member {number} waits: {said}")
            return "member 1 makes it" in said

        until("both wait", lambda: all(waits(number) for number in waiting))
        first, said = self.member(1)
        said.works("Made cluster CID-")
        first.start()
        for number, init in waiting.items():
            check(init.wait(30) == 0, self.meta[number].log.read_text())
            check(f"Member {number} has joined cluster" in self.meta[number].log.read_text(), self.meta[number].log.read_text())
            self.meta[number].start()
        # The files of the config maps are good, in the place where they are mounted.
        for pod in self.meta.values():
            pod.exec("clover", "config", "check", "/etc/clover/meta.toml").works("meta.toml")
        for number in (1, 2, 3):
            pod = self.data[number] = self.pod(self.rendered.of("data"), number)
            pod.exec("clover", "config", "check", "/etc/clover/data.toml").works("data.toml")
            pod.start()
        self.all_ready(self.meta)
        self.all_ready(self.data)
        for pod in (*self.meta.values(), *self.data.values()):
            check(pod.probe("livenessProbe") == 200 and pod.probe("startupProbe") == 200, f"{pod.name} is live")
        [status] = [self.client.container["command"]]
        until("the pod of `helm test` says that all is well", lambda: self.client.exec(*status).code == 0)
        self.client.exec("clover", "fs", "-mkdir", "/orders").works()

    def look_inside(self):
        """The processes have no rights, and another run of the init container changes nothing."""
        for pod in (*self.meta.values(), *self.data.values()):
            with open(f"/proc/{pod.server.pid}/status") as status:
                told = dict(line.rstrip().split(":\t", 1) for line in status if ":\t" in line)
            check(set(told["Uid"].split()) == {pod.user} != {"0"}, f"{pod.name} runs as {told['Uid']}")
            check(all(int(told[key], 16) == 0 for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")), "no capability is left")
            check(told["NoNewPrivs"] == "1", "and none can be got")
        for number, pod in self.meta.items():
            kept = self.world.claims / f"meta-{pod.name}" / "meta"
            before = (kept / "CLUSTER").read_bytes()
            pod.init().works("already; nothing was changed")
            check((kept / "CLUSTER").read_bytes() == before, f"member {number} is who it was")
            check((kept / "group-1").is_dir(), f"member {number} has what it had")
            check(kept.stat().st_mode & 0o777 == 0o700, "and nobody else reads it")
        for pod in self.meta.values():
            check("did not answer" not in pod.log.read_text(), "groups of users are known without the program id")
        nameless = self.client.exec("clover", "fs", "-ls", "/", without=("HADOOP_USER_NAME",))
        nameless.is_refused("user id 10001 has no name on this machine", "set HADOOP_USER_NAME")
        owner = self.client.exec("clover", "fs", "-stat", "%u", "/").works().out.strip()
        check(owner == "keeper", f"the superuser is {owner}: all pods act as the user of the values")

    def upgrade_members(self):
        """Every member goes and comes back with another address, one after the other, while a client writes."""

        def one_by_one():
            # As a StatefulSet does: from the last one to the first, and each is ready before the next one goes.
            for number in sorted(self.meta, reverse=True):
                active = until("one member is active", self.active)
                said = self.meta[number].delete()
                if number == active:
                    said.works(f"before it was member {number}")
                    successor = until("another member is active", self.active_beside(number))
                    check(f"Member {successor} is active in epoch" in said.out, f"{successor} is active: {said}")
                else:
                    said.works(f"Member {number} is not active (member {active} is): there is nothing to hand over.")
                pod, said = self.member(number)
                said.works("already; nothing was changed")
                pod.start()
                self.all_ready(self.meta)

        self.writing(one_by_one, longest=10)

    def upgrade_data_servers(self):
        """So does every data server."""

        def one_by_one():
            for number in sorted(self.data, reverse=True):
                self.data[number].delete()
                self.data[number] = self.pod(self.rendered.of("data"), number).start()
                self.all_ready(self.data)
                until("all data servers are known by their new addresses", self.knows_all_data_servers)

        self.writing(one_by_one, longest=30)

    def crash(self):
        """The active's process is killed. Its container starts anew in the same pod, and another member has taken over meanwhile."""

        def kill():
            active = until("one member is active", self.active)
            pod = self.meta[active]
            pod.server.kill()
            pod.server.wait()
            until("another member is active", self.active_beside(active))
            pod.start()
            self.all_ready(self.meta)

        self.writing(kill, longest=10)

    def active_beside(self, number):
        def find():
            found = [other for other, pod in self.meta.items() if other != number and pod.page("/isActive", 9870)[0] == 200]
            return found[0] if found else None

        return find

    def knows_all_data_servers(self):
        told = self.client.exec("clover", "admin", "report").works().out
        return all(any(f"{pod.address}:9866" in line and " live" in line for line in told.splitlines()) for pod in self.data.values())

    def lose_a_volume(self):
        """The volume of a standby is lost: its member starts again only when the values say so, and has everything then."""
        from chart.render import PLAYED, render

        active = until("one member is active", self.active)
        number = next(one for one in self.meta if one != active)
        lost = self.meta.pop(number)

        def replace():
            lost.delete()
            self.world.lose_claim(f"meta-{lost.name}")
            pod, said = self.member(number)
            said.is_refused(f"there is a member {number} already", "--replace")
            pod.clear()
            before = self.rendered
            changed = {**PLAYED, "meta": {**PLAYED["meta"], "replaceLost": True}}
            # The secret stays the cluster's: there Helm finds it in Kubernetes.
            self.rendered = keeping_secret(render(changed, self.world.work), before)
            pod, said = self.member(number)
            said.works(f"Member {number} has joined cluster")
            pod.start()
            self.rendered = before
            self.all_ready(self.meta)

        self.writing(replace, longest=10)

    def grow(self):
        """A fourth member: its pod waits until an operator has taken it into the group."""
        from chart.render import PLAYED, render

        before = self.rendered
        changed = {**PLAYED, "meta": {**PLAYED["meta"], "members": 4}}
        self.rendered = keeping_secret(render(changed, self.world.work), before)
        pod, said = self.member(4)
        said.is_refused("clover admin group add 4")
        self.meta[1].exec("clover", "admin", "group", "add", "4", "--config", "/etc/clover/meta.toml").works("members 1, 2, 3, 4")
        pod.init().works("Member 4 has joined cluster")
        pod.start()
        self.all_ready(self.meta)
        self.meta[1].exec("clover", "admin", "group").works("4 of 4 members in sync")

    def shrink(self):
        """The fourth member is taken out again, though it is the active, and so is the last data server, with all that it has."""
        admin = lambda *words: self.meta[1].exec("clover", "admin", *words, timeout=120)
        config = ("--config", "/etc/clover/meta.toml")
        admin("group", "hand-over", "--to", "4", *config).works("Member 4 is active")
        admin("group", "remove", "4", *config).is_refused("an active is never removed")
        admin("group", "hand-over", "--from", "4", *config).works("before it was member 4")
        admin("group", "remove", "4", *config).works("members 1, 2, 3")
        removed = self.meta.pop(4)
        until("the removed one is not ready", lambda: removed.probe("readinessProbe") == 503)
        removed.delete()
        self.world.lose_claim(f"meta-{removed.name}")
        admin("group").works("3 of 3 members in sync")

        last = self.data[3]
        name = f"{last.name}.shop-clover-data.files.svc.cluster.local"
        admin("decommission", name, "--wait").works()
        del self.data[3]
        last.delete()
        admin("recommission", f"{last.address}:9866").works()
        for disk in (1, 2):
            self.world.lose_claim(f"disk-{disk}-{last.name}")

    def count(self):
        """Every file that was stored is there, and holds what was written."""
        told = self.client.exec("clover", "fs", "-cat", *(f"/orders/{number}" for number in range(self.files)), timeout=120).works().out
        check(told == "".join(f"order {number}\n" for number in range(self.files)), f"{self.files} files hold what was written")
        self.client.exec("clover", "fsck", "/").works()
        for pod in (*self.data.values(), *self.meta.values()):
            pod.delete()


def keeping_secret(rendered, before):
    """The objects, with the secret that is there already."""
    secret = before.one("Secret", "shop-clover-secret")
    rendered.objects = [secret if found["kind"] == "Secret" else found for found in rendered.objects]
    return rendered
