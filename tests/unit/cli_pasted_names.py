#!/usr/bin/env python3
"""cli_pasted_names.py OCCQ NAMES: a name that occq printed, pasted back, asks for the kernel that it stands for: in
every form, cut by screens of 40 and 80 columns, in UTF-8 and in ASCII, as CSV and as JSON, of every command that takes a
kernel. A cut name that several kernels may have is refused, with their numbers. Ranges likewise."""
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile

OCCQ, NAMES = sys.argv[1], sys.argv[2]
SPECIAL = ["saxpy(double*, int)", "void run<main::{lambda()#14}>(main::{lambda()#14})",
           "void run<main::{lambda()#15}>(main::{lambda()#15})", "a+b[c(*", "dot.product", "dotsproduct",
           "_Z4axpyILi3EEvPf", "_Z4axpyILi4EEvPf", "void f<int>(int*)", "void f<int**>(int*)", "soft", "softmax"]
RANGES = ["step/layer.0/mlp", "step/layer.0/mlp (1)", "step/layers.0/mlp", "step/[x", "step/" + 12 * "block/" + "out"]
ENVIRONMENT = {**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
failures = []


def occq(*arguments, **environment):
    return subprocess.run([OCCQ, *arguments, "-d", "h.db"], capture_output=True, text=True, timeout=60,
                          env={**ENVIRONMENT, **environment}, encoding="utf-8", errors="replace")


def check(holds, message):
    if not holds:
        failures.append(message)


def record(names):
    device = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}
    events = []
    for i, name in enumerate(names):
        start = 1700000000000000 + i * 1000
        arguments = {"device": 0, "context": 1, "stream": 7, "correlation": i + 1, "grid": [216, 1, 1],
                     "block": [128, 1, 1], "registers per thread": 64, "shared memory": 0}
        events += [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start + 100, "dur": 300,
                    "args": arguments},
                   {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": start + 10,
                    "dur": 5, "args": {"correlation": i + 1}},
                   {"ph": "X", "cat": "user_annotation", "name": RANGES[i % len(RANGES)], "pid": 9, "tid": 9,
                    "ts": start, "dur": 50, "args": {}}]
    with open("trace.json", "w", encoding="utf-8") as out:
        json.dump({"deviceProperties": [device], "traceEvents": events}, out)
    made = occq("import", "trace.json")
    if made.returncode != 0:
        sys.exit(made.stderr)


def chosen(option, text):
    """The numbers of the kernels that the option chooses; None: refused."""
    answer = occq("top", "-n", "1000", "--csv", "-o", "id", option, text)
    return None if answer.returncode not in (0, 3) else {int(n) for n in answer.stdout.split()[1:]}


def printed(columns, *options, **environment):
    """The rows of a screen of two columns: a number and a text."""
    lines = occq("top", "-n", "1000", *options, COLUMNS=str(columns), **environment).stdout.splitlines()
    return [(int(line.split()[0]), line.split(None, 1)[1]) for line in lines[1:] if line.split()[0].isdigit() and
            " of " not in line[:12]]


def printed_beside(columns, **environment):
    """The numbers and names of a screen on which the names have little room."""
    lines = occq("top", "-n", "1000", "-o", "id,kernel,why", COLUMNS=str(columns), **environment).stdout.splitlines()
    heading = next(line for line in lines if " KERNEL " in line)
    begin, end = heading.index("KERNEL"), heading.index("WHY")
    return [(int(line[:begin]), line[begin:end].strip()) for line in lines
            if line[:begin].strip().isdigit() and " of " not in line[:12]]


def check_screens(rows):
    """No two kernels of one screen have the same name. A name that was cut, or words instead of it, asks for the kernel
    or is refused with its number; most are words in full."""
    for columns in (40, 60, 80, 100, 120):
        for environment in ({}, {"LC_ALL": "C"}):
            screen = printed_beside(columns, **environment)
            names = [name for _, name in screen]
            check(len(screen) == len(rows), f"{columns} columns: {len(screen)} of {len(rows)} rows")
            check(len(set(names)) == len(names), f"{columns} columns: {sorted(n for n in names if names.count(n) > 1)}")
            if 60 <= columns <= 80:
                whole = sum(1 for name in names if "\u2026" not in name and ".." not in name and "~" not in name)
                check(whole * 10 >= 6 * len(names), f"{columns} columns: {whole} of {len(names)} names are whole")
    resolved = 0
    for number, name in printed_beside(80)[::5]:
        answer = occq("top", "--csv", "-o", "id", "--kernel", name)
        got = answer.stdout.split()[1:]
        resolved += got == [str(number)]
        check(got == [str(number)] or (answer.returncode == 2 and str(number) in answer.stderr),
              f"{name!r} of {number}: {got} {answer.stderr}")
    check(resolved > 15, f"{resolved} names resolved")


def check_words():
    """Words of a family choose its kernels, as every other text does; a command about one kernel refuses several, with
    numbers and words."""
    answer = occq("show", "NCCL all-reduce", "--json")
    check(answer.returncode == 0 and "AllReduce" in answer.stdout, f"NCCL all-reduce: {answer.stderr}")
    check(occq("show", "all-reduce", "--json").stdout == answer.stdout, "all-reduce is not NCCL all-reduce")
    check(occq("show", "all-reduce NCCL", "--json").stdout == answer.stdout, "the order of words matters")
    answer = occq("show", "GEMM 64x64")
    check(answer.returncode == 2 and "may be any of" in answer.stderr and "(GEMM 64x64 " in answer.stderr,
          f"GEMM 64x64: {answer.stdout} {answer.stderr}")
    number = re.search(r"(\d+) \(GEMM 64x64 ", answer.stderr)
    check(number and chosen("--kernel", f"GEMM 64x64 #{number[1]}") == {int(number[1])}, "a number behind a family")
    family, all_rows = chosen("--kernel", "GEMM 64x64") or set(), chosen("--kernel", ".")
    check(family and len(family) > 1 and int(number[1]) in family, f"--kernel GEMM 64x64: {family}")
    check(chosen("--exclude", "GEMM 64x64") == all_rows - family, "--exclude GEMM 64x64")
    with open("rules.yaml", "w", encoding="utf-8") as out:
        out.write('{"config": [{"rule": "r", "kernel": "GEMM 64x64", "waves": ">= 0", "optional": true}]}')
    rules = occq("check", "--rules", "rules.yaml", "run:1")
    check(rules.returncode == 0 and f"{len(family)} judged" in rules.stdout, f"rule: {rules.stdout} {rules.stderr}")
    check(chosen("--kernel", f"SGEMM 128x64 #{number[1] if number else 1}") == set(), "the number of another family")
    answer = occq("show", "GEMM 65x65")
    check(answer.returncode == 3, f"GEMM 65x65: {answer.returncode} {answer.stderr}")


def check_cut_number():
    """A cut "SGEMM 64x64 #\u2026" is as wide as "SGEMM 64x64 #5", which no screen would have cut."""
    os.mkdir("numbers")
    os.chdir("numbers")
    record([f"volta_sgemm_64x64_{'abcdefghij'[i] * 20}" for i in range(10)])
    check(chosen("--kernel", "SGEMM 64x64 #\u2026") == {10}, "a cut number")
    os.chdir("..")


def check_growth():
    """Words that one recording made do not mean a sibling after the next one."""
    def add(functor):
        functor = f"at::native::CUDAFunctor{functor}"
        array = "at::detail::Array<char*, 2>"
        return f"void at::native::vectorized_elementwise_kernel<4, {functor}, {array} >(int, {functor}, {array})"
    first, then = ["OnSelf_add<float>", "_add<double>"], ["OnSelf_add<long>", "_add<long>"]
    os.mkdir("growth")
    os.chdir("growth")
    record([add(functor) for functor in first])
    words = dict(printed_beside(56))[1]
    check(words == "elementwise add On", f"words of the first recording: {words}")
    check(chosen("--kernel", words) == {1}, "words of the first recording choose another kernel")
    record([add(functor) for functor in first + then])
    answer = occq("show", words)
    check(answer.returncode == 2 and "1 (" in answer.stderr, f"show {words}: {answer.stdout[:100]} {answer.stderr}")
    check(1 in (chosen("--kernel", words) or ()), f"--kernel {words}: {chosen('--kernel', words)}")
    os.chdir("..")


def check_forms(rows):
    for key in ("kernel", "kernel_demangled", "kernel_mangled"):
        for row in rows[::7] + [row for row in rows if row["kernel_demangled"] in SPECIAL]:
            same = {int(other["kernel_id"]) for other in rows if row[key] in
                    (other["kernel"], other["short"], other["kernel_demangled"], other["kernel_mangled"])}
            got = chosen("--kernel", row[key])
            check(got == same, f"--kernel {row[key]!r} ({key}): {got} instead of {same}")


def check_cut(columns, **environment):
    resolved = refused = 0
    for number, name in printed(columns, "-o", "id,kernel", **environment)[::9]:
        answer = occq("top", "--csv", "-o", "id", "--kernel", name)
        got = answer.stdout.split()[1:]
        resolved += got == [str(number)]
        refused += answer.returncode == 2 and "cut name" in answer.stderr and str(number) in answer.stderr
        check(got == [str(number)] or (answer.returncode == 2 and "cut name" in answer.stderr),
              f"{columns} columns: {name!r} of {number}: {got} {answer.stderr}")
    check(resolved > 10 and resolved > 3 * refused, f"{columns} columns: {resolved} resolved, {refused} refused")


def check_commands(rows):
    """The kernel with a name that is no expression, the one whose expression matches others, and the cut one."""
    number = {row["kernel_demangled"]: row["kernel_id"] for row in rows}
    lambda_row = next(row for row in rows if row["kernel_demangled"].startswith("void run<main::{lambda()#14}"))
    for name, wanted in ((lambda_row["kernel"], lambda_row["kernel_demangled"]), ("saxpy(double*, int)",) * 2,
                         ("a+b[c(*",) * 2, ("saxpy(dou…int)", "saxpy(double*, int)")):
        check(f'"kernel_id": {number[wanted]},' in occq("show", name, "--json").stdout, f"show {name!r}")
        check(occq("history", name, "--json").returncode == 0, f"history {name!r}")
        launches = occq("launches", "--kernel", name, "--csv", "-o", "demangled").stdout
        check([row[0] for row in csv.reader(io.StringIO(launches))][1:] == [wanted], f"launches {name!r}: {launches}")
        others = chosen("--exclude", name)
        check(others is not None and int(number[wanted]) not in others and len(others) == len(rows) - 1,
              f"--exclude {name!r}")
        for command in (["what-if", "--gpu", "h100"], ["diff", "run:1", "run:1"]):
            answer = occq(*command, "--kernel", name, "--json")
            check(answer.returncode == 0 and wanted in json.dumps(json.loads(answer.stdout), ensure_ascii=False),
                  f"{command[0]} --kernel {name!r}: {answer.stderr}")
    nothing = occq("show", "{lambda()#99}")
    check(nothing.returncode == 2 and "no kernel has this name, and" in nothing.stderr, nothing.stderr)
    nothing = occq("show", "sax…nothing")
    check(nothing.returncode == 3 and "cut" in nothing.stderr, nothing.stderr)


def check_refusals():
    """Every command that takes a name or an expression: a text that is neither is wrong usage."""
    operands = {"diff": ["run:1", "run:1"], "what-if": ["--gpu", "h100"], "export": ["-o", "refused.json"],
                "report": ["-o", "refused.html"], "live": ["-b"], "calc": ["--gpu", "h100", "--ptxas", "ptxas.txt"]}
    with open("ptxas.txt", "w", encoding="utf-8") as out:
        out.write("ptxas info    : Compiling entry function 'gemm' for 'sm_90'\n"
                  "ptxas info    : Used 32 registers, 384 bytes cmem[0]\n")
    commands = re.findall(r"^  ([a-z-]+) ", subprocess.run([OCCQ, "--help"], capture_output=True, text=True,
                                                         timeout=60).stdout, re.MULTILINE)
    texts = 0
    for command in commands:
        usage = subprocess.run([OCCQ, command, "--help"], capture_output=True, text=True, timeout=60).stdout
        options = re.findall(r"^  (?:-., |    )(--kernel|--exclude|--range)\b", usage, re.MULTILINE)
        for option in options + ([None] if re.search(r"^Usage: .*\bKERNEL\b", usage) else []):
            operand = ["1"] if option and command == "show" else []
            arguments = [command, *operands.get(command, operand)] + ([option, "("] if option else ["("])
            answer = subprocess.run([OCCQ, *arguments, *([] if command == "calc" else ["-d", "h.db"])],
                                    capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
            texts += 1
            check(answer.returncode == 2 and "is not a regular expression" in answer.stderr,
                  f"{arguments}: {answer.returncode} {answer.stderr}")
    check(texts >= 15, f"{texts} texts in {commands}")


def check_rules(rows):
    """The kernel of a rule, or of an exception, is chosen as --kernel chooses it."""
    wanted = [row for row in rows if row["kernel_demangled"] in SPECIAL or len(row["kernel_demangled"]) > 300]
    check(len(wanted) > len(SPECIAL), "no kernel has a long name")
    for row in wanted:
        for key in ("kernel", "kernel_demangled", "kernel_mangled"):
            chosen_here = chosen("--kernel", row[key])
            with open("rules.yaml", "w", encoding="utf-8") as out:
                rule = {"rule": "r", "kernel": row[key], "registers_per_thread": ">= 65"}
                out.write(json.dumps({"config": [rule]}))
            answer = occq("check", "--rules", "rules.yaml", "run:1")
            check(answer.returncode == 4 and f"{len(chosen_here)} judged, {len(chosen_here)} fail" in answer.stdout,
                  f"rule of {row[key]!r} ({key}): {chosen_here} {answer.stdout} {answer.stderr}")
    allow = {"rule": "r", "kernel": "a+b[c(*", "reason": "known", "until": "2100-01-01"}
    with open("rules.yaml", "w", encoding="utf-8") as out:
        out.write(json.dumps({"config": [{"rule": "r", "registers_per_thread": ">= 65"}], "allow": [allow]}))
    answer = occq("check", "--rules", "rules.yaml", "run:1")
    check(f"{len(rows)} judged, {len(rows) - 1} fail, 1 allowed" in answer.stdout, answer.stdout[:200] + answer.stderr)
    for text in ("(", "void f<int…int*)"):  # no expression; a cut name of two kernels
        with open("rules.yaml", "w", encoding="utf-8") as out:
            out.write("config:\n  - " + json.dumps({"rule": "r", "kernel": text, "waves": ">= 0"}, ensure_ascii=False))
        answer = occq("check", "--rules", "rules.yaml", "run:1")
        check(answer.returncode == 2 and "rules.yaml:2:5: kernel: " in answer.stderr, f"{text}: {answer.stderr}")


def check_room():
    """Room that words in place of a name leave is used before another text is cut."""
    lines = occq("launches", "-n", "6", "--range", "block", "-o", "kernel,range", COLUMNS="60").stdout.splitlines()[1:7]
    check(any(line.endswith("\u2026") for line in lines), f"no range is cut: {lines}")
    check(max(len(line) for line in lines) == 60, f"room is left: {lines}")


def check_worst_kernels():
    """The kernel that a layer's row names is one that show takes, and its number is in JSON."""
    rows = json.loads(occq("top", "--by", "layer", "-n", "100", "--json", "-o", "+worst_kernel_id").stdout)["top"]
    lines = occq("top", "--by", "layer", "-n", "100", "-o", "depth,worst_kernel", COLUMNS="240").stdout.splitlines()
    texts = [line.split(None, 1)[1].strip() for line in lines if re.match(r" *\d+ \S", line)]
    check(len(texts) >= len(rows) > 3, f"{len(texts)} of {len(rows)} layers: {lines}")
    for row, text in zip(rows, texts):
        answer = occq("show", text, "--json")
        shown = [kernel["kernel_id"] for kernel in json.loads(answer.stdout)["kernels"]] if answer.returncode == 0 else []
        check(shown == [row.get("worst_kernel_id")], f"worst kernel {text!r}: {shown} {row} {answer.stderr}")


def check_ranges():
    rows = json.loads(occq("top", "--by", "range", "-n", "100", "--json").stdout)["top"]
    for row in rows:
        answer = occq("top", "--by", "range", "--json", "--range", row["range"])
        got = [found["range"] for found in json.loads(answer.stdout or '{"top": []}')["top"]]
        within = sorted(other["range"] for other in rows if (other["range"] + "/").startswith(row["range"] + "/"))
        check(sorted(got) == within, f"--range {row['range']!r}: {got} {answer.stderr}")
        launches = occq("launches", "--csv", "-o", "range", "-n", "1000", "--range", row["range"]).stdout
        check(set(launches.split("\n")[1:-1]) == set(within), f"launches --range {row['range']!r}: {launches[:200]}")
    long = max(rows, key=lambda row: len(row["range"]))["range"]
    cut = long[:12] + "…" + long[-8:]
    answer = occq("top", "--by", "range", "--json", "--range", cut)
    check([found["range"] for found in json.loads(answer.stdout)["top"]] == [long], f"--range {cut}: {answer.stdout}")


def main():
    with open(NAMES, encoding="utf-8") as names:
        listed = [line.rstrip("\n") for line in names][::3]
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        record(listed + SPECIAL)
        rows = json.loads(occq("top", "-n", "1000", "--json").stdout)["top"]
        short = json.loads(occq("top", "-n", "1000", "--json", "--name", "short").stdout)["top"]
        shorts = {row["kernel_id"]: row["kernel"] for row in short}
        for row in rows:
            row["short"] = shorts[row["kernel_id"]]
        check_forms(rows)
        check_cut(40)
        check_cut(80, LC_ALL="C")
        check_screens(rows)
        check_words()
        check_commands(rows)
        check_rules(rows)
        check_ranges()
        check_worst_kernels()
        check_room()
        check_refusals()
        check_cut_number()
        check_growth()
        os.chdir("/")
    for failure in failures[:20]:
        print("FAIL:", failure)
    sys.exit(len(failures) > 0)


main()
