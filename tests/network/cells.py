"""Asks the proxy of a cell for each host of a list, by CONNECT and by SOCKS 5; prints which were let through, and how many were tried."""

import json
import socket
import sys


def ask(*pieces):
    try:
        with socket.create_connection(("127.0.0.1", 3128), 10) as proxy:
            said = b""
            for piece in pieces:
                proxy.sendall(piece)
                said = proxy.recv(4096)
            return said
    except OSError:
        return b""


hosts = json.load(open(sys.argv[1]))
for host in hosts:
    name = host.encode("utf-8", "surrogatepass")
    by_connect = ask(b"CONNECT " + name + b":443 HTTP/1.1\r\nHost: " + name + b":443\r\n\r\n")
    connected = by_connect.startswith(b"HTTP/1.1 200")
    by_socks = b""
    if len(name) < 256:
        by_socks = ask(b"\x05\x01\x00", b"\x05\x01\x00\x03" + bytes([len(name)]) + name + b"\x01\xbb")
    granted = by_socks[1:2] == b"\x00" and len(by_socks) > 2
    if connected or granted:
        print(ascii(host), "by CONNECT" if connected else "", "by SOCKS" if granted else "")
print(len(hosts))
