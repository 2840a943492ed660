"""The client against a server on a unix socket that answers as it is told."""

import http.server
import json
import os
import socketserver
import tempfile
import threading
import time
import unittest

import brine_openstack
from brine_openstack import master


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class _Handler(http.server.BaseHTTPRequestHandler):
    def address_string(self):
        return "unix"

    def log_message(self, *args):
        pass

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, self.path, json.loads(body) if body else None))
        code, headers, text = self.server.answers.pop(0) if self.server.answers else (200, {}, b"{}")
        if callable(text):
            return text(self)
        self.send_response(code)
        for k, v in dict(headers, **{"Content-Length": str(len(text))}).items():
            self.send_header(k, v)
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_DELETE = do_GET


class MasterCase(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "api.sock")
        self.server = _Server(self.path, _Handler)
        self.server.seen, self.server.answers = [], []
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.master = brine_openstack.Master(self.path, timeout=5, retry=2)

    def answers(self, *answers):
        for code, value, *headers in answers:
            text = value if callable(value) else value.encode() if isinstance(value, str) else json.dumps(value).encode()
            self.server.answers.append((code, headers[0] if headers else {}, text))

    def error(self, kind, call, *args, **kwargs):
        with self.assertRaises(kind) as caught:
            call(*args, **kwargs)
        return str(caught.exception)


class Requests(MasterCase):
    def test_order(self):
        self.answers((202, {"id": "o", "done": False}))
        self.assertEqual(self.master.place("o", "db-7", "test.ping", ttl=5, kwarg=None), {"id": "o", "done": False})
        self.assertEqual(self.server.seen, [("POST", "/v1/jobs", {"id": "o", "tgt": ["db-7"], "fun": "test.ping", "ttl": 5})])

    def test_pages_of_orders(self):
        self.answers((200, {"jobs": [{"id": "a"}], "next": "x"}), (200, {"jobs": [{"id": "b"}]}))
        self.assertEqual([o["id"] for o in self.master.orders(stack="s")], ["a", "b"])
        self.assertEqual(self.server.seen[1][1], "/v1/jobs?metadata.stack=s&after=x&limit=1000")

    def test_refusals(self):
        self.answers((404, {"return": "There is no such order or minion"}), (409, {"return": "Another job has this id"}), (403, "<p>no</p>"))
        text = self.error(brine_openstack.NotFound, self.master.order, "a/b")
        self.assertEqual(text, "the master refused GET /v1/jobs/a%2Fb: There is no such order or minion (HTTP 404)")
        self.error(brine_openstack.Conflict, self.master.place, "o", "m", "f")
        text = self.error(brine_openstack.Refused, self.master.minions)
        self.assertEqual(text, "the master refused GET /v1/minions: <p>no</p> (HTTP 403)")

    def test_busy(self):
        self.answers((503, {"return": "Too many jobs are unfinished"}, {"Retry-After": "0"}), (200, {"minions": []}))
        self.assertEqual(self.master.minions(), [])
        self.assertEqual(len(self.server.seen), 2)
        self.answers(*[(503, {"return": "Too many jobs are unfinished"})] * 9)
        text = self.error(brine_openstack.Unavailable, self.master.request, "GET", "/v1/minions", retry=0.3)
        self.assertEqual(text, "the master takes no requests now: GET /v1/minions: Too many jobs are unfinished (HTTP 503)")

    def test_nobody_there(self):
        gone = brine_openstack.Master(self.path + "x", retry=0)
        self.assertEqual(self.error(brine_openstack.Unavailable, gone.minions),
                         "cannot reach the master at %sx: there is no such socket" % self.path)
        self.assertFalse(gone.healthy())

    def test_silence(self):
        self.answers((200, lambda handler: time.sleep(1)))
        text = self.error(brine_openstack.Unavailable, self.master.request, "GET", "/v1/minions", timeout=0.2, retry=0)
        self.assertEqual(text, "cannot reach the master at %s: no answer within 0.2 seconds" % self.path)

    def test_not_json(self):
        self.answers((200, "<html>"))
        self.assertIn("is not JSON: b'<html>'", self.error(brine_openstack.Error, self.master.minions))

    def test_login_once_more(self):
        m = brine_openstack.Master(self.path, login=("heat", "secret"))
        # First of all, because a master may know the caller by the socket as somebody else; and when the token has expired.
        self.answers((200, {"return": [{"token": "t1"}]}), (200, {"minions": []}), (401, {}), (200, {"return": [{"token": "t2"}]}), (200, {"minions": []}))
        self.assertEqual([m.minions(), m.minions()], [[], []])
        self.assertEqual([s[1] for s in self.server.seen], ["/login", "/v1/minions", "/v1/minions", "/login", "/v1/minions"])

    def test_revoke_of_nobody(self):
        self.answers((404, {"return": "none"}))
        self.assertIsNone(self.master.revoke("db-7"))


class Calls(MasterCase):
    def test_return(self):
        self.answers((202, {}), (200, {"done": True, "minions": {"m": {"status": "returned", "success": True, "return": 7, "retcode": 0}}}))
        self.assertEqual(self.master.call("m", "test.arg", 1, a=2), 7)
        self.assertEqual(self.server.seen[0][2]["arg"], [1])
        self.assertEqual(self.server.seen[0][2]["kwarg"], {"a": 2})

    def test_failure(self):
        self.answers((202, {}), (200, {"done": True, "minions": {"m": {"status": "returned", "success": False, "return": "no such", "retcode": 1}}}))
        self.assertEqual(self.error(brine_openstack.JobError, self.master.call, "m", "x.y"), "m: returned with code 1: no such")

    def test_outcomes_in_words(self):
        for status in ("undeliverable", "timed out", "cancelled", "lost", "refused"):
            with self.subTest(status):
                words = master.describe({"status": status, "reason": "because"})
                self.assertTrue(words.startswith(status + ": the "), words)
                self.assertTrue(words.endswith(" (because)"), words)

    def test_timeout_cancels(self):
        waiting = {"done": False, "minions": {"m": {"status": "queued"}}}
        self.answers((202, {}), (200, waiting), (200, waiting), (200, waiting))
        self.error(brine_openstack.Timeout, self.master.call, "m", "test.sleep", timeout=0.0)
        self.assertEqual(self.server.seen[-1][0], "DELETE")


class Events(MasterCase):
    def test_stream(self):
        text = "retry: 400\n: events before this one are lost\nid: 5\ntag: a/b\ndata: {\"tag\": \"a/b\", \"data\": {\"n\": 1}}\n\nid: 6\n: still here\n\n"
        self.answers((200, text, {"Content-Type": "text/event-stream"}))
        got = []
        with self.assertRaises(brine_openstack.Unavailable):
            for event in self.master.events("a/*", cursor="4"):
                got.append(event)
        self.assertEqual(got, [{"id": None, "tag": None, "data": None, "lost": True}, {"id": "5", "tag": "a/b", "data": {"n": 1}}, {"id": "6", "tag": None, "data": None}])
        self.assertEqual(self.server.seen[0][1], "/v1/events?tag=a%2F%2A&cursor=4")


if __name__ == "__main__":
    unittest.main()
