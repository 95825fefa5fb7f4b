#!/usr/bin/env python3
"""cli_show.py CLI_HISTORY OCCQ: the answer of occq show stands on the first screen, and its numbers are those of occq top."""
import json
import os
import subprocess
import sys
import tempfile

HISTORY, OCCQ = (os.path.abspath(path) for path in sys.argv[1:3])
failed = False


def check(is_good, what):
    global failed
    if not is_good:
        print("FAILED:", what)
        failed = True


def occq(*words, columns="80"):
    environment = dict(os.environ, COLUMNS=columns, TZ="UTC", LC_ALL="C.UTF-8", NO_COLOR="1")
    return subprocess.run([OCCQ, *words], capture_output=True, text=True, timeout=60, check=False, env=environment).stdout


def same_numbers(history):
    """Each finding of the overview about a kernel is the sum of the kernel's answers."""
    document = json.loads(occq("top", "-d", history, "--json"))
    share = {row["kernel_id"]: row["gpu_time_ratio"] for row in document["top"]} if "gpu_time_ratio" in document["top"][0] else {}
    findings = [f for f in document["findings"] if f["kind"] == "kernel"]
    check(findings, f"{history}: findings")
    for finding in findings:
        number = finding["kernel"]["kernel_id"]
        groups = json.loads(occq("show", "-d", history, str(number), "--json"))["kernels"]
        answers = [group["finding"] for group in groups]
        for key in ("gpu_time_ratio", "lost_ratio"):
            total = sum(answer[key] for answer in answers)
            check(abs(total - finding[key]) < 1e-9, f"{number}: {key} {total}, not {finding[key]}")
        if len(answers) > 1:
            continue
        for key in ("cause", "change", "parameter", "now", "needed", "saves", "predicted", "confidence", "measured_ratio", "by_design"):
            check(answers[0].get(key) == finding.get(key), f"{number}: {key} {answers[0].get(key)}, not {finding.get(key)}")
        if number in share:
            check(share[number] >= answers[0]["gpu_time_ratio"] - 1e-9, f"{number}: its share in top")
    return {finding["kernel"]["kernel_id"] for finding in findings}


def first_screen(history, kernel):
    """Returns the first 24 lines of 80 columns, which have the four lines and the table."""
    lines = occq("show", "-d", history, kernel).splitlines()[:24]
    text = "\n".join(lines)
    check(all(len(line) <= 80 for line in lines), f"{kernel}: a line of more than 80 columns")
    starts = [next((i for i, line in enumerate(lines) if line.startswith(f"  {word} ")), -1)
              for word in ("WHY", "DO", "SAVES", "CONFIDENCE")]
    check(-1 not in starts and starts == sorted(starts) and starts[3] < 18, f"{kernel}: the four lines: {text}")
    check(any(line.lstrip().startswith("GRID") or " GRID " in line for line in lines), f"{kernel}: the table: {text}")
    return " ".join(text.split())


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    for name in ([], ["measured"]):
        subprocess.run([HISTORY, "h.db" if not name else "m.db", *name], check=True)
    check(same_numbers("h.db"), "findings of h.db")
    same_numbers("m.db")

    text = first_screen("h.db", "gemm")
    check("96 registers" in text and "__launch_bounds__(256, 3)" in text, "gemm: cause and change")
    check("simulated: no real GPU ran this" in text, "gemm: simulated")
    check("8 faster, 1 slower" in text, "gemm: the published cases")
    text = first_screen("h.db", "tiny")
    check("12 blocks, 40 SMs" in text and "only a larger grid would meet the limit" in text, "tiny: the grid comes first")
    check("modelled, not measured" in text, "tiny: modelled")
    text = first_screen("h.db", "too_many")
    check("not known: " in text and "no model of this launch" in text, "too_many: no model")
    text = first_screen("m.db", "evil")
    check("measured in" in text, "evil: measured")
    check("\x1b" not in text, "evil: an escape")

    both = occq("show", "-d", "h.db", "(gemm|tiny)")
    check(both.count("  WHY ") == 2 and both.count("  DO ") == 2, "an answer for each kernel")
    narrow = occq("show", "-d", "h.db", "gemm", columns="40")
    check("GRID" in narrow and "WHY" in narrow, "a narrow screen")
    check("LIMIT " not in both and "WHERE OCCUPANCY GOES" not in both, "details without --all")
    everything = occq("show", "-d", "h.db", "gemm", "--all")
    check(everything.startswith(occq("show", "-d", "h.db", "gemm").split("everything:")[0].rstrip("\n")), "--all begins with the answer")
    check("WHERE OCCUPANCY GOES" in everything and "ADVICE" in everything, "--all")
    check("warp-cycles" in occq("show", "-d", "h.db", "gemm", "--explain"), "--explain")
    part = occq("show", "-d", "h.db", "gemm", "--stream", "7")
    check("of the kernel's time" in part and "of the GPU time" not in part, "with --stream GPU time is not known")
    one = json.loads(occq("show", "-d", "h.db", "gemm", "--stream", "7", "--json"))["kernels"][0]["finding"]
    check(one["shares_of"] == "kernel_time" and one["kernel_time_ratio"] == 1, "shares of the kernel's time")

sys.exit(failed)
