"""The portable bundle's shipper in an empty root: without libcurl, with it and no server, and to ClickHouse.

    bundle.py ROOT BUNDLE       ROOT has no libcurl yet; BUNDLE: the bundle's directory inside, with a history /tmp/h.db"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import engines
from site_ import Site, check_all

root, bundle = sys.argv[1:3]


def carry_libcurl():
    """As the machine has it, with all that it needs."""
    listed = subprocess.run(["ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    library = re.search(r"libcurl(-gnutls)?\.so\.4 \(.*x86-64.*=> (.*)", listed).group(2)
    needed = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    for path in (library, *re.findall(r"=> (/\S+)", needed)):
        shutil.copy(path, os.path.join(root, "lib/x86_64-linux-gnu"))


# What a path of ours names, it names inside too.
os.makedirs(root + os.path.dirname(root), exist_ok=True)
os.symlink("/", root + root)
tempfile.tempdir = os.path.join(root, "tmp")

site = Site(f"{bundle}/bin/occtrace-ship", f"http://127.0.0.1:{engines.free_port()}/")
site.enter = ["/usr/sbin/chroot", root]
site.run("--init", "--print", "--dialect", "26", says="CREATE TABLE IF NOT EXISTS occtrace.minute")
site.run("--check", code=78, says="install libcurl4 (Debian, Ubuntu) or libcurl (RHEL)")
carry_libcurl()
for option in ("--check", "--once"):
    site.run(option, code=1, says="Couldn't connect to server")
try:
    names = engines.available()
except SystemExit as none:
    names = print(f"NOT TESTED: shipping: {none}") or []
os.makedirs(os.path.dirname(site.history))
shutil.move(f"{root}/tmp/h.db", site.history)
for name in names:
    with engines.started(name) as engine:
        site.set(engine.url)
        site.run("--init")
        site.run("--check", says="as needed")
        site.run("--once")
        check_all(engine, site.history)
        print(f"ok: shipped to ClickHouse {name}", flush=True)
    shutil.rmtree(os.path.dirname(site.state))
