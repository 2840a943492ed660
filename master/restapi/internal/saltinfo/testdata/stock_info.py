"""Feeds events, one JSON list on stdin, to stock's SaltInfo; prints for each what it sent, and whom it asked for grains."""

import json
import sys

import salt.netapi
from salt.netapi.rest_cherrypy.event_processor import SaltInfo


class Handler:
    def __init__(self):
        self.sent = []

    def send(self, text, binary):
        self.sent.append(json.loads(text))


asked = []


class Client:
    def __init__(self, opts):
        pass

    def run(self, low):
        asked.extend(sorted(low["tgt"].split(",")))


salt.netapi.NetapiClient = Client
handler = Handler()
info = SaltInfo(handler)
out = []
for event in json.load(sys.stdin):
    handler.sent, asked[:] = [], []
    info.process(event, "token", {})
    out.append({"sent": handler.sent, "asked": list(asked)})
json.dump(out, sys.stdout)
