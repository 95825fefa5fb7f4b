#!/usr/bin/env python3
"""packaging/helm/occtrace, rendered with Go's text/template and sprig: each choice of values gives documents that the API's schemas accept
(npm's kubernetes-models), containers that keep the limits below, settings that occtraced accepts, and selectors that choose what they
should. packaging/kubernetes/occtrace.yaml is the chart with the values of MANIFEST, and its pods are changed as the webhook changes pods.

    test_chart.py SOURCE BUILD [update]      update: writes packaging/kubernetes/occtrace.yaml
"""
import base64
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile

from test_webhook import ADDED, MOUNTS, VOLUMES

HEADER = """# A node's daemon and shipper in Kubernetes, without Helm: the chart packaging/helm/occtrace with fixed values, written by
# tests/cluster/test_chart.py. Change the image, ship.url and ship.cluster; then (docs/opt-in.md; the pods wait for the Secret):
#   kubectl apply -f occtrace.yaml; kubectl -n occtrace create secret generic clickhouse --from-file=password
apiVersion: v1
kind: Namespace
metadata:
  name: occtrace
  labels: {pod-security.kubernetes.io/enforce: privileged}
"""
MANIFEST = ["image.repository=example/occtrace", "webhook.enabled=false", "ship.enabled=true", "ship.url=https://clickhouse.example:8443/",
            "ship.passwordSecret=clickhouse", "ship.cluster=example"]
IMAGE = "image.repository=example/occtrace"
SHIP = [IMAGE, "ship.enabled=true", "ship.url=https://c:8443/", "ship.password=p"]
OTLP = [IMAGE, "ship.enabled=true", "ship.otlp.url=https://o:4318"]
MONITORING = [IMAGE, "metrics.podMonitor.enabled=true", "metrics.rules.enabled=true", "metrics.dashboards.enabled=true"]
CHOICES = {
    "defaults": [IMAGE], "shipper": SHIP, "monitoring": MONITORING,
    "TLS": MONITORING + ["metrics.tlsSecret=s", "metrics.podMonitor.tlsConfig={insecureSkipVerify: true}"],
    "cert-manager": [IMAGE, "webhook.certificates=cert-manager"], "counters": [IMAGE, "node.counters=pm", "node.runtimeClassName=nvidia"],
    "restricted clusters": [IMAGE, "webhook.defaultPodSecurity=restricted"], "no webhook, no metrics": [IMAGE, "webhook.enabled=false", "metrics.enabled=false"],
    "another directory": SHIP + ["directories.library=/opt/occtrace", "node.settings={http: {max_runs: 5}, log: {level: info}}"],
    "OpenTelemetry alone": OTLP + ["metrics.enabled=false"], "OpenTelemetry and a warehouse": SHIP + ["ship.otlp.url=https://o:4318"],
    "OpenTelemetry with secrets": OTLP + ["ship.otlp.headersSecret=h", "ship.otlp.caSecret=a", "ship.otlp.profiles=true"],
    "OpenTelemetry by the settings": [IMAGE, "ship.enabled=true", "node.settings={ship: {otlp_url: https://o:4318, otlp_profiles: true}}"],
    "a private authority": SHIP + ["ship.caSecret=a", "ship.certSecret=c", "ship.metricsDirectory=/var/lib/node-exporter"],
    "users as hashes": SHIP + ["ship.users=hash", "ship.usersKeySecret=u"], "users as hashes, no shipper": [IMAGE, "ship.users=hash", "ship.usersKeySecret=u"],
    "no users": OTLP + ["ship.users=none"], "Prometheus alone": MONITORING + ["ship.enabled=false"], "removal": [IMAGE, "removeFromNodes=true"], "manifest": MANIFEST,
}
CLUSTER_WIDE = {"MutatingWebhookConfiguration"}


class Chart:
    def __init__(self, source, work):
        self.path = f"{source}/packaging/helm/occtrace"
        self.program = f"{work}/render_chart"
        environment = dict(os.environ, GO111MODULE="off", GOPATH="/usr/share/gocode")
        environment.setdefault("GOCACHE", f"{work}/go")
        subprocess.run(["go", "build", "-o", self.program, f"{source}/tests/cluster/render_chart/main.go"], check=True, env=environment)

    def text(self, values, namespace="occtrace", release="occtrace"):
        ended = subprocess.run([self.program, self.path, namespace, release, *values], capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise ValueError(ended.stderr)
        return ended.stdout

    def documents(self, values, **names):
        import yaml
        return [document for document in yaml.safe_load_all(self.text(values, **names)) if document]


def find(documents, kind, name_end=""):
    return next(d for d in documents if d["kind"] == kind and d["metadata"]["name"].endswith(name_end))


def pods(documents):
    return [d["spec"]["template"] for d in documents if d["kind"] in ("DaemonSet", "Deployment")]


def containers(pod):
    return pod["spec"]["containers"] + pod["spec"].get("initContainers", [])


# ---- checks of all choices ----

SCHEMA = """
const { createRequire } = require("module");
const load = createRequire(process.argv[2] + "/x.js");
const from = { "monitoring.coreos.com/v1": "@kubernetes-models/prometheus-operator/", "cert-manager.io/v1": "@kubernetes-models/cert-manager/" };
let wrong = 0;
for (const document of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
  const models = load((from[document.apiVersion] || "kubernetes-models/") + document.apiVersion);
  try { new models[document.kind](document).validate(); }
  catch (error) { wrong++; console.log(document.kind, document.metadata.name, String(error)); }
}
process.exit(wrong ? 1 : 0);
"""


def check_schemas(documents):
    cache = f"{os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')}/occtrace/kubernetes"
    if not os.path.isdir(f"{cache}/node_modules/kubernetes-models"):
        return "NOT TESTED: schemas (no kubernetes-models; scripts/setup --cluster)"
    ended = subprocess.run(["node", "-e", SCHEMA, "-", cache], input=json.dumps(documents), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return "schemas"


def check_containers(documents):
    """Each container has these limits; capabilities are named, and only those."""
    added = {"ship-state": ["CHOWN"], "remove": ["DAC_OVERRIDE"]}
    for pod in pods(documents):
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert not spec.get("hostNetwork") and not spec.get("hostIPC")
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        assert {m["name"] for c in containers(pod) for m in c["volumeMounts"]} == set(volumes)
        for container in containers(pod):
            security = container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False and security["readOnlyRootFilesystem"] is True and "privileged" not in security
            assert security["seccompProfile"] == {"type": "RuntimeDefault"} and security["capabilities"]["drop"] == ["ALL"]
            allowed = added.get(container["name"], ["PERFMON"] if container["name"] == "occtraced" else [])
            assert set(security["capabilities"].get("add", [])) <= set(allowed), container["name"]
        for volume in volumes.values():
            assert volume.get("hostPath", {}).get("path") not in ("/", "/usr", "/usr/lib", "/etc", "/var", "/var/lib"), volume


def check_restricted(pod):
    """Pod security level restricted, from Kubernetes' page "Pod Security Standards", for a pod of Linux."""
    spec = pod["spec"]
    assert not any(spec.get(key) for key in ("hostPID", "hostIPC", "hostNetwork"))
    kinds = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
    assert all((set(volume) - {"name"}) <= kinds for volume in spec["volumes"])
    for container in containers(pod):
        security = {**spec.get("securityContext", {}), **container["securityContext"]}
        assert security["runAsNonRoot"] is True and security.get("runAsUser") != 0
        assert set(security["capabilities"].get("add", [])) <= {"NET_BIND_SERVICE"}
        assert not any("hostPort" in port for port in container.get("ports", []))


def check_selectors(documents, namespace):
    for document in documents:
        has_namespace = document["kind"] not in CLUSTER_WIDE
        assert document["metadata"].get("namespace") == (namespace if has_namespace else None), document["metadata"]
        if document["kind"] in ("DaemonSet", "Deployment"):
            selected = document["spec"]["selector"]["matchLabels"]
            assert selected.items() <= document["spec"]["template"]["metadata"]["labels"].items()
    for first, second in itertools.permutations([d for d in documents if d["kind"] in ("DaemonSet", "Deployment")], 2):
        assert not first["spec"]["selector"]["matchLabels"].items() <= second["spec"]["template"]["metadata"]["labels"].items()
    for service in [d for d in documents if d["kind"] == "Service"]:
        chosen = [p for p in pods(documents) if service["spec"]["selector"].items() <= p["metadata"]["labels"].items()]
        assert len(chosen) == 1 and service["spec"]["ports"][0]["targetPort"] in [p["name"] for c in containers(chosen[0]) for p in c["ports"]]


def check_settings(documents, build, work):
    path = f"{work}/settings.yaml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(find([d for d in documents if d["kind"] == "ConfigMap" and "occtrace.yaml" in d["data"]], "ConfigMap")["data"]["occtrace.yaml"])
    ended = subprocess.run([f"{build}/bin/occtraced", "--check-config", "-c", path], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


# ---- checks of single choices ----

def matches(expressions, labels):
    """As Kubernetes evaluates a label selector."""
    for e in expressions:
        is_in = labels.get(e["key"]) in e["values"]
        if is_in != (e["operator"] == "In"):
            return False
    return True


def paths_for(documents, namespace, pod):
    """The webhook's paths that the API server calls for a pod with these labels in a namespace with these labels."""
    return [hook["clientConfig"]["service"]["path"] for hook in find(documents, "MutatingWebhookConfiguration")["webhooks"]
            if hook["namespaceSelector"]["matchLabels"].items() <= namespace.items()
            and matches(hook["namespaceSelector"]["matchExpressions"], namespace) and matches(hook["objectSelector"]["matchExpressions"], pod)]


def check_who_is_asked(chart):
    on, level = {"occtrace.io/record": "enabled"}, "pod-security.kubernetes.io/enforce"
    for preset, of_none in ("privileged", "/mutate"), ("baseline", "/annotate"), ("restricted", "/annotate"):
        documents = chart.documents([IMAGE, f"webhook.defaultPodSecurity={preset}"])
        assert paths_for(documents, on, {}) == [of_none]
        assert paths_for(documents, {**on, level: "privileged"}, {}) == ["/mutate"]
        for forbidding in "baseline", "restricted":
            assert paths_for(documents, {**on, level: forbidding}, {}) == ["/annotate"]
        assert not paths_for(documents, {}, {}) and not paths_for(documents, {level: "privileged"}, {})
        assert not paths_for(documents, on, {"occtrace.io/record": "disabled"})
        for hook in find(documents, "MutatingWebhookConfiguration")["webhooks"]:
            assert hook["failurePolicy"] == "Ignore" and hook["sideEffects"] == "None"
            assert [r["operations"] for r in hook["rules"]] == [["CREATE"]]


def check_certificate(chart, work):
    documents = chart.documents([IMAGE], namespace="tools", release="prof")
    secret = find(documents, "Secret", "webhook")
    hook = find(documents, "MutatingWebhookConfiguration")["webhooks"][0]
    for name, text in ("ca", hook["clientConfig"]["caBundle"]), ("crt", secret["data"]["tls.crt"]):
        with open(f"{work}/{name}.pem", "wb") as file:
            file.write(base64.b64decode(text))
    service = find(documents, "Service")["metadata"]
    subprocess.run(["openssl", "verify", "-CAfile", f"{work}/ca.pem", "-verify_hostname", f"{service['name']}.{service['namespace']}.svc", f"{work}/crt.pem"],
                   check=True, capture_output=True)


def check_refusals(chart):
    for values in [], [IMAGE, "ship.enabled=true"], [IMAGE, "ship.enabled=true", "ship.url=https://c/"], [IMAGE, "webhook.certificates=none"], [
            IMAGE, "webhook.defaultPodSecurity=open"], SHIP + ["ship.users=hash"], SHIP + ["ship.usersKeySecret=u"], SHIP + ["ship.users=all"]:
        try:
            chart.text(values)
        except ValueError:
            continue
        raise AssertionError(f"{values} are accepted")


def check_directories(chart):
    """Library and socket directory are the same for daemon, webhook and removal. Pods mount the socket's directory, not the metrics'."""
    values = [IMAGE, "directories={library: /l, run: /r, histories: /h}"]
    documents = chart.documents(values)
    node, webhook = find(documents, "DaemonSet")["spec"]["template"], find(documents, "Deployment")["spec"]["template"]
    host = {v["hostPath"]["path"] for v in node["spec"]["volumes"] if "hostPath" in v}
    assert host == {"/l", "/r", "/r-metrics", "/h", "/var/log/pods"}, host
    slash = find(chart.documents([IMAGE, "directories={library: /l, run: /r/, histories: /h}"]), "DaemonSet")["spec"]["template"]["spec"]
    assert {"name": "metrics", "hostPath": {"path": "/r-metrics", "type": "DirectoryOrCreate"}} in slash["volumes"]
    assert {"--library-directory=/l", "--run-directory=/r"} <= set(webhook["spec"]["containers"][0]["command"])
    removal = find(chart.documents(values + ["removeFromNodes=true"]), "DaemonSet")["spec"]["template"]
    assert {v["hostPath"]["path"] for v in removal["spec"]["volumes"] if "hostPath" in v} == {"/l", "/r", "/h", "/h-ship"}


def check_node(chart):
    daemon = find(chart.documents(SHIP + ["node.counters=gpm"]), "DaemonSet")["spec"]["template"]["spec"]
    by_name = {c["name"]: c for c in daemon["containers"]}
    for probe in "startupProbe", "livenessProbe":  # at a socket that no tenant reaches
        assert by_name["occtraced"][probe]["exec"]["command"] == ["occtraced", "--alive"]
    assert {"name": "metrics", "mountPath": "/run/occtrace-metrics"} in by_name["occtraced"]["volumeMounts"]
    for name in "occtraced", "occtrace-ship":
        assert {"name": "OCCTRACE_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}} in by_name[name]["env"]
    assert "add" not in by_name["occtraced"]["securityContext"]["capabilities"]
    assert by_name["occtrace-ship"]["securityContext"]["runAsUser"] == 64064 and by_name["occtrace-ship"]["securityContext"]["runAsNonRoot"] is True
    assert "occtrace-ship:x:64064:" in find(chart.documents(SHIP), "ConfigMap", "groups")["data"]["group"]


def check_receivers(chart):
    """Without a warehouse the shipper has no account of one; without a shipper nothing of it is left."""
    import yaml
    for values, sections, secrets in ((OTLP, {"otlp_url": "https://o:4318", "cluster": ""}, {}), (
            OTLP + ["ship.otlp.headersSecret=h", "ship.otlp.caSecret=a", "ship.otlp.profiles=true", "ship.cluster=c"],
            {"otlp_url": "https://o:4318", "cluster": "c", "otlp_headers_file": "/run/secrets/otlp/headers", "otlp_ca_file": "/run/secrets/otlp-ca/ca.crt",
             "otlp_profiles": True}, {"otlp-headers": "h", "otlp-ca": "a"}), (
            SHIP, {"url": "https://c:8443/", "user": "occ_nodes", "cluster": "", "password_file": "/run/secrets/clickhouse/password"},
            {"password": "occtrace-clickhouse"}), (
            SHIP + ["ship.caSecret=a", "ship.certSecret=c", "ship.metricsDirectory=/t"],
            {"url": "https://c:8443/", "user": "occ_nodes", "cluster": "", "password_file": "/run/secrets/clickhouse/password",
             "ca_file": "/run/secrets/clickhouse-ca/ca.crt", "cert_file": "/run/secrets/clickhouse-cert/tls.crt",
             "key_file": "/run/secrets/clickhouse-cert/tls.key", "metrics_file": "/var/lib/occtrace-metrics/occtrace-ship.prom"},
            {"password": "occtrace-clickhouse", "ca": "a", "cert": "c"})):
        documents = chart.documents(values)
        settings = next(d for d in documents if d["kind"] == "ConfigMap" and "occtrace.yaml" in d["data"])["data"]["occtrace.yaml"]
        pod = find(documents, "DaemonSet")["spec"]["template"]["spec"]
        assert yaml.safe_load(settings)["ship"] == sections, settings
        assert {v["name"]: v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v} == secrets
        # of the shipper alone, at the place that the settings name
        shipper, daemon = ({m["name"]: m for m in next(c for c in pod["containers"] if c["name"] == name)["volumeMounts"]} for name in ("occtrace-ship", "occtraced"))
        assert set(secrets) <= set(shipper) and not set(secrets) & set(daemon)
        for key, volume in (("ca_file", "ca"), ("cert_file", "cert"), ("key_file", "cert"), ("password_file", "password"), ("metrics_file", "ship-metrics")):
            assert (volume in shipper) == (key in sections) and (key not in sections or os.path.dirname(sections[key]) == shipper[volume]["mountPath"]), key
        assert [v["hostPath"] for v in pod["volumes"] if v["name"] == "ship-metrics"] == [{"path": "/t", "type": "Directory"}] * ("metrics_file" in sections)
        assert ("password" in secrets) == any(d["kind"] == "Secret" and d["metadata"]["name"] == "occtrace-clickhouse" for d in documents)
    documents = chart.documents(MONITORING)
    assert [c["name"] for c in find(documents, "DaemonSet")["spec"]["template"]["spec"]["containers"]] == ["occtraced"]
    assert find(documents, "PodMonitor") and not [d for d in documents if d["metadata"]["name"].endswith(("-clickhouse", "-groups"))]


def check_labels(chart, source):
    """Of a target by Prometheus' operator, whose own labels take the place of a series' labels of the same names: no name that a series has."""
    import re
    with open(f"{source}/docs/man/occtraced.8", encoding="utf-8") as file:
        names = set(re.findall(r"(?:^|[, ])(namespace|pod|container|user|hostname|gpu|UUID)\b", file.read(), re.M))
    assert {"namespace", "pod", "container", "hostname"} <= names
    # as the operator makes them of a PodMonitor, and its relabelings after these
    target = {"namespace": "occtrace", "pod": "occtrace-x7k2p", "container": "occtraced", "job": "occtrace/occtrace", "endpoint": "metrics",
              "instance": "10.0.0.7:9469", "__meta_kubernetes_pod_node_name": "gpu-17"}
    for step in find(chart.documents(MONITORING), "PodMonitor")["spec"]["podMetricsEndpoints"][0]["relabelings"]:
        if step.get("action") == "labeldrop":
            target = {name: value for name, value in target.items() if not re.fullmatch(step["regex"], name)}
        else:
            assert set(step) <= {"sourceLabels", "targetLabel", "replacement"}, step
            target[step["targetLabel"]] = step.get("replacement") or ";".join(target[name] for name in step["sourceLabels"])
    target = {name: value for name, value in target.items() if not name.startswith("__")}
    assert not names & set(target), target
    assert target["job"].startswith("occtrace") and target["instance"] == "gpu-17", target


def check_users(chart):
    """The key is where the settings name it, in both programs that show users, and only with hashes; nobody else in the pod may read it."""
    import yaml
    for ship, names in (["ship.enabled=false"], ["occtraced"]), (SHIP[1:], ["occtraced", "occtrace-ship"]):
        documents = chart.documents([IMAGE, *ship, "ship.users=hash", "ship.usersKeySecret=u"])
        pod = find(documents, "DaemonSet")["spec"]["template"]["spec"]
        settings = yaml.safe_load(next(d for d in documents if d["kind"] == "ConfigMap" and "occtrace.yaml" in d["data"])["data"]["occtrace.yaml"])["ship"]
        volume = next(v for v in pod["volumes"] if v["name"] == "users-key")
        mounts = {c["name"]: m for c in containers({"spec": pod}) for m in c["volumeMounts"] if m["name"] == "users-key"}
        assert settings["users"] == "hash" and settings["users_key_file"] == "/run/secrets/users/users-key"
        assert volume["secret"] == {"secretName": "u", "defaultMode": 0o440} and "items" not in volume["secret"]
        assert sorted(mounts) == sorted(names) and all(m["mountPath"] == "/run/secrets/users" and m["readOnly"] for m in mounts.values())
    for values, users in (SHIP, None), (SHIP + ["ship.users=none"], "none"), (SHIP + ["node.settings={ship: {users: none}}"], "none"):
        text = chart.text(values)
        documents = [document for document in yaml.safe_load_all(text) if document]
        settings = yaml.safe_load(next(d for d in documents if d["kind"] == "ConfigMap" and "occtrace.yaml" in d["data"])["data"]["occtrace.yaml"])["ship"]
        assert settings.get("users") == users and "users_key" not in text and "users-key" not in text


def check_copies(chart, source):
    """Rules and dashboards are the files of the project."""
    import yaml
    documents = chart.documents(MONITORING)
    with open(f"{source}/packaging/prometheus/occtrace.rules.yaml", encoding="utf-8") as file:
        assert find(documents, "PrometheusRule")["spec"] == yaml.safe_load(file)
    for name, text in find(documents, "ConfigMap", "dashboards")["data"].items():
        with open(f"{source}/packaging/grafana/{name.removeprefix('occtrace-')}", encoding="utf-8") as file:
            assert json.loads(text) == json.load(file)


def check_component(_chart, source, work):
    """The Kustomize component changes a workload as the webhook changes a pod."""
    import yaml
    if not shutil.which("kubectl"):
        print("NOT TESTED: packaging/kubernetes/component (no kubectl)")
        return
    pod = {"containers": [{"name": "train", "image": "i", "env": [{"name": "A", "value": "1"}]}, {"name": "log", "image": "i"}]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "labels": {"occtrace.io/record": "enabled"}}, "spec": {"template": {"spec": pod}}}
    other = {**job, "metadata": {"name": "k"}}
    shutil.copytree(f"{source}/packaging/kubernetes/component", f"{work}/kustomized/component")
    for name, documents in ("kustomization", [{"resources": ["jobs.yaml"], "components": ["component"]}]), ("jobs", [job, other]):
        with open(f"{work}/kustomized/{name}.yaml", "w", encoding="utf-8") as file:
            yaml.safe_dump_all(documents, file)
    ended = subprocess.run(["kubectl", "kustomize", f"{work}/kustomized"], check=True, capture_output=True, text=True)
    changed, unchanged = sorted(yaml.safe_load_all(ended.stdout), key=lambda document: document["metadata"]["name"])
    spec = changed["spec"]["template"]["spec"]
    train = spec["containers"][0]
    assert unchanged == other and spec["containers"][1] == pod["containers"][1]
    assert sorted(train["env"], key=str) == sorted(pod["containers"][0]["env"] + ADDED, key=str) and train["volumeMounts"] == MOUNTS
    assert spec["volumes"] == [{**v, "hostPath": {**v["hostPath"], "path": m["mountPath"]}} for v, m in zip(VOLUMES, MOUNTS)]


def check_manifest(chart, source, update):
    path, text = f"{source}/packaging/kubernetes/occtrace.yaml", HEADER + chart.text(MANIFEST).replace("managed-by: Helm", "managed-by: kubectl")
    assert text.index("kubectl apply") < text.index("kubectl -n occtrace create secret"), "a Secret before its namespace"
    if update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    with open(path, encoding="utf-8") as file:
        assert file.read() == text, "packaging/kubernetes/occtrace.yaml is not the chart's: test_chart.py SOURCE BUILD update"


def main():
    source, build, update = sys.argv[1], sys.argv[2], sys.argv[3:] == ["update"]
    try:
        import yaml  # noqa: F401
    except ImportError:
        yaml = None
    if not yaml or not shutil.which("go") or not os.path.isdir("/usr/share/gocode/src/github.com/Masterminds/sprig"):
        print("skipped: no Go, sprig or python3-yaml (scripts/setup --cluster)")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="test_chart_") as work:
        chart = Chart(source, work)
        for title, values in CHOICES.items():
            documents = chart.documents(values)
            verdict = check_schemas(documents)
            check_containers(documents)
            check_selectors(documents, "occtrace")
            check_settings(documents, build, work)
            for pod in pods([d for d in documents if d["kind"] == "Deployment"]):
                check_restricted(pod)
            print("ok", title, verdict)
        for check, arguments in (check_who_is_asked, ()), (check_certificate, (work,)), (check_refusals, ()), (check_directories, ()), (check_node, ()), (check_receivers, ()), (check_users, ()), (check_labels, (source,)), (
                check_copies, (source,)), (check_component, (source, work)), (check_manifest, (source, update)):
            check(chart, *arguments)
            print("ok", check.__name__)


if __name__ == "__main__":
    main()
