# Tries to make files setuid or setgid in the working directory; prints a name and an error, or `ok`, a line each.
import ctypes, errno, os, platform, struct, tempfile

libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
HERE = -100
O_TMPFILE = 0o20000000 | os.O_DIRECTORY
SUID, SGID, BOTH = 0o4755, 0o2755, 0o6711


def call(name, numbers, *arguments):
    """A system call by its numbers on x86_64 and aarch64; none where that machine has no such call."""
    number = numbers if isinstance(numbers, int) else numbers[0 if X86 else 1]
    if number is None:
        return
    ctypes.set_errno(0)
    arguments = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = libc.syscall(ctypes.c_long(number), *arguments)
    error = ctypes.get_errno()
    print(name, errno.errorcode.get(error, error) if result < 0 else "ok")


def attempt(name, action):
    try:
        action()
        print(name, "ok")
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, error.errno))


open("file", "w").close()
os.mkdir("directory")
file = os.open("file", os.O_RDWR)
directory = os.open("directory", os.O_RDONLY)
for kind, mode in ("setuid", SUID), ("setgid", SGID), ("both", BOTH), ("high bits", (1 << 32) | SUID):
    call(f"chmod {kind}", (90, None), b"file", mode)
    call(f"fchmod {kind}", (91, 52), file, mode)
    call(f"fchmodat {kind}", (268, 53), HERE, b"file", mode)
    call(f"fchmodat2 {kind}", 452, HERE, b"file", mode, 0)
    call(f"creat {kind}", (85, None), b"creat", mode)
    call(f"open {kind}", (2, None), b"open", os.O_CREAT | os.O_WRONLY, mode)
    call(f"open nameless {kind}", (2, None), b".", O_TMPFILE | os.O_WRONLY, mode)
    call(f"openat {kind}", (257, 56), HERE, b"openat", os.O_CREAT | os.O_WRONLY, mode)
    call(f"openat nameless {kind}", (257, 56), HERE, b".", O_TMPFILE | os.O_WRONLY, mode)
    call(f"mknod {kind}", (133, None), b"mknod", 0o100000 | mode, 0)
    call(f"mknodat {kind}", (259, 33), HERE, b"mknodat", 0o100000 | mode, 0)
    call(f"mkdir {kind}", (83, None), b"mkdir", mode)
    call(f"mkdirat {kind}", (258, 34), HERE, b"mkdirat", mode)
    how = ctypes.create_string_buffer(struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, mode & 0o7777, 0))
    call(f"openat2 {kind}", 437, HERE, b"openat2", how, 24)
call("fchmod of a directory", (91, 52), directory, SGID)
attempt("os.chmod", lambda: os.chmod("file", SUID))
attempt("os.mkfifo", lambda: os.mkfifo("fifo", SUID))
# Capabilities of a file: those of this namespace's root (version 3), and of the machine's (version 2).
every = 0xFFFFFFFF
for name, value in (
    ("version 3", struct.pack("<6I", 0x03000001, every, 0, every, 0, os.getuid())),
    ("version 2", struct.pack("<5I", 0x02000001, every, 0, every, 0)),
):
    attempt(f"capabilities of a file, {name}", lambda: os.setxattr("file", "security.capability", value))
    attempt(f"capabilities of a descriptor, {name}", lambda: os.setxattr(file, "security.capability", value))

attempt("ordinary chmod", lambda: os.chmod("file", 0o755))
attempt("ordinary sticky", lambda: os.chmod("directory", 0o1777))
attempt("ordinary open", lambda: os.close(os.open("made", os.O_CREAT | os.O_WRONLY, 0o600)))
attempt("ordinary mkdir", lambda: os.mkdir("made-too", 0o700))
attempt("ordinary nameless", lambda: tempfile.TemporaryFile(dir=".").close())
# Without a flag that makes a file there is no mode, whatever the register holds.
call("ordinary openat", (257, 56), HERE, b"file", os.O_RDONLY, SUID)
call("ordinary openat of a directory", (257, 56), HERE, b"directory", os.O_RDONLY | os.O_DIRECTORY, SUID)
