"""Serve a WSGI application with threads. uWSGI's --http-socket resets connections under load.

Usage: server.py MODULE:FUNCTION ADDRESS PORT NAME [ARGUMENT…]: the function makes the application, which reads NAME and the arguments as
its command line.
"""

import importlib
import socketserver
import sys
from wsgiref import simple_server

module, _, function = sys.argv[1].partition(":")
address, port = sys.argv[2], int(sys.argv[3])
sys.argv = sys.argv[4:]


class Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 256


class Handler(simple_server.WSGIRequestHandler):
    def log_message(self, *args):
        pass

    def address_string(self):
        return self.client_address[0]


application = getattr(importlib.import_module(module), function)()
simple_server.make_server(address, port, application, Server, Handler).serve_forever()
