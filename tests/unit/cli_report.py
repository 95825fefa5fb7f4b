#!/usr/bin/env python3
"""cli_report.py OCCQ CLI_HISTORY: occq report as a file, without a browser (tests/browser has one): its data are what --json prints,
texts are never markup, its policy names its style and script, and it is there whole or not at all."""
import base64
import hashlib
import html
import html.parser
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import report_history

occq, cli_history = sys.argv[1:3]
ranges = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/import/kineto_ranges.json")
os.environ.update(TZ="UTC", LC_ALL="C", NO_COLOR="1")
work = tempfile.TemporaryDirectory()
os.chdir(work.name)


def run(*arguments, status=0, **more):
    done = subprocess.run([occq, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done


def output(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


class Page(html.parser.HTMLParser):
    """Elements, and the texts of cells by table."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.ids, self.tables, self.raw, self.meta = set(), set(), [], {}, {}, {}
        self.table = self.row = self.script = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.add(tag)
        self.attributes.update(attributes)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "meta" and "http-equiv" in attributes:
            self.meta[attributes["http-equiv"]] = attributes["content"]
        if tag == "table":
            self.table = self.tables.setdefault(attributes.get("id"), [])
        if tag == "tr" and self.table is not None:
            self.row = []
            self.table.append(self.row)
        if tag in ("td", "th") and self.row is not None:
            self.row.append("")
        if tag in ("script", "style"):
            self.script = tag + attributes.get("id", "")
            self.raw[self.script] = ""

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.script = None
        if tag == "table":
            self.table = self.row = None

    def handle_data(self, data):
        if self.script:
            self.raw[self.script] += data
        elif self.row:
            self.row[-1] += data.rstrip("\n")


def check_page(database, *filters, history=()):
    run("report", "-d", database, "-o", "page.html", *filters)
    text = open("page.html", encoding="utf-8").read()
    page = Page(text)
    data = json.loads(page.raw["scriptocctrace-data"])
    assert not re.search("[<>&\u2028\u2029]", page.raw["scriptocctrace-data"]), "data that HTML reads"
    top = output("top", "-d", database, "-n", "1000", *filters)["top"]
    assert len(top) == len(data["top"])
    for ours, theirs in zip(data["top"], top):
        assert ours == {key: theirs[key] for key in ours}
    ranges = output("top", "--by", "range", "-d", database, "-n", "50", *filters)["top"]
    assert len(data["ranges"]) == (len(ranges) if any(line["range"] for line in ranges) else 0) == len(page.tables.get("ranges", [0])) - 1
    for ours, theirs in zip(data["ranges"], ranges):
        assert ours == {key: theirs[key] for key in ours}
    for kernel in data["kernels"]:
        others = output("show", "-d", database, str(kernel["kernel_id"]), "-n", "1", *filters)["kernels"]
        assert any(kernel == {key: other[key] for key in kernel} for other in others), kernel["kernel"]
    assert data["history"] == {
        k: v for k, v in output("history", "-d", database, *filters, *history).items() if k != "schema"}
    for name in "runs", "info":
        for ours, theirs in zip(data[name], output(name, "-d", database, *(filters if name == "runs" else ()))[name]):
            assert ours == {key: theirs[key] for key in ours}, (ours, theirs)
    policy = page.meta["Content-Security-Policy"]
    for kind in "script", "style":
        digest = base64.b64encode(hashlib.sha256(page.raw[kind].encode()).digest()).decode()
        assert "%s-src 'sha256-%s'" % (kind, digest) in policy, kind
    assert "default-src 'none'" in policy
    assert not {"iframe", "img", "link", "object", "base", "form"} & page.tags, page.tags
    assert not {a for a in page.attributes if a.startswith("on") or a in ("style", "src")}, page.attributes
    assert not re.search(r'(href|src)="(?!#)', text), "a link that leaves the page"
    assert len(set(page.ids)) == len(page.ids), "an id twice"
    assert text.endswith("</html>\n")
    return page, data, text


# known histories, hostile names, another filter
subprocess.run([cli_history, "h.db"], check=True)
subprocess.run([cli_history, "m.db", "measured"], check=True)
for database in "h.db", "m.db":
    page, data, text = check_page(database, history=("--by", "minute"))
    lost = sum(run["lost"] or 0 for run in data["runs"])
    assert lost > 0 and "could not be recorded: %d." % lost in text
    assert "simulated device" in text and len(data["kernels"]) == len(data["top"])
check_page("m.db", "--run", "1", history=("--by", "minute"))
run("report", "-d", "h.db", "--low-occupancy=99", "-o", "low.html")
data = json.loads(Page(open("low.html", encoding="utf-8").read()).raw["scriptocctrace-data"])
assert [line["kernel_id"] for line in data["top"]] == [
    line["kernel_id"] for line in output("top", "-d", "h.db", "--low-occupancy=99")["top"]] != []
assert len(data["runs"]) == len(output("runs", "-d", "h.db")["runs"])
report_history.hostile(occq, "hostile.db")
page, data, text = check_page("hostile.db", history=("--by", "minute"))
assert "<b>label" not in text and "alert(1)&lt;/script&gt;" in text and "\u202e" not in text
names = {row[0] for row in page.tables["top"][1:]}
assert "<!--<script>" in names and "x" * 2000 in text and "@{}%s%n" in names, names
assert len(page.tables["top"]) == 1 + len(report_history.HOSTILE)

# the first screen: program, host, date, the GPU time as one bar that adds up to 100 %, as in "occq top", and findings
def check_first_screen(database, names, *filters):
    text = run("report", "-d", database, *filters).stdout.decode()
    first = text[text.index("<header>"):text.index('id="where"')]
    said = html.unescape(re.sub("<[^>]*>", "", first))
    assert all(name in said for name in names), (names, said)
    parts = dict((what, int(percent)) for percent, what in re.findall("<li data-part>.*?<b>([0-9]+)%</b> (.*?)</li>", first))
    widths = re.findall(' width="([0-9.]+)%"', re.search('<svg class="bar whole"[^>]*>(.*?)</svg>', first, re.S)[1])
    assert sum(parts.values()) == 100 == sum(map(float, widths)), (parts, widths)
    screen = run("top", "-d", database, *filters).stdout.decode().split("\n")
    line = next(line for line in screen if line.startswith("GPU time: "))
    shown = {what: int(percent) for percent, what in re.findall("([0-9]+)% ([a-z ]+)", line)}
    lost = sum(percent for what, percent in parts.items() if what.startswith("lost: "))
    assert shown == {**{what: percent for what, percent in parts.items() if not what.startswith("lost: ")},
                     **({"lost in kernels": lost} if lost else {})}, (shown, parts)
    top = output("top", "-d", database, *filters)
    busy = "%.1f%%" % (100 * top["gpu_time"]["busy_ratio"])
    assert "kernels ran " in said and busy in said, (busy, said)
    assert "warp-seconds" not in said and first.count("<li data-finding>") == min(5, len(top["findings"])), said
    return first, top


check_first_screen("m.db", ["train", "node1", "2023-11-14 22:13:20", "NVIDIA A100"], "--run", "1")
check_first_screen("m.db", ["2 programs", "node1", "2 runs"])

# cells are the values of --json as a terminal shows them
columns = page.tables["top"][0]
for row, line in zip(page.tables["top"][1:], data["top"]):
    cells = dict(zip(columns, row))
    assert cells["launches"] == str(line["launches"]) and cells["loss"] == ("-" if line["main_cause_ratio"] is None else "%.1f%%" % (100 * line["main_cause_ratio"])), (cells, line)

# many kernels: a table of 1000, and how many more there are; one launch; a comparison
report_history.many(occq, "many.db", 1000)
page, data, text = check_page("many.db", history=("--by", "minute"))
assert len(text.encode()) <= 1000000, len(text)
report_history.many(occq, "most.db", 10000)
text = run("report", "-d", "most.db").stdout.decode()
assert "9000 more rows" in text and len(text.encode()) <= 1000000, len(text)
report_history.make(occq, "one.db", [("one", 1767225600000000, 5, 1, 32)])
check_page("one.db", history=("--by", "minute"))
# a kernel on two GPUs of a model: two rows, bars and sections
report_history.make(occq, "two.db", [("two", 1767225600000000 + 9 * i, 5, 100, 200) for i in range(6)], gpus=2)
page, data, text = check_page("two.db", history=("--by", "minute"))
bars = re.findall('<svg class="bar"[^>]*>(.*?)</svg>', re.search('<table class="where">.*?</table>', text, re.S)[0], re.S)
assert len(bars) == 2 and all(abs(sum(float(width) for width in re.findall('width="([0-9.]+)%"', bar)) - 100) < 0.1 for bar in bars), bars
assert {(row["device_id"], row["launches"]) for row in data["top"]} == {(1, 3), (2, 3)} and text.count("<section class=\"kernel\"") == 2
assert "<b>1</b> kernel " in text and "2 \u00d7 <bdi>NVIDIA A100-SXM4-40GB</bdi>" in text and "On GPU 2: " in text
# nothing to draw: each chart states its reason
report_history.make(occq, "refused.db", [("refused", 1767225600000000, 5, 100, 600), ("none", 1767225600000100, 0, 100, 32)])
text = run("report", "-d", "refused.db").stdout.decode()
assert "not analysed: the model refuses its launch configurations" in text and "took no measurable time" in text
# the same kernel on two models of GPU: each bar and row has its GPU, kernels on one have none
shared = [("shared", 1767225600000000 + 9 * i, 5, 100, 200) for i in range(6)]
for model in "A100-SXM4-40GB", "A100-PCIE-40GB":
    report_history.make(occq, "models.db", shared + [("only " + model, 1767225600000100, 5, 100, 200)], model=model)
page, data, text = check_page("models.db", history=("--by", "minute"))
models = {"NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"}
names = re.findall('<th scope="row" class="l">(.*?)</th>', text[text.index('id="where"'):text.index('id="kernels"')])
assert len(names) == 4 and {name.split(" on ")[1] for name in names if ">shared<" in name} == {"GPU 1", "GPU 2"}, names
assert not any(" on " in name for name in names if ">shared<" not in name), names
assert page.tables["top"][0][-1] == "device" and {row[-1] for row in page.tables["top"][1:]} == models

# comparisons are those of occq diff, by range; all else is about B's launches
for i, label in enumerate("abb"):
    with open(ranges) as recording, open("ranges.json", "w") as copy:
        json.dump(dict(json.load(recording), copy=i), copy)
    run("import", "-d", "ranges.db", "--label", label, "ranges.json")
page, data, text = check_page("ranges.db", history=("--by", "minute"))
paths = {row[0] for row in page.tables["ranges"][1:]}
assert paths == {"ProfilerStep#/Linear_3/aten::addmm", "-"} and "of kernel time has a range" in text, paths
# layers: an icicle with the shares of GPU time that "occq top --by layer" has
first, top = check_first_screen("ranges.db", [])
tree = output("top", "-d", "ranges.db", "--by", "layer")["top"]
icicle = re.search('<svg class="icicle".*?<table id="layers">(.*?)</table>', text, re.S)
assert icicle and len(tree) == icicle[1].count("<tr>") - 1 and all("%.1f%%" % (100 * row["gpu_time_ratio"]) in icicle[1] for row in tree), (tree, icicle)
report_history.make(occq, "other.db", [("other", 1767225600000000 + 9 * i, 5, 100, 200) for i in range(6)])
for database, a, b, runs, filters in [
        ("hostile.db", "run:1", "run:1", [1], ()), ("ranges.db", "label:a", "label:b", [3, 2], ()), ("ranges.db", "run:3", "run:1", [1], ()),
        ("ranges.db", "run:1", "last:2", [3, 2], ()), ("ranges.db", "last:1", "last:2", [3, 2], ("--exclude", "void")),
        ("ranges.db", "run:1", "ranges.db,run:2", [2], ()), ("hostile.db", "run:1", "other.db", [1], ())]:
    text = run("report", "-d", database, "--diff", a, b, *filters).stdout.decode()
    data = json.loads(Page(text).raw["scriptocctrace-data"])
    diff = {k: v for k, v in output("diff", "-d", database, a, b, *filters).items() if k != "schema"}
    assert data["diff"] == diff, (database, a, b)
    assert database != "ranges.db" or any(line["range"] for line in diff["kernels"])
    assert [line["run_id"] for line in data["runs"]] == runs and sum(line["launches"] for line in data["top"]) == diff["b"]["launches"], (a, b)
    changed = Page(text).tables["changed"]
    assert [row[1] for row in changed[1:]] == [line["kernel"].replace("\u2028", "?").replace("\u2029", "?").replace("\u202e", "?") for line in diff["kernels"][:20]]
    has_ranges = any(line["range"] for line in diff["kernels"][:20])
    basis = changed[0].index("basis")
    assert [row[basis] for row in changed[1:]] == [line["basis"] or "-" for line in diff["kernels"][:20]]
    assert has_ranges == ("range" in changed[0]) and (not has_ranges or [row[2] for row in changed[1:]] == [line["range"] or "-" for line in diff["kernels"][:20]])
    said = html.unescape(re.sub("<[^>]*>", " ", re.search('<h2 id="diff">.*?</section>', text, re.S)[0])).split()
    for line in run("diff", "-d", database, a, b, *filters).stdout.decode().split("\n\n")[:2]:
        assert " ".join(line.split()) in " ".join(said), line
    assert text.count("<bdi>", text.index('id="changed"'), text.index('id="where"')) >= len(changed) - 1
    assert "is about B: <bdi>%s</bdi>" % diff["b"]["title"].replace("<", "&lt;").replace(">", "&gt;") in text
for filter in ["--range", "x"], ["--gpu", "A100"], ["--since", "1h"], ["--run", "1"], ["--low-occupancy"], ["--graph"]:
    assert filter[0] in run("report", "-d", "ranges.db", "--diff", "run:1", "run:2", *filter, status=2).stderr.decode()
run("report", "-d", "ranges.db", "--diff", "run:1", "rum:2", status=2)
assert b"3 of 11 rows" in run("report", "-d", "hostile.db", "-n", "3", "--diff", "run:1", "run:1").stdout
run("report", "-d", "ranges.db", "--diff", "run:1", "run:9", status=3)

# a row that is slower in a kernel that is the same over its configurations gives the reason
for slow in 40, 50:
    report_history.make(occq, "pool.db", [launch for i in range(400) for at in [1767225600000000 + 2000 * i] for launch in [
        ("pool", at, 800 + i % 3, 1000, 128), ("pool", at + 900, slow, 100, 128), ("other", at + 1000, 300 + i % 3, 1000, 128)]])
said = " ".join(run("diff", "-d", "pool.db", "run:1", "run:2").stdout.decode().split())
assert "worse: pool" in said and "the kernel is the same over its 2 configurations (+" in said, said

# nothing to report, wrong usage, and files: whole or not there
run("report", "-d", "h.db", "--kernel", "nothing", "-o", "none.html", status=3)
assert not os.path.exists("none.html")
run("report", "-d", "none.db", "-o", "none.html", status=1)
run("report", "-d", "h.db", "--diff", "run:1", status=2)
run("report", "-d", "h.db", "run:1", "run:2", status=2)
run("report", "-d", "h.db", "-o", "/dev/full", status=1)
run("report", "-d", "h.db", "-o", "h.db", status=1)
for arguments in [("report", "-o"), ("export", "-o"), ("history", "--svg")]:
    assert b"/dev/stdout" in run(arguments[0], "-d", "h.db", arguments[1], "-", status=1).stderr and not os.path.exists("-")
assert run("report", "-d", "h.db", "-o", "/dev/stdout").stdout.endswith(b"</html>\n")
open("old.html", "w").write("old")


def small_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))


run("report", "-d", "h.db", "-o", "old.html", status=1, preexec_fn=small_files)
assert open("old.html").read() == "old" and not [name for name in os.listdir() if name.startswith("old.html.")]
run("report", "-d", "h.db", "-o", "old.html")
assert open("old.html").read().endswith("</html>\n")
reader, writer = os.pipe()
os.close(reader)
assert subprocess.run([occq, "report", "-d", "h.db"], stdout=writer, stderr=subprocess.PIPE).returncode == 1
