"""A node for tests: settings of occtrace-ship, histories, and what the warehouse must have of them by their own SQL."""

import atexit
import collections
import contextlib
import math
import os
import shutil
import sqlite3
import subprocess
import tempfile

import engines

CONFIG = ("model_version", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers_per_thread", "static_shared_bytes",
          "dynamic_shared_bytes")


class Site:
    def __init__(self, ship, url, password=engines.PASSWORD, **settings):
        self.ship, self.enter = ship, []  # enter: words before it, which run it elsewhere
        self.dir = tempfile.mkdtemp(prefix="occ-ship-")
        atexit.register(shutil.rmtree, self.dir)
        self.file = os.path.join(self.dir, "occtrace.yaml")
        self.secret = os.path.join(self.dir, "password")
        self.state = os.path.join(self.dir, "histories/state/ship.db")
        self.history = os.path.join(self.dir, "histories/u1000/history.db")
        with open(self.secret, "w") as f:
            f.write(password + "\n")
        os.chmod(self.secret, 0o600)
        self.set(url=url, **settings)

    def set(self, url, jobs="", **settings):
        settings = {"url": f"'{url}'", "password_file": self.secret, "node": "n'1", "cluster": "c1", "state": self.state, **settings}
        with open(self.file, "w") as f:
            f.write(f"ship: {{{', '.join(f'{key}: {value}' for key, value in settings.items())}}}\n".replace("n'1", "\"n'1\""))
            f.write(f"database: {{path: {self.dir}/histories/history.db}}\nidentity: {{dcgm_job_dir: '{jobs}'}}\n")

    def start(self, *options, **settings):
        return subprocess.Popen([*self.enter, self.ship, "-c", self.file, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                **settings)

    def run(self, *options, code=0, says=""):
        process = self.start(*options)
        said = process.communicate()[0]
        assert process.returncode == code, f"{options}: exit code {process.returncode}, not {code}: {said}"
        assert says in said, f"{options}: '{says}' is not in: {said}"
        return said

    def remove(self, *runs, command="rm"):
        """By occq, as a person does; *runs: its arguments."""
        occq = os.path.join(os.path.dirname(self.ship), "occq")
        subprocess.run([occq, command, "--db", self.history, *map(str, runs)], check=True, stdout=subprocess.DEVNULL)

    def status(self, what):
        line = next(line for line in self.run("--status").splitlines() if line.strip().startswith(what))
        return line.strip()[len(what):].strip()


def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def add_histogram(bins, data):
    first, *counts = varints(data)
    for i, n in enumerate(counts):
        if n:
            bins[first + i] += n


class Row:
    def __init__(self):
        self.launches = self.total = self.high = self.measured_launches = 0
        self.low = math.inf
        self.bins = collections.Counter()
        self.measured = [0.0] * 6  # achieved and its ns, elapsed and its ns, their errors
        self.evidence = [0.0] * 4  # elapsed_square_sum, rest_shift_sum, rest_error_sum, rest_ns
        self.waste = self.capacity = self.expected = 0.0
        self.runs = set()


def rows_of(history):
    """Of a history: (by minute, job, user and configuration; by minute, run and GPU)."""
    db = sqlite3.connect(f"file:{history}?mode=ro", uri=True)
    query = f"""SELECT m.minute * 60, coalesce('slurm:' || r.slurm_job, 'pod:' || r.k8s_pod_uid,
        'container:' || r.container, 'session:' || r.session_id, 'run:' || lower(hex(r.uuid))),
        coalesce(r.user, CASE WHEN r.container IS NULL AND r.k8s_pod_uid IS NULL THEN r.uid || '' END, ''), k.mangled, d.name, {" || ',' || ".join("c." + c for c in CONFIG)},
        coalesce(c.main_cause, ''), m.launches,
        m.total_duration_ns, m.min_duration_ns, m.max_duration_ns, m.histogram, e.achieved_sum, e.achieved_ns, e.elapsed_sum,
        e.elapsed_ns, e.achieved_error_sum, e.elapsed_error_sum, coalesce(d.sm_count * c.max_warps_per_sm, 0), coalesce(c.expected_elapsed_low, 0), lower(hex(r.uuid)),
        lower(hex(d.uuid)), (SELECT identity FROM stored_identity),
        coalesce(e.direct + e.regression + e.grouped + e.exact + e.ncu, 0), e.elapsed_square_sum, e.rest_shift_sum, e.rest_error_sum, e.rest_ns
        FROM stored_minute m JOIN stored_run r USING(run_id) JOIN stored_launch_config c USING(config_id)
        JOIN stored_kernel k USING(kernel_id) JOIN stored_device d USING(device_id)
        LEFT JOIN stored_measured_minute e USING(minute, run_id, config_id)"""
    minutes, ranks = collections.defaultdict(Row), collections.defaultdict(Row)
    for row in db.execute(query):
        history_id = row[22] % 2**64
        for into, key in ((minutes, (history_id, *row[:7])), (ranks, (history_id, row[0], row[20], row[21]))):
            sums = into[key]
            sums.launches += row[7]
            sums.total += row[8]
            sums.low, sums.high = min(sums.low, row[9]), max(sums.high, row[10])
            add_histogram(sums.bins, row[11])
            sums.measured = [a + (b or 0) for a, b in zip(sums.measured, row[12:18])]
            sums.measured_launches += row[23]
            sums.evidence = [a + (b or 0) for a, b in zip(sums.evidence, row[24:28])]
            sums.expected = row[19]
            capacity = row[8] * 1e-9 * row[18]
            elapsed = row[19] + ((row[14] - row[15] * row[19]) / max(row[8], row[15]) if row[15] else 0)
            sums.capacity += capacity
            sums.waste += capacity * max(0, 1 - elapsed)
            sums.runs.add(row[20])
    db.close()
    return minutes, ranks


ERRORS = 1.0408, 1.4142  # of a mean's standard error, what is sent of it
UNRESOLVED_SPREAD = 0.13  # relative to a mean, how far launches without a value may be off


def unit_of(max_step):
    unit = 10.0**math.floor(math.log10(max_step))
    return unit * (5 if max_step / unit >= 5 else 2 if max_step / unit >= 2 else 1)


def choose(low, high, max_step, last):
    """As the shipper does: the last one, or a multiple of 1, 2 or 5 x a power of ten near the middle."""
    middle = (low + high) / 2
    if low <= last <= high:
        return last
    if max_step <= 1e-7:
        return middle
    unit = unit_of(max_step)
    return round(middle / unit) * unit


def choose_mean(mean, error, last, is_error=False):
    low, high = (error * factor for factor in ERRORS) if is_error else (max(0, mean - error / 2), mean + error / 2)
    return choose(low, high, (high - low) * 2 / 3, last)


def choose_share(share, off, last, high=math.inf):
    high = min(high, share + off)
    return choose(share - off, high, high - share + off, last)


def off_elapsed(share, mean, error, expected):
    """How far the share of elapsed occupancy may be off."""
    return min(share / 64, max(error / 4 / max(abs(mean - expected), 1e-30), share * 1e-6))


def off_covered(share, mean, error, off):
    """How far a share may be below, so that the error that covers launches without a value grows by at most 1/16."""
    return max(min(off, (share * error / (UNRESOLVED_SPREAD * mean) + max(1 - share, 0)) / 16 if mean > 0 else off), share * 1e-6)


def choose_covered(share, off, last):
    if share - off <= last <= share or off <= 1e-7:
        return last if share - off <= last <= share else share
    unit = unit_of(off)
    return math.floor(share / unit * (1 + 1e-12)) * unit


def near(text, value):
    return math.isclose(float(text), value, rel_tol=2e-6, abs_tol=1e-30)


def unescape(text):
    return text.encode().decode("unicode_escape")


def check_measured(columns, errors, sums):
    """achieved_sum, achieved_ns, elapsed_sum, elapsed_ns; achieved_error, elapsed_error: each in its range."""
    for i in (0, 2):
        total, ns, error = *sums.measured[i:i + 2], sums.measured[4 + i // 2]
        if ns == 0:
            assert columns[i:i + 2] == ["\\N", "\\N"], columns
            continue
        mean, error, share, kept = total / ns, error / ns, ns / sums.total, float(columns[i + 1]) / sums.total
        off = off_covered(share, mean, error, off_elapsed(share, mean, error, sums.expected) if i == 2 else share / 16)
        where = (columns, errors, mean, error, share, sums.expected)
        assert abs(float(columns[i]) / float(columns[i + 1]) - mean) <= error / 2 + mean * 2e-6, where
        assert -share * 2e-6 <= share - kept <= off + share * 2e-6, where
        assert ERRORS[0] * error * (1 - 1e-6) <= float(errors[i // 2]) <= ERRORS[1] * error * (1 + 1e-6), where


def check_evidence(text, sent_error, sums):
    """Each number within 1/16 of its bound; the variance is larger by as much as the error's square."""
    square, shift, noise, rest = sums.evidence
    if square <= 0 and rest <= 0:
        assert text == "[]", (text, sums.evidence)
        return
    total, elapsed_ns, found = sums.total, sums.measured[3], [float(x) for x in text[1:-1].split(",")]
    mean, error = (sums.measured[i] / elapsed_ns if elapsed_ns else 0 for i in (2, 5))
    spread = max(0, (square / elapsed_ns if elapsed_ns else 0) - mean**2 + sent_error**2 - error**2)
    offs = ((UNRESOLVED_SPREAD * mean)**2 + sent_error**2, (1.96 * noise + 0.02 * rest) / total, noise / total, rest / total)
    for sent, value, off in zip(found, (spread, shift / total, noise / total, rest / total), offs):
        assert abs(sent - value) <= off / 16 + abs(value) * 2e-6 + mean**2 * 1e-6, (found, sums.evidence, sent, value, off)


def check_row(row, sums, where):
    """launches, total, min, max, bins, counts, ranks, measured, two that are not checked, measured launches, errors."""
    assert [int(x) for x in row[:4]] == [sums.launches, sums.total, sums.low, sums.high], (where, row, vars(sums))
    counts = [int(x) for x in row[5][1:-1].split(",")]
    counts[counts.index(0)] = int(row[0]) - sum(counts)
    bins = dict(zip((int(x) for x in row[4][1:-1].split(",")), counts))
    assert bins == sums.bins, (bins, sums.bins)
    check_measured(row[7:11], row[14:16], sums)
    assert int(row[13]) == sums.measured_launches, (where, row, vars(sums))


def configs_of(engine):
    names = {row[0]: unescape(row[1]) for row in engine.ask("SELECT kernel, mangled FROM occtrace.kernel FINAL")}
    return {row[0]: (names[row[1]], row[2], ",".join(row[4:]), row[3]) for row in engine.ask(
        f"SELECT config, kernel, device, main_cause, {', '.join(CONFIG)} FROM occtrace.launch_config FINAL")}


def check_minutes(engine, expected, limit):
    """Rows of their own are exact, and the others' sums by main cause are what is left. How many others there are."""
    configs, others, in_job = configs_of(engine), {}, collections.Counter()
    left = dict(expected)
    for row in engine.ask("SELECT history, toUInt32(bucket), job, user, config, launches, total_ns, min_ns, max_ns, hist_bin, hist_n, "
                          "ranks, achieved_sum, achieved_ns, elapsed_sum, elapsed_ns, wasted_warp_s, capacity_warp_s, "
                          "arraySum(arraySlice(sources, 1, 5)), means[2], means[4], evidence "
                          "FROM occtrace.minute FINAL WHERE launches > 0"):
        config = configs[row[4]]
        where = (int(row[0]), int(row[1]), row[2], row[3])
        in_job[where] += 1
        if config[0] == "(other)":
            others[(*where, config[3])] = row
            continue
        sums = left.pop((*where, *config))
        check_row(row[5:], sums, where)
        check_evidence(row[21], float(row[20]), sums)
        assert int(row[11]) == len(sums.runs), (row, sums.runs)
    assert not in_job or max(in_job.values()) <= limit, max(in_job.values())
    rest = collections.defaultdict(Row)
    for key, sums in left.items():
        other = rest[(*key[:4], key[7])]
        other.launches += sums.launches
        other.total += sums.total
        other.low, other.high = min(other.low, sums.low), max(other.high, sums.high)
        other.bins.update(sums.bins)
        other.measured_launches += sums.measured_launches
        other.measured = [a + b for a, b in zip(other.measured, sums.measured)]
        other.waste += sums.waste
        other.capacity += sums.capacity
    assert others.keys() == rest.keys(), (others.keys() ^ rest.keys(), len(left), len(expected))
    for key, row in others.items():
        check_row(row[5:], rest[key], key)
        assert near(row[16], rest[key].waste) and near(row[17], rest[key].capacity), (row, vars(rest[key]))
    return len(others)


def check_ranks(engine, expected):
    left = dict(expected)
    for row in engine.ask("SELECT history, toUInt32(bucket), run, gpu, launches, busy_ns, wasted_warp_s, capacity_warp_s "
                          "FROM occtrace.rank_minute FINAL WHERE launches > 0"):
        sums = left.pop((int(row[0]), int(row[1]), row[2].replace("-", ""), row[3].replace("-", "")))
        assert [int(row[4]), int(row[5])] == [sums.launches, sums.total], (row, vars(sums))
        assert near(row[6], sums.waste) and near(row[7], sums.capacity), (row, vars(sums))
    assert not left, f"{len(left)} rows of ranks are missing"


def check_runs(engine, *histories):
    """Removed runs have a row that is empty but for its user."""
    runs = set()
    for history in histories:
        with contextlib.closing(sqlite3.connect(f"file:{history}?mode=ro", uri=True)) as db:
            runs |= {row[0] for row in db.execute("SELECT lower(hex(uuid)) FROM stored_run WHERE source_hash IS NULL")}
    found = {row[0].replace("-", "") for row in engine.ask("SELECT run FROM occtrace.run FINAL WHERE level != 'removed'")}
    assert found == runs, (found - runs, runs - found)
    assert engine.ask("SELECT count() FROM occtrace.run FINAL WHERE level = 'removed' AND (program != '' OR job != '' OR launches != 0)") == [["0"]]


def check_all(engine, *histories, limit=256):
    """The warehouse has the union of the histories' minutes: row by row, nothing else."""
    minutes, ranks = {}, {}
    for history in histories:
        more = rows_of(history)
        minutes.update(more[0])
        ranks.update(more[1])
    assert minutes
    others = check_minutes(engine, minutes, limit)
    check_ranks(engine, ranks)
    return others


def launches_of(ship, history, jobs):
    """Single launches of a history, by occq."""
    sql = f"""SELECT lower(hex(r.uuid)), lower(hex(d.uuid)), l.start_ns, l.duration_ns, l.stream_id, l.correlation_id, coalesce(l.graph_node_id, 0),
        c.grid_x, c.block_x FROM launch l JOIN stored_run r USING(run_id) JOIN stored_launch_config c USING(config_id)
        JOIN stored_device d ON d.device_id = c.device_id WHERE r.slurm_job IN ({", ".join(f"'{job}'" for job in jobs)})"""
    done = subprocess.run([os.path.join(os.path.dirname(ship), "occq"), "sql", "--db", history, "--csv", sql], capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr  # 3: none
    text = done.stdout
    return sorted(tuple(row[:2] + [int(value) % 2**64 for value in row[2:]]) for row in (line.split(",") for line in text.splitlines()[1:]))


def launches_in(engine):
    return sorted((row[0].replace("-", ""), row[1].replace("-", ""), *(int(value) for value in row[2:])) for row in engine.ask(
        "SELECT run, gpu, start_ns, duration_ns, stream, correlation, graph_node, grid_x, block_x FROM (SELECT * FROM occtrace.launch FINAL) AS l "
        "ALL INNER JOIN (SELECT config, grid_x, block_x FROM occtrace.launch_config FINAL) AS c USING config"))


def check_launches(engine, ship, history, jobs):
    """The warehouse has each launch of these jobs once, and no other."""
    expected, found = launches_of(ship, history, jobs), launches_in(engine)
    assert expected and len(found) == len(expected), (len(found), len(expected))
    assert found == expected, next((a, b) for a, b in zip(found, expected) if a != b)
