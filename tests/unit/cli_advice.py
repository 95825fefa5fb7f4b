#!/usr/bin/env python3
"""cli_advice.py OCCQ DATA: `occq top --advice` gives the change that `occq show` gives, for every kernel of a recording, and never a
launch parameter of a library's kernel; the percentages of the lines above `occq top` agree; a recording that the history has gets a
new label."""
import json
import os
import re
import subprocess
import sys
import tempfile

OCCQ, DATA = sys.argv[1], sys.argv[2]
failures = []


def occq(*arguments, status=0):
    done = subprocess.run([OCCQ, *arguments, "-d", "h.db"], capture_output=True, text=True, timeout=60, encoding="utf-8",
                          env={**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"})
    check(done.returncode == status, "%s: %d: %s" % (arguments, done.returncode, done.stderr))
    return done.stdout


def check(holds, message):
    if not holds:
        failures.append(message)


def changes():
    """Change and saving of each kernel, by number."""
    found = {}
    for kernel, do, saves in re.findall(r"^(\d+) .*\n  DO     (.*)\n  SAVES  (.*)\n", occq("top", "--advice", "-n", "1000"), re.M):
        found[kernel] = (do, saves)
    return found


os.chdir(tempfile.mkdtemp())
occq("import", os.path.join(DATA, "import", "v100_step.json.gz"))
top = changes()
kernels = {str(r["kernel_id"]): r for r in json.loads(occq("top", "--advice", "--json", "-n", "1000"))["top"]}
check(len(top) == len(kernels) > 50, "%d of %d kernels have a change" % (len(top), len(kernels)))
for kernel, said in list(top.items())[::6]:
    shown = occq("show", kernel)
    check(said == (re.search("^  DO          (.*)$", shown, re.M)[1], re.search("^  SAVES       (.*)$", shown, re.M)[1]),
          "kernel %s: %s" % (kernel, said))
for kernel, row in kernels.items():
    if row["whose"] in ("library", "framework", "communication"):
        check(not re.search("grid that|registers per thread|block size", row["advice"] or ""), "%(kernel)s: %(advice)s" % row)
        check(not row["knob"], "%(kernel)s: %(knob)s" % row)
    check((row["advice"] or "no change known") in top.get(kernel, ("",))[0], "JSON differs for %(kernel)s: %(advice)s" % row)

parts, largest = re.search(r"^GPU time: (.*)\n(?:  .*\n)*largest loss: (.*)", occq("top"), re.M).groups()
check(re.search(r"(\d+)% lost in kernels", parts)[1] == re.search(r"kernels, (\d+)%", largest)[1], "%s; %s" % (parts, largest))

check("known" in occq("import", os.path.join(DATA, "import", "v100_step.json.gz"), "--label", "new"), "a known recording")
check("new" in occq("runs", "--label", "new", "--csv"), "the label of a known recording: " + occq("runs"))

print("\n".join(failures))
sys.exit(bool(failures))
