"""Three tools in Python: one that reads a file, one that makes a request, one that fails in every way.

It replaces `app.py` of a project that `toolcrib plugin new --lang python --needs config,files,http` made, whose `toolcrib.py`,
`toolcrib_config.py`, `toolcrib_files.py` and `toolcrib_http.py` it uses.
"""

import logging
import os
import random
import sys

import toolcrib_config as config
import toolcrib_files as files
import toolcrib_http as http
from toolcrib import Fail, attach, notice, plugin, progress, tool


@tool(
    summary="Count the lines of a text file.",
    input={"properties": {"path": {"type": "string", "description": "File to count."}}, "required": ["path"]},
    output={"properties": {"lines": {"type": "integer"}}, "required": ["lines"]},
)
def py_lines(path):
    progress(0, 1, path)
    text = files.read_text(path)
    notice(f"{len(text)} characters")
    attach("text", path)
    return {"lines": text.count("\n")}


@tool(
    summary="Make a GET request.",
    input={"properties": {"url": {"type": "string", "description": "Address to ask."}}, "required": ["url"]},
)
def py_get(url):
    response = http.get(url, headers={"accept": "text/plain"})
    kind = response.headers.get("content-type")
    return {"status": response.status, "bytes": len(response.body), "type": kind, "start": response.text[:8]}


def fail_with_kind():
    raise Fail("busy", "somebody else has it", hint="try again later", data={"left": [1, "two"]})


def catch():
    try:
        return files.stat("none").size
    except Fail as fail:
        return {"failure": True, "kind": fail.kind, "message": fail.message, "hint": fail.hint}


def spin():
    while True:
        pass


def fill_memory():
    pieces = []
    while True:
        pieces.append(bytes(1 << 20))


def recurse():
    return recurse() + 1


def say():
    print("said", {"by": "a tool"})
    logging.getLogger("tool").warning("warned by %s", "a tool")


def show():
    attach("image", b"\x89PNG", "image/png")
    attach("link", "https://example.com/")


async def answer_later():
    return 1


WAYS = {
    "kind": fail_with_kind,
    "throw": lambda: 1 // 0,
    "key": lambda: {}["missing"],
    "capability": lambda: files.read_text("none"),
    "caught": catch,
    "spin": spin,
    "big": lambda: "x" * ((1 << 20) + 1),
    "memory": fill_memory,
    "recursion": recurse,
    "exit": lambda: sys.exit(3),
    "exit at once": lambda: os._exit(3),
    "type": lambda: files.write("none", 5.5),
    "number": lambda: files.read("none", offset=-1),
    "promise": answer_later,
    "nan": lambda: float("nan"),
    "half": lambda: "half of \ud83d",
    "log": say,
    "config": lambda: config.get("GREETING"),
    "random": random.random,
    "image": show,
}


@tool(
    summary="Fail in a way of your choice.",
    input={"properties": {"how": {"enum": list(WAYS), "description": "The way."}}, "required": ["how"]},
)
def py_fail(how):
    return WAYS[how]()


Tools = plugin(py_lines, py_get, py_fail)
