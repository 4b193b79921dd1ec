"""The machine on which pods are played: a network with a bridge, the image, names of pods, volumes that outlive pods, and ZooKeeper."""

import os
import re
import shutil
import subprocess
from pathlib import Path

NODE = "10.0.0.254"


def sh(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, stdin=subprocess.DEVNULL, **options)


class World:
    def __init__(self, root, clover, work):
        self.root, self.work = root, work
        self.image, self.pods, self.claims = work / "image", work / "pods", work / "claims"
        self.names = {"zk-0.zk": NODE}
        self.last_address = 10
        for directory in (self.image, self.pods, self.claims):
            directory.mkdir()
        sh("mount", "-t", "tmpfs", "tmpfs", "/run")
        sh("ip", "link", "set", "lo", "up")
        sh("ip", "link", "add", "name", "pods", "address", "02:00:00:00:00:01", "type", "bridge")
        sh("ip", "address", "add", f"{NODE}/24", "dev", "pods")
        sh("ip", "link", "set", "pods", "up")
        self.lay_out(clover)

    def lay_out(self, clover):
        """The image: the program with its libraries, and nothing else."""
        program = self.image / "usr/bin/clover"
        program.parent.mkdir(parents=True)
        try:
            os.link(clover, program)
        except OSError:
            shutil.copy2(clover, program)
        told = subprocess.run(["ldd", clover], check=True, capture_output=True, text=True).stdout
        for library in re.findall(r"(/\S+) \(", told):
            target = self.image / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(library).resolve(), target)
        for directory in ("etc", "proc", "dev", "tmp"):
            (self.image / directory).mkdir(exist_ok=True)
        for device in ("null", "zero", "urandom"):
            (self.image / "dev" / device).touch()
        (self.image / "etc/nsswitch.conf").write_text("hosts: files\n")
        self.name_pods()

    def name_pods(self):
        """What DNS is in Kubernetes. A file of another name takes the place of the old one: nobody reads half of it."""
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in self.names.items())]
        (self.image / "etc/hosts.new").write_text("\n".join(lines) + "\n")
        os.replace(self.image / "etc/hosts.new", self.image / "etc/hosts")

    def address(self):
        """Each pod has another one than all pods before it."""
        self.last_address += 1
        return f"10.0.0.{self.last_address}"

    def plug_in(self, name, address):
        cable = f"v{self.last_address}"
        sh("ip", "netns", "add", name)
        sh("ip", "link", "add", "name", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
        sh("ip", "link", "set", cable, "master", "pods", "up")
        for words in (f"address add {address}/24 dev eth0", "link set eth0 up", "link set lo up"):
            sh("ip", "-n", name, *words.split())

    def claim(self, name, group):
        """A volume as a new one is: root's, the pod's group may write to it, and the file system has left a directory of its own."""
        volume = self.claims / name
        if not volume.exists():
            volume.mkdir()
            (volume / "lost+found").mkdir(mode=0o700)
            os.chown(volume, 0, group)
            os.chmod(volume, 0o2775)
        return volume

    def lose_claim(self, name):
        shutil.rmtree(self.claims / name)

    def start_zookeeper(self, port=2181):
        directory = self.work / "zookeeper"
        script = self.root / "scripts/zookeeper"
        os.environ["CLOVER_ZOOKEEPER_JARS"] = str((self.root / "target/clients/zookeeper").resolve())
        sh(script, "start", directory, port, capture_output=True)
        sh(script, "stop", directory)
        # It listens on loopback otherwise, which is another one in each pod.
        config = directory / "zoo.cfg"
        config.write_text(config.read_text().replace("clientPortAddress=127.0.0.1", "clientPortAddress=0.0.0.0"))
        sh(script, "start", directory, capture_output=True)
