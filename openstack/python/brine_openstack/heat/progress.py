"""What running jobs print, from the events of the master, for the resources of this engine that wait for them."""

import collections
import json
import logging
import threading
import time

from brine_openstack import master

LOG = logging.getLogger(__name__)

# What is kept for a job until its resource asks.
MAX_WAITING = 64
# The follower ends when nobody has asked for so many seconds.
IDLE = 60.0


class Follower:
    """Follows the progress events of a master for the jobs that were named with watch."""

    def __init__(self, client):
        self._client = client
        self._mutex = threading.Lock()
        self._jobs = {}
        self._asked = 0.0
        self._running = False

    def watch(self, jid):
        """Keep what the job prints from now on."""
        with self._mutex:
            self._jobs.setdefault(jid, collections.deque(maxlen=MAX_WAITING))
            self._asked = time.monotonic()
            if self._running:
                return
            self._running = True
        threading.Thread(target=self._run, name="brine-progress", daemon=True).start()

    def take(self, jid):
        """Return what the job has printed since the last call, as a list of texts."""
        with self._mutex:
            self._asked = time.monotonic()
            waiting = self._jobs.get(jid)
            out = list(waiting or ())
            if waiting:
                waiting.clear()
        return out

    def forget(self, jid):
        """Keep no more of the job."""
        with self._mutex:
            self._jobs.pop(jid, None)

    def _idle(self):
        with self._mutex:
            if self._jobs and time.monotonic() - self._asked < IDLE:
                return False
            self._running = False
            self._jobs.clear()
            return True

    def _run(self):
        cursor = None
        while not self._idle():
            try:
                for event in self._client.events("salt/job/*/prog/*", cursor=cursor, timeout=30.0):
                    cursor = event["id"] or cursor
                    if event["tag"]:
                        self._take(event["tag"], event["data"])
                    if self._idle():
                        return
            except master.Error as e:
                LOG.debug("Events with live output: %s", e)
                time.sleep(1.0)
            except Exception:
                # The follower is a convenience: without it deployments go on, and the next watch starts another.
                LOG.exception("Events with live output cannot be followed")
                with self._mutex:
                    self._running = False
                return

    def _take(self, tag, data):
        parts = tag.split("/")
        if len(parts) < 5 or not isinstance(data, dict):
            return
        # What a minion fires is below data, beside its id and the time.
        data = data["data"] if isinstance(data.get("data"), dict) else data
        text = words(data["return"]) if data.get("return") is not None else ""
        with self._mutex:
            waiting = self._jobs.get(parts[2])
            if waiting is not None and text:
                waiting.append(text)


def words(item):
    """Return a progress item as one text: what cmd.script (streams by name) or heat.hook (deployment, stream, text) reports."""
    if isinstance(item, dict) and isinstance(item.get("text"), str):
        return item["text"].rstrip()
    if isinstance(item, dict) and item and set(item) <= {"stdout", "stderr"}:
        return "\n".join(str(v).rstrip() for v in item.values() if str(v).strip())
    return item.rstrip() if isinstance(item, str) else json.dumps(item)
