#!/usr/bin/env python3
"""python/occtrace over the built library: answers, tables, errors, ranges. What is not installed is skipped and named.

    python_package.py LIBRARY OCCQ CLI_HISTORY NVTX_TOOL SOURCE      NVTX_TOOL: nvtx_tool.c as a library
"""
import ast
import ctypes
import gc
import glob
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest

LIBRARY, OCCQ, HISTORY, NVTX_TOOL, SOURCE = sys.argv[1:6]
del sys.argv[1:]
os.environ.update(OCCTRACE_QUERY_LIBRARY=LIBRARY, NVTX_INJECTION64_PATH=NVTX_TOOL, TZ="UTC", COLUMNS="80", NO_COLOR="1",
                  XDG_CONFIG_HOME="/nonexistent")
sys.path.insert(0, os.path.join(SOURCE, "python"))
import occtrace  # noqa: E402

WORK = tempfile.TemporaryDirectory()
PATH = os.path.join(WORK.name, "m.db")
subprocess.run([HISTORY, PATH, "measured"], check=True)
ROWS = "SELECT kernel, start_ns, achieved FROM launch ORDER BY start_ns, correlation_id"


def occq(*arguments):
    return subprocess.run([OCCQ, *arguments, "-d", PATH], stdin=subprocess.DEVNULL, capture_output=True).stdout.decode()


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
        configs = [config for kernel in self.history.show(".")["kernels"] for config in kernel["launch_configs"]]
        self.assertEqual([row["config_id"] for row in self.history.show(".")], [config["config_id"] for config in configs])

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
        many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000) SELECT i FROM n"
        self.assertEqual([row["i"] for row in self.history.sql(many)], list(range(1, 40001)))

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
                                 (lambda: occtrace.open(__file__), occtrace.Failure, "")):
            with self.assertRaises(kind) as caught:
                call()
            self.assertIn(part, str(caught.exception))
        late = self.history.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
                                "SELECT CASE WHEN i < 18000 THEN i ELSE 'x' END AS late FROM n")
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

    def test_threads_share_a_history(self):
        def ask():
            for _ in range(20):
                self.history.runs()
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


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

    def test_pyarrow(self):
        module("pyarrow")
        table = self.table.to_arrow()
        table.validate(full=True)
        self.assertEqual(table.to_pylist(), self.expected)
        self.assertEqual(table.column("start_ns").num_chunks, 1)

    def test_polars(self):
        module("polars")
        self.assertEqual(self.table.to_polars().to_dicts(), self.expected)


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


unittest.main(verbosity=2)
