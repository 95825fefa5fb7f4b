#!/usr/bin/env python3
"""report.py OCCQ CLI_HISTORY [SCREENSHOTS]: occq report's page in a headless Chromium. What is read out of the rendered page are the
numbers of --json; sorting, filter, links and print work, by mouse and by keyboard alone; hostile names stay text; nothing violates the
page's policy and nothing is fetched; it is readable without script and style, at 360 and 1600 pixels; axe-core finds no fault.

Exit status 77: no browser (scripts/setup --browser installs it)."""
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit"))
import report_history

try:
    import websocket  # noqa: F401
except ImportError:
    print("python3-websocket is not installed: scripts/setup --browser")
    sys.exit(77)
if not shutil.which("chromium"):
    print("chromium is not installed: scripts/setup --browser")
    sys.exit(77)
from browser import Browser

occq, cli_history = map(os.path.abspath, sys.argv[1:3])
screenshots = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
axe = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "occtrace/axe/axe.min.js")
os.environ.update(TZ="UTC", LC_ALL="C", NO_COLOR="1")
work = tempfile.TemporaryDirectory()
os.chdir(work.name)
browser = Browser()


def output(*arguments):
    return json.loads(subprocess.run([occq, *arguments, "--json"], check=True, stdout=subprocess.PIPE).stdout)


def report(database, *arguments):
    subprocess.run([occq, "report", "-d", database, "-o", "page.html", *arguments], check=True)
    return "file://" + os.path.abspath("page.html")


def check_events():
    """Nothing was fetched but the page, nothing was blocked, nothing was thrown."""
    for method, params in browser.events:
        if method == "Network.requestWillBeSent":
            assert params["request"]["url"].endswith("page.html"), params["request"]["url"]
        assert method not in ("Runtime.exceptionThrown", "Log.entryAdded", "Audits.issueAdded", "Page.javascriptDialogOpening"), (method, params)


def cells(table="top"):
    """The rows of a table as they are shown."""
    return browser.value("Array.from(document.getElementById('%s').rows).filter((row) => !row.hidden)"
                         ".map((row) => Array.from(row.cells, (cell) => cell.innerText))" % table)


def percent(ratio):
    return "-" if ratio is None else "%.1f%%" % (int(abs(ratio) * 1000 + 0.5 + 1e-6) / 10)


def check_numbers(database):
    """Cells against JSON of the command, which the page's data equal."""
    top = output("top", "-d", database, "-n", "1000")["top"]
    heading, *rows = cells()
    assert len(rows) == len(top)
    for row, line in zip(rows, top):
        shown = dict(zip(heading, row))
        for name, key in (("kernel%", "time_ratio"), ("theor", "theoretical"), ("expect_low", "expected_achieved_low"), ("loss", "main_cause_ratio"),
                          ("expect_high", "expected_achieved_high"), ("achieved", "achieved"), ("waste%", "waste_ratio")):
            assert shown[name] == percent(line[key]), (name, shown, line[key])
        assert shown["launches"] == str(line["launches"]) and shown["cause"] == (line["main_cause"] or "-"), (shown, line)
    data = browser.value("JSON.parse(document.getElementById('occtrace-data').textContent)")
    assert all(ours == {key: line[key] for key in ours} for ours, line in zip(data["top"], top))
    for kernel in data["kernels"]:
        parts = browser.value("Array.from(document.querySelectorAll('#kernel-%d-%d .waterfall tbody tr'), (row) => [row.cells[0].innerText, row.cells[2].innerText])"
                              % (kernel["kernel_id"], kernel["device_id"]))
        measured = kernel["launch_configs"][0]["measured"]
        if measured and measured["waterfall"]:
            ratios = {percent(part["ratio"]) for part in measured["waterfall"] if part["cause"] == "registers" and part["ratio"]}
            assert ratios <= {value for _, value in parts}, (ratios, parts)
    return data


def click(selector):
    box = browser.value("(() => { const e = document.querySelector(%s); e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
                        "return [b.x + b.width / 2, b.y + b.height / 2]; })()" % json.dumps(selector))
    for kind in "mousePressed", "mouseReleased":
        browser.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)


def check_order(data):
    """Sorting both ways by numbers and by name; what is not known is last."""
    for heading, key in ("time_ratio", "total_duration_ns"), ("waste_ratio", "waste_warp_seconds"), ("achieved", "achieved"), ("kernel", "kernel"):
        for sign in (1, -1) if key == "kernel" else (-1, 1):
            click("th[data-key=%s] button" % heading)
            known = [line for line in data["top"] if line[key] is not None]
            names = [row[0] for row in cells()[1:]]
            assert browser.value("document.querySelector('th[data-key=%s]').ariaSort" % heading) == ("ascending" if sign > 0 else "descending")
            if key != "kernel":
                by_name = {line["kernel"]: line[key] for line in data["top"]}
                values = [by_name[name] for name in names if by_name.get(name) is not None]
                assert values == sorted(values, reverse=sign < 0) and values[:1] == [by_name[names[0]]][:len(known)], (key, names, values)
    assert browser.value("document.querySelectorAll('th[aria-sort]').length") == 1


def check_filter():
    click("#filter")
    browser.type("GEMM")
    assert [row[0] for row in cells()[1:]] == ["gemm"], cells()
    assert browser.value("Array.from(document.querySelectorAll('section.kernel')).filter((s) => !s.hidden).length") == 1
    assert browser.value("document.querySelector('output').value").startswith("1 of ")
    # a link to a section that the filter hides shows it
    hidden = browser.value("document.querySelector('section.kernel[hidden]').id")
    browser.value("location.hash = '%s'; new Promise((done) => setTimeout(done, 50))" % hidden)
    assert not browser.value("document.getElementById('%s').hidden" % hidden)
    assert browser.value("document.querySelector('#filter').value") == ""


def check_keyboard():
    """Tab reaches the filter, a heading and a kernel's link; Enter sorts and follows."""
    reached = []
    for _ in range(80):
        browser.key("Tab")
        at = browser.value("(() => { const e = document.activeElement; return [e.tagName, e.textContent, e.matches(':focus-visible'), e.id]; })()")
        assert at[2], ("focus is not seen", at)
        reached.append(at)
        if at[:2] == ["BUTTON", "launches"]:
            break
    assert any(at[3] == "filter" for at in reached), reached
    browser.key("Enter", "\r")
    assert browser.value("document.querySelector('th[data-key=launches]').ariaSort") == "descending"
    browser.value("document.querySelector('#top tbody a').focus()")
    browser.key("Enter", "\r")
    assert browser.value("location.hash") == browser.value("document.querySelector('#top tbody a').hash")


def check_axe(what):
    if not os.path.exists(axe):
        print("axe-core is not installed: scripts/setup --browser")
        return
    browser.value(open(axe, encoding="utf-8").read() + "; 0")
    found = browser.value("axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => [v.id, v.help, v.nodes.slice(0, 3).map((n) => n.html)]))")
    assert found == [], (what, json.dumps(found, indent=1))


def check_size(width):
    assert browser.value("document.documentElement.scrollWidth") <= width, "wider than the window"
    small = browser.value("Array.from(document.querySelectorAll('button, summary, input'), (e) => [e.textContent, e.getBoundingClientRect().height])"
                          ".filter((e) => e[1] < 24)")
    assert small == [], small


def check_words():
    """A cause is a word: its cell has one line."""
    for width in 500, 700, 1000, 1200:
        browser.open("file://" + os.path.abspath("page.html"), width=width)
        lines = browser.value("""(() => {
            const at = Array.from(document.querySelectorAll('#top thead th'), (e) => e.dataset.key).indexOf('main_cause');
            return Array.from(document.querySelectorAll('#top tbody tr'), (row) => {
                const range = document.createRange();
                range.selectNodeContents(row.cells[at]);
                return range.getClientRects().length; }); })()""")
        assert lines and max(lines) == 1, (width, lines)


def check_complete():
    """What is there without the script."""
    text = browser.value("document.body.innerText")
    for wanted in "Verdict", "Where the time goes", "Findings", "gemm", "limited by registers", "Advice", "What the history holds", "2.015k":
        assert wanted in text, wanted
    assert browser.value("document.querySelectorAll('.waterfall svg rect').length") > 5


class Strict(http.server.SimpleHTTPRequestHandler):
    """A server that allows neither script nor inline style, as Jenkins does for artefacts."""

    def end_headers(self):
        self.send_header("Content-Security-Policy", "sandbox; default-src 'none'; img-src 'self'; style-src 'self'")
        super().end_headers()

    def log_message(self, *arguments):
        pass


def check_strict_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Strict, directory=work.name))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser.open("http://127.0.0.1:%d/page.html" % server.server_port)
    check_complete()
    assert browser.value("getComputedStyle(document.body).maxWidth") == "none", "the style is not blocked"
    server.shutdown()


def check_known():
    subprocess.run([cli_history, "m.db", "measured"], check=True)
    page = report("m.db")
    for width, dark in (1600, False), (360, False), (1600, True), (360, True):
        browser.open(page, width=width, dark=dark)
        check_size(width)
        check_axe("%d pixels%s" % (width, ", dark" if dark else ""))
        check_events()
        if screenshots:
            browser.screenshot("%s/report-%d%s.png" % (screenshots, width, "-dark" if dark else ""), height=1400 if width > 400 else 1100)
    browser.open(page)
    check_words()
    browser.open(page)
    data = check_numbers("m.db")
    check_order(data)
    check_filter()
    check_events()
    browser.open(page)
    check_keyboard()
    browser.value("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.value("Array.from(document.querySelectorAll('details')).every((d) => d.open)")
    browser.open(page, width=740, media="print")
    assert browser.value("document.documentElement.scrollWidth") <= 740, "wider than paper"
    assert browser.pdf().startswith(b"%PDF") and len(browser.pdf()) > 20000
    check_events()
    browser.open(page, script=False)
    check_complete()
    check_strict_server()


def check_hostile():
    report_history.hostile(occq, "hostile.db")
    browser.open(report("hostile.db"))
    check_numbers("hostile.db")
    check_events()
    assert browser.value("document.scripts.length") == 2 and browser.value("document.querySelectorAll('img, b[onerror], iframe').length") == 0
    text = browser.value("document.body.innerText")
    for name in report_history.HOSTILE:
        clean = "".join("???" if c in "\u2028\u2029\u202e" else "?" if c < " " else c for c in name)
        assert clean in text, clean
    check_size(1200)
    browser.open("file://" + os.path.abspath("page.html"), width=360)
    check_size(360)
    check_axe("hostile names")


def check_ranges():
    recording = os.path.join(os.path.dirname(os.path.abspath(report_history.__file__)), "../data/import/kineto_ranges.json")
    subprocess.run([occq, "import", "-d", "ranges.db", recording], check=True, stdout=subprocess.DEVNULL)
    page = report("ranges.db")
    for width, dark in (1600, False), (360, True):
        browser.open(page, width=width, dark=dark)
        check_size(width)
        check_axe("ranges, %d pixels" % width)
        check_events()
    top = output("top", "-d", "ranges.db", "--by", "range")["top"]
    heading, *rows = cells("ranges")
    shown = [dict(zip(heading, row)) for row in rows]
    assert [(row["range"], row["waste%"], row["launches"]) for row in shown] == [
        (line["range"] or "-", percent(line["waste_ratio"]), str(line["launches"])) for line in top], shown


def check_many():
    report_history.many(occq, "many.db", 1000)
    browser.open(report("many.db"))
    check_numbers("many.db")
    check_events()


try:
    check_known()
    check_hostile()
    check_ranges()
    check_many()
finally:
    browser.close()
