# Tries to leave a cell; prints a name and an error, or `ok`, a line each. Arguments: a process outside, an abstract socket, a port of the
# loopback outside, a file outside, a directory that may be written.
import ctypes, errno, os, socket, sys, mmap, platform

libc = ctypes.CDLL(None, use_errno=True)
outside, abstract, port, file, own = sys.argv[1:]
X86 = platform.machine() == "x86_64"


def tell(name, error):
    print(name, errno.errorcode.get(error, error) if error else "ok")


def attempt(name, action):
    try:
        action()
        tell(name, 0)
    except OSError as error:
        tell(name, error.errno)


def call(name, number, *arguments):
    """A system call by its numbers on x86_64 and aarch64."""
    ctypes.set_errno(0)
    number = number if isinstance(number, int) else number[0 if X86 else 1]
    failed = libc.syscall(number, *arguments) < 0
    tell(name, ctypes.get_errno() if failed else 0)


def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.settimeout(2)
        one.connect(address)


master, slave = os.openpty()
key = ctypes.create_string_buffer(b"x")
for name, request in ("TIOCSTI", 0x5412), ("TIOCSTI, high bits", 0x100005412), ("TIOCLINUX", 0x541C):
    call(name, (16, 29), slave, ctypes.c_ulong(request), key)
tell("other terminals", 0 if [n for n in os.listdir("/dev/pts") if n not in ("ptmx", "0")] else errno.ENOENT)
for what in "mem", "environ", "fd":
    attempt(f"{what} outside", lambda: os.stat(f"/proc/{outside}/{what}"))
    attempt(f"{what} of init", lambda: os.readlink("/proc/1/fd/3") if what == "fd" else open(f"/proc/1/{what}", "rb"))
attempt("signal outside", lambda: os.kill(int(outside), 0))
buffer = ctypes.create_string_buffer(256)
call("ptrace", (101, 117), 0, 0, 0, 0)
call("process_vm_readv", (310, 270), 1, 0, 0, 0, 0, 0)
call("pidfd_getfd", 438, 0, 0, 0)
call("process_madvise", 440, 0, 0, 0, 0, 0)
call("kcmp", (312, 272), 1, 1, 0, 0, 0)
call("add_key", (248, 217), b"user", b"a", b"b", 1, -3)
call("keyctl", (250, 219), 0, -3, 0)
call("io_uring_setup", 425, 8, buffer)
call("bpf", (321, 280), 0, 0, 0)
call("perf_event_open", (298, 241), buffer, 0, -1, -1, 0)
call("userfaultfd", (323, 282), 1)
call("open_by_handle_at", (304, 265), -100, buffer, 0)
call("mount", (165, 40), b"x", b"/tmp", b"tmpfs", 0, 0)
call("umount", (166, 39), b"/tmp", 2)
call("open_tree", 428, -100, b"/", 1)
call("mount_setattr", 442, -100, b"/", 0, buffer, 32)
call("pivot_root", (155, 41), b"/", b"/")
call("chroot", (161, 51), b"/tmp")
call("unshare", (272, 97), 0x10000000)
call("setns", (308, 268), os.open("/proc/self/ns/net", os.O_RDONLY), 0)
call("clone, new user namespace", (56, 220), 0x10000000 | 17, 0, 0, 0, 0)
call("clone3", 435, buffer, 88)
call("sethostname", (170, 161), b"x", 1)
call("reboot", (169, 142), 0, 0, 0, 0)
if X86:
    call("x32", 0x40000000 | 39)
    # int 0x80, getpid
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    at = ctypes.addressof(ctypes.c_char.from_buffer(code))
    tell("32 bits", -ctypes.CFUNCTYPE(ctypes.c_int)(at)())
for name, family, kind in (
    ("AF_NETLINK, NETFILTER", 16, socket.SOCK_RAW),
    ("AF_PACKET", 17, socket.SOCK_RAW),
    ("AF_ALG", 38, socket.SOCK_SEQPACKET),
    ("AF_VSOCK", 40, socket.SOCK_STREAM),
    ("a raw socket", socket.AF_INET, socket.SOCK_RAW),
    ("AF_UNIX", socket.AF_UNIX, socket.SOCK_STREAM),
):
    protocol = {16: 12, socket.AF_INET: 1}.get(family, 0)
    attempt(name, lambda: socket.socket(family, kind, protocol).close())
attempt("an abstract socket outside", lambda: connect(socket.AF_UNIX, "\0" + abstract))
attempt("the loopback outside", lambda: connect(socket.AF_INET, ("127.0.0.1", int(port))))
attempt("a cloud's metadata", lambda: connect(socket.AF_INET, ("169.254.169.254", 80)))
attempt("a public address", lambda: connect(socket.AF_INET, ("1.1.1.1", 443)))
for name, path in (
    ("core_pattern", "/proc/sys/kernel/core_pattern"),
    ("sysrq-trigger", "/proc/sysrq-trigger"),
    ("a file outside", file),
    ("a device", "/dev/mem"),
    ("a group of processes", "/sys/fs/cgroup/cgroup.procs"),
):
    # Some can be written alone.
    attempt(name, lambda: os.close(os.open(path, os.O_WRONLY)))
attempt("a new file outside", lambda: open(os.path.dirname(file) + "/new", "wb").close())
attempt("mknod", lambda: os.mknod("/tmp/m", 0o020666, os.makedev(1, 1)))
os.symlink(file, own + "/link")
attempt("through a link", lambda: open(own + "/link", "r+b").close())
attempt("a hard link", lambda: os.link(file, own + "/hard"))
attempt("own file", lambda: open(own + "/mine", "wb").close())
attempt("a file in /tmp", lambda: open("/tmp/mine", "wb").close())
memory = os.memfd_create("program")
os.write(memory, open("/bin/true", "rb").read())
child = os.fork()
if child == 0:
    os.execve(memory, ["true"], {})
tell("a program in memory", os.waitpid(child, 0)[1])
