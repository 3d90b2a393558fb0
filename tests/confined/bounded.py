# Tries what Landlock bounds; prints a name and an error, or `ok`, a line each. Arguments: a process outside, an abstract socket, a port of the
# loopback outside, a socket file outside, a file outside, a directory that may be written.
import errno, os, socket, sys

outside, abstract, port, sock, file, own = sys.argv[1:]


def attempt(name, action):
    try:
        action()
        print(name, "ok")
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, error.errno))


def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as one:
        one.settimeout(2)
        one.connect(address)


os.symlink(file, own + "/link")
attempt("signal outside", lambda: os.kill(int(outside), 0))
attempt("mem outside", lambda: open(f"/proc/{outside}/mem", "rb").close())
attempt("environ outside", lambda: open(f"/proc/{outside}/environ", "rb").close())
attempt("an abstract socket outside", lambda: connect(socket.AF_UNIX, "\0" + abstract))
attempt("a socket file outside", lambda: connect(socket.AF_UNIX, sock))
attempt("the loopback outside", lambda: connect(socket.AF_INET, ("127.0.0.1", int(port))))
attempt("a public address", lambda: connect(socket.AF_INET, ("1.1.1.1", 443)))
attempt("a name server", lambda: connect(socket.AF_INET, ("1.1.1.1", 53), socket.SOCK_DGRAM))
attempt("a port of its own", lambda: socket.create_server(("127.0.0.1", 0)).close())
attempt("a pair of sockets", lambda: [one.close() for one in socket.socketpair()])
attempt("a file outside", lambda: open(file, "r+b").close())
attempt("a shorter file outside", lambda: os.truncate(file, 1))
attempt("a new file outside", lambda: open(os.path.dirname(file) + "/new", "wb").close())
attempt("a directory outside", lambda: os.mkdir(os.path.dirname(file) + "/directory"))
attempt("removing outside", lambda: os.unlink(file))
attempt("moving outside", lambda: os.rename(file, own + "/moved"))
attempt("a hard link", lambda: os.link(file, own + "/hard"))
attempt("through a link", lambda: open(own + "/link", "r+b").close())
attempt("core_pattern", lambda: open("/proc/sys/kernel/core_pattern", "r+b").close())
attempt("a file in /tmp", lambda: open("/tmp/mine", "wb").close())
attempt("another terminal", lambda: [open("/dev/pts/" + name, "wb").close() for name in os.listdir("/dev/pts") if name != "ptmx"])
attempt("reading outside", lambda: open(file, "rb").close())
attempt("own file", lambda: open(own + "/mine", "wb").close())
attempt("own temporary file", lambda: open(os.environ["TMPDIR"] + "/mine", "wb").close())
attempt("own cache", lambda: open(os.environ["XDG_CACHE_HOME"] + "/mine", "wb").close())
attempt("nothing", lambda: open("/dev/null", "wb").close())
