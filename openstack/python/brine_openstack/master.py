"""A client of a master's HTTP interface over its unix socket.

It needs nothing but the standard library, keeps no connection open between requests, and holds no lock while it waits, so that it
works in threads, in eventlet's green threads (after monkey patching) and in uWSGI workers. The master knows the caller by the
credentials of the socket's peer (external_auth: peer), so there is no login.
"""

import http.client
import json
import random
import re
import socket
import time
import urllib.parse
import uuid

# The states of an order on one minion. The first two are not final.
QUEUED, UNDERWAY = "queued", "underway"
RETURNED, UNDELIVERABLE, TIMED_OUT = "returned", "undeliverable", "timed out"
CANCELLED, LOST, REFUSED = "cancelled", "lost", "refused"
UNFINISHED = (QUEUED, UNDERWAY)

# The most that an answer may have: an order with the returns of many minions is large, an endless answer is a mistake.
MAX_ANSWER = 256 << 20

WORDS = {
    UNDELIVERABLE: "the minion did not take the job before its time to live ended",
    TIMED_OUT: "the minion did not return before the deadline",
    CANCELLED: "the job was cancelled",
    LOST: "the minion took the job and does not know of it any more (it was restarted, or its machine was)",
    REFUSED: "the minion refused the job",
}


class Error(Exception):
    """An error of the master or of the way to it. The text has the cause in words."""


class Unavailable(Error):
    """The master cannot be reached, or takes no requests for the moment. The request may be sent again."""


class Refused(Error):
    """The master refused a request. code is the HTTP status, text is what the master answered."""

    def __init__(self, request, code, text):
        super().__init__("the master refused %s: %s (HTTP %d)" % (request, text or http.client.responses.get(code, "error"), code))
        self.code = code
        self.text = text


class NotFound(Refused):
    """There is no order or minion of this id, or the caller may not see it."""


class Conflict(Refused):
    """Another order has this id."""


class JobError(Error):
    """A job did not succeed. status is one of the six outcomes, result the entry of the minion in the order."""

    def __init__(self, minion, result):
        self.minion = minion
        self.status = result.get("status")
        self.result = result
        super().__init__("%s: %s" % (minion, describe(result)))


class Timeout(JobError):
    """A job did not end while the caller waited."""


def describe(result):
    """Return one minion's result in words: the outcome and its cause."""
    status = result.get("status") or "unknown"
    reason = result.get("reason")
    if status == RETURNED:
        if result.get("success"):
            return "returned"
        text = "returned with code %s" % result.get("retcode")
        value = result.get("return")
        return text + (": " + value if isinstance(value, str) and value else "")
    if status in UNFINISHED:
        return status + (": " + reason if reason else "")
    text = "%s: %s" % (status, WORDS.get(status, "no such outcome is known"))
    if reason and reason not in text:
        text += " (%s)" % reason
    if result.get("still_running"):
        text += ", and it is still running"
    return text


class _Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(self._path)
        except BaseException:
            self.sock.close()
            self.sock = None
            raise


class Master:
    """A master behind the unix socket at path.

    timeout is how many seconds one request may take. retry is for how many seconds a request is sent again while the master cannot
    be reached or answers that it takes none for the moment; all requests of this class may be sent twice. login is a pair of name
    and password for a master that does not know its callers by the socket, None for one that does.
    """

    def __init__(self, path, timeout=30.0, retry=30.0, login=None, eauth="file"):
        self.path = path
        self.timeout = timeout
        self.retry = retry
        self._login = login
        self._eauth = eauth
        self._token = None

    def __repr__(self):
        return "Master(%r)" % self.path

    def ensure(self):
        """Make the master ready for a request. A sidecar starts it here."""

    def request(self, method, path, body=None, query=None, timeout=None, retry=None):
        """Send one request and return the decoded answer.

        Raises NotFound, Conflict or another Refused if the master refuses it, Unavailable if the master cannot be reached within
        the seconds of retry, or does not answer within the seconds of timeout.
        """
        if query:
            path += "?" + urllib.parse.urlencode(query)
        timeout = self.timeout if timeout is None else timeout
        end = time.monotonic() + (self.retry if retry is None else retry)
        pause = 0.05
        while True:
            try:
                self.ensure()
                return self._once(method, path, body, timeout)
            except Unavailable as e:
                left = end - time.monotonic()
                wait = max(getattr(e, "after", 0), pause * (0.5 + random.random()))
                if left <= wait:
                    raise
            time.sleep(wait)
            pause = min(pause * 2, 2.0)

    def _once(self, method, path, body, timeout):
        if self._login and not self._token:
            self._token = self._new_token(timeout)
        code, headers, text = self._send(method, path, body, timeout)
        if code == 401 and self._login:
            self._token = self._new_token(timeout)
            code, headers, text = self._send(method, path, body, timeout)
        what = "%s %s" % (method, path.partition("?")[0])
        if code < 400:
            return _decode(text, what)
        said = _said(text)
        if code in (429, 503):
            e = Unavailable("the master takes no requests now: %s: %s (HTTP %d)" % (what, said, code))
            e.after = _seconds(headers.get("Retry-After"))
            raise e
        kind = {404: NotFound, 409: Conflict}.get(code, Refused)
        raise kind(what, code, said)

    def _send(self, method, path, body, timeout):
        headers = {"Accept": "application/json"}
        data = None
        if isinstance(body, _Parts):
            data = body.pieces
            headers.update({"Content-Type": body.type, "Content-Length": str(sum(map(len, data)))})
        elif body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        if self._token:
            headers["X-Auth-Token"] = self._token
        connection = _Connection(self.path, timeout)
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            text = response.read(MAX_ANSWER + 1)
        except (OSError, http.client.HTTPException) as e:
            raise Unavailable("cannot reach the master at %s: %s" % (self.path, _cause(e, timeout))) from e
        finally:
            connection.close()
        if len(text) > MAX_ANSWER:
            raise Error("the answer of the master to %s %s has more than %d bytes" % (method, path, MAX_ANSWER))
        return response.status, response.headers, text

    def _new_token(self, timeout):
        name, password = self._login
        body = {"username": name, "password": password, "eauth": self._eauth}
        code, _, text = self._send("POST", "/login", body, timeout)
        if code >= 400:
            raise Refused("POST /login", code, _said(text))
        return _decode(text, "POST /login")["return"][0]["token"]

    def healthy(self, timeout=5.0):
        """Report whether the master serves and its store answers."""
        try:
            code, _, _ = self._send("GET", "/healthz", None, timeout)
        except Unavailable:
            return False
        return code == 200

    # Minions.

    def announce(self, minion, **spec):
        """Announce a minion and return its bootstrap: cloud_config, cloud_config_files, powershell, json and env.

        spec has tenant, grains, token_ttl, key_pair, public_key, masters and config; empty ones are left out. It may be sent again.
        """
        return self.request("POST", "/v1/minions", dict({k: v for k, v in spec.items() if v is not None}, id=minion))

    def minion(self, minion, retry=None):
        """Return what is known of an announced minion: id, tenant, joined, present and grains."""
        return self.request("GET", "/v1/minions/" + urllib.parse.quote(minion, safe=""), retry=retry)

    def minions(self):
        """Return all announced minions."""
        return self.request("GET", "/v1/minions")["minions"]

    def revoke(self, minion):
        """Revoke a minion: its key is deleted and what waits for it ends. One that is not there is no error."""
        try:
            self.request("DELETE", "/v1/minions/" + urllib.parse.quote(minion, safe=""))
        except NotFound:
            pass

    def kept_events(self, minion, tag=None):
        """Return the events of an announced minion that the master keeps (keep_events), oldest first: maps of tag, data and time.

        With a tag, those that have it. Raises NotFound if no such minion is announced.
        """
        query = {"tag": tag} if tag else None
        return self.request("GET", "/v1/minions/%s/events" % urllib.parse.quote(minion, safe=""), query=query)["events"]

    def forget_events(self, minion, tag):
        """Forget the kept events of a minion that have a tag, and return how many there were."""
        return self.request("DELETE", "/v1/minions/%s/events" % urllib.parse.quote(minion, safe=""), query={"tag": tag})["forgotten"]

    # Orders.

    # retry is that of request.

    def place(self, order, tgt, fun, retry=None, uploads=None, **more):
        """Place the order with the id order and return its state. The same order again is the same order.

        tgt is a minion, a list of minions, or an expression of the kind tgt_type. uploads has files by name, as bytes: unlike those of
        files, they are not bound by the size of a request.

        more has arg, kwarg, ttl, deadline, tenant, files, pillar, secret, metadata and the other fields of POST /v1/jobs; those
        that are None are left out. Raises Conflict if another order has this id.
        """
        if isinstance(tgt, str):
            tgt = tgt if more.get("tgt_type") else [tgt]
        else:
            tgt = list(tgt)
        body = dict({k: v for k, v in more.items() if v is not None}, id=order, tgt=tgt, fun=fun)
        return self.request("POST", "/v1/jobs", _Parts(body, uploads) if uploads else body, retry=retry)

    def order(self, order, wait=0, retry=None):
        """Return the state of an order, at once, or when it is done or wait seconds are over."""
        query = {"wait": "%g" % wait} if wait else None
        return self.request("GET", self._order(order), query=query, timeout=self.timeout + wait, retry=retry)

    def cancel(self, order, retry=None):
        """End an order and return its state."""
        return self.request("DELETE", self._order(order), retry=retry)

    def orders(self, **metadata):
        """Return the orders whose metadata has these values, oldest first, without what the minions returned."""
        query = {"metadata." + k: v for k, v in metadata.items()}
        out = []
        while True:
            page = self.request("GET", "/v1/jobs", query=dict(query, limit=1000))
            out += page["jobs"]
            if not page.get("next"):
                return out
            query["after"] = page["next"]

    @staticmethod
    def _order(order):
        return "/v1/jobs/" + urllib.parse.quote(order, safe="")

    def call(self, tgt, fun, *args, timeout=60.0, **kwargs):
        """Run a function on one minion and return what it returned; on a list of minions, return a map by minion.

        The job waits for a minion that is not connected. After timeout seconds it is cancelled and Timeout is raised. A job that
        did not succeed raises JobError.
        """
        one = isinstance(tgt, str)
        name = "call-" + uuid.uuid4().hex
        self.place(name, tgt, fun, arg=list(args), kwarg=kwargs or None, ttl=timeout)
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            answer = self.order(name, wait=min(max(left, 0.01), 60))
            if answer["done"] or left <= 0:
                break
        if not answer["done"]:
            self.cancel(name)
        results = {}
        for minion, result in answer["minions"].items():
            if result["status"] in UNFINISHED:
                raise Timeout(minion, dict(result, reason="no result within %g seconds" % timeout))
            if result["status"] != RETURNED or not result.get("success"):
                raise JobError(minion, result)
            results[minion] = result["return"]
        return next(iter(results.values())) if one else results

    # Events.

    def events(self, *tags, cursor=None, timeout=60.0):
        """Yield events as maps of id, tag and data, from behind cursor, whose tags match one of the shell patterns.

        The stream ends with Unavailable when the connection breaks or is silent for timeout seconds; call it again with the id of
        the last event as cursor. An item with a tag of None has only a new id. One with lost tells that events before it are gone,
        as after a restart of the master.
        """
        query = [("tag", t) for t in tags] + ([("cursor", cursor)] if cursor else [])
        path = "/v1/events" + ("?" + urllib.parse.urlencode(query) if query else "")
        self.ensure()
        if self._login and not self._token:
            self._token = self._new_token(self.timeout)
        headers = {"Accept": "text/event-stream"}
        if self._token:
            headers["X-Auth-Token"] = self._token
        connection = _Connection(self.path, timeout)
        try:
            connection.request("GET", path, None, headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise Refused("GET /v1/events", response.status, _said(response.read(65536)))
            yield from _server_sent(response)
            raise Unavailable("the master at %s ended the stream of events" % self.path)
        except (OSError, http.client.HTTPException) as e:
            raise Unavailable("the stream of events from %s broke: %s" % (self.path, _cause(e, timeout))) from e
        finally:
            connection.close()


class _Parts:
    """The body of a request that has files beside an order: a form of several parts."""

    def __init__(self, order, files):
        boundary = uuid.uuid4().hex
        self.type = "multipart/form-data; boundary=" + boundary
        head = '--%s\r\nContent-Disposition: form-data; name="%s"%s\r\nContent-Type: %s\r\n\r\n'
        self.pieces = [(head % (boundary, "order", "", "application/json")).encode(), json.dumps(order).encode()]
        for name, content in files.items():
            if not re.fullmatch(r"[A-Za-z0-9._+@=,-]+", name):
                raise Error("%r is no name for a file of an order" % name)
            self.pieces += [("\r\n" + head % (boundary, "file", '; filename="%s"' % name, "application/octet-stream")).encode(), content]
        self.pieces.append(("\r\n--%s--\r\n" % boundary).encode())


def _server_sent(lines):
    """Decode server-sent events. A line has at most a megabyte; longer events are dropped, with their id kept."""
    cursor, data = None, []
    while True:
        line = lines.readline(1 << 20)
        if not line:
            return
        line = line.rstrip(b"\r\n")
        name, _, value = line.partition(b": ")
        if name == b"id":
            cursor = value.decode()
        elif name == b"data":
            data.append(value)
        elif line == b": events before this one are lost":
            yield {"id": None, "tag": None, "data": None, "lost": True}
        elif not line and (cursor or data):
            tag, content = None, None
            try:
                event = json.loads(b"\n".join(data)) if data else {}
                tag, content = event.get("tag"), event.get("data")
            except (ValueError, AttributeError):
                pass  # an event that was cut
            yield {"id": cursor, "tag": tag, "data": content}
            data = []


def _decode(text, what):
    try:
        return json.loads(text)
    except ValueError as e:
        raise Error("the answer of the master to %s is not JSON: %.200r" % (what, text)) from e


def _said(text):
    """Return the text of an error answer."""
    try:
        answer = json.loads(text)
    except ValueError:
        return text[:300].decode(errors="replace").strip()
    said = answer.get("return", answer) if isinstance(answer, dict) else answer
    return said if isinstance(said, str) else json.dumps(said)[:1000]


def _seconds(text):
    try:
        return min(max(float(text), 0.0), 10.0)
    except (TypeError, ValueError):
        return 0.0


def _cause(e, timeout):
    if isinstance(e, FileNotFoundError):
        return "there is no such socket"
    if isinstance(e, ConnectionRefusedError):
        return "no master listens there"
    if isinstance(e, PermissionError):
        return "this user may not open the socket"
    if isinstance(e, (socket.timeout, TimeoutError)):
        return "no answer within %g seconds" % timeout
    return str(e) or type(e).__name__
