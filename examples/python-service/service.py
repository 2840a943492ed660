#!/usr/bin/env python3
"""A service that submits a job to its master and waits for the results, with nothing but Python's standard library.

    service.py SOCKET USER PASSWORD TARGET FUNCTION [ARGUMENT...]

SOCKET is the unix socket of the master's HTTP interface (option rest_cherrypy, socket). The job id is the service's own: a
request that had no answer can be sent again, and the job is published once. Prints the results as JSON, and ends with 0 when
every minion answered.
"""

import http.client
import json
import socket
import sys
import time
from datetime import datetime, timezone


class Master:
    """The master behind a unix socket."""

    def __init__(self, path):
        self.path = path
        self.token = None

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("localhost", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(60)
        connection.sock.connect(self.path)
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self.token:
            headers["X-Auth-Token"] = self.token
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        if response.status >= 400:
            raise RuntimeError(f"{method} {path}: {response.status} {answer['return']}")
        return answer

    def login(self, user, password, eauth="file"):
        answer = self.request("POST", "/login", {"username": user, "password": password, "eauth": eauth})
        self.token = answer["return"][0]["token"]

    def submit(self, jid, tgt, fun, *args):
        job = {"tgt": tgt, "fun": fun, "arg": list(args), "jid": jid}
        return self.request("POST", "/minions", job)["return"][0]

    def results(self, jid, minions, patience=30):
        deadline = time.monotonic() + patience
        while True:
            returns = self.request("GET", f"/jobs/{jid}")["return"][0]
            if set(minions) <= set(returns) or time.monotonic() > deadline:
                return returns
            time.sleep(0.1)


def main():
    path, user, password, tgt, fun, *args = sys.argv[1:]
    master = Master(path)
    master.login(user, password)
    jid = datetime.now(timezone.utc).strftime("%Y%m%d%H%M%S%f")
    job = master.submit(jid, tgt, fun, *args)
    if master.submit(jid, tgt, fun, *args) != job:
        raise RuntimeError("the job was published twice")
    returns = master.results(jid, job["minions"])
    print(json.dumps(returns, sort_keys=True))
    return 0 if set(job["minions"]) <= set(returns) else 1


if __name__ == "__main__":
    sys.exit(main())
