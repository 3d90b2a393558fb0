"""Requests to the hosts that the user has allowed. Comes with `--needs http`.

A response of any status is a result. `Fail` is `denied`, `timed_out`, `limit`, `unavailable` or `invalid_arguments`.
"""

import json as _json

from wit_world.imports.http import Request

from toolcrib import count, host


class Response:
    """What a server answered: `status`, `ok`, `headers`, `url`, `body`, `truncated`, `text`, `json()`.

    Names of headers are in lower case; the values of a name that comes twice are joined by a comma.
    """

    def __init__(self, raw):
        self.status, self.url, self.body, self.truncated = raw.status, raw.url, raw.body, raw.truncated
        self.ok = 200 <= raw.status < 300
        self.headers = {}
        for name, value in raw.headers:
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def json(self):
        return _json.loads(self.body)


def get(url, **options):
    """Sends a GET."""
    return request("GET", url, **options)


def request(method, url, headers=None, body=None, json=None, limit=None):
    """Sends a request and waits for the response.

    `body` is text or bytes; `json` is a value to send as JSON instead; `limit` is how many bytes of the response to
    return (default: 1 MiB, at most 8 MiB).
    """
    prepared = Request(str(method), str(url))
    if json is not None:
        headers, body = {"content-type": "application/json", **(headers or {})}, _json.dumps(json)
    for name, value in (headers or {}).items():
        prepared.header(str(name), str(value))
    if body is not None:
        prepared.body(body.encode() if isinstance(body, str) else bytes(body))
    if limit is not None:
        prepared.limit(count(limit))
    return Response(host(prepared.send))
