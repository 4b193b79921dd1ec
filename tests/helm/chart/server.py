"""What Helm does only where there is a Kubernetes. Of that there is no more here than what Helm asks: which kinds of objects there are, and one
secret."""

import base64
import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml
from chart.render import CHART, KUBERNETES, LEAST, helm
from harness.report import check

SECRET = {"group-secret": "drawn at the first installation", "zookeeper-user": "clover:as well"}
KINDS = {
    "v1": {"pods": "Pod", "secrets": "Secret", "services": "Service", "configmaps": "ConfigMap", "serviceaccounts": "ServiceAccount"},
    "apps/v1": {"statefulsets": "StatefulSet"},
    "policy/v1": {"poddisruptionbudgets": "PodDisruptionBudget"},
    "networking.k8s.io/v1": {"networkpolicies": "NetworkPolicy"},
}


def answer(path):
    """What Kubernetes answers, as far as it is asked; None for "not found"."""
    if path == "/version":
        return {"major": "1", "minor": "31", "gitVersion": "v1.31.0"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        groups = [version.split("/") for version in KINDS if "/" in version]
        told = [{"groupVersion": f"{name}/{version}", "version": version} for name, version in groups]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [
            {"name": name, "versions": [one], "preferredVersion": one} for (name, _), one in zip(groups, told)]}
    for version, kinds in KINDS.items():
        if path == ("/apis/" if "/" in version else "/api/") + version:
            resources = [{"name": name, "singularName": kind.lower(), "namespaced": True, "kind": kind, "verbs": ["get", "list"]}
                         for name, kind in kinds.items()]
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}
    if path == "/api/v1/namespaces/files/secrets":
        # Helm looks for releases of this name.
        return {"kind": "SecretList", "apiVersion": "v1", "metadata": {}, "items": []}
    if path == "/api/v1/namespaces/files/secrets/shop-clover-secret":
        data = {key: base64.b64encode(value.encode()).decode() for key, value in SECRET.items()}
        owner = {"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "files"}
        labels = {"app.kubernetes.io/managed-by": "Helm"}
        about = {"name": "shop-clover-secret", "namespace": "files", "annotations": owner, "labels": labels}
        return {"kind": "Secret", "apiVersion": "v1", "metadata": about, "data": data}
    return None


class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        found = answer(self.path.partition("?")[0])
        missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
        body = json.dumps(found or missing).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def kubernetes():
    """The words by which Helm is led there."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield ["--namespace", "files", "--kube-apiserver", f"http://127.0.0.1:{server.server_port}"]
    finally:
        server.shutdown()
        server.server_close()


def keeps_the_secret(work):
    """The secret that was drawn at the installation is the same after an upgrade: Helm finds it in Kubernetes."""
    with kubernetes() as there:
        done = helm("template", "shop", CHART, *there, "--kube-version", KUBERNETES, "--dry-run=server", values=LEAST, work=work)
    check(done.returncode == 0, done.stderr)
    [secret] = [found for found in yaml.safe_load_all(done.stdout) if found and found["kind"] == "Secret"]
    kept = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
    check(kept == SECRET, f"the secret is another one after an upgrade: {kept}")


def says_what_comes_next(work):
    values = {**LEAST, "meta": {"members": 1}, "networkPolicy": {"enabled": False}}
    with kubernetes() as there:
        done = helm("install", "shop", CHART, *there, "--dry-run=client", "--disable-openapi-validation", values=values, work=work)
    check(done.returncode == 0, done.stderr)
    notes = done.stdout.partition("NOTES:")[2]
    for said in ("exec shop-clover-meta-1 --container meta -- clover status", "hdfs://clover", "port-forward service/shop-clover-http 9870",
                 "WARNING: networkPolicy.enabled is false", "WARNING: with 1 metadata server(s)"):
        check(said in notes, f"{said!r} was to be said: {notes}")
