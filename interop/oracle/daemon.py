"""
The part of a stock minion that manages schedule and beacons, behind a bus within this process, for the differential test: the
functions of the modules schedule and beacons fire events at it and wait for its answers as they do with a running minion.
"""

import types

import salt.beacons
import salt.minion
import salt.payload
import salt.utils.event
import salt.utils.schedule


class Bus:
    """What the functions take for the minion's event bus."""

    daemon = None
    queue = []

    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass

    def fire_event(self, data, tag, timeout=1000):
        data = salt.payload.loads(salt.payload.dumps(data))  # as on the way through the socket
        Bus.queue.append((tag, data))
        if tag == "manage_schedule":
            salt.minion.Minion.manage_schedule(Bus.daemon, tag, data)
        elif tag == "manage_beacons":
            salt.minion.Minion.manage_beacons(Bus.daemon, tag, data)
        return True

    def get_event(self, wait=5, tag="", full=False, **kwargs):
        for i, (have, data) in enumerate(Bus.queue):
            if have.startswith(tag):
                del Bus.queue[: i + 1]
                return data
        return None


def start(opts, functions):
    """Begins anew, with neither jobs nor beacons."""
    opts = dict(opts, schedule={}, beacons={}, __role="minion")
    schedule = salt.utils.schedule.Schedule(opts, functions, returners={}, new_instance=True, utils={})
    schedule._run_job = lambda func, data, jid=None: None
    Bus.queue = []
    Bus.daemon = types.SimpleNamespace(schedule=schedule, beacons=salt.beacons.Beacon(opts, functions), beacons_leader=True)


class Connected:
    """While it lasts, functions find the bus."""

    def __enter__(self):
        self.real = salt.utils.event.get_event
        salt.utils.event.get_event = lambda *args, **kwargs: Bus()

    def __exit__(self, *args):
        salt.utils.event.get_event = self.real
