#!/usr/bin/env python3
"""occtrace-webhook against AdmissionReview requests over HTTPS: pods of each kind, hostile and truncated requests, limits, and another
certificate while it serves. A patch is applied to the pod as RFC 6902 says, and the pod after it is judged.

    test_webhook.py OCCTRACE_WEBHOOK [late]      late: a request that never ends (10 s)
"""
import base64
import copy
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

LIBRARY, RUN = "/opt/occ~1trace", "/run/occtrace"
ADDED = [{"name": "CUDA_INJECTION64_PATH", "value": "/usr/lib/occtrace/libocctrace.so"},
         {"name": "OCCTRACE_SOCKET", "value": "/run/occtrace/occtraced.sock"}]
MOUNTS = [{"name": "occtrace-library", "mountPath": "/usr/lib/occtrace", "readOnly": True},
          {"name": "occtrace-daemon", "mountPath": "/run/occtrace", "readOnly": True}]
VOLUMES = [{"name": "occtrace-library", "hostPath": {"path": LIBRARY, "type": "DirectoryOrCreate"}},
           {"name": "occtrace-daemon", "hostPath": {"path": RUN, "type": "DirectoryOrCreate"}}]
STATUS = "occtrace.io/status"


# ---- the server ----

class Webhook:
    def __init__(self, program, directory):
        self.directory = directory
        self.renew("first")
        self.log = open(f"{directory}/log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [program, "--cert", f"{directory}/now/tls.crt", "--key", f"{directory}/now/tls.key", "--listen", "127.0.0.1:0",
             "--library-directory", LIBRARY, "--log-level", "info"], stderr=self.log)
        self.port = int(self.wait_for(lambda: re.search(r"listens at port (\d+)", self.read_log()))[1])

    def read_log(self):
        with open(f"{self.directory}/log", encoding="utf-8") as file:
            return file.read()

    def wait_for(self, condition):
        for _ in range(1200):
            value = condition()
            if value:
                return value
            assert self.process.poll() is None, self.read_log()
            time.sleep(0.05)
        raise AssertionError(f"never true; log:\n{self.read_log()}")

    def renew(self, name):
        """A certificate of its own; the directory changes as kubelet changes a Secret's: a link is replaced."""
        os.mkdir(f"{self.directory}/{name}")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                        "-addext", "subjectAltName=DNS:localhost", "-keyout", f"{self.directory}/{name}/tls.key", "-out",
                        f"{self.directory}/{name}/tls.crt"], check=True, capture_output=True)
        os.symlink(name, f"{self.directory}/next")
        os.rename(f"{self.directory}/next", f"{self.directory}/now")

    def connect(self, name="now"):
        """A connection that trusts the certificate `name` alone."""
        context = ssl.create_default_context(cafile=f"{self.directory}/{name}/tls.crt")
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), timeout=60), server_hostname="localhost")

    def ask(self, body, path="/mutate", method="POST"):
        """Status and text of the answer."""
        context = ssl.create_default_context(cafile=f"{self.directory}/now/tls.crt")
        request = urllib.request.Request(f"https://localhost:{self.port}{path}", data=body, method=method,
                                         headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        try:
            with opener.open(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def end(self):
        self.process.terminate()
        assert self.process.wait(timeout=60) == 0, self.read_log()


# ---- requests ----

def pod(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "creationTimestamp": None},
            "spec": {"containers": [{"name": "train", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}], **spec}}


def review(pod_, **request):
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
            "request": {"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": {"group": "", "version": "v1", "kind": "Pod"},
                        "resource": {"group": "", "version": "v1", "resource": "pods"}, "name": "p", "namespace": "team", "operation": "CREATE",
                        "userInfo": {"username": "u", "groups": ["system:authenticated"]}, "object": pod_, "oldObject": None, "dryRun": False,
                        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}, **request}}


def apply(patch, document):
    """RFC 6902, the operation "add" alone."""
    document = copy.deepcopy(document)
    for operation in patch:
        assert set(operation) == {"op", "path", "value"} and operation["op"] == "add", operation
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        target = document
        for part in parents:
            target = target[int(part)] if isinstance(target, list) else target[part]
        if isinstance(target, list):
            target.insert(len(target) if last == "-" else int(last), operation["value"])
        else:
            target[last] = operation["value"]
    return document


def mutate(webhook, pod_, path="/mutate", **request):
    """The pod after the patch; the pod itself without a patch."""
    status, text = webhook.ask(json.dumps(review(pod_, **request)).encode(), path)
    assert status == 200, text
    answer = json.loads(text)
    assert answer["apiVersion"] == "admission.k8s.io/v1" and answer["kind"] == "AdmissionReview", answer
    response = answer["response"]
    assert response["uid"] == "705ab4f5-6393-11e8-b7cc-42010a800002" and response["allowed"] is True, answer
    if "patch" not in response:
        assert set(response) == {"uid", "allowed"}, response
        return pod_
    assert response["patchType"] == "JSONPatch"
    return apply(json.loads(base64.b64decode(response["patch"], validate=True)), pod_)


def recorded(container):
    """The container as it is after the change."""
    env = container.get("env") or []
    added = [variable for variable in ADDED if variable["name"] not in [own["name"] for own in env]]
    return {**container, "env": env + added, "volumeMounts": (container.get("volumeMounts") or []) + MOUNTS}


def check(webhook, title, before, after, status, **request):
    """`after`: changed members of the spec; `status`: the annotation."""
    got = mutate(webhook, before, **request)
    want = copy.deepcopy(before)
    want["spec"].update(after)
    if after:
        want["spec"]["volumes"] = (before["spec"].get("volumes") or []) + VOLUMES
    if status:
        want["metadata"]["annotations"] = {**(before["metadata"].get("annotations") or {}), STATUS: status}
    assert got == want, f"{title}:\n got {json.dumps(got)}\nwant {json.dumps(want)}"


# ---- tests ----

def check_pods(webhook):
    train = pod()["spec"]["containers"][0]
    plain = {"containers": [recorded(train)]}
    check(webhook, "no env array", pod(), plain, "recorded: train")
    check(webhook, "null arrays", pod(volumes=None, containers=[{**train, "env": None, "volumeMounts": None}]), plain, "recorded: train")
    full = {**train, "env": [{"name": "A", "value": "CUDA_INJECTION64_PATH"}], "volumeMounts": [{"name": "d", "mountPath": "/run"}]}
    check(webhook, "arrays that exist", pod(containers=[full], volumes=[{"name": "d", "emptyDir": {}}]), {"containers": [recorded(full)]},
          "recorded: train")
    generated = pod()
    generated["metadata"] = {"generateName": "job-", "annotations": {"a/b~c": "d"}, "labels": {"app": "x"}}
    check(webhook, "generateName, annotations with / and ~", generated, plain, "recorded: train", name="")
    check(webhook, "host network", pod(hostNetwork=True, hostPID=True), plain, "recorded: train")
    check(webhook, "dry run", pod(), plain, "recorded: train", dryRun=True)
    helpers = [{"name": "fetch", "image": "i"}, {"name": "proxy", "image": "i", "restartPolicy": "Always", "env": [{"name": "B", "value": "1"}]}]
    check(webhook, "init containers and a sidecar", pod(initContainers=helpers, containers=[train, {"name": "log", "image": "i"}]),
          {"initContainers": [recorded(c) for c in helpers], "containers": [recorded(train), recorded({"name": "log", "image": "i"})]},
          "recorded: train, log, fetch, proxy")
    check(webhook, "arrays in the other order", {**pod(), "spec": {"initContainers": helpers, "containers": [train]}},
          {"containers": [recorded(train)], "initContainers": [recorded(c) for c in helpers]}, "recorded: fetch, proxy, train")
    from_map = {**train, "envFrom": [{"configMapRef": {"name": "c"}}]}
    check(webhook, "envFrom", pod(containers=[from_map]), {"containers": [recorded(from_map)]}, "recorded: train; envFrom not checked: train")


def check_unchanged_containers(webhook):
    train = pod()["spec"]["containers"][0]
    for name in "CUDA_INJECTION64_PATH", "OCCTRACE_DISABLE":
        other = {"name": "a/b~c", "image": "i", "env": [{"name": name, "value": "/other.so"}]}
        check(webhook, f"{name} alone", pod(containers=[other]), {}, f"unchanged: a/b~c (sets {name})")
        check(webhook, f"{name} beside", pod(containers=[other, train]), {"containers": [other, recorded(train)]},
              f"recorded: train; unchanged: a/b~c (sets {name})")
    from_field = {**train, "env": [{"name": "CUDA_INJECTION64_PATH", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]}
    check(webhook, "a variable from elsewhere", pod(containers=[from_field]), {}, "unchanged: train (sets CUDA_INJECTION64_PATH)")
    socket = {**train, "env": [{"name": "OCCTRACE_SOCKET", "value": "/other/daemon.sock"}]}
    check(webhook, "another daemon", pod(containers=[socket]), {"containers": [recorded(socket)]}, "recorded: train")
    assert len(recorded(socket)["env"]) == 2
    allocator = {**train, "env": [{"name": "LD_PRELOAD", "value": "libtcmalloc.so.4"}]}
    check(webhook, "another preloaded library stays", pod(containers=[allocator]), {"containers": [recorded(allocator)]}, "recorded: train")
    for path in "/usr/lib/occtrace", "/run/occtrace/":
        mounts = {**train, "volumeMounts": [{"name": "own", "mountPath": path}]}
        check(webhook, f"a mount at {path}", pod(containers=[mounts]), {}, "unchanged: train (mounts /usr/lib/occtrace or /run/occtrace)")
    below = {**train, "volumeMounts": [{"name": "own", "mountPath": "/run/occtrace2"}]}
    check(webhook, "a mount beside", pod(containers=[below]), {"containers": [recorded(below)]}, "recorded: train")


def check_unchanged_pods(webhook):
    windows = "unchanged: the pod runs on Windows"
    check(webhook, "Windows", pod(os={"name": "windows"}), {}, windows)
    check(webhook, "Windows by its node", pod(nodeSelector={"kubernetes.io/os": "windows", "a": "b"}), {}, windows)
    linux = pod(os={"name": "linux"})
    check(webhook, "Linux", linux, {"containers": [recorded(linux["spec"]["containers"][0])]}, "recorded: train")
    check(webhook, "volumes of its own", pod(volumes=[VOLUMES[1]]), {},
          "unchanged: the pod has a volume occtrace-library or occtrace-daemon")
    check(webhook, "a namespace that forbids host paths", pod(), {},
          "unchanged: the pod security level of the namespace forbids hostPath volumes", path="/annotate")
    ephemeral = pod(ephemeralContainers=[{"name": "debugger", "image": "i", "targetContainerName": "train"}])
    check(webhook, "an ephemeral container", ephemeral, {}, None, operation="UPDATE", subResource="ephemeralcontainers", oldObject=pod())
    check(webhook, "UPDATE", pod(), {}, None, operation="UPDATE", oldObject=pod())
    check(webhook, "DELETE", pod(), {}, None, operation="DELETE", oldObject=pod())
    check(webhook, "a part of a pod", pod(), {}, None, subResource="status")
    check(webhook, "another object", pod(), {}, None, kind={"group": "apps", "version": "v1", "kind": "Deployment"})
    for metadata in {"annotations": {"io.occtrace.off": "1"}}, {"labels": {"occtrace.io/record": "disabled"}}:
        opted_out = {**pod(), "metadata": {"name": "p", **metadata}}
        check(webhook, f"opted out: {metadata}", opted_out, {}, None)
        check(webhook, f"opted out: {metadata}", opted_out, {}, None, path="/annotate")
    opted_in = {**pod(), "metadata": {"name": "p", "labels": {"occtrace.io/record": "enabled"}}}
    check(webhook, "opted in", opted_in, {"containers": [recorded(opted_in["spec"]["containers"][0])]}, "recorded: train")


def check_hostile(webhook):
    good = json.dumps(review(pod()))
    nested = good.replace('"image"', '"x": ' + "[" * 200 + "]" * 200 + ', "image"', 1)
    many = json.dumps(review(pod(containers=[{"name": f"c{i}"} for i in range(257)])))
    wrong = {"cut": good[: len(good) // 2], "empty": "", "an array": "[]", "a text": '"x"', "garbage behind": good + "{}", "too deep": nested,
             "too many containers": many, "old version": good.replace("k8s.io/v1", "k8s.io/v1beta1", 1), "no uid": good.replace('"uid"', '"oid"'),
             "a long uid": good.replace("705ab4f5", "7" * 200), "a uid of two lines": good.replace("705ab4f5", "\\n"),
             "a key twice": good.replace('"object"', '"object": {}, "object"', 1), "containers twice": good.replace('"containers"', '"containers": [], "containers"'),
             "no request": '{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}', "no list": json.dumps(review(pod(containers={"env": []}))),
             "a name that is a number": json.dumps(review(pod(containers=[{"name": 7}]))), "env is a text": json.dumps(review(pod(containers=[{"env": "x"}]))),
             "a list of lists": json.dumps(review(pod(containers=[[{"env": []}]]))), "a pod that is a text": json.dumps(review("pod")),
             "latin-1": good.replace("train", "tr\xe4in").encode("latin-1")}
    for title, body in wrong.items():
        status, text = webhook.ask(body if isinstance(body, bytes) else body.encode())
        assert status == 400 and text.count("\n") == 1, (title, status, text)
    for cut in range(0, len(good), 97):
        assert webhook.ask(good[:cut].encode())[0] == 400, cut
    no_spec = {"metadata": {}, "kind": "Pod"}
    assert mutate(webhook, no_spec) == no_spec
    name = mutate(webhook, pod(containers=[{"name": "\u202e\n" + "n" * 5000, "image": "i"}]))["metadata"]["annotations"][STATUS]
    assert re.fullmatch(r"recorded: [?]+n+", name) and len(name) < 100, name
    crowd = mutate(webhook, pod(containers=[{"name": f"{i:060d}", "image": "i"} for i in range(256)]))
    assert len(crowd["metadata"]["annotations"][STATUS]) < 1024 and all(c["env"] == ADDED for c in crowd["spec"]["containers"])


def check_limits(webhook):
    large = json.dumps(review(pod(containers=[{"name": "train", "args": ["x" * (3 << 20)]}])))
    assert mutate(webhook, json.loads(large)["request"]["object"])["spec"]["containers"][0]["env"][-2:] == ADDED
    status, text = webhook.ask(json.dumps(review(pod(containers=[{"args": ["x" * (4 << 20)]}]))).encode())
    assert (status, text) == (400, "the request is too large\n"), (status, text)
    try:
        webhook.ask(b"[" * (20 << 20))
    except OSError:
        pass  # the connection is closed before the request has ended
    assert webhook.ask(None, "/healthz", "GET") == (200, "ok\n")
    assert webhook.ask(None, "/mutate", "GET")[0] == 405
    assert webhook.ask(b"{}", "/other")[0] == 404
    silent = [socket.create_connection(("127.0.0.1", webhook.port)) for _ in range(100)]  # above the limit for an address
    silent[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")  # no TLS
    for connection in silent:
        connection.close()
    webhook.wait_for(lambda: is_healthy(webhook))


def is_healthy(webhook):
    try:
        return webhook.ask(None, "/healthz", "GET")[0] == 200
    except OSError:
        return False


def check_certificates(webhook):
    """Another pair is used as soon as it is complete; a pair that does not match changes nothing."""
    kept = webhook.connect()
    os.mkdir(f"{webhook.directory}/broken")
    for name in "tls.crt", "tls.key":
        with open(f"{webhook.directory}/broken/{name}", "w", encoding="utf-8") as file:
            file.write("no PEM\n")
    os.symlink("broken", f"{webhook.directory}/next")
    os.rename(f"{webhook.directory}/next", f"{webhook.directory}/now")
    webhook.wait_for(lambda: "the certificate stays as it was" in webhook.read_log())
    webhook.connect("first").close()
    webhook.renew("second")
    webhook.wait_for(lambda: "the certificate is read anew" in webhook.read_log())
    webhook.connect("second").close()
    assert webhook.ask(None, "/healthz", "GET") == (200, "ok\n")
    kept.close()


def check_late(webhook):
    """A request that sends a byte now and then is ended."""
    with webhook.connect() as connection:
        connection.sendall(b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        connection.settimeout(1)
        for _ in range(300):
            try:
                connection.sendall(b" ")
                if connection.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return
    raise AssertionError("the request goes on")


def check_usage(program):
    for arguments in [], ["--cert", "x"], ["--cert", "x", "--key", "y", "--run-directory", "run"], [
            "--cert", "x", "--key", "y", "--library-directory", "/a/.."], ["--cert", "x", "--key", "y", "--log-level", "loud"]:
        ended = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
        assert ended.returncode == 2 and "try --help" in ended.stderr, (arguments, ended)
    for arguments in ["--cert", "/missing", "--key", "/missing"], ["--cert", "/dev/null", "--key", "/dev/null"]:
        ended = subprocess.run([program, *arguments, "--listen", "[::]:0"], capture_output=True, text=True, check=False)
        assert ended.returncode == 1 and ended.stderr, ended


def main():
    program, late = sys.argv[1], sys.argv[2:] == ["late"]
    with tempfile.TemporaryDirectory(prefix="test_webhook_") as directory:
        webhook = Webhook(program, directory)
        try:
            for test in [check_late] if late else [check_pods, check_unchanged_containers, check_unchanged_pods, check_hostile, check_limits,
                                                   check_certificates]:
                test(webhook)
                print("ok", test.__name__)
        finally:
            webhook.end()
    check_usage(program)


if __name__ == "__main__":
    main()
