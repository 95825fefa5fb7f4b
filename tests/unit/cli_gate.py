#!/usr/bin/env python3
"""cli_gate.py OCCQ IMAGES: occq check --image and occq diff --image as a pipeline uses them: pins that are written, kept and
broken, allowances, reports for CI systems, the join with a history, and files that are damaged or hostile. IMAGES: the files of
nvcc (image.cmake), if there are any; a register increase is planted in one of them."""
import json
import os
import subprocess
import sys
import tempfile
import xml.dom.minidom

from cubins import archive, cubin, plant_registers

occq, images = sys.argv[1], sys.argv[2]
failed = False
home = tempfile.TemporaryDirectory()
os.chdir(home.name)
environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "COLUMNS": "200", "XDG_STATE_HOME": home.name}
environment.pop("OCCTRACE_DB", None)


def fail(text):
    global failed
    failed = True
    print("FAIL:", text)


def run(status, *arguments, stdin=None):
    done = subprocess.run([occq, *arguments], env=environment, input=stdin, capture_output=True, timeout=60)
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if done.returncode != status:
        fail(f"status {done.returncode} instead of {status}: {' '.join(arguments)}\n{out}{err}")
    return out, err


def has(text, *parts):
    text = " ".join(text.split())
    for part in parts:
        if part not in text:
            fail(f"'{part}' is missing in: {text}")


def write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def read(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def check(status, image, *arguments):
    return run(status, "check", "--image", image, "--pin", "k.lock", *arguments)


gemm, axpy = "_Z4gemmILi64EEvPf", "axpy"
base = {gemm: {"registers": 64, "shared": 4096, "barriers": 1}, axpy: {"registers": 16, "bounds": 256}}


def changed(**kernels):
    return {name: {**values, **kernels.get("gemm" if name == gemm else name, {})} for name, values in base.items()}


write("base.cubin", cubin(80, base))

# ---- the lock ----
out, err = check(3, "base.cubin")
has(err, "k.lock does not exist; --update-pins writes it")
out, err = check(0, "base.cubin", "--update-pins")
has(out, "k.lock: 2 pins; 0 changed, 2 new, 0 gone")
lock = read("k.lock")
if lock.splitlines()[3:] != [
    "# void gemm<64>(float*)",
    f"pin sm_80 registers=64 stack=0 spills=- shared=4096 barriers=1 bounds=0 {gemm}",
    "pin sm_80 registers=16 stack=0 spills=- shared=0 barriers=0 bounds=256 axpy",
]:
    fail("the lock is " + lock)
out, err = check(0, "base.cubin")
has(out, "holds blocks: 2 judged", "holds stack: 2 judged", "skipped spills: 0 judged", "holds gone: 2 judged")
write("turned.cubin", cubin(80, dict(reversed(base.items()))))
check(0, "turned.cubin", "--update-pins")
if read("k.lock") != lock:
    fail("the order of kernels in a build changes the lock")

# ---- a planted register increase ----
write("worse.cubin", plant_registers(cubin(80, base), 64, 72))
out, err = check(4, "worse.cubin", "--github", "--junit", "junit.xml", "--gitlab", "gitlab.json")
has(out, "fails blocks: 2 judged, 1 fail", "gemm<64>: sm_80, registers 64 -> 72: 1 -> 0 blocks per SM at 1024 threads",
    "holds stack", "::error file=k.lock,line=5,title=blocks::fails%0A2 judged, 1 fail%0Agemm<64>: sm_80")
report = json.load(open("gitlab.json", encoding="utf-8"))
if len(report) != 1 or report[0]["location"] != {"path": "k.lock", "lines": {"begin": 5}} or report[0]["check_name"] != "blocks":
    fail(f"gitlab.json is {report}")
suite = xml.dom.minidom.parse("junit.xml").documentElement
if (suite.getAttribute("tests"), suite.getAttribute("failures")) != ("5", "1"):
    fail("junit.xml: " + suite.toxml())
out, err = run(0, "diff", "--image", "base.cubin", "worse.cubin")
has(out, "worse gemm<64> sm_80 1 -> 0 1024 registers 64 -> 72", "1 worse, 0 better, 0 changed, 0 new, 0 gone, 1 same")
out, err = run(0, "diff", "--image", "worse.cubin", "base.cubin", "--json")
rows = json.loads(out)["kernels"]
if [row["verdict"] for row in rows] != ["better", "same"] or rows[0]["registers_new"] != 64 or rows[0]["spill_bytes_new"] is not None:
    fail(f"diff --json: {rows}")

# ---- harmless, and other rules ----
write("more.cubin", cubin(80, changed(axpy={"registers": 24})))
out, err = check(0, "more.cubin")
has(err, "1 kernel differs from the pins without breaking a rule")
for name, values, rule, text in (
    ("gemm", {"stack": 16}, "stack", "bytes of stack 0 -> 16"),
    ("axpy", {"bounds": 128}, "bounds", "threads in launch bounds 256 -> 128"),
    ("gemm", {"shared": 40960}, "blocks", "bytes of shared memory 4096 -> 40960: 8 -> 4 blocks per SM at 128 threads"),
    ("axpy", {"registers": 40}, "blocks", "registers 16 -> 40: 8 -> 6 blocks per SM at 256 threads"),
):
    write("other.cubin", cubin(80, changed(**{name: values})))
    has(check(4, "other.cubin")[0], f"fails {rule}: 2 judged, 1 fail", text)

# ---- allowances ----
for until, status, text in (("2999-01-31", 0, "holds blocks: 2 judged, 1 allowed"), ("2020-01-31", 4, "its allowance ended on 2020-01-31")):
    write("k.lock", lock + f"allow blocks {gemm} until {until} rewritten in the next release\n")
    out, err = check(status, "worse.cubin")
    has(out, text)
has(err, "k.lock: 1 allowance has ended")
has(check(0, "base.cubin")[1], "1 allowance has ended")

# ---- block sizes in the lock; updates keep statements ----
write("k.lock", lock + f"launch {gemm} 64+32768\nallow stack axpy until 2999-01-01 why not\n")
check(0, "worse.cubin")  # shared memory limits these launches
check(0, "worse.cubin", "--update-pins")
has(read("k.lock"), f"launch {gemm} 64+32768", "allow stack axpy until 2999-01-01 why not", "registers=72")
write("k.lock", lock + f"launch {gemm} 1024\n")
has(check(4, "worse.cubin")[0], "registers 64 -> 72: 1 -> 0 blocks per SM at 1024 threads")

# ---- new, gone, other architectures ----
write("k.lock", lock)
write("new.cubin", cubin(80, {**base, "extra": {}}))
has(check(0, "new.cubin")[0], "holds blocks: 2 judged, 1 new; new kernels have no pin")
check(3, "new.cubin", "--strict")
write("gone.cubin", cubin(80, {gemm: base[gemm]}))
has(check(4, "gone.cubin")[0], "fails gone: 2 judged, 1 fail", "axpy: sm_80, is pinned, and not in the build")
write("hopper.cubin", cubin(90, base))
has(check(3, "hopper.cubin")[0], "not judged blocks: 0 judged, 2 new; the pins are for sm_80, the build is for sm_90")
write("both.a", archive(cubin(80, base), cubin(90, base)))
check(0, "both.a", "--update-pins")
has(check(0, "base.cubin")[0], "undecided gone: 2 judged, 2 undecided; sm_90 is pinned, and not in the build")
check(3, "base.cubin", "--strict")

# ---- two kernels of one name ----
write("twice.a", archive(cubin(80, base), cubin(80, changed(gemm={"registers": 80})), cubin(80, base)))
out, err = check(0, "twice.a", "--update-pins")
has(out, "k.lock: 3 pins")
has(err, "different kernels have the same name and architecture, 1 times")
has(read("k.lock"), "pin sm_80 copy=1/2 registers=64", "pin sm_80 copy=2/2 registers=80")
check(0, "twice.a")
check(0, "base.cubin")
write("grown.a", archive(cubin(80, changed(gemm={"registers": 96})), cubin(80, base)))
has(check(4, "grown.a")[0], "registers 80 -> 96")

# ---- ptxas -v ----
def report_of(registers, stack, spills):
    return f"""nvcc -c k.cu
ptxas info    : Compiling entry function '{gemm}' for 'sm_80'
ptxas info    : Function properties for {gemm}
    {stack} bytes stack frame, {spills} bytes spill stores, {spills} bytes spill loads
ptxas info    : Used {registers} registers, used 1 barriers, 4096 bytes smem
"""


write("k.lock", lock)
write("report.txt", report_of(64, 0, 0))
has(check(4, "report.txt")[0], "axpy: sm_80, is pinned, and not in the build", "holds blocks: 1 judged")
check(0, "report.txt", "--update-pins")
has(read("k.lock"), "registers=64 stack=0 spills=0 shared=4096 barriers=1 bounds=-")
write("report.txt", report_of(64, 24, 24))
has(check(4, "report.txt")[0], "fails spills: 1 judged, 1 fail", "spilled bytes 0 -> 24", "bytes of stack 0 -> 24")
out, err = run(4, "check", "--image", "-", "--pin", "k.lock", stdin=report_of(64, 24, 24).encode())

# ---- what recorded launches make of it ----
def launch(i, name, block, grid, us):
    arguments = {"device": 0, "context": 1, "stream": 7, "correlation": i, "registers per thread": 64, "shared memory": 4096,
                 "grid": [grid, 1, 1], "block": [block, 1, 1]}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 1767225600000000 + 1000 * i, "dur": us, "args": arguments}


device = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}
launches = [launch(1, "void gemm<64>(float*)", 128, 10000, 40), launch(2, "void gemm<64>(float*)", 512, 10000, 20),
            launch(3, "void gemm<64>(float*)", 32, 10, 10), launch(4, "other()", 128, 100, 30)]
write("recorded.json", json.dumps({"deviceProperties": [device], "traceEvents": launches}))
run(0, "import", "-d", "h.db", "recorded.json")
write("k.lock", lock)
out, err = check(4, "worse.cubin", "-d", "h.db")
has(out, "gemm<64>: sm_80, registers 64 -> 72: 8 -> 7 blocks per SM at 128 threads; in 2 of 3 recorded configurations, 60.0% of "
    "the GPU time of the history, predicted time: +")
out, err = run(0, "diff", "--image", "base.cubin", "worse.cubin", "-d", "h.db", "--json")
row = json.loads(out)["kernels"][0]
if row["launches_from"] != "history" or row["compared"] != 3 or row["fewer"] != 2 or abs(row["time_ratio"] - 0.6) > 1e-9 or not \
        row["predicted_ratio_low"] < row["predicted_ratio"] < row["predicted_ratio_high"]:
    fail(f"diff with a history: {row}")
check(0, "base.cubin", "-d", "h.db", "--update-pins")
has(read("k.lock"), f"launch {gemm} 32 128 512")
run(1, "check", "--image", "base.cubin", "--pin", "k.lock", "-d", "none.db")

# ---- damaged and hostile files ----
write("k.lock", lock)
good = cubin(80, base)
for n in (0, 3, 63, 64, len(good) // 2, len(good) - 1):
    write("cut.cubin", good[:n])
    check(1, "cut.cubin")
write("empty.a", archive(b"text"))
has(check(3, "empty.a")[1], "a static archive without CUDA code")
write("text.txt", "no kernels here\n")
check(1, "text.txt")
check(1, "missing.so")
for text, status, words in ((lock.replace("occq-pins 1", "occq-pins 2"), 1, "k.lock:1: pins of another version"),
                            (lock + lock.splitlines()[-1] + "\n", 1, "k.lock:7: the same kernel and architecture as in line 6"),
                            ("<<<<<<< HEAD\n" + lock, 1, "k.lock:1: not a file of pins"),
                            (lock[:-20], 1, "k.lock:6:"),
                            ("not a lock", 1, "k.lock:1: not a file of pins")):
    write("k.lock", text)
    has(check(status, "base.cubin")[1], words)
    check(status, "base.cubin", "--update-pins")
    if read("k.lock") != text:
        fail("a file that is no lock was written over")
name = b"x\n::set-output name=a::b\x1b[31m##[error]\xff %"
write("hostile.cubin", cubin(80, {name: {"registers": 64}}))
os.remove("k.lock")
check(0, "hostile.cubin", "--update-pins")
check(0, "hostile.cubin")
write("hostile.cubin", cubin(80, {name: {"registers": 128}}))
out, err = check(4, "hostile.cubin", "--github", "--junit", "junit.xml", "--gitlab", "gitlab.json")
if any(line.lstrip().startswith("::") and not line.startswith("::error file=k.lock") for line in out.splitlines()) or "##[" in out or "\x1b" in out:
    fail("a name is a command: " + out)
json.load(open("gitlab.json", encoding="utf-8"))
xml.dom.minidom.parse("junit.xml")
run(2, "check", "--image", "base.cubin")
run(2, "diff", "--image", "base.cubin")
check(1, "base.cubin", "--junit", "k.lock")

# ---- nvcc's own files ----
forms = [name for name in ("sm_80.cubin", "all.fatbin", "object.o", "archive.a", "library.so", "program.out", "sm_80.ptxas")
         if os.path.exists(os.path.join(images, name))]
for name in forms:
    path = os.path.join(images, name)
    if os.path.exists("k.lock"):
        os.remove("k.lock")
    check(0, path, "--update-pins")
    has(check(0, path)[0], "holds blocks")
if forms:
    os.remove("k.lock")
    with open(os.path.join(images, "sm_80.cubin"), "rb") as file:
        real = file.read()
    check(0, os.path.join(images, "sm_80.cubin"), "--update-pins")
    most = max(int(line.split()[2].split("=")[1]) for line in read("k.lock").splitlines() if line.startswith("pin"))
    write("planted.cubin", plant_registers(real, most, 200))
    has(check(4, "planted.cubin")[0], f"registers {most} -> 200: ")
sys.exit(failed)
