#!/usr/bin/env python3
"""mcp_protocol.py OCCQ CLI_HISTORY: the rules of the Model Context Protocol, for both kinds of clients."""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from mcp_client import META, Server, rows

occq, cli_history = sys.argv[1:3]
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n"
folder = tempfile.TemporaryDirectory()
db = f"{folder.name}/made.db"
subprocess.run([cli_history, db], check=True)


def talk(lines, *options):
    """Messages that the server writes when its input is these lines, and nothing else."""
    text = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    done = subprocess.run([occq, "mcp", "--db", db, *options], input=text, stdout=subprocess.PIPE, timeout=600)
    assert done.returncode == 0, done
    assert done.stdout == b"" or done.stdout.endswith(b"\n")
    replies = [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]
    assert all(reply["jsonrpc"] == "2.0" for reply in replies)
    return replies


def request(id, method, params=None):
    return {"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params is not None else {})}


def initialize(version):
    return request("i", "initialize", {"protocolVersion": version, "capabilities": {},
                                       "clientInfo": {"name": "t", "version": "1"}})


def call(id, tool, arguments, meta=None):
    return request(id, "tools/call", {"name": tool, "arguments": arguments, **(meta or {})})


def code(reply):
    return reply["error"]["code"]


def sessions():
    """Revisions with a handshake."""
    for asked, given in (("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2024-11-05", "2025-11-25"),
                         ("2026-07-28", "2025-11-25"), ("x", "2025-11-25")):
        first, second = talk([initialize(asked), {"jsonrpc": "2.0", "method": "notifications/initialized"},
                              request(2, "ping")])
        assert first["id"] == "i" and first["result"]["protocolVersion"] == given, first
        assert first["result"]["capabilities"] == {"tools": {}} and first["result"]["serverInfo"]["name"] == "occtrace"
        assert "quoted_" in first["result"]["instructions"]
        assert second == {"jsonrpc": "2.0", "id": 2, "result": {}}, second
    early, ping = talk([request(1, "tools/list"), request(2, "ping")])
    assert code(early) == -32602 and ping["result"] == {}
    assert code(talk([initialize("2025-11-25"), request(1, "server/discover", {})])[1]) == -32601
    listed = talk([initialize("2025-11-25"), request(1, "tools/list")])[1]["result"]
    assert set(listed) == {"tools"}


def modern():
    """Revision 2026-07-28: each request has its version, results say so."""
    found = talk([request(1, "server/discover", META)])[0]["result"]
    assert found["supportedVersions"][0] == "2026-07-28" and found["resultType"] == "complete", found
    assert found["ttlMs"] >= 0 and found["cacheScope"] in ("public", "private")
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "occtrace"
    old = {"_meta": {**META["_meta"], "io.modelcontextprotocol/protocolVersion": "1900-01-01"}}
    error = talk([request(1, "tools/list", old)])[0]["error"]
    assert error["code"] == -32022 and error["data"]["requested"] == "1900-01-01", error
    assert "2026-07-28" in error["data"]["supported"]
    without = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    assert code(talk([request(1, "tools/list", without)])[0]) == -32602
    assert code(talk([request(1, "ping", META)])[0]) == -32601
    assert code(talk([request(1, "tools/list", {"cursor": "x", **META})])[0]) == -32602


def tools():
    listed = talk([request(1, "tools/list", META)])[0]["result"]
    names = [tool["name"] for tool in listed["tools"]]
    assert names == ["overview", "findings", "kernel", "layer", "diff", "what_if", "check", "sql"], names
    assert listed["ttlMs"] > 0 and listed["cacheScope"] == "public"
    for tool in listed["tools"]:
        assert tool["annotations"] == {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True,
                                       "openWorldHint": False}
        schema = tool["inputSchema"]
        assert schema["type"] == "object" and schema["additionalProperties"] is False
        assert set(schema["required"]) <= set(schema["properties"])
        assert all(argument["description"] for argument in schema["properties"].values())


def refusals():
    """Errors of the protocol, and of a tool."""
    for line, expected in ((b"{\n", -32700), (b"\xff\xfe\n", -32700), (b"[]\n", -32600), (b"1\n", -32600),
                           (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', -32600),
                           (b'{"jsonrpc":"1.0","id":1,"method":"ping"}\n', -32600),
                           (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600),
                           (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n', -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}\n', -32600),
                           (b'{"jsonrpc":"2.0","id":1}\n', -32600), (b"[" * 100 + b"\n", -32600),
                           (b"[" + b"1," * 2000 + b"1]\n", -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":"tools/sell"}\n', -32601),
                           (b'{"jsonrpc":"2.0","id":1,"method":"' + b"a" * 70000 + b'"}\n', -32600),
                           (b"a" * 400000 + b"\n", -32600)):
        replies = talk([line, request(9, "ping")])
        assert [code(replies[0]), replies[1]["id"]] == [expected, 9], (line[:80], replies)
    assert talk([b"\n", b" \r\n", {"jsonrpc": "2.0", "method": "notifications/x"},
                 {"jsonrpc": "2.0", "id": 1, "result": {}}]) == []
    odd = 'a"\\\u202e\u0001\u00fc'
    assert talk([request(odd, "ping")])[0]["id"] == odd
    assert code(talk([call(1, "rm", {}, META)])[0]) == -32602
    assert code(talk([request(1, "tools/call", {"name": "sql", "arguments": [], **META})])[0]) == -32602
    assert code(talk([request(1, "tools/call", META)])[0]) == -32602


def arguments():
    """Wrong arguments and failures are answers that an agent can correct."""
    for tool, given, word in (("kernel", {}, "kernel is missing"), ("kernel", {"kernel": ""}, "1 to 8192"),
                              ("kernel", {"kernel": "a" * 8193}, "1 to 8192"), ("kernel", {"kernel": 4}, "text"),
                              ("kernel", {"kernel": "a\0b"}, "text"), ("kernel", {"kernl": "4"}, "did you mean"),
                              ("kernel", {"kernel": "1", "offset": -1}, "integer"),
                              ("kernel", {"kernel": "1", "offset": 1.5}, "integer"),
                              ("kernel", {"kernel": "1", "offset": 10**30}, "integer"),
                              ("kernel", {"kernel": "1", "offset": 5}, "2 launch configurations"),
                              ("kernel", {"kernel": "(", }, "not"), ("kernel", {"kernel": "absent"}, "none that match"),
                              ("overview", {"run": "77"}, "no launches"), ("overview", {"run": "x"}, "run"),
                              ("diff", {"a": "run:1", "b": "/etc/passwd"}, ""),
                              ("diff", {"a": db, "b": "run:1"}, "no other history"),
                              ("diff", {"a": "run:1", "b": "run:2"}, "not comparable"),
                              ("what_if", {"gpu": "h1000"}, "h100"), ("check", {}, "rules are missing"),
                              ("check", {"rules": "{"}, "rules:"), ("sql", {"statement": "CREATE TABLE x (a)"}, "read-only"),
                              ("sql", {"statement": "DELETE FROM run"}, "cannot modify"),
                              ("sql", {"statement": f"ATTACH '{db}' AS x"}, "read-only"),
                              ("sql", {"statement": "SELECT 1; SELECT 2"}, "one statement"),
                              ("sql", {"statement": "SELECT zeroblob(1000000000)"}, "too big"),
                              ("sql", {"statement": "SELEC"}, "syntax"), ("sql", {"statement": ";"}, "empty")):
        result = talk([call(1, tool, given, META)])[0]["result"]
        document = result["structuredContent"]
        assert result["isError"] is True and set(document) == {"error", "quoted_message"}, (tool, given, result)
        assert word in document["quoted_message"], (tool, given, document)


def basis():
    document = talk([call(1, "diff", {"a": "run:1", "b": "run:2", "force": True}, META)])[0]["result"]["structuredContent"]
    assert "basis null: not comparable" in document["definitions"], document["definitions"]
    found = {row["verdict"]: row["basis"] for row in rows(document)}
    assert all(basis == (None if verdict in ("new", "gone") else "launch") for verdict, basis in found.items()) and found, document


def limits():
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) SELECT i FROM n"
    answer = talk([call(1, "sql", {"statement": many}, META)])[0]["result"]["structuredContent"]
    assert answer["rows_shown"] == 20 and "more" in answer, answer
    answer = talk([call(1, "sql", {"statement": many, "max_rows": 500}, META)])[0]["result"]["content"][0]["text"]
    assert len(answer) <= 1500 and "more" in answer
    late = talk([call(1, "sql", {"statement": ENDLESS}, META)], "--time-limit", "100ms")[0]["result"]
    assert late["isError"] and "time limit" in late["structuredContent"]["quoted_message"], late


def cancellation():
    """Endless questions end by their cancellation: the time limit is ten minutes."""
    cancel = lambda id: {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
    replies = talk([call("long", "sql", {"statement": ENDLESS}, META), cancel("long"),
                    call(2, "sql", {"statement": "SELECT 1"}, META), cancel(2), cancel("none"),
                    call(3, "sql", {"statement": "SELECT 3"}, META)], "--time-limit", "600s")
    assert [reply["id"] for reply in replies] == [3], replies
    server = Server(occq, db, "--time-limit", "600s")  # a cancellation that comes while the question runs
    server.send(call(1, "sql", {"statement": ENDLESS}, META))
    server.send(cancel(1))
    server.send(call(4, "sql", {"statement": "SELECT 4"}, META))
    assert server.receive()["id"] == 4
    server.close()


def equal_layers():
    """Nine layers of a ninth each, too long for one answer: none is above the share that would fit, but all have a range."""
    device = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}
    events = []
    for i in range(9):
        at = 1700000000000000 + i * 1000
        layer = f"{'abcdefghi'[i]}_block_of_{'long_' * 15}name"
        for depth, name in enumerate((layer, layer + "_attention", layer + "_projection")):
            events.append({"ph": "X", "cat": "user_annotation", "name": name, "pid": 9, "tid": 9, "ts": at + depth,
                           "dur": 90 - 2 * depth, "args": {}})
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": at + 10,
                       "dur": 5, "args": {"correlation": i + 1}})
        events.append({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": at + 200, "dur": 300,
                       "args": {"device": 0, "context": 1, "stream": 7, "correlation": i + 1, "grid": [216, 1, 1],
                                "block": [128, 1, 1], "registers per thread": 64, "shared memory": 0}})
    trace, history = f"{folder.name}/equal.json", f"{folder.name}/equal.db"
    with open(trace, "w", encoding="utf-8") as out:
        json.dump({"deviceProperties": [device], "traceEvents": events}, out)
    subprocess.run([occq, "import", "-d", history, trace], check=True, stdout=subprocess.DEVNULL)
    server = Server(occq, history)
    document = server.ask("layer", {})
    server.close()
    assert document.get("layers") != "not measured" and document["smaller_layers_not_shown"] >= 9, document


def nothing_written():
    before = open(db, "rb").read(), sorted(os.listdir(folder.name))
    talk([call(i, tool, arguments, META) for i, (tool, arguments) in enumerate(
        (("overview", {}), ("findings", {}), ("kernel", {"kernel": "1"}), ("layer", {}),
         ("diff", {"a": "run:1", "b": "run:1"}), ("what_if", {"gpu": "t4"}), ("sql", {"statement": "SELECT 1"}),
         ("check", {"rules": "config: [{rule: a, theoretical: '>= 0'}]", "side": "run:1"})))])
    assert before == (open(db, "rb").read(), sorted(os.listdir(folder.name)))


for test in (sessions, modern, tools, refusals, arguments, basis, limits, cancellation, equal_layers, nothing_written):
    test()
print("the protocol is kept")
