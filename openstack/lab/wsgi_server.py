"""Serve keystone's public application with threads. uWSGI's --http-socket resets connections under load.

Usage: server.py ADDRESS PORT, with OS_KEYSTONE_CONFIG_FILES and OS_KEYSTONE_CONFIG_DIR in the environment.
"""

import socketserver
import sys
from wsgiref import simple_server

address, port = sys.argv[1], int(sys.argv[2])
sys.argv = ["keystone"]

from keystone.server import wsgi  # noqa: E402: it reads sys.argv


class Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 256


class Handler(simple_server.WSGIRequestHandler):
    def log_message(self, *args):
        pass

    def address_string(self):
        return self.client_address[0]


simple_server.make_server(address, port, wsgi.initialize_public_application(), Server, Handler).serve_forever()
