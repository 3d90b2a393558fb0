"""Sends two requests by one connection; the second names another host."""

import socket

wire = socket.create_connection(("named.org", 80), 5).makefile("rwb")
for host in ("named.org", "other.org"):
    wire.write(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    wire.flush()
    status = wire.readline().split()[1].decode()
    length = 0
    while (line := wire.readline().strip()):
        name, value = line.split(b": ", 1)
        length = int(value) if name.lower() == b"content-length" else length
    body = wire.read(length).decode()
    print(status, body) if status == "200" else print(status)
