"""A Docker daemon without containers, for Trove's agent, which asks for the version when it starts and for its container at each heartbeat.

Usage: docker.py SOCKET
"""

import http.server
import json
import os
import socketserver
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.endswith("/version"):
            self.answer(200, {"ApiVersion": "1.41", "MinAPIVersion": "1.12", "Version": "20.10.24"})
        else:
            self.answer(404, {"message": "No such container: database"})

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "unix"


os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
socketserver.ThreadingUnixStreamServer(sys.argv[1], Handler).serve_forever()
