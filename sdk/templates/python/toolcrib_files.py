"""Files of the call's backend, below the directories that the user has allowed. Comes with `--needs files`.

Each function raises `Fail`: `denied`, `execution_failed` (missing, not text …), `limit` or `busy`.
"""

from wit_world.imports import files

from toolcrib import Fail, count, host

MAX_BYTES = 4 << 20  # What one read returns at most.


def read_text(path):
    """Returns a whole text file of at most 4 MiB."""
    captured = read(path)
    if captured.truncated:
        raise Fail("limit", f"`{path}` has {captured.bytes} bytes, more than the 4 MiB that fit into one read")
    return captured.text


def read(path, offset=0, max=MAX_BYTES):
    """Returns `.text`, `.bytes` (size of all), `.truncated`: at most `max` characters from `offset` bytes on."""
    return host(files.read, str(path), count(offset), count(max))


def read_bytes(path, offset=0, max=MAX_BYTES):
    """Returns at most `max` bytes from `offset` bytes on."""
    return host(files.read_bytes, str(path), count(offset), count(max))


def write(path, content):
    """Replaces or creates a file. `content` is text or bytes."""
    return host(files.write, str(path), _bytes(content))


def append(path, content):
    """Adds to the end of a file. Returns its new size."""
    return host(files.append, str(path), _bytes(content))


def read_whole(path):
    """Returns `.content` and `.revision`, to change a file with `replace`."""
    return host(files.read_whole, str(path))


def replace(path, content, revision):
    """Writes a file that still has this revision; `busy` if somebody else has written it meanwhile."""
    return host(files.replace, str(path), _bytes(content), str(revision))


def list_directory(path, max=10_000):
    """Returns `.entries` (each with `.name`, `.kind`, `.size`, `.modified_ms`) and `.total`."""
    return host(files.list_directory, str(path), count(max))


def stat(path):
    """Returns `.name`, `.kind`, `.size`, `.modified_ms`; `.kind.name` is `FILE`, `DIRECTORY` or `OTHER`."""
    return host(files.stat, str(path))


def make_directory(path):
    """Makes a directory and those above it. Returns False if it was there."""
    return host(files.make_directory, str(path))


def _bytes(content):
    return content.encode() if isinstance(content, str) else bytes(content)
