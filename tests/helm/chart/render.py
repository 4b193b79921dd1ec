"""Helm, and the objects that it renders."""

import subprocess
from pathlib import Path

import yaml
from harness.report import Failure

ROOT = Path(__file__).resolve().parents[3]
HELM = ROOT / "target/clients/helm/helm"
CHART = ROOT / "packaging/helm/clover"
# Helm takes it for the server's release where there is no server.
KUBERNETES = "1.31.0"

# What an operator has to say at least.
LEAST = {"acceptSimpleAuth": True, "zookeeper": {"servers": ["zk-0.zk:2181"]}}

# The values of the pods that are played: quick, and two copies of each file.
PLAYED = {
    **LEAST,
    "nameservice": "shop",
    "user": "keeper",
    "meta": {"config": {"safe_mode_extension_ms": "1s", "heartbeat_interval_ms": "1s", "stale_after_ms": "3s",
                        "default_replication": 2, "min_block_size": 512}},
    "data": {"servers": 3, "disks": [{"size": "1Gi"}, {"size": "1Gi", "medium": "SSD"}], "config": {"heartbeat_interval_ms": "1s"}},
}

# Every value is set in one of them.
SETS = {
    "least": LEAST,
    "played": PLAYED,
    "one member": {**LEAST, "meta": {"members": 1}, "data": {"servers": 1}, "networkPolicy": {"enabled": False}},
    "most": {
        "acceptSimpleAuth": True,
        "image": {"repository": "registry.example/team/clover", "tag": "0.2.1", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "nameservice": "big-shop",
        "user": "hdfs",
        "log": "info,rpc=debug",
        "clusterDomain": "k8s.example",
        "httpHosts": ["*.console.example"],
        "zookeeper": {"servers": ["zk-0.zk:2181", "zk-1.zk:2181", "zk-2.zk:2181"], "path": "/hdfs/big-shop"},
        "secret": {"existing": "of-mine"},
        "meta": {
            "tag": "0.2.2",
            "members": 5,
            "storage": {"size": "50Gi", "class": "fast"},
            "config": {"max_objects": 5000000, "confirm_reads": True, "proxy_users": {"knox.hosts": "10.0.0.0/8", "knox.users": "*"}},
            "replaceLost": True,
            "startSeconds": 7200,
            "stopSeconds": 60,
            "resources": {"requests": {"cpu": "4", "memory": "32Gi"}, "limits": {"memory": "32Gi"}},
            "priorityClassName": "system-cluster-critical",
            "podAnnotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9870"},
            "podLabels": {"team": "storage"},
            "nodeSelector": {"disk": "nvme"},
            "tolerations": [{"key": "storage", "operator": "Exists"}],
            "apart": "preferred",
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
            ],
        },
        "data": {
            "tag": "0.2.1",
            "servers": 12,
            "disks": [{"size": "4Ti", "class": "slow", "medium": "ARCHIVE"}, {"size": "400Gi", "class": "fast", "medium": "SSD"}],
            "config": {"failed_volumes_tolerated": 1, "reserved_bytes": "10g"},
            "startSeconds": 600,
            "stopSeconds": 30,
            "priorityClassName": "storage",
            "podAnnotations": {"a": "b"},
            "podLabels": {"team": "storage"},
            "nodeSelector": {"disk": "many"},
            "tolerations": [{"key": "storage", "operator": "Exists"}],
            "apart": "required",
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "Exists"}]}]}}},
        },
        "networkPolicy": {"clients": [{"namespaceSelector": {"matchLabels": {"uses": "hdfs"}}}]},
        "serviceAccount": {"create": False, "name": "storage"},
        "podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None},
    },
}

# Values that are refused, and what the refusal says.
REFUSED = {
    "no ZooKeeper": ({"acceptSimpleAuth": True}, "zookeeper"),
    "nobody has accepted that clients are believed": ({"zookeeper": {"servers": ["zk:2181"]}}, "acceptSimpleAuth=true"),
    "a value that is not known": ({**LEAST, "metadata": {}}, "metadata"),
    "a key that the chart sets": ({**LEAST, "meta": {"config": {"member": 2}}}, "meta.config.member is set by the chart"),
    "a key of a data server that the chart sets": ({**LEAST, "data": {"config": {"data_dirs": ["/x"]}}}, "data.config.data_dirs"),
    "an address without a port": ({**LEAST, "zookeeper": {"servers": ["zk-0"]}}, "zookeeper"),
    "a number of members that no group has": ({**LEAST, "meta": {"members": 0}}, "members"),
    "pods of root": ({**LEAST, "podSecurityContext": {"runAsNonRoot": False}}, "runAsNonRoot"),
}


class Rendered:
    """The objects of one set of values."""

    def __init__(self, objects, namespace):
        self.objects = objects
        self.namespace = namespace

    def all(self, kind):
        return [found for found in self.objects if found["kind"] == kind]

    def one(self, kind, name):
        found = [it for it in self.all(kind) if it["metadata"]["name"] == name]
        if len(found) != 1:
            raise Failure(f"{len(found)} objects {kind}/{name}")
        return found[0]

    def of(self, component):
        """The StatefulSet of one kind of server."""
        found = [it for it in self.all("StatefulSet") if it["metadata"]["labels"]["app.kubernetes.io/component"] == component]
        if len(found) != 1:
            raise Failure(f"{len(found)} StatefulSets of {component}")
        return found[0]


def helm(*words, values=None, work):
    """Runs Helm; returns the finished process."""
    command = [str(HELM), *map(str, words)]
    if values is not None:
        file = work / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        command += ["--values", str(file)]
    # Nothing of the person who runs this, and no cluster of theirs.
    environment = {"HOME": str(work), "PATH": "/usr/bin:/bin", "KUBECONFIG": "/dev/null"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, timeout=60)


def render(values, work, release="shop", namespace="files"):
    done = helm("template", release, CHART, "--namespace", namespace, "--kube-version", KUBERNETES, values=values, work=work)
    if done.returncode != 0:
        raise Failure(f"helm template ended with {done.returncode}: {done.stderr}")
    return Rendered([found for found in yaml.safe_load_all(done.stdout) if found], namespace)
