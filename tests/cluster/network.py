"""What a network has: certificates, and a node in a network namespace of its own that is joined by a pair of virtual cards."""

import os
import shutil
import ssl
import subprocess
import sys

NEEDED = ("unshare", "nsenter", "ip", "openssl")
OURS, NODES = "10.0.0.1", "10.0.0.2"


def openssl(work, *arguments):
    subprocess.run(["openssl", *arguments], cwd=work, check=True, capture_output=True)


def authority(work, name):
    openssl(work, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")


def certificate(work, name, ca, address):
    openssl(work, "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
    with open(os.path.join(work, "extensions"), "w") as f:
        f.write(f"subjectAltName=IP:{address}\n")
    openssl(work, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial", "-days", "2", "-out",
            f"{name}.pem", "-extfile", "extensions")


def server_side(work, name, client_ca=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{work}/{name}.pem", f"{work}/{name}.key")
    if client_ca:
        context.load_verify_locations(f"{work}/{client_ca}.pem")
        context.verify_mode = ssl.CERT_REQUIRED
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # a refusal belongs to the handshake
    return context


def run(*words):
    subprocess.run(words, check=True)


def move_to_own_namespace():
    """The program again, where names of cards and addresses are nobody else's. False: not allowed here."""
    if os.environ.get("OCC_OWN_NETWORK"):
        run("ip", "link", "set", "lo", "up")
        return True
    if all(shutil.which(program) for program in NEEDED) and subprocess.run(["unshare", "-n", "true"], stderr=subprocess.DEVNULL).returncode == 0:
        os.environ["OCC_OWN_NETWORK"] = "1"
        os.execvp("unshare", ["unshare", "-n", sys.executable, *sys.argv])
    return False


class Link:
    """To a namespace for a node; there programs begin with the words `enter`."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.holder.stdout.readline()  # it is there
        self.enter = ["nsenter", "-n", "-t", str(self.holder.pid)]
        run("ip", "link", "add", "node", "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        run("ip", "address", "add", f"{OURS}/24", "dev", "node")
        run(*self.enter, "ip", "address", "add", f"{NODES}/24", "dev", "eth0")
        run(*self.enter, "ip", "link", "set", "eth0", "up")
        self.set("up")

    def set(self, state):
        run("ip", "link", "set", "node", state)

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()
