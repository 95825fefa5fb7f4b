"""A client of `occq mcp` in revision 2026-07-28 of the protocol, and the form that every answer must have."""
import json
import subprocess
import unicodedata

META = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                  "io.modelcontextprotocol/clientInfo": {"name": "exam", "version": "1"},
                  "io.modelcontextprotocol/clientCapabilities": {}}}
LIMIT = 1500  # bytes of an answer by default
QUOTE = 96    # bytes of a quoted text


class Server:
    def __init__(self, occq, db, *options):
        self.process = subprocess.Popen([occq, "mcp", "--db", db, *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.next_id = 0
        self.sizes = []

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), line
        return json.loads(line.decode("utf-8"))

    def request(self, method, **params):
        self.next_id += 1
        self.send({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": {**params, **META}})
        reply = self.receive()
        assert reply["id"] == self.next_id, reply
        return reply

    def ask(self, tool, arguments):
        """The document of an answer, after checks of its form."""
        reply = self.request("tools/call", name=tool, arguments=arguments)
        assert "error" not in reply, reply
        result = reply["result"]
        text = result["content"][0]["text"]
        assert result["resultType"] == "complete" and json.loads(text) == result["structuredContent"], text
        size = len(text.encode())
        assert size <= arguments.get("max_bytes", LIMIT), f"{tool} {arguments}: {size} bytes\n{text}"
        check_texts(result["structuredContent"])
        self.sizes.append(size)
        return result["structuredContent"]

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0


def members(document, key=None):
    """(name, value) of all members; a value of a row has the name of its column."""
    columns = []
    if isinstance(document, dict):
        columns = document.get("columns") or document.get("quoted_columns") or []
        for name, value in document.items():
            if name in ("rows", "quoted_rows"):
                for row in value:
                    for column, cell in zip(columns, row):
                        yield (column if name == "rows" else f"quoted_{column}"), cell
            else:
                yield from members(value, name)
    elif isinstance(document, list):
        for value in document:
            yield from members(value, key)
    else:
        yield key, document


def rows(document):
    """Rows as dictionaries; columns of SQL without quoted_."""
    columns = document.get("columns") or document.get("quoted_columns") or []
    return [dict(zip(columns, row)) for row in document.get("rows") or document.get("quoted_rows") or []]


def check_texts(document):
    for name, value in members(document):
        if not isinstance(value, str):
            continue
        assert all(unicodedata.category(c) not in ("Cc", "Cf", "Zl", "Zp", "Co", "Cn") for c in value), repr(value)
        assert "zx9" not in value or name.startswith("quoted_"), f"{name}: {value}: a recorded name is not marked"
        if name.startswith("quoted_") and name != "quoted_message":
            assert len(value.encode()) <= QUOTE, f"{name}: {value}"
