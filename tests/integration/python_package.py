#!/usr/bin/env python3
"""python/occtrace over the built library: answers, tables, errors, ranges. What is not installed is skipped and named.

    python_package.py LIBRARY OCCQ CLI_HISTORY NVTX_TOOL SOURCE [more]      NVTX_TOOL: nvtx_tool.c as a library
"""
import ast
import ctypes
import doctest
import gc
import glob
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

LIBRARY, OCCQ, HISTORY, NVTX_TOOL, SOURCE = sys.argv[1:6]
MORE = sys.argv[6:] == ["more"]
del sys.argv[1:]
os.environ.update(OCCTRACE_QUERY_LIBRARY=LIBRARY, NVTX_INJECTION64_PATH=NVTX_TOOL, TZ="UTC", COLUMNS="80", NO_COLOR="1",
                  XDG_CONFIG_HOME="/nonexistent")
sys.path[:0] = [os.path.join(SOURCE, "python"), os.path.join(SOURCE, "tests/unit")]
import occtrace  # noqa: E402
from duckdb_library import Connection  # noqa: E402

WORK = tempfile.TemporaryDirectory()
PATH = os.path.join(WORK.name, "m.db")
subprocess.run([HISTORY, PATH, "measured"], check=True)
RULES = os.path.join(SOURCE, "docs/occq-rules.yaml")
ROWS = "SELECT kernel, start_ns, achieved FROM launch ORDER BY start_ns, correlation_id"
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
# Values that are hard to carry: the ends of int64, no value, infinities, NUL, bytes that are not UTF-8, an empty text.
HARD = ("SELECT -9223372036854775808 AS i, -9e999 AS r, 'a' || char(0) || 'b' AS t, x'00ff' AS b, NULL AS n UNION ALL "
        "SELECT NULL, NULL, NULL, NULL, NULL UNION ALL "
        "SELECT 9223372036854775807, 9e999, CAST(x'61ff62' AS TEXT), x'', NULL UNION ALL SELECT 0, 0.5, '', x'01', NULL")
HARD_ROWS = [(-2**63, float("-inf"), "a\0b", b"\0\xff", None), (None,) * 5, (2**63 - 1, float("inf"), "a\ufffdb", b"", None),
             (0, 0.5, "", b"\1", None)]


def occq(*arguments):
    return subprocess.run([OCCQ, *arguments, "-d", PATH], stdin=subprocess.DEVNULL, capture_output=True).stdout.decode()


CAPSULE_POINTER = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        raise unittest.SkipTest(f"{name} is not installed")


class Answers(unittest.TestCase):
    def setUp(self):
        self.history = occtrace.open(PATH)

    def test_documents_are_those_of_occq(self):
        for answer, arguments in ((self.history.top(), ["top"]), (self.history.top(by="config", number=2), ["top", "--by", "config", "-n2"]),
                                  (self.history.show("gemm"), ["show", "gemm"]), (self.history.show(1), ["show", "1"]),
                                  (self.history.history(), ["history"]), (self.history.runs(), ["runs"]),
                                  (self.history.launches(number=3), ["launches", "-n3"]),
                                  (self.history.check(RULES, "run:2"), ["check", "--rules", RULES, "run:2"]),
                                  (self.history.check(side="run:1", baseline="run:1"), ["check", "run:1", "--baseline", "run:1"]),
                                  (self.history.diff("run:1", "run:2", force=True), ["diff", "run:1", "run:2", "--force"])):
            self.assertEqual(answer.json, occq(*arguments, "--json"))
            self.assertEqual(answer.document, json.loads(answer.json))
            self.assertEqual(answer.text(), occq(*arguments))
            self.assertEqual(repr(answer), occq(*arguments).rstrip("\n"))
        top = self.history.top()
        verdict = self.history.verdict()
        self.assertEqual(verdict["gpu_time"], top["gpu_time"])
        self.assertTrue(repr(top).startswith(repr(verdict)))
        self.assertIn("15 launches were lost", top.notes[0])

    def test_rows(self):
        top = self.history.top()
        self.assertEqual(top.rows(), [{name: int(value) if isinstance(value, bool) else value for name, value in row.items()}
                                      for row in top["top"]])
        self.assertEqual(top.columns, list(top["top"][0]))
        self.assertEqual(self.history.top(since="1s").rows(), [])
        rows = [(kernel["kernel_id"], kernel["kernel"], kernel["device_id"], config["config_id"])
                for kernel in self.history.show(".")["kernels"] for config in kernel["launch_configs"]]
        self.assertEqual([(row["kernel_id"], row["kernel"], row["device_id"], row["config_id"]) for row in self.history.show(".")], rows)

    def test_members_of_any_row_are_columns(self):
        verdict = self.history.verdict()
        self.assertNotIn("needed", verdict["findings"][0])
        self.assertEqual([row["needed"] for row in verdict], [finding.get("needed") for finding in verdict["findings"]])
        self.assertTrue(any(row["needed"] for row in verdict))

    def test_sql(self):
        table = self.history.sql(ROWS)
        expected = json.loads(occq("sql", ROWS, "--json"))["rows"]
        self.assertEqual(table.rows(), expected)
        self.assertEqual(table.rows(), expected)  # a second time
        self.assertIn(None, [row["achieved"] for row in expected])
        self.assertEqual(table.text(0), occq("sql", ROWS))
        self.assertEqual(len(repr(table).splitlines()), 62)
        kinds = self.history.sql("SELECT 1 AS i, 0.5 AS r, 'é' AS t, x'00ff' AS b, NULL AS n").rows()
        self.assertEqual(kinds, [{"i": 1, "r": 0.5, "t": "é", "b": b"\0\xff", "n": None}])
        self.assertEqual([row["i"] for row in self.history.sql(COUNT % 40000 + "SELECT i FROM n")], list(range(1, 40001)))
        self.assertEqual([tuple(row.values()) for row in self.history.sql(HARD)], HARD_ROWS)

    def test_a_name_of_two_columns(self):
        table = self.history.sql("SELECT 1 AS a, 2 AS a")
        self.assertEqual(table.columns, ["a", "a"])
        with self.assertRaisesRegex(occtrace.UsageError, "two columns have the name 'a'"):
            table.rows()

    def test_text_is_one_line_without_controls(self):
        table = self.history.sql("SELECT 'red' || char(27) || '[31m' || char(10) || char(8238) AS \"a\x1b[1m\"")
        lines = repr(table).split("\n")
        self.assertEqual(len(lines), 2)
        self.assertTrue(all(line.isprintable() for line in lines), lines)
        self.assertEqual(table.rows(), [{"a\x1b[1m": "red\x1b[31m\n\u202e"}])  # values stay as they are
        self.assertNotIn("\x1b", table._repr_html_())

    def test_a_long_text_is_cut(self):
        table = self.history.sql("SELECT hex(zeroblob(1000000)) AS a")
        self.assertLess(len(repr(table)), 500)
        self.assertLess(len(table._repr_html_()), 500)
        self.assertEqual(len(table.rows()[0]["a"]), 2000000)

    def test_html_is_escaped(self):
        page = self.history.sql("SELECT '<script>&' AS \"<b>\"")._repr_html_()
        self.assertIn("<td>&lt;script&gt;&amp;</td>", page)
        self.assertIn("<th>&lt;b&gt;</th>", page)
        for answer in (self.history.top(), self.history.verdict()):
            self.assertNotIn("\x1b", answer._repr_html_())
        self.assertTrue(self.history.verdict()._repr_html_().startswith("<pre>2 GPUs"))

    def test_errors(self):
        for call, kind, part in ((lambda: self.history.sql("DELETE FROM stored_run"), occtrace.UsageError, "read-only"),
                                 (lambda: self.history.top(by="nothing"), ValueError, "--by"),
                                 (lambda: self.history.top(nothing=1), ValueError, "unknown option"),
                                 (lambda: self.history.show("nothing"), LookupError, "no launches of such a kernel"),
                                 (lambda: self.history.hit_rate(), occtrace.NothingFound, "no outcome of advice"),
                                 (lambda: occtrace.open(PATH + ".none"), occtrace.NothingFound, "no history"),
                                 (lambda: occtrace.open(PATH + "\0.none"), ValueError, "null character"),
                                 (lambda: self.history.sql("SELECT 1\0; nonsense"), ValueError, "null character"),
                                 (lambda: self.history.top(label="a\0b"), ValueError, "NUL"),
                                 (lambda: occtrace.open(__file__), occtrace.Failure, "")):
            with self.assertRaises(kind) as caught:
                call()
            self.assertIn(part, str(caught.exception))
        late = self.history.sql(COUNT % 20000 + "SELECT CASE WHEN i < 18000 THEN i ELSE 'x' END AS late FROM n")
        with self.assertRaisesRegex(occtrace.Failure, "column 'late'"):
            late.rows()

    def test_close(self):
        with occtrace.open(PATH) as history:
            table = history.sql(ROWS)
        self.assertEqual(len(table.rows()), 1383)  # the stream was open
        del history
        gc.collect()

    def test_answers_of_a_closed_history(self):
        with occtrace.open(PATH) as history:
            runs, statement = history.runs(), history.sql("SELECT 1 AS a")
            statement.rows()
        for read in (lambda: history.top(), lambda: str(runs), statement.rows):
            try:
                self.assertTrue(read())  # from what was read before
            except occtrace.Failure as failure:
                self.assertIn("closed", str(failure))

    def test_a_removed_history(self):
        path = os.path.join(WORK.name, "removed.db")
        shutil.copy(PATH, path)
        history = occtrace.open(path)
        begun = history.sql(COUNT % 40000 + "SELECT i, kernel FROM n, (SELECT kernel FROM launch LIMIT 1)")
        runs = history.runs()
        os.remove(path)
        self.assertEqual(len(begun.rows()), 40000)  # the stream has the file open
        self.assertTrue(runs["runs"])
        for ask in (history.top, begun.rows, runs.rows):
            with self.assertRaises(occtrace.NothingFound):
                ask()

    def test_threads_share_a_history(self):
        table, expected, found = self.history.sql(ROWS), json.loads(occq("sql", ROWS, "--json"))["rows"], []

        def ask():
            for _ in range(5):
                self.history.runs()
            found.append(table.rows() == expected)
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [True] * 8)

    def test_the_end_of_the_process(self):
        """Objects that live until the interpreter ends are no error and print nothing."""
        code = ("import sys, occtrace; history = occtrace.open(sys.argv[1]); sys.kept = [history, history.sql('SELECT 1 AS a'), "
                "history.sql('SELECT 2 AS a').__arrow_c_stream__()]; cycle = [history.sql('SELECT 3 AS a')]; cycle.append(cycle)")
        environment = dict(os.environ, PYTHONPATH=os.path.join(SOURCE, "python"))
        found = subprocess.run([sys.executable, "-B", "-c", code, PATH], env=environment, capture_output=True)
        self.assertEqual((found.returncode, found.stdout, found.stderr), (0, b"", b""))


class Arrow(unittest.TestCase):
    def setUp(self):
        self.table = occtrace.open(PATH).sql(ROWS)
        self.expected = json.loads(occq("sql", ROWS, "--json"))["rows"]

    def test_capsule(self):
        capsule = self.table.__arrow_c_stream__()
        valid = ctypes.pythonapi.PyCapsule_IsValid
        valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
        self.assertTrue(valid(capsule, b"arrow_array_stream"))
        del capsule  # releases a stream that nobody took
        gc.collect()

    def test_a_stream_that_is_dropped(self):
        stream = occtrace.open(PATH).sql(COUNT % 40000 + "SELECT i, 'row ' || i AS t FROM n")._open()
        batches = occtrace._arrow.batches(stream)
        first = next(batches)
        stream.release(ctypes.byref(stream))
        self.assertEqual(first.values(0)[-1], first.length)  # a batch owns its memory
        self.assertEqual(first.values(1)[0], "row 1")

    def check_frame(self, frame):
        self.assertEqual(list(frame.columns), ["kernel", "start_ns", "achieved"])
        self.assertEqual(list(frame["kernel"]), [row["kernel"] for row in self.expected])
        self.assertEqual([int(value) for value in frame["start_ns"]], [row["start_ns"] for row in self.expected])
        found = [None if value != value or value is None else float(value) for value in frame["achieved"]]
        self.assertEqual(found, [row["achieved"] for row in self.expected])

    def test_pandas(self):
        module("pandas")
        self.check_frame(self.table.to_pandas())
        history = occtrace.open(PATH)
        frame = history.sql("SELECT 1 AS a UNION ALL SELECT NULL UNION ALL SELECT 9007199254740993").to_pandas()
        self.assertEqual(int(frame["a"][2]), 9007199254740993)
        self.assertEqual(list(history.sql("SELECT kernel_id FROM kernel WHERE 0").to_pandas().columns), ["kernel_id"])
        self.assertEqual(len(history.top().to_pandas()), 5)

    def test_pandas_of_hard_values(self):
        pandas = module("pandas")
        with unittest.mock.patch.dict(sys.modules, pyarrow=unittest.mock.MagicMock()):  # its integers with gaps are floats of 53 bits
            frame = occtrace.open(PATH).sql(HARD).to_pandas()
        self.assertEqual([str(kind) for kind in frame.dtypes], ["Int64", "float64", "object", "object", "float64"])
        rows = [tuple(None if value is None or value is pandas.NA or value != value else value for value in row)
                for row in frame.itertuples(index=False)]
        self.assertEqual(rows, HARD_ROWS)

    def check_duckdb(self, table, sql):
        """The answer of DuckDB to a statement about the table "t"."""
        try:
            duckdb = Connection()
        except FileNotFoundError as missing:
            raise unittest.SkipTest(str(missing)) from None
        capsule = table.__arrow_c_stream__()
        duckdb.scan("t", CAPSULE_POINTER(capsule, b"arrow_array_stream"))
        try:
            return duckdb.ask(sql)
        finally:
            duckdb.close()

    def test_duckdb(self):
        found = self.check_duckdb(self.table, "SELECT * FROM t")
        self.assertEqual([(kernel, int(start), achieved and float(achieved)) for kernel, start, achieved in found],
                         [tuple(row.values()) for row in self.expected])
        history = occtrace.open(PATH)
        found = self.check_duckdb(history.sql(HARD), "SELECT i, r, replace(t, chr(0), '0'), to_hex(b), n, typeof(i), typeof(b) FROM t")
        self.assertEqual([row[:5] for row in found], [("-9223372036854775808", "-inf", "a0b", "00FF", None), (None,) * 5,
                                                      ("9223372036854775807", "inf", "a\ufffdb", "", None), ("0", "0.5", "", "01", None)])
        self.assertEqual({row[5:] for row in found}, {("BIGINT", "BLOB")})
        self.assertEqual(self.check_duckdb(history.sql("SELECT kernel FROM kernel WHERE 0"), "SELECT count(*), typeof(any_value(kernel)) FROM t"),
                         [("0", "VARCHAR")])
        many = history.sql(COUNT % 40000 + "SELECT i, 'row ' || i AS t FROM n")
        self.assertEqual(self.check_duckdb(many, "SELECT count(*), sum(i), max(t) FROM t"), [("40000", "800020000", "row 9999")])
        self.assertEqual(self.check_duckdb(many, "SELECT i FROM t LIMIT 1"), [("1",)])  # the rest is dropped
        self.assertEqual(self.check_duckdb(history.top(), "SELECT count(*) FROM t"), [("5",)])
        late = history.sql(COUNT % 20000 + "SELECT CASE WHEN i < 18000 THEN i ELSE 'x' END AS late FROM n")
        with self.assertRaisesRegex(RuntimeError, "column 'late'"):
            self.check_duckdb(late, "SELECT count(*) FROM t")

    def test_pyarrow(self):
        module("pyarrow")
        table = self.table.to_arrow()
        table.validate(full=True)
        self.assertEqual(table.to_pylist(), self.expected)
        hard = occtrace.open(PATH).sql(HARD).to_arrow()
        hard.validate(full=True)
        self.assertEqual([tuple(row.values()) for row in hard.to_pylist()], HARD_ROWS)

    def test_polars(self):
        module("polars")
        self.assertEqual(self.table.to_polars().to_dicts(), self.expected)
        self.assertEqual(occtrace.open(PATH).sql(HARD).to_polars().rows(), HARD_ROWS)


@unittest.skipUnless(MORE, "a slow test")
class Million(unittest.TestCase):
    def setUp(self):
        self.table = occtrace.open(PATH).sql(
            COUNT % 1000000 + "SELECT i, CASE WHEN i % 3 THEN i * 0.5 END AS half, 'k' || (i % 7) AS k FROM n")

    def test_rows(self):
        rows = self.table.rows()
        self.assertEqual((len(rows), rows[2], rows[-1]), (1000000, {"i": 3, "half": None, "k": "k3"}, {"i": 1000000, "half": 500000.0, "k": "k1"}))

    def test_pandas(self):
        module("pandas")
        frame = self.table.to_pandas()
        self.assertEqual((len(frame), int(frame["i"].sum()), float(frame["half"].sum())), (1000000, 500000500000, 166666833333.5))
        self.assertEqual((frame["half"].isna().sum(), frame["k"].nunique()), (333333, 7))

    def test_duckdb(self):
        self.assertEqual(Arrow.check_duckdb(self, self.table, "SELECT count(*), sum(i), count(half), count(DISTINCT k) FROM t"),
                         [("1000000", "500000500000", "666667", "7")])


class Ranges(unittest.TestCase):
    def test_ranges_reach_the_tool(self):
        tool = ctypes.CDLL(NVTX_TOOL)
        tool.nvtx_tool_log.restype = ctypes.c_char_p
        with occtrace.range("outer"):
            with self.assertRaises(KeyError):
                with occtrace.range("inner é"):
                    raise KeyError
        self.assertEqual(tool.nvtx_tool_log().decode(), "push outer\npush inner é\npop\npop\n")

    def test_without_a_tool(self):
        environment = dict(os.environ, PYTHONPATH=os.path.join(SOURCE, "python"))
        for path in ("", "/nonexistent", LIBRARY):
            environment["NVTX_INJECTION64_PATH"] = path
            code = "import occtrace\nwith occtrace.range('x'): print('inside')"
            found = subprocess.run([sys.executable, "-B", "-c", code], env=environment, capture_output=True)
            self.assertEqual((found.returncode, found.stdout, found.stderr), (0, b"inside\n", b""))


class Document(unittest.TestCase):
    def test_the_session_of_the_document(self):
        with open(os.path.join(SOURCE, "docs/python.md"), encoding="utf-8") as file:
            session = re.search(r"```pycon\n(.*?)```", file.read(), re.S)[1]
        module("pandas")
        subprocess.run([OCCQ, "import", "-d", os.path.join(WORK.name, "v100.db"), os.path.join(SOURCE, "tests/data/import/v100_step.json.gz")],
                       check=True, capture_output=True)
        test = doctest.DocTestParser().get_doctest(session, {}, "docs/python.md", "docs/python.md", 0)
        lines, here = [], os.getcwd()
        os.chdir(WORK.name)
        with unittest.mock.patch.dict(os.environ, COLUMNS="112"):
            doctest.DocTestRunner(verbose=False).run(test, out=lines.append)
        os.chdir(here)
        self.assertGreaterEqual(len(test.examples), 10)
        self.assertEqual(lines, [], "".join(lines))


class Sources(unittest.TestCase):
    def test_syntax_of_3_9(self):
        paths = glob.glob(os.path.join(SOURCE, "python/**/*.py"), recursive=True)
        self.assertGreaterEqual(len(paths), 5)
        for path in paths:
            with open(path, encoding="utf-8") as file:
                ast.parse(file.read(), path, feature_version=(3, 9))

    def test_functions_are_typed_and_described(self):
        for name in occtrace.__all__:
            value = getattr(occtrace, name)
            self.assertTrue(value.__doc__, name)
            for member in vars(value).values() if isinstance(value, type) else [value]:
                if callable(member) and not member.__name__.startswith("_"):
                    self.assertTrue(member.__doc__, member)
                    self.assertIn("return", member.__annotations__, member)


unittest.main(verbosity=2, defaultTest="Million" if MORE else None)
