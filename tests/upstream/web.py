#!/usr/bin/python3
"""A server of the Model Context Protocol over HTTP that behaves as the file `behaviour` of its directory says, which is read at each request.

    web.py DIRECTORY [--any] [--port PORT] [--certificate CERTIFICATE KEY]

It says in one line where it listens, and writes what it receives to the file `log` of the directory: a line of JSON for each request, and one
where somebody has gone who waited. A request without the headers that its era wants is refused, and the log says why.

`behaviour` has words. Some say what the server is:

    newer            it speaks 2026-07-28, otherwise 2025-11-25
    probe=ANSWER     how it answers the first `server/discover`: a status, `-32601`, `empty`, `html`, `silent`, `unsupported`, `older`
    sse              it answers with streams, otherwise with JSON
    sessions         it has sessions (of the older era)
    changed, new     it says something else of its tools than at first
    headers          it has a tool with `x-mcp-header`, and one whose name does not fit into a header
    bad-headers      it has tools with such that a client must leave out
    ancient          it greets in a version that nobody knows

The others are what becomes of calls, but for those of `add`, and with `everything` of all requests; with `once` the first time only:

    redirect=URL status=307     a redirect
    status=500 [rpc]            an error, with `rpc` as the protocol has it
    type=TYPE                   an answer of another type
    half, cut, ends             the answer breaks off: in JSON, in a stream that breaks, in a stream that ends
    silent, silent-sse          there is no answer, or its head alone
    forgets                     the session is not known any more
    resume=N retry=MS           the answer comes in the stream that is asked for the Nth time, with 0 in none of them
    long=N                      N MiB
    echo-headers, error-headers, progress-headers    the answer, the error, the progress has the headers of the request
    progress=N, asks=N, pings=N, strays=N            so many messages come before the answer
    form, form-aside, password  the server wants a form filled in first, `form-aside` in the stream beside
    rounds=N                    as often, in the newer era
"""

import base64
import json
import os
import select
import socket
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DIRECTORY = sys.argv[1]
LEGACY = "2025-11-25"
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
BOTH = "application/json, text/event-stream"

LOCK = threading.Lock()
SESSIONS = set()
# What happened already that happens once.
DONE = set()
# The answers that wait for a stream to be asked for, by the event after which they come.
WAITING = {}
# What waits for an answer of the client to a request of the server.
ANSWERS = {}
# Streams beside, by session.
ASIDE = {}


def note(**said):
    with LOCK, open(os.path.join(DIRECTORY, "log"), "a") as log:
        log.write(json.dumps({"at": time.monotonic(), **said}) + "\n")


def behaviour():
    with open(os.path.join(DIRECTORY, "behaviour")) as file:
        words = file.read().split()
    return {word.partition("=")[0]: word.partition("=")[2] for word in words}


def tool(name, description, properties=None, **more):
    schema = {"type": "object", "properties": properties or {}}
    return {"name": name, "description": description, "inputSchema": schema, **more}


def mirrored(kind, header, **more):
    return {"type": kind, "x-mcp-header": header, **more}


ROUTE = tool(
    "route",
    "Answers with what it was sent.",
    {
        "region": mirrored("string", "Region"),
        "count": mirrored("integer", "Count"),
        "loud": mirrored("boolean", "Loud"),
        "method": mirrored("string", "Method"),
        "text": {"type": "string"},
        "inner": {"type": "object", "properties": {"city": mirrored("string", "City")}},
    },
)
BAD = {
    "bad_empty": {"a": mirrored("string", "")},
    "bad_object": {"a": mirrored("object", "A")},
    "bad_array": {"a": mirrored("array", "A", items={"type": "string"})},
    "bad_number": {"a": mirrored("number", "A")},
    "bad_twice": {"a": mirrored("string", "Name"), "b": mirrored("string", "name")},
    "bad_blank": {"a": mirrored("string", "My Name")},
    "bad_colon": {"a": mirrored("string", "My:Name")},
    "bad_letter": {"a": mirrored("string", "Näme")},
    "bad_line": {"a": mirrored("string", "Name\r\nX-Other: 1")},
    "bad_kind": {"a": mirrored("string", 7)},
    "bad_place": {"a": {"type": "array", "items": mirrored("string", "A")}},
}


def tools(words):
    second = "the second Number" if "changed" in words else "the second number"
    add = tool(
        "add",
        "Adds two numbers.",
        {"a": {"type": "integer", "description": "the first number"}, "b": {"type": "integer", "description": second}},
        outputSchema={"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
    )
    all = [
        tool("echo", "Answers with the text that it was sent.", {"text": {"type": "string"}}),
        add,
        tool("read_note", "Reads a note.", annotations={"readOnlyHint": True}),
    ]
    if "new" in words:
        all.append(tool("erase", "Erases all notes."))
    if "headers" in words:
        all += [ROUTE, tool("grüße an", "Its name has other letters.", {"text": {"type": "string"}})]
    if "bad-headers" in words:
        all += [tool(name, "It has a header that cannot be.", properties) for name, properties in BAD.items()]
    return all


def decoded(value):
    if value.startswith("=?base64?") and value.endswith("?="):
        return base64.b64decode(value[9:-2], validate=True).decode()
    return value


def written(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    # What comes in

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.words = behaviour()
        message = json.loads(body)
        fault = self.fault(message)
        self.receive(body=message, fault=fault)
        if fault:
            return self.respond(400, self.error(message, -32020, fault))
        if "id" not in message or "method" not in message:
            waits = ANSWERS.pop(message.get("id"), None)
            if waits:
                waits[1].append(message)
                waits[0].set()
            return self.respond(202)
        if not self.is_known(message):
            return self.respond(404, self.error(message, -32001, "Session not found"))
        if self.is_subject(message) and self.misbehave(message):
            return
        method = message["method"]
        if method == "server/discover":
            self.discover(message)
        elif method == "initialize":
            self.initialize(message)
        elif method == "tools/list":
            self.answer(message, {"tools": tools(self.words), "ttlMs": 0, "cacheScope": "private"})
        elif method == "tools/call":
            self.call(message)
        elif method == "ping":
            self.answer(message, {})
        else:
            self.respond(404, self.error(message, -32601, "Method not found"))

    def do_GET(self):
        self.words = behaviour()
        self.receive()
        after = self.headers.get("Last-Event-ID")
        if "newer" in self.words or (after is None and "form-aside" not in self.words):
            return self.respond(405, Allow="POST")
        if after is None:
            self.begin()
            ASIDE[self.headers.get("Mcp-Session-Id")] = self
            return self.hold()
        left, answer = WAITING.pop(after, (0, None))
        if answer is None:
            return self.respond(405, Allow="POST")
        self.begin()
        if left == 1:
            self.event(answer, id=f"{after}+")
        else:
            WAITING[after] = (left - 1, answer)
        self.end()

    def do_DELETE(self):
        self.words = behaviour()
        self.receive()
        SESSIONS.discard(self.headers.get("Mcp-Session-Id"))
        self.respond(200)

    def receive(self, **more):
        headers = {name.lower(): value for name, value in self.headers.items()}
        note(method=self.command, path=self.path, headers=headers, by=self.client_address[1], to=self.connection.getsockname()[0], **more)

    def is_known(self, message):
        is_greeting = message["method"] in ("server/discover", "initialize")
        return "sessions" not in self.words or is_greeting or self.headers.get("Mcp-Session-Id") in SESSIONS

    # What an era wants of a request

    def fault(self, message):
        if self.headers.get("Accept") != BOTH:
            return f"Accept must be `{BOTH}`"
        if self.headers.get("Content-Type") != "application/json":
            return "Content-Type must be application/json"
        method = message.get("method")
        is_greeting = method in ("server/discover", "initialize")
        if "newer" in self.words:
            return self.modern_fault(message) if method != "initialize" else None
        if not is_greeting and self.headers.get("MCP-Protocol-Version") != LEGACY:
            return f"MCP-Protocol-Version must be {LEGACY}"
        if "sessions" in self.words and not is_greeting and not self.headers.get("Mcp-Session-Id"):
            return "there is no Mcp-Session-Id"
        return None

    def modern_fault(self, message):
        params, method = message.get("params", {}), message.get("method")
        meta = params.get("_meta", {})
        if not self.headers.get("MCP-Protocol-Version") == meta.get(META + "protocolVersion") == MODERN:
            return f"MCP-Protocol-Version and _meta must say {MODERN}"
        if not isinstance(meta.get(META + "clientCapabilities"), dict) or not meta.get(META + "clientInfo"):
            return "_meta must say what the client is"
        if self.headers.get("Mcp-Method") != method:
            return "Mcp-Method is not the method"
        if self.headers.get("Mcp-Session-Id"):
            return "there are no sessions"
        if method == "tools/call" and decoded(self.headers.get("Mcp-Name", "")) != params.get("name"):
            return "Mcp-Name is not the name"
        given = {name.lower(): decoded(value) for name, value in self.headers.items() if name.lower().startswith("mcp-param-")}
        wanted = {}
        if method == "tools/call" and params["name"] == "route":
            self.mirror(ROUTE["inputSchema"], params.get("arguments", {}), wanted)
        return None if given == wanted else f"Mcp-Param-*: {given} where {wanted} is wanted"

    def mirror(self, schema, given, wanted):
        for name, property in schema.get("properties", {}).items():
            if name in given and "x-mcp-header" in property:
                wanted[f"mcp-param-{property['x-mcp-header']}".lower()] = written(given[name])
            elif isinstance(given.get(name), dict):
                self.mirror(property, given[name], wanted)

    # What goes out

    def respond(self, status, message=None, body=None, type="application/json", **headers):
        if message is not None:
            body = json.dumps(message).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if body is not None:
            self.send_header("Content-Type", type)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def begin(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def piece(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, message, **fields):
        lines = [f"{name}: {value}" for name, value in fields.items()]
        data = json.dumps(message) if message is not None else ""
        self.piece("\n".join(["event: message", *lines, f"data: {data}", "", ""]).encode())

    def end(self):
        self.piece(b"")

    def breaks(self):
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def hold(self):
        """Until the other side has gone."""
        try:
            while select.select([self.connection], [], [], 60)[0] and self.connection.recv(1, socket.MSG_PEEK):
                time.sleep(0.1)
        except OSError:
            pass
        note(gone=self.client_address[1])
        self.close_connection = True

    def error(self, request, code, message):
        return {"jsonrpc": "2.0", "id": request.get("id"), "error": {"code": code, "message": message}}

    def result(self, request, result):
        if "newer" in self.words:
            result = {"resultType": "complete", **result}
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}

    def answer(self, request, result, before=()):
        self.finish(self.result(request, result), before)

    def finish(self, answer, before=()):
        if "sse" not in self.words and not before:
            return self.respond(200, answer)
        self.begin()
        # A comment and an event without data, as servers send them to keep a connection.
        self.piece(b": here\n\n")
        for message in before:
            self.event(message)
        self.event(answer)
        self.end()

    # Greetings

    def discover(self, request):
        probe = self.words.get("probe")
        if probe and (probe != "unsupported" or self.is_first("probe")):
            return self.probe(request, probe)
        if "newer" not in self.words:
            return self.respond(400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "there is no session"}})
        meta = {META + "serverInfo": {"name": "tests", "version": "1"}}
        self.answer(request, {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private", "_meta": meta})

    def probe(self, request, probe):
        if probe == "silent":
            self.hold()
        elif probe == "empty":
            self.respond(200, {"jsonrpc": "2.0", "id": request["id"], "result": {}}, Mcp_Session_Id="not-a-session")
        elif probe == "html":
            self.respond(200, body=b"<p>Hello", type="text/html")
        elif probe == "-32601":
            self.respond(200, self.error(request, -32601, "Method not found"))
        elif probe in ("unsupported", "older"):
            supported = [MODERN] if probe == "unsupported" else [LEGACY]
            error = self.error(request, -32022, "Unsupported protocol version")
            error["error"]["data"] = {"supported": supported, "requested": self.headers.get("MCP-Protocol-Version")}
            self.respond(400, error)
        else:
            self.respond(int(probe), body=b"no", type="text/plain")

    def initialize(self, request):
        if "newer" in self.words:
            return self.respond(400, self.error(request, -32022, "Unsupported protocol version"))
        headers = {}
        if "sessions" in self.words:
            name = f"session-{time.monotonic_ns()}"
            SESSIONS.add(name)
            headers["Mcp_Session_Id"] = name
        version = "1999-01-01" if "ancient" in self.words else LEGACY
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "tests", "version": "1"}}
        self.respond(200, self.result(request, result), **headers)

    # Calls

    def is_first(self, what):
        with LOCK:
            is_first = what not in DONE
            DONE.add(what)
        return is_first

    def is_subject(self, message):
        is_call = message["method"] == "tools/call" and message["params"]["name"] != "add"
        return (is_call or "everything" in self.words) and ("once" not in self.words or self.is_first("once"))

    def misbehave(self, message):
        words = self.words
        if "redirect" in words:
            self.respond(int(words.get("status", 307)), Location=words["redirect"])
        elif "status" in words:
            self.refuse(message, int(words["status"]))
        elif "type" in words:
            self.respond(200, body=json.dumps(self.result(message, {"content": []})).encode(), type=words["type"])
        elif "half" in words:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"jsonrpc":"2.0",')
            self.breaks()
        elif "cut" in words or "ends" in words:
            self.begin()
            self.piece(b": working\n\n")
            self.breaks() if "cut" in words else self.end()
        elif "silent" in words or "silent-sse" in words:
            if "silent-sse" in words:
                self.begin()
            self.hold()
        elif "forgets" in words:
            SESSIONS.discard(self.headers.get("Mcp-Session-Id"))
            self.respond(404, self.error(message, -32001, "Session not found"))
        elif "resume" in words:
            name = f"event-{message['id']}"
            WAITING[name] = (int(words["resume"]), self.result(message, self.said(message)))
            self.begin()
            self.event(None, id=name, retry=int(words.get("retry", 100)))
            # Before the client can ask again.
            note(ended=name)
            self.end()
        elif "long" in words:
            self.long(message)
        else:
            return False
        return True

    def refuse(self, message, status):
        headers = {"WWW_Authenticate": 'Bearer realm="notes"'} if status == 401 else {}
        if "rpc" in self.words:
            return self.respond(status, self.error(message, -32000, "no such note"), **headers)
        said = "out of order"
        if "error-headers" in self.words:
            said = self.headers.get("Authorization", "")
        self.respond(status, body=said.encode(), type="text/plain", **headers)

    def long(self, message):
        begin = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % message["id"]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if "sse" in self.words else "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            self.piece(b"data: " * ("sse" in self.words) + begin)
            for _ in range(int(self.words["long"])):
                self.piece(b"x" * (1 << 20))
            self.piece(b'"}]}}' + b"\n\n" * ("sse" in self.words))
            self.end()
        except OSError:
            self.close_connection = True

    def said(self, message):
        params = message["params"]
        name, given = params["name"], params.get("arguments", {})
        if name == "add":
            total = given.get("a", 0) + given.get("b", 0)
            return {"content": [{"type": "text", "text": json.dumps({"sum": total})}], "structuredContent": {"sum": total}}
        said = {"read_note": "a note", "route": json.dumps(given)}.get(name, given.get("text", ""))
        if "echo-headers" in self.words:
            said = json.dumps(dict(self.headers.items()))
        return {"content": [{"type": "text", "text": said}]}

    def call(self, message):
        words = self.words
        if not self.is_subject(message):
            return self.answer(message, self.said(message))
        if "error-headers" in words:
            return self.finish(self.error(message, -32000, self.headers.get("Authorization", "")))
        if "rounds" in words or "newer" in words and ("form" in words or "password" in words):
            return self.round(message)
        if "form" in words or "form-aside" in words or "password" in words:
            return self.form(message)
        self.answer(message, self.said(message), list(self.before(message)))

    def before(self, message):
        """What comes before the answer."""
        words, token = self.words, message["params"].get("_meta", {}).get("progressToken")
        many = int(words.get("progress", "progress-headers" in words))
        for number in range(many):
            said = self.headers.get("Authorization", "") if "progress-headers" in words else "working"
            params = {"progressToken": token, "progress": number, "total": many, "message": said}
            yield {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        for number in range(int(words.get("pings", 0))):
            yield {"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"}
        for number in range(int(words.get("asks", 0))):
            yield {"jsonrpc": "2.0", "id": f"q{number}", "method": "elicitation/create", "params": self.wanted()}
        for number in range(int(words.get("strays", 0))):
            yield {"jsonrpc": "2.0", "id": 1000000 + number, "result": {"content": [{"type": "text", "text": "of another"}]}}

    # What the server asks meanwhile

    def wanted(self):
        fields = {
            "name": {"type": "string", "description": "Your name", "default": "Ann"},
            "size": {"type": "integer", "default": 3},
            "kind": {"type": "string", "enum": ["round", "square"], "default": "round"},
            "sure": {"type": "boolean", "default": True},
        }
        if "password" in self.words:
            fields = {"password": {"type": "string", "description": "Your password"}}
        return {"message": "Which one is it?", "requestedSchema": {"type": "object", "properties": fields}}

    def form(self, message):
        """As a request of its own, of the older era."""
        number = f"form-{message['id']}"
        waits = ANSWERS[number] = (threading.Event(), [])
        request = {"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": self.wanted()}
        self.begin()
        if "form-aside" in self.words:
            # The stream is asked for at the same time.
            until = time.monotonic() + 10
            while not (beside := ASIDE.get(self.headers.get("Mcp-Session-Id"))) and time.monotonic() < until:
                time.sleep(0.02)
            beside.event(request) if beside else note(lost=number)
        else:
            self.event(request)
        waits[0].wait(20)
        said = json.dumps((waits[1] or [{}])[0].get("result", (waits[1] or [{}])[0].get("error")))
        self.event(self.result(message, {"content": [{"type": "text", "text": said}]}))
        self.end()

    def round(self, message):
        """As a result that wants more, of the newer era."""
        params = message["params"]
        done = int(params.get("requestState", "round-0").removeprefix("round-")) if "inputResponses" in params else 0
        if done >= int(self.words.get("rounds", 1)):
            return self.answer(message, {"content": [{"type": "text", "text": json.dumps(params["inputResponses"])}]})
        inputs = {"form": {"method": "elicitation/create", "params": self.wanted()}}
        self.answer(message, {"resultType": "input_required", "inputRequests": inputs, "requestState": f"round-{done + 1}"})


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass


def main():
    options = sys.argv[2:]
    port = int(options[options.index("--port") + 1]) if "--port" in options else 0
    server = Server(("0.0.0.0" if "--any" in options else "127.0.0.1", port), Handler)
    if "--certificate" in options:
        at = options.index("--certificate")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options[at + 1], options[at + 2])
        # The thread of the connection waits for the handshake, not the one that accepts.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    server.serve_forever()


main()
