# Becomes a program for which some system calls fail with EPERM, and for all that it starts: their numbers, separated by commas, then its words.
import ctypes, os, struct, sys

libc = ctypes.CDLL(None, use_errno=True)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("lines", ctypes.c_void_p)]


def line(code, holds, otherwise, value):
    return struct.pack("HBBI", code, holds, otherwise, value)


lines = [line(0x20, 0, 0, 0)]
for number in sys.argv[1].split(","):
    lines += [line(0x15, 0, 1, int(number)), line(0x06, 0, 0, 0x00050001)]
lines.append(line(0x06, 0, 0, 0x7FFF0000))
text = ctypes.create_string_buffer(b"".join(lines))
program = Program(len(lines), ctypes.addressof(text))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execvp(sys.argv[2], sys.argv[2:])
