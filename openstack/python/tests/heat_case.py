"""A stack in Heat's own engine code over a database in memory, and a master that is a few dictionaries."""

import os
import unittest
from unittest import mock

try:
    import heat  # noqa: F401
except ModuleNotFoundError:
    # make openstack sets it: there, a missing Heat is a failure.
    if os.environ.get("BRINE_OPENSTACK"):
        raise
    raise unittest.SkipTest("Heat's Python is not installed") from None

from heat.common import exception
from heat.common import messaging
from heat.common import policy
from heat.common import template_format
from heat.engine import environment
from heat.engine import resources
from heat.engine import scheduler
from heat.engine import stack as parser
from heat.engine import template as templates
from heat.engine.clients.os import keystone
from heat.engine.clients.os.keystone import fake_keystoneclient
from heat.tests import utils
from oslo_config import cfg

from brine_openstack import master as brine
from brine_openstack.heat import engine
from brine_openstack.heat import job
from brine_openstack.heat import server
from brine_openstack.heat import state
from brine_openstack.heat import waitcondition


class FakeMaster:
    """Keeps what is placed. Tests end orders with finish()."""

    def __init__(self):
        self.orders, self.placed, self.minions, self.events, self.cancelled = {}, [], {}, {}, []
        self.answer = None  # called with an order when it is placed: its result by minion

    def place(self, name, tgt, fun, **more):
        if name in self.orders:
            raise AssertionError("placed twice: " + name)
        self.placed.append(dict(more, id=name, tgt=tgt, fun=fun))
        ids = [tgt] if isinstance(tgt, str) else list(tgt)
        self.orders[name] = {"id": name, "jid": "20260101000000000000", "done": False, "success": False, "minions": {m: {"status": "queued"} for m in ids}}
        if self.answer:
            self.finish(name, self.answer(self.placed[-1]))

    def finish(self, name, results):
        good = all(r["status"] == "returned" and r["success"] for r in results.values())
        self.orders[name] = {"id": name, "jid": "20260101000000000000", "done": True, "success": good, "minions": results}

    def order(self, name, wait=0):
        if name not in self.orders:
            raise brine.NotFound("GET /v1/jobs", 404, "There is no such order or minion")
        return self.orders[name]

    def cancel(self, name):
        self.cancelled.append(name)

    def announce(self, minion, **spec):
        self.minions[minion] = spec
        return {"cloud_config": '#cloud-config\n{"salt_minion": {"conf": {"id": "%s"}}}\n' % minion, "powershell": "#ps1_sysnative\r\n"}

    def minion(self, minion):
        if minion not in self.minions:
            raise brine.NotFound("GET /v1/minions", 404, "There is no such order or minion")
        return {"id": minion, "present": True}

    def revoke(self, minion):
        self.minions.pop(minion, None)

    def kept_events(self, minion, tag=None):
        self.minion(minion)
        return [e for e in self.events.get(minion, []) if e["tag"] == tag]

    def forget_events(self, minion, tag):
        self.minion(minion)
        self.events[minion] = [e for e in self.events.get(minion, []) if e["tag"] != tag]

    def fire(self, minion, tag, data):
        self.events.setdefault(minion, []).append({"tag": tag, "data": data, "time": "2026-01-01T00:00:%02dZ" % len(self.events.get(minion, []))})


def returned(value, code=0):
    """Return the result of a minion whose function returned."""
    return {"status": "returned", "return": value, "retcode": code, "success": code == 0}


class HeatCase(unittest.TestCase):
    """Has the types of this package, and self.master in place of the sidecar."""

    maxDiff = None
    registered = False

    def setUp(self):
        super().setUp()
        scheduler.ENABLE_SLEEP = False
        messaging.setup("fake://", optional=True)
        self.addCleanup(messaging.cleanup)
        self.addCleanup(cfg.CONF.reset)
        cfg.CONF.set_override("error_wait_time", None)
        utils.setup_dummy_db()
        self.addCleanup(utils.reset_dummy_db)
        self.master, self.stacks = FakeMaster(), []
        self.patch(engine, "client", return_value=self.master)
        self.patch(policy.ResourceEnforcer, "enforce")
        self.patch(cfg.ConfigOpts, "find_file", return_value="/etc/heat/policy.yaml")
        self.patch(keystone.KeystoneClientPlugin, "_create", return_value=fake_keystoneclient.FakeKeystoneClient())
        if not HeatCase.registered:  # the environment outlives a test
            HeatCase.registered = True
            for module in (state, job, waitcondition, server):
                for name, cls in module.resource_mapping().items():
                    resources.global_env().register_class(name, cls)

    def patch(self, *args, **kwargs):
        patcher = mock.patch.object(*args, **kwargs)
        self.addCleanup(patcher.stop)
        return patcher.start()

    def stack(self, text, environ=None):
        """Return a stored stack of the template text."""
        env = environment.Environment(environ or {})
        stack = parser.Stack(utils.dummy_context(), "s%d" % len(self.stacks), templates.Template(template_format.parse(text), env=env))
        stack.store()
        self.stacks.append(stack)  # resources refer to theirs weakly
        return stack

    def run_action(self, rsrc, action, *args):
        """Run a resource's action to its end, as an engine does."""
        scheduler.TaskRunner(getattr(rsrc, action), *args)()

    def refused(self, text):
        """Return Heat's own validation error for the template text."""
        with self.assertRaises((exception.StackValidationFailed, exception.ResourcePropertyConflict)) as caught:
            self.stack(text).validate()
        return str(caught.exception)

    def failure(self, rsrc, action="create", *args):
        """Return the text of the failure of a resource's action."""
        with self.assertRaises(exception.ResourceFailure) as caught:
            self.run_action(rsrc, action, *args)
        return str(caught.exception)

    def update(self, rsrc, **changes):
        """Update a resource's properties and run it to its end."""
        after = rsrc.t.freeze(properties=dict(rsrc.properties.data, **changes))
        self.run_action(rsrc, "update", after)
