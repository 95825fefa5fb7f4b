#!/usr/bin/env python3
"""A wheel of a bundle: its form by PEP 427, its platform by objdump, and its library, which Python loads from it.

    python_wheel.py SOURCE LIBRARY CLI_HISTORY      LIBRARY: the built libocctrace-query; with its neighbours it stands for a bundle
"""
import base64
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

SOURCE, LIBRARY, HISTORY = sys.argv[1:4]
failed = False


def fail(*words):
    global failed
    failed = True
    print("FAILED:", *words)


def make_bundle(path, with_library=True):
    smartcols = re.search(r"libsmartcols\.so\.1 => (\S+)", subprocess.run(["ldd", LIBRARY], capture_output=True, text=True).stdout)[1]
    with tarfile.open(path, "w:gz") as bundle:
        if with_library:
            bundle.add(os.path.realpath(LIBRARY), "b/lib/libocctrace-query.so.0.1.0")
            link = tarfile.TarInfo("b/lib/libocctrace-query.so.0")
            link.type, link.linkname = tarfile.SYMTYPE, "libocctrace-query.so.0.1.0"
            bundle.addfile(link)
        bundle.add(os.path.realpath(smartcols), "b/lib/occtrace/libsmartcols.so.1")
        bundle.add(os.path.realpath(HISTORY), "b/lib/occtrace/libunused.so.1")
        bundle.add(os.path.join(SOURCE, "LICENSE"), "b/share/doc/occtrace/licences/some")


def make(bundle, folder):
    os.makedirs(folder, exist_ok=True)
    return subprocess.run([os.path.join(SOURCE, "packaging/make_wheel"), bundle, folder], capture_output=True, text=True)


with tempfile.TemporaryDirectory() as work:
    bundle = os.path.join(work, "bundle.tar.gz")
    make_bundle(bundle)
    made = make(bundle, os.path.join(work, "a"))
    again = make(bundle, os.path.join(work, "b"))
    if made.returncode != 0:
        sys.exit(f"FAILED: {made.stderr}")
    path = made.stdout.strip()
    with open(path, "rb") as one, open(again.stdout.strip(), "rb") as other:
        if one.read() != other.read():
            fail("equal bundles give other wheels")
    wheel = zipfile.ZipFile(path)
    names = wheel.namelist()
    if sorted(name for name in names if "/_lib/" in name) != ["occtrace/_lib/libocctrace-query.so.0", "occtrace/_lib/libsmartcols.so.1"]:
        fail("libraries:", names)
    info = next(name for name in names if name.endswith("/WHEEL"))[:-len("WHEEL")]
    for name in ("occtrace/__init__.py", "occtrace/py.typed", info + "METADATA", info + "LICENSE", info + "licences/some"):
        if name not in names:
            fail("no", name)
    rows = list(csv.reader(io.StringIO(wheel.read(info + "RECORD").decode())))
    if sorted(row[0] for row in rows) != sorted(names):
        fail("RECORD lacks files:", rows)
    for name, digest, size in rows:
        content = wheel.read(name)
        expected = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        if not name.endswith("/RECORD") and (digest, int(size)) != (expected, len(content)):
            fail("RECORD is wrong about", name)
    tag = re.fullmatch(r"occtrace-[0-9.]+-py3-none-(manylinux_2_(\d+)_x86_64|manylinux_2_(\d+)_aarch64)\.whl", os.path.basename(path))
    if f"Tag: py3-none-{tag[1]}\n" not in wheel.read(info + "WHEEL").decode():
        fail("the tag of the name is not that of WHEEL")
    site = os.path.join(work, "site")
    wheel.extractall(site)
    newest = 0
    for name in os.listdir(os.path.join(site, "occtrace/_lib")):
        symbols = subprocess.run(["objdump", "-T", os.path.join(site, "occtrace/_lib", name)], capture_output=True, text=True).stdout
        newest = max([newest, *(int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", symbols))])
    if newest != int(tag[2] or tag[3]):
        fail("the tag says 2.", tag[2], "objdump 2.", newest)
    history = os.path.join(work, "h.db")
    subprocess.run([HISTORY, history], check=True)
    code = ("import occtrace, sys; history = occtrace.open(sys.argv[1]); print(len(history.top().rows())); "
            "print([line.split()[-1] for line in open('/proc/self/maps') if 'libocctrace-query' in line][0])")
    environment = {name: value for name, value in os.environ.items() if name != "OCCTRACE_QUERY_LIBRARY"}
    found = subprocess.run([sys.executable, "-B", "-c", code, history], env=dict(environment, PYTHONPATH=site), capture_output=True, text=True)
    if found.stdout != f"5\n{site}/occtrace/_lib/libocctrace-query.so.0\n":
        fail("the package of the wheel:", found)
    print("made", os.path.basename(path))
    make_bundle(bundle, with_library=False)
    empty = make(bundle, os.path.join(work, "c"))
    if empty.returncode == 0 or "is not in the bundle" not in empty.stderr:
        fail("a bundle without the library:", empty)
sys.exit(failed)
