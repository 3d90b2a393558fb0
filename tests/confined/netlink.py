# Tries by netlink what only who administers a network may do; prints a name and an error, or `ok`, a line each. Arguments: a netlink port
# outside, and a process outside.
import array, ctypes, errno, fcntl, os, socket, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
port, outside = map(int, sys.argv[1:])
NEWLINK, DELLINK, GETLINK, SETLINK = 16, 17, 18, 19
NEWADDR, DELADDR, NEWROUTE, DELROUTE, NEWNEIGH, NEWRULE, NEWQDISC = 20, 21, 24, 25, 28, 32, 36
NEWTCLASS, NEWTFILTER, NEWACTION, NEWNEIGHTBL, SETDCB, NEWNETCONF, NEWMDB, NEWNSID = 40, 44, 48, 64, 79, 80, 84, 88
NEWCHAIN, NEWNEXTHOP, NEWVLAN, NEWTUNNEL = 100, 104, 112, 120
REQUEST, ACK, CREATE, DUMP = 1, 4, 0x600, 0x300
LO = 1


def tell(name, error):
    print(name, errno.errorcode.get(error, error) if error else "ok")


def attempt(name, action):
    try:
        action()
        tell(name, 0)
    except OSError as error:
        tell(name, error.errno)


def route():
    one = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    one.settimeout(5)
    return one


def attribute(kind, value):
    return struct.pack("HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def packet(kind, body, flags):
    return struct.pack("IHHII", 16 + len(body), kind, REQUEST | flags, 1, 0) + body


def ask(kind, body, flags=ACK):
    """What the kernel answers: raises the error that it says."""
    with route() as one:
        one.send(packet(kind, body, flags))
        answer = one.recv(65536)
    if struct.unpack_from("H", answer, 4)[0] == 2:
        error = -struct.unpack_from("i", answer, 16)[0]
        if error:
            raise OSError(error, "")


def link(index=LO, flags=0, change=0):
    return struct.pack("BxHiII", 0, 0, index, flags, change)


def routed(family=2, length=32):
    return struct.pack("BBBBBBBBI", family, length, 0, 0, 254, 4, 254 if length else 0, 1, 0)


def queue(parent=0xFFFFFFFF):
    return struct.pack("BxxxiIII", 0, LO, 0, parent, 0)


four = socket.inet_aton("127.9.9.9")
address = struct.pack("BBBBI", 2, 8, 0, 254, LO) + attribute(1, four) + attribute(2, four)
loopback = struct.pack("BBBBI", 2, 8, 0, 254, LO) + attribute(2, socket.inet_aton("127.0.0.1"))
neighbour = struct.pack("BxxxiHBB", 2, LO, 0x80, 0, 0) + attribute(1, four) + attribute(2, b"\2\0\0\0\0\1")
kind = lambda name: attribute(18, attribute(1, name))
for name, what, body, flags in (
    ("an address", NEWADDR, address, CREATE),
    ("an address less", DELADDR, loopback, 0),
    ("an interface", NEWLINK, link(0) + attribute(3, b"mine\0") + kind(b"dummy"), CREATE),
    ("a pair of interfaces", NEWLINK, link(0) + kind(b"veth"), CREATE),
    ("an interface less", DELLINK, link(), 0),
    ("an interface down", SETLINK, link(change=1), 0),
    ("an interface promiscuous", NEWLINK, link(flags=0x100, change=0x100), 0),
    ("an interface renamed", NEWLINK, link() + attribute(3, b"ours\0"), 0),
    ("an interface elsewhere", NEWLINK, link() + attribute(19, struct.pack("I", outside)), 0),
    ("a program on an interface", NEWLINK, link() + attribute(43, attribute(1, struct.pack("i", 0))), 0),
    ("a route", NEWROUTE, routed() + attribute(1, four) + attribute(4, struct.pack("I", LO)), CREATE),
    ("a route less", DELROUTE, routed() + attribute(1, four), 0),
    ("a default route", NEWROUTE, routed(length=0) + attribute(4, struct.pack("I", LO)), CREATE),
    ("a rule of routes", NEWRULE, struct.pack("BBBBBBBBI", 2, 0, 0, 0, 254, 0, 0, 1, 0), CREATE),
    ("a neighbour", NEWNEIGH, neighbour, CREATE),
    ("a table of neighbours", NEWNEIGHTBL, struct.pack("Bxxx", 2) + attribute(1, b"arp_cache\0"), 0),
    ("a queue", NEWQDISC, queue() + attribute(1, b"pfifo\0"), CREATE),
    ("a class of a queue", NEWTCLASS, queue() + attribute(1, b"htb\0"), CREATE),
    ("a filter of a queue", NEWTFILTER, queue() + attribute(1, b"u32\0"), CREATE),
    ("a chain of a queue", NEWCHAIN, queue(), CREATE),
    ("an action", NEWACTION, struct.pack("Bxxx", 0), CREATE),
    ("a next hop", NEWNEXTHOP, struct.pack("BBBBI", 2, 0, 4, 0, 0), CREATE),
    ("a name of another network", NEWNSID, struct.pack("Bxxx", 0) + attribute(2, struct.pack("I", outside)), 0),
    ("a multicast database", NEWMDB, struct.pack("Bxxxi", 0, LO), CREATE),
    ("a tunnel", NEWTUNNEL, struct.pack("Bxxxi", 7, LO), CREATE),
):
    attempt(name, lambda: ask(what, body, flags | ACK))
# All that there are, whatever they are about: every fourth asks.
for what in range(16, 128):
    if what % 4 != 2:
        attempt(f"message {what}", lambda: ask(what, bytes(64)))
# Not for this network: by a process of it, and by a number.
attempt("the network of a process", lambda: ask(GETLINK, link() + attribute(19, struct.pack("I", outside)), ACK))
attempt("a numbered network", lambda: ask(GETLINK, link() + attribute(46, struct.pack("i", 0)), ACK))
with route() as one:
    listen_all = lambda: one.setsockopt(270, 8, 1)
    attempt("events of all networks", listen_all)
    attempt("a message to a process outside", lambda: one.sendto(packet(GETLINK, link(), 0), (port, 0)))
    attempt("a message to all that listen", lambda: one.sendto(packet(NEWLINK, link(), 0), (0, 1)))
    attempt("a connection to a process outside", lambda: one.connect((port, 0)))
    attempt("a buffer without bounds", lambda: one.setsockopt(socket.SOL_SOCKET, 33, 1 << 30))
for protocol in range(1, 33):
    for sort in (socket.SOCK_RAW, socket.SOCK_DGRAM):
        attempt(f"protocol {protocol}", lambda: socket.socket(socket.AF_NETLINK, sort, protocol).close())


def by_numbers(name, family, sort, protocol):
    """The call itself: its arguments as 64 bits."""
    ctypes.set_errno(0)
    number = 41 if os.uname().machine == "x86_64" else 198
    made = libc.syscall(ctypes.c_long(number), *map(ctypes.c_ulong, (family, sort, protocol)))
    tell(name, ctypes.get_errno() if made < 0 else 0)


by_numbers("protocol 9, high bits", 16, 3, 1 << 32 | 9)
by_numbers("protocol 12, high bits of the family", 1 << 32 | 16, 3, 12)
by_numbers("protocol 4, flags", 16, 3 | 0o2000000 | 0o4000, 4)
by_numbers("a stream", 16, 1, 0)
by_numbers("packets in sequence", 16, 5, 0)
attempt("a pair", lambda: socket.socketpair(socket.AF_NETLINK, socket.SOCK_RAW, 0))
request = lambda name, value: name.ljust(16, b"\0") + value
with socket.socket() as plain:
    place = struct.pack("HH4s8x", socket.AF_INET, 0, four)
    attempt("an address, by ioctl", lambda: fcntl.ioctl(plain, 0x8916, request(b"lo:9", place)))
    attempt("an interface down, by ioctl", lambda: fcntl.ioctl(plain, 0x8914, request(b"lo", struct.pack("h", 0))))
