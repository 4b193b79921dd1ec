"""What must hold of the rendered objects."""

import re
import shlex
import subprocess
import xml.etree.ElementTree as ElementTree

import kubernetes_validate
from chart import server
from chart.render import CHART, KUBERNETES, LEAST, PLAYED, REFUSED, ROOT, SETS, helm, render
from harness.report import check

# The oldest release that the chart takes, one in between, and the newest that the validator knows.
RELEASES = ["1.28", "1.31", "1.37"]
COMPONENT = "app.kubernetes.io/component"


def run(report, clover, work):
    with report.case("chart", "helm lint"):
        for values in SETS.values():
            done = helm("lint", CHART, "--strict", "--kube-version", KUBERNETES, values=values, work=work)
            check(done.returncode == 0, f"{done.stdout}{done.stderr}")
    with report.case("chart", "values that are refused") as note:
        for what, (values, said) in REFUSED.items():
            done = helm("template", "shop", CHART, "--kube-version", KUBERNETES, values=values, work=work)
            check(done.returncode != 0 and said in done.stderr, f"{what}: ended with {done.returncode}: {done.stderr}")
        done = helm("template", "shop", CHART, "--kube-version", "1.27.0", values=LEAST, work=work)
        check(done.returncode != 0 and "kubeVersion" in done.stderr, f"an old Kubernetes: {done.stderr}")
        note.text = f"{len(REFUSED) + 1} sets"
    for name, values in SETS.items():
        with report.case("chart", name) as note:
            rendered = render(values, work)
            for found in rendered.objects:
                for release in RELEASES:
                    kubernetes_validate.validate(found, release, strict=True)
            fits(rendered)
            note.text = f"{len(rendered.objects)} objects"
    with report.case("chart", "pods start anew only for a reason"):
        restarts(work)
    with report.case("chart", "what an installation says"):
        server.says_what_comes_next(work)
    with report.case("chart", "an upgrade keeps the secret"):
        server.keeps_the_secret(work)
    with report.case("chart", "what the pages say to type is understood") as note:
        note.text = f"{typed(clover, work)} commands"
    with report.case("chart", "what clients are given is what `clover client-config` writes"):
        clients(render(PLAYED, work), clover, work)


def fits(rendered):
    """Names lead to something: of volumes, ports, pods, secrets."""
    names = {(found["kind"], found["metadata"]["name"]) for found in rendered.objects}
    check(len(names) == len(rendered.objects), "two objects have one name")
    for _, name in names:
        check(re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name) and len(name) <= 52, f"{name} is no name that all objects may have")
    sets = rendered.all("StatefulSet")
    check(len(sets) == 2, "two kinds of servers")
    for one in sets:
        stateful_set(rendered, one)
    for pod in rendered.all("Pod"):
        pod_spec(rendered, pod["spec"], {})
    for service in rendered.all("Service"):
        served = matching(sets, service["spec"]["selector"])
        check(len(served) == 1, f"the service {service['metadata']['name']} leads to {len(served)} kinds of pods")
        for port in service["spec"]["ports"]:
            check(port_of(served[0], port["targetPort"]) == port["port"], f"{service['metadata']['name']}: {port}")
    budgets = rendered.all("PodDisruptionBudget")
    check(len(budgets) == 2, "a budget for each kind of server")
    for budget in budgets:
        check(budget["spec"]["maxUnavailable"] == 1, "one pod at a time")
        check(len(matching(sets, budget["spec"]["selector"]["matchLabels"])) == 1, "a budget is for one kind of server")
    policies = rendered.all("NetworkPolicy")
    for policy in policies:
        bound = matching(sets, policy["spec"]["podSelector"]["matchLabels"])
        check(len(bound) == 1, "a policy is for one kind of server")
        named = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
        check(named == {port["name"] for port in container(bound[0])["ports"]}, f"{policy['metadata']['name']} names {named}")
        for rule in policy["spec"]["ingress"]:
            check(rule["from"], "an empty list of peers lets everybody in")
            if {"port": "peers"} in rule["ports"]:
                check(len(rule["from"]) == 1 and rule["from"][0]["podSelector"]["matchLabels"][COMPONENT] == "meta", "only members call members")
    for role in () if any(kind == "ServiceAccount" for kind, _ in names) else sets:
        check(role["spec"]["template"]["spec"]["serviceAccountName"] == "storage", "the account of the values")


def matching(sets, selector):
    check(selector, "an empty selector takes every pod")
    labels = lambda one: one["spec"]["template"]["metadata"]["labels"]
    return [one for one in sets if all(labels(one).get(key) == value for key, value in selector.items())]


def container(stateful_set):
    [only] = stateful_set["spec"]["template"]["spec"]["containers"]
    return only


def port_of(stateful_set, name):
    return next(port["containerPort"] for port in container(stateful_set)["ports"] if port["name"] == name)


def stateful_set(rendered, one):
    spec, labels = one["spec"], one["spec"]["template"]["metadata"]["labels"]
    check(spec["selector"]["matchLabels"].items() <= labels.items(), "the set selects its own pods")
    service = rendered.one("Service", spec["serviceName"])
    check(service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"], "each pod has a name, ready or not")
    check(spec["ordinals"]["start"] == 1 and spec["podManagementPolicy"] == "Parallel", "pods count from 1, and start together")
    check(spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}, "volumes stay")
    claims = {claim["metadata"]["name"]: claim for claim in spec["volumeClaimTemplates"]}
    pod_spec(rendered, spec["template"]["spec"], claims)
    own = container(one)
    ports = {port["name"] for port in own["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        check(own[probe]["httpGet"]["port"] in ports, f"{probe} asks a port that is there")
    check(own["livenessProbe"]["httpGet"]["path"] == "/live", "a server that waits is not started again")
    mounted = {mount["name"] for mount in own["volumeMounts"]}
    check(claims.keys() <= mounted, "every volume is mounted")
    config = {mount["name"]: mount for mount in own["volumeMounts"]}["config"]
    kept = rendered.one("ConfigMap", one["metadata"]["name"])["data"]
    if labels[COMPONENT] == "data":
        return check(set(kept) == {config["subPath"]}, "the file of the data servers")
    files = {config["subPathExpr"].replace("$(MEMBER)", str(number)) for number in range(1, spec["replicas"] + 1)}
    check(set(kept) == files, f"each member has its file: {set(kept)}")
    check(own["lifecycle"]["preStop"]["exec"]["command"][:4] == ["clover", "admin", "group", "hand-over"], "the active hands over")
    for number in range(1, spec["replicas"] + 1):
        host = f"{one['metadata']['name']}-{number}.{spec['serviceName']}.{rendered.namespace}.svc."
        told = kept[f"meta-{number}.toml"]
        for key in ("rpc", "peer", "http"):
            check(f'advertised_{key}_address = "{host}' in told, f"member {number} is advertised by the name of its pod")


def pod_spec(rendered, spec, claims):
    """Nothing that is mounted or named is missing, and no container may do what it need not."""
    check(spec["automountServiceAccountToken"] is False, "no pod calls Kubernetes")
    check(spec["securityContext"]["runAsNonRoot"] is True, "no pod is root's")
    check(spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", "system calls are filtered")
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    check(not volumes.keys() & claims.keys(), "a volume and a claim have one name")
    for volume in volumes.values():
        if "configMap" in volume:
            rendered.one("ConfigMap", volume["configMap"]["name"])
        if "secret" in volume and volume["secret"]["secretName"] != "of-mine":
            kept = rendered.one("Secret", volume["secret"]["secretName"])
            check(kept["data"].keys() == {"group-secret", "zookeeper-user"}, "both secrets are there")
            check(kept["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep", "the secret outlives the release")
    for one in spec.get("initContainers", []) + spec["containers"]:
        may = one["securityContext"]
        check(may["readOnlyRootFilesystem"] and not may["allowPrivilegeEscalation"], f"{one['name']} writes to its volumes alone")
        check(may["capabilities"] == {"drop": ["ALL"]}, f"{one['name']} has no capability")
        check(one["command"][0] == "clover", f"{one['name']} runs the program itself, no shell")
        check(one["resources"].get("requests"), f"{one['name']} says what it needs")
        paths = [mount["mountPath"] for mount in one["volumeMounts"]]
        check(len(paths) == len(set(paths)), f"{one['name']} mounts two volumes at one place")
        for mount in one["volumeMounts"]:
            check(mount["name"] in volumes or mount["name"] in claims, f"{one['name']} mounts {mount['name']}, which is not there")
        known = {variable["name"] for variable in one["env"]}
        words = [*one["command"], *(mount.get("subPathExpr", "") for mount in one["volumeMounts"])]
        used = {name for word in words for name in re.findall(r"\$\((\w+)\)", word)}
        check(used <= known, f"{one['name']} uses {used - known}, which nobody sets")
        # Kubernetes expands variables in no other command.
        check(not any("$(" in word for word in one.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", [])), "a hook without variables")


def restarts(work):
    def templates(values):
        rendered = render(values, work)
        return [rendered.of(component)["spec"]["template"] for component in ("meta", "data")]

    before = templates(PLAYED)
    check(templates(PLAYED) == before, "the same values make the same pods, though a secret was drawn anew")
    check(templates({**PLAYED, "networkPolicy": {"enabled": False}}) == before, "a policy is no reason")
    meta, data = templates({**PLAYED, "meta": {"config": {"confirm_reads": True}}})
    check(meta != before[0] and data == before[1], "a changed file of the metadata servers starts these anew, and no data server")
    meta, data = templates({**PLAYED, "data": {**PLAYED["data"], "config": {"max_moves": 7}}})
    check(meta == before[0] and data != before[1], "and the other way round")


def typed(clover, work):
    """Renders what `helm install` and `helm upgrade` of the pages would, and has `clover` parse what is to be run in pods."""
    seen = 0
    for page in (ROOT / "docs/operating/containers.md", CHART / "README.md"):
        blocks = re.findall(r"^```\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
        for line in "".join(blocks).replace("\\\n", " ").splitlines():
            words = shlex.split(line)
            if words[:2] in (["helm", "install"], ["helm", "upgrade"]):
                values = [word for at, word in enumerate(words) if "--set" in words[at - 1 : at + 1]]
                check((ROOT / words[3]).resolve() == CHART, f"{line}: the chart is elsewhere")
                base = {} if words[1] == "install" else LEAST
                done = helm("template", "shop", CHART, "--kube-version", KUBERNETES, *values, values=base, work=work)
            elif " -- clover " in line:
                own = words[words.index("--") + 2 :]
                done = subprocess.run([clover, *own, "--help"], capture_output=True, text=True)
            else:
                continue
            check(done.returncode == 0, f"{page.name}: {line}: {done.stderr}")
            seen += 1
    check(seen >= 15, f"only {seen} commands were found: has the layout of the pages changed?")
    return seen


def clients(rendered, clover, work):
    def properties(text):
        found = ElementTree.fromstring(text.encode()).findall("property")
        return {it.findtext("name"): it.findtext("value") for it in found}

    kept = rendered.one("ConfigMap", "shop-clover-clients")["data"]
    hosts = [f"shop-clover-meta-{number}.shop-clover-meta.files.svc.cluster.local:8020" for number in (1, 2, 3)]
    directory = work / "clients"
    words = [clover, "client-config", directory, "--members", ",".join(hosts), "--nameservice", "shop"]
    subprocess.run(words, check=True, capture_output=True)
    for name in ("core-site.xml", "hdfs-site.xml"):
        ours, theirs = properties(kept[name]), properties((directory / name).read_text())
        check(ours == theirs, f"{name} differs in {dict(ours.items() ^ theirs.items())}")
