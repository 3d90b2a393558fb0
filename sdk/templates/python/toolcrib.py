"""What `app.py` is written with: definitions, calls, failures. Capabilities are in files of their own beside it."""

import json
import logging
import os
import re
import sys
import traceback

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import tools
from wit_world.imports import events
from wit_world.imports.types import Failure

for stream in (sys.stdout, sys.stderr):
    stream.reconfigure(line_buffering=True, write_through=False)  # Each line that is printed becomes one event.
_notices, _parts, _running = [], [], False


class _Events(logging.Handler):
    def emit(self, record):
        if not _running:  # While the plugin is built there is nobody to tell.
            return
        try:
            levels = ((logging.ERROR, "ERROR"), (logging.WARNING, "WARN"), (logging.INFO, "INFO"), (0, "DEBUG"))
            level = next(name for least, name in levels if record.levelno >= least)
            events.log(events.Level[level], _text(self.format(record)))
        except Exception:
            self.handleError(record)  # As every handler: what cannot be logged ends no call.


logging.basicConfig(handlers=[_Events()], level=logging.INFO, format="%(message)s")  # `logging.warning` is an event.


class Fail(Exception):
    """Why a call or a capability failed.

    `kind` is `invalid_arguments`, `denied`, `limit`, `timed_out`, `cancelled`, `busy`, `unavailable`,
    `outcome_unknown`, `execution_failed` or `internal`; `message` says what happened, `hint` what to change, and
    `data` is a JSON value with what is known nevertheless.
    """

    def __init__(self, kind, message, hint=None, data=None):
        super().__init__(message)
        self.kind, self.message, self.hint, self.data = kind, message, hint, data
        self.data_json = None if data is None else _json(data)


def tool(*, summary, name=None, title=None, usage=None, input=None, output=None, events=(), examples=(),
         when_to_use="", when_not_to_use="", disambiguation=""):
    """Makes a tool of a function, which is called with the arguments by name and returns any JSON value."""

    def decorate(function):
        called = name or function.__name__
        if not re.fullmatch("[A-Za-z0-9_-]{1,64}", called):
            raise ValueError(f"tool `{called}`: the name must have 1 to 64 of A-Z, a-z, 0-9, _ and -")
        guidance = tools.Guidance(when_to_use, when_not_to_use, disambiguation, [_json(one) for one in examples])
        hints = [("embedder", kind) for kind in events]
        function.definition = tools.Definition(called, title, summary, guidance, usage, _schema(input or {}),
                                               _schema(output) if output else None, hints)
        return function

    return decorate


def plugin(*functions):
    """Returns the class `Tools` of a plugin with these tools. A mistake in a definition fails the build."""
    by_name = {function.definition.name: function for function in functions}
    if len(by_name) < len(functions):
        raise ValueError(f"two tools have the same name: {', '.join(f.definition.name for f in functions)}")

    class Tools(exports.Tools):
        def definitions(self):
            return [function.definition for function in functions]

        def call(self, name, arguments):
            global _running
            _running = True
            del _notices[:], _parts[:]
            try:
                result = by_name[name](**json.loads(arguments))
                try:
                    text = _json(result)
                except (TypeError, ValueError) as error:
                    raise Fail("internal", f"the result of `{name}` is not JSON: {error}")
                return tools.Output(text, _parts, _notices)
            except Err:
                raise
            except Fail as fail:
                hint = fail.hint and _text(fail.hint)
                raise Err(Failure(str(fail.kind), _text(fail.message), hint, fail.data_json))
            except MemoryError:
                raise Err(Failure("limit", "out of memory", "ask for less, or raise `memory_mib` under [limits]", None))
            except BaseException as error:  # `sys.exit` is not an `Exception`.
                events.log(events.Level.ERROR, _text(traceback.format_exc()))
                message = "".join(traceback.format_exception_only(error)).strip()
                raise Err(Failure("execution_failed", _text(message + _place(error)), None, None))
            finally:
                for stream in (sys.stdout, sys.stderr):
                    stream.flush()

    return Tools


def host(function, *arguments):
    """Calls a function of a capability, and raises `Fail` if it fails: `host(files.stat, path)`."""
    try:
        return function(*arguments)
    except Err as error:
        fail = error.value
        raise Fail(fail.kind, fail.message, fail.hint, None if fail.data is None else json.loads(fail.data)) from None


def notice(sentence):
    """Tells the caller something beside the result, in a sentence."""
    _notices.append(_text(sentence))


def attach(kind, value, media_type=None):
    """Adds to the result: `"text"` with text, `"link"` with a URL, `"image"` or `"audio"` with bytes and a type."""
    part = {"text": tools.Content_Text, "link": tools.Content_Link,
            "image": tools.Content_Image, "audio": tools.Content_Audio}[kind]
    typed = kind in ("image", "audio")
    _parts.append(part((_text(media_type), bytes(value)) if typed else _text(value)))


def progress(done, total=None, message=None):
    """Says how far the call is. Whoever watches the call also sees what it prints."""
    events.progress(count(done), None if total is None else count(total), message and _text(message))


def count(number):
    """Returns a whole number from 0 up. A component ends if it hands anything else to the host as a size."""
    if number != int(number) or number < 0:
        raise ValueError(f"{number} is not a whole number from 0 up")
    return int(number)


def _schema(schema):
    return json.dumps({"type": "object", "additionalProperties": False, **schema})


def _json(value):
    return _text(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def _text(text):
    return str(text).encode("utf-8", "replace").decode()  # Halves of characters become `?`.


def _place(error):
    """The author's line that it comes from, as ` (app.py:12)`."""
    own = os.path.dirname(__file__)
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    lines = [f" ({os.path.basename(file)}:{line})" for file, line in frames
             if os.path.dirname(file) == own and not os.path.basename(file).startswith("toolcrib")]
    return lines[-1] if lines else ""
