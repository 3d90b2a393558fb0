"""A development server: files of this directory, `/api`, a websocket at `/socket`, and a log of the requests that came, in `log`."""
import base64, hashlib, http.server, os, socketserver, sys

class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def heard(self):
        with open("log", "a") as log:
            said = [self.headers.get(name, "-") for name in ("Host", "Sec-Fetch-Site", "Origin")]
            log.write(" ".join([self.command, self.path, *said]) + "\n")

    def do_GET(self):
        self.heard()
        if self.path.startswith("/socket"):
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
            self.wfile.write((f"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n").encode())
            self.wfile.write(b"\x81\x05hello")
            self.rfile.read(1)
            self.close_connection = True
        elif self.path.startswith("/api") or self.command != "GET":
            length = int(self.headers.get("Content-Length", 0))
            self.rfile.read(length)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Access-Control-Allow-Headers", "*")
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"data")
        else:
            super().do_GET()

    do_POST = do_OPTIONS = do_GET

    def log_message(self, *_):
        pass

class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
