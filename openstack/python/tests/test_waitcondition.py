"""OS::Salt::WaitCondition against Heat's own engine code and a fake master."""

import datetime
import json
from unittest import mock

from tests import heat_case  # first: it skips without Heat

from brine_openstack.heat import waitcondition
from heat.engine import stk_defn
from oslo_utils import timeutils

TEMPLATE = """
heat_template_version: 2018-08-31
resources:
  h:
    type: OS::Salt::WaitConditionHandle
  w:
    type: OS::Salt::WaitCondition
    properties:
      handle: {get_resource: h}
      servers: [m1, m2]
      count: 2
      timeout: 5
"""


class WaitConditionTest(heat_case.HeatCase):

    def setUp(self):
        super().setUp()
        self.master.minions.update(m1={}, m2={}, other={})
        stack = self.stack(TEMPLATE)
        self.handle, self.wait = stack["h"], stack["w"]
        self.run_action(self.handle, "create")
        self.tag = self.handle.FnGetAtt("tag")
        stk_defn.update_resource_data(stack.defn, "h", self.handle.node_data())

    def test_handle(self):
        self.assertEqual("heat/signal/" + self.handle.FnGetRefId(), self.tag)
        self.assertEqual({"signal_transport": "SALT_SIGNAL", "tag": self.tag}, json.loads(self.handle.FnGetAtt("signal")))
        self.assertEqual("salt-call event.send " + self.tag, self.handle.FnGetAtt("command"))

    def test_counts(self):
        self.wait.store()
        cookie = self.wait.handle_create()
        self.assertFalse(self.wait.check_create_complete(cookie))
        self.master.fire("m1", self.tag, {"data": "one"})
        self.master.fire("m1", "heat/signal/x", {})
        self.master.fire("other", self.tag, {})  # no minion signals in the name of another
        self.assertFalse(self.wait.check_create_complete(cookie))
        self.master.fire("m2", self.tag, {"id": "b", "data": {"x": 1}})
        self.assertTrue(self.wait.check_create_complete(cookie))
        self.assertEqual({"1": "one", "b": {"x": 1}}, json.loads(self.wait.FnGetAtt("data")))
        self.master.minions.clear()  # the machines may go, the data stays
        self.assertEqual("m2", self.wait.FnGetAtt("signals")["b"]["minion"])

    def test_failure(self):
        self.master.fire("m1", self.tag, {})
        self.master.fire("m2", self.tag, {"status": "FAILURE", "reason": "no disk"})
        self.assertIn("m2: no disk", self.failure(self.wait))

    def test_timeout(self):
        self.master.fire("m1", self.tag, {"reason": "half"})
        self.wait.store()
        cookie = self.wait.handle_create()
        with mock.patch.object(timeutils, "utcnow", return_value=timeutils.utcnow() + datetime.timedelta(seconds=6)):
            with self.assertRaisesRegex(Exception, "1 of 2 received in 5 seconds - half"):
                self.wait.check_create_complete(cookie)
            self.master.fire("m2", self.tag, {})
            self.assertTrue(self.wait.check_create_complete(cookie))

    def test_delete_forgets(self):
        self.master.fire("m1", self.tag, {})
        self.master.fire("m2", self.tag, {})
        self.run_action(self.wait, "create")
        self.master.fire("m1", "other", {})
        del self.master.minions["m2"]
        self.run_action(self.wait, "delete")
        self.assertEqual([{"tag": "other", "data": {}, "time": mock.ANY}], self.master.events["m1"])

    def test_update_of_count(self):
        self.master.fire("m1", self.tag, {})
        self.master.fire("m2", self.tag, {})
        self.run_action(self.wait, "create")
        self.master.fire("m1", self.tag, {})
        self.update(self.wait, count=3)
        self.assertEqual(3, len(self.wait.FnGetAtt("signals")))

    def test_rules(self):
        read = lambda *data: {k: (s["status"], s["reason"], s["data"]) for k, s in  # noqa: E731
                              waitcondition.read_signals([(n, "m", d) for n, d in enumerate(data)]).items()}
        self.assertEqual({"1": ("SUCCESS", "Signal 1 received", None), "2": ("SUCCESS", "Signal 2 received", 5)}, read({}, {"data": 5}))
        self.assertEqual({"a": ("SUCCESS", "Signal 2 received", "new")}, read({"id": "a", "status": "FAILURE"}, {"id": "a", "data": "new"}))
        self.assertEqual("FAILURE", read({"status": "success"})["1"][0])
        self.assertIn("must be SUCCESS or FAILURE, not 'success'", read({"status": "success"})["1"][1])
        self.assertIn("must be a map", read("SUCCESS")["1"][1])
        self.assertEqual({"7": ("SUCCESS", "r", None)}, read({"id": 7, "reason": "r", "unknown": 1}))

    def test_name_in_place_of_handle(self):
        stack = self.stack(TEMPLATE.replace("handle: {get_resource: h}", "tag: ready"))
        self.master.fire("m1", "heat/signal/ready", {})
        self.master.fire("m2", "heat/signal/ready", {})
        self.run_action(stack["w"], "create")

    def test_bad_input(self):
        for old, new, text in (
                ("timeout: 5", "timeout: 50000", "50000 is out of range"), ("      timeout: 5\n", "", "Property timeout not assigned"),
                ("count: 2", "count: 0", "0 is out of range"), ("servers: [m1, m2]", "servers: []", "length (0) is out of range"),
                ("      servers: [m1, m2]\n", "", "one of server and servers is required"),
                ("servers: [m1, m2]", "servers: [a]\n      server: b", "Cannot define the following properties at the same time"),
                ("handle: {get_resource: h}", "tag: 'a b'", "does not match pattern"),
                ("      handle: {get_resource: h}\n", "", "one of handle and tag is required")):
            self.assertIn(text, self.refused(TEMPLATE.replace(old, new)))
