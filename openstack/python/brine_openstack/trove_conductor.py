"""trove-conductor that also hears guests which are minions, by an option of trove.conf and no change of Trove.

    [DEFAULT]
    conductor_manager = brine_openstack.trove_conductor.Manager

It is Trove's own manager. One process of a host follows the events of the master beside it and passes what guests report to the handlers
that messages of the broker go to: heartbeats, states of backups, use of root. The place in the stream is kept in a file, so that a restart
misses nothing; what the master's own restart would lose, the master keeps in its database (keep_events).
"""

import fcntl
import json
import logging
import os
import threading
import time

from oslo_db import exception as db_exception
from trove.common import cfg
from trove.common import context as trove_context
from trove.common.serializable_notification import SerializableNotification
from trove.conductor import manager

from brine_openstack import master
from brine_openstack import sidecar
from brine_openstack import trove_client

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

HEARTBEAT = "salt/beacon/*/trove/heartbeat"
MESSAGES = "trove/conductor/"
TAGS = (HEARTBEAT, MESSAGES + "*", "salt/job/*/ret/*", "brine/order/*/*")

# What a guest may report of itself. That a cast has ended is told by the master, so notify_end and notify_exc_info, which would import
# a class that the guest names, are not among them.
METHODS = ("heartbeat", "update_backup", "report_root")

# After these an event is handled again, later.
RETRIED = (db_exception.DBConnectionError, db_exception.DBDeadlock, master.Unavailable)

# A heartbeat that is handled twice does no harm: the place behind it is stored at most once in so many seconds.
STORE_EVERY = 1.0


class Manager(manager.Manager):
    """Trove's manager of the conductor, which also follows the events of the master."""

    def __init__(self):
        super().__init__()
        self.brine = Follower(self)

    def run_periodic_tasks(self, context, raise_on_error=False):
        # Trove makes the manager before it forks its workers and calls this in each of them.
        self.brine.keep()
        return super().run_periodic_tasks(context, raise_on_error=raise_on_error)


class Follower:
    """Passes the events of the master to handlers, an object with the methods of trove.conductor.manager.Manager.

    directory holds the place in the stream; one process of those that share it follows at a time.
    """

    def __init__(self, handlers, directory=None):
        self._handlers = handlers
        self._directory = directory
        self._thread = None
        self._lock = None
        self._stored = 0.0
        self.cursor = None

    def keep(self):
        """Follow in the background if no thread of this process, and no other process of this host, does."""
        if self._thread is not None and self._thread.is_alive():
            return
        try:
            if self._lock is None and not self._try_lock():
                return
        except (OSError, master.Error) as e:
            LOG.error("The events of the Salt master cannot be followed: %s", e)
            return
        self._thread = threading.Thread(target=self._run, name="brine-conductor", daemon=True)
        self._thread.start()

    def _path(self, name):
        return os.path.join(self._directory, name)

    def _try_lock(self):
        self._directory = self._directory or CONF.brine.directory or sidecar.default_directory("trove")
        sidecar.private_directory(self._directory)
        f = open(self._path("conductor.lock"), "a")
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            f.close()
            return False
        self._lock = f
        return True

    def _run(self):
        try:
            with open(self._path("conductor.cursor")) as f:
                self.cursor = f.read().strip() or None
        except FileNotFoundError:
            pass
        pause = 0.2
        while True:
            before = self._stored
            try:
                self.follow()
            except RETRIED as e:
                LOG.warning("The events of the Salt master are followed again in %g seconds: %s", pause, e)
            except Exception:
                LOG.exception("The events of the Salt master cannot be followed; the next try is in %g seconds", pause)
            time.sleep(pause)
            pause = 0.2 if self._stored > before else min(pause * 2, 10.0)

    def follow(self):
        """Handle events until the stream ends, with the error of its end. Without a known place, begin with what the master keeps."""
        m = trove_client.client()
        behind = self.cursor is None
        for event in m.events(*TAGS, cursor=self.cursor, timeout=60.0):
            # The stream is open, so nothing falls between the two.
            if behind or event.get("lost"):
                self.sweep()
                behind = False
            if event["tag"]:
                try:
                    self.handle(event["tag"], event["data"])
                except RETRIED:
                    raise
                except Exception:  # the next event must not wait for this one
                    LOG.exception("The event %.200s is left out", event["tag"])
            if event["id"]:
                self._store(event["id"], event["tag"])

    def _store(self, cursor, tag):
        self.cursor = cursor
        now = time.monotonic()
        if tag and tag.startswith(MESSAGES) or now - self._stored >= STORE_EVERY:
            sidecar.write_private(self._path("conductor.cursor"), cursor + "\n")
            self._stored = now

    def sweep(self):
        """Handle the messages that the master keeps. Handlers ignore those that they had, by the time in them."""
        m = trove_client.client()
        for minion in m.minions():
            try:
                events = m.kept_events(minion["id"])
            except master.NotFound:
                continue  # revoked in the meantime
            for event in events:
                if event["tag"].startswith(MESSAGES):
                    self.message(minion["id"], event["tag"][len(MESSAGES):], event["data"])
            for tag in {e["tag"] for e in events if e["tag"].startswith(MESSAGES)}:
                self._forget(minion["id"], tag)

    @staticmethod
    def _forget(minion, tag):
        # A message that came in the meantime is in the stream as well.
        try:
            trove_client.client().forget_events(minion, tag)
        except master.NotFound:
            pass  # revoked, or never announced

    def handle(self, tag, data):
        """Handle one event. What cannot be understood is named in the log. Raises one of RETRIED if it may be handled later."""
        parts = tag.split("/")
        if not isinstance(data, dict):
            LOG.warning("The event %.200s is not understood: its data is no map", tag)
        elif tag.startswith("salt/beacon/"):
            # Only this minion may fire the tag. A beacon's data is the event's; what event.send fires is below data.
            self.message(parts[2], "heartbeat", data if "payload" in data else data.get("data"))
        elif tag.startswith(MESSAGES):
            # What a minion fires is below data, beside the id that the master knows it by.
            self.message(data.get("id"), tag[len(MESSAGES):], data.get("data"))
            self._forget(data.get("id"), tag)
        elif tag.startswith("salt/job/"):
            if str(data.get("fun", "")).startswith("trove.") and "trove_notification" in (data.get("metadata") or {}):
                self.ended(data.get("id"), parts[2])
        elif data.get("state") not in (master.RETURNED, *master.UNFINISHED, "sent", None):
            self.ended(data.get("id"), data.get("jid"))

    def message(self, minion, method, data):
        """Pass one message of a guest to its handler."""
        if method not in METHODS or not isinstance(data, dict):
            LOG.warning("A message %.80s of the guest %s is not understood", method, minion)
            return
        data = {k: v for k, v in data.items() if k not in ("id", "_stamp") and not k.startswith("__")}
        if method == "report_root":
            data.pop("sent", None)  # its handler takes none
        if data.setdefault("instance_id", minion) != minion:
            LOG.warning("The guest %s reports %s for the instance %.80s, which is not its own", minion, method, data["instance_id"])
            return
        self._call(method, minion, _context(), **data)

    def _call(self, method, minion, *args, **kwargs):
        try:
            getattr(self._handlers, method)(*args, **kwargs)
        except RETRIED:
            raise
        except Exception as e:  # the next message must not wait for this one
            LOG.warning("The message %s of the guest %s is refused: %s: %s", method, minion, type(e).__name__, e)

    def ended(self, minion, jid):
        """Tell Trove of the end of a cast, as its own agent does."""
        m = trove_client.client()
        found = [o for o in m.orders(trove_cast=minion) if o["jid"] == jid]
        if not found:
            return
        # From the order, not from the guest, which may say anything.
        told = json.loads(found[0]["metadata"]["trove_notification"])
        result = m.order(found[0]["id"])["minions"][minion]
        serialized = told["notification"]
        context = _context(**told["context"])
        # What the broker's driver gives a handler has it, and Trove's notifications take it away.
        context.notification = SerializableNotification.deserialize(context, dict(serialized))
        if result["status"] == master.RETURNED and result.get("success"):
            self._call("notify_end", minion, context, serialized, {})
        elif result["status"] not in master.UNFINISHED:
            text = trove_client.failure(result)
            self._call("notify_exc_info", minion, context, dict(serialized, instance_id=minion), text, text)


def _context(**known):
    return trove_context.TroveContext(**known)
