"""A pod, from its rendered spec: its volumes, its containers, its probes and its end."""

import base64
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness.report import Failure, check
from kubelet.world import sh

ENTER = Path(__file__).resolve().parent / "enter.py"


class Said:
    def __init__(self, words, code, out, err):
        self.words, self.code, self.out, self.err = words, code, out, err

    def __str__(self):
        return f"{' '.join(self.words)} ended with {self.code}\n{self.out}{self.err}"

    def works(self, *texts):
        check(self.code == 0, f"it was to work: {self}")
        return self.says(*texts)

    def is_refused(self, *texts):
        check(self.code not in (0, None), f"it was to be refused: {self}")
        return self.says(*texts)

    def says(self, *texts):
        for text in texts:
            check(text in self.out + self.err, f"{text!r} was to be said: {self}")
        return self


class Pod:
    """`number`: what comes behind the name of the set. A pod of no set has none."""

    def __init__(self, world, rendered, owner, number=None):
        is_of_a_set = owner["kind"] == "StatefulSet"
        self.world, self.rendered, self.owner, self.number = world, rendered, owner, number
        self.name = f"{owner['metadata']['name']}-{number}" if is_of_a_set else owner["metadata"]["name"]
        self.spec = owner["spec"]["template"]["spec"] if is_of_a_set else owner["spec"]
        self.user, self.group = (str(self.spec["securityContext"][key]) for key in ("runAsUser", "fsGroup"))
        self.address = world.address()
        self.root = world.pods / self.name / "root"
        self.log = world.work / f"{self.name}.log"
        self.server = None
        world.plug_in(self.name, self.address)
        if is_of_a_set:
            namespace = f"{rendered.namespace}.svc.cluster.local"
            world.names[f"{self.name}.{owner['spec']['serviceName']}.{namespace}"] = self.address
            world.name_pods()
        self.mount()

    @property
    def container(self):
        return self.spec["containers"][0]

    def environment(self, container):
        facts = {"metadata.name": self.name, "status.podIP": self.address,
                 "metadata.labels['apps.kubernetes.io/pod-index']": str(self.number)}
        variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": self.name}
        for one in container["env"]:
            variables[one["name"]] = one["value"] if "value" in one else facts[one["valueFrom"]["fieldRef"]["fieldPath"]]
        return variables

    def expanded(self, word, container):
        return re.sub(r"\$\((\w+)\)", lambda found: self.environment(container)[found[1]], word)

    def mount(self):
        """The image, read-only, and the volumes in their places. All containers of a pod of ours mount the same."""
        mounts = [(mount, self.volume(mount["name"])) for mount in self.container["volumeMounts"]]
        for other in self.spec.get("initContainers", []):
            check(other["volumeMounts"] == self.container["volumeMounts"], "the containers of a pod mount the same")
        places = []
        for mount, origin in mounts:
            part = mount.get("subPath") or self.expanded(mount.get("subPathExpr", ""), self.container)
            origin = (origin / part).resolve() if part else origin
            check(origin.exists(), f"{mount['mountPath']}: there is no {origin}")
            place = self.world.image / mount["mountPath"].lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.mkdir(exist_ok=True) if origin.is_dir() else place.touch()
            places.append((origin, mount))
        self.root.mkdir(parents=True, exist_ok=True)
        sh("mount", "--bind", self.world.image, self.root)
        sh("mount", "-o", "remount,bind,ro", self.root)
        sh("mount", "-t", "proc", "proc", self.root / "proc")
        for device in ("null", "zero", "urandom"):
            sh("mount", "--bind", f"/dev/{device}", self.root / "dev" / device)
        for origin, mount in places:
            place = self.root / mount["mountPath"].lstrip("/")
            sh("mount", "--bind", origin, place)
            if mount.get("readOnly"):
                sh("mount", "-o", "remount,bind,ro", place)

    def volume(self, name):
        """The directory of a volume."""
        if any(claim["metadata"]["name"] == name for claim in self.owner["spec"].get("volumeClaimTemplates", [])):
            return self.world.claim(f"{name}-{self.name}", int(self.group))
        [source] = [volume for volume in self.spec["volumes"] if volume["name"] == name]
        directory = self.world.pods / self.name / name
        directory.mkdir(parents=True, exist_ok=True)
        if "configMap" in source:
            keys = self.rendered.one("ConfigMap", source["configMap"]["name"])["data"]
            self.project(directory, {key: text.encode() for key, text in keys.items()}, 0o644)
        elif "secret" in source:
            keys = self.rendered.one("Secret", source["secret"]["secretName"])["data"]
            # fsGroup: the file stays root's, and the group may read it besides.
            self.project(directory, {key: base64.b64decode(text) for key, text in keys.items()}, source["secret"]["defaultMode"] | 0o040)
        else:
            os.chown(directory, 0, int(self.group))
            os.chmod(directory, 0o2777)
        return directory

    def project(self, directory, keys, mode):
        """Files as a kubelet lays them out: each is a link through one that it turns when the content changes."""
        (directory / "..2026").mkdir()
        (directory / "..data").symlink_to("..2026")
        for key, content in keys.items():
            file = directory / "..2026" / key
            file.write_bytes(content)
            os.chown(file, 0, int(self.group))
            os.chmod(file, mode)
            (directory / key).symlink_to(f"..data/{key}")

    def words(self, command):
        return [sys.executable, "-I", "-S", str(ENTER), f"/run/netns/{self.name}", str(self.root), self.user, self.group, *command]

    def exec(self, *command, container=None, stdin="", timeout=60, without=()):
        """Runs a command in the pod, as `kubectl exec` and hooks do."""
        environment = self.environment(container or self.container)
        environment = {name: value for name, value in environment.items() if name not in without}
        try:
            done = subprocess.run(self.words(command), capture_output=True, text=True, input=stdin, env=environment, timeout=timeout)
        except subprocess.TimeoutExpired as late:
            told = [(part or b"").decode(errors="replace") for part in (late.stdout, late.stderr)]
            return Said(list(command), None, told[0], f"{told[1]}\nit has not ended after {timeout} s")
        return Said(list(command), done.returncode, done.stdout, done.stderr)

    def begin(self, container):
        """Starts a container's command; its output goes to the pod's log."""
        command = [self.expanded(word, container) for word in container["command"]]
        with open(self.log, "a") as log:
            log.write(f"--- {self.address}: {' '.join(command)}\n")
            log.flush()
            return subprocess.Popen(self.words(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment(container))

    def init(self):
        """Runs the init containers to their end."""
        for container in self.spec.get("initContainers", []):
            command = [self.expanded(word, container) for word in container["command"]]
            said = self.exec(*command, container=container)
            with open(self.log, "a") as log:
                log.write(f"--- {said}\n")
            if said.code != 0:
                return said
        return said

    def start(self):
        self.server = self.begin(self.container)
        return self

    def probe(self, kind):
        """What the probe is answered: the status. It is asked from the node, as a kubelet does."""
        asked = self.container[kind]["httpGet"]
        port = next(port["containerPort"] for port in self.container["ports"] if port["name"] == asked["port"])
        return self.page(asked["path"], port)[0]

    def page(self, path, port):
        words = ["curl", "--silent", "--max-time", "5", "--user-agent", "kube-probe/1.31", "--write-out", "\n%{http_code}"]
        done = subprocess.run([*words, f"http://{self.address}:{port}{path}"], capture_output=True, text=True)
        text, _, code = done.stdout.rpartition("\n")
        return int(code or 0), text

    def is_ready(self):
        self.is_running()
        return self.probe("readinessProbe") == 200

    def is_running(self):
        code = self.server.poll()
        check(code is None, f"{self.name} has ended with {code}: {self.log.read_text()[-2000:]}")
        return True

    def pre_stop(self):
        """Runs the hook."""
        return self.exec(*self.container["lifecycle"]["preStop"]["exec"]["command"])

    def delete(self):
        """Its end as Kubernetes has it: the hook, SIGTERM, and the end of the process within the time that is left. The volumes stay."""
        begun = time.monotonic()
        said = self.pre_stop() if "lifecycle" in self.container else None
        # A hook that fails keeps no pod.
        if self.server is not None:
            self.server.send_signal(signal.SIGTERM)
            left = self.spec["terminationGracePeriodSeconds"] - (time.monotonic() - begun)
            try:
                code = self.server.wait(max(left, 1))
            except subprocess.TimeoutExpired as late:
                self.server.kill()
                raise Failure(f"{self.name} is still there at the end of its time") from late
            check(code == 0, f"{self.name} ended with {code}: {self.log.read_text()[-2000:]}")
        self.clear()
        return said

    def clear(self):
        sh("umount", "--recursive", self.root)
        shutil.rmtree(self.world.pods / self.name)
        sh("ip", "netns", "del", self.name)
        self.world.names = {name: address for name, address in self.world.names.items() if address != self.address}
        self.world.name_pods()
