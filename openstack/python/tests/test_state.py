"""OS::Salt::State against Heat's own engine code and a fake master."""

import json

from tests import heat_case  # first: it skips without Heat

from brine_openstack.heat import orders
from heat.engine import resource
from tests.heat_case import returned

TEMPLATE = """
heat_template_version: 2018-08-31
resources:
  s:
    type: OS::Salt::State
    properties:
      server: m1
      sls: "a: {test.nop: []}"
      pillar: {password: canary}
"""


def entry(name, n, result=True, comment="done", changes=None, ident=None):
    return {"__run_num__": n, "__id__": ident or name, "name": name, "result": result, "comment": comment, "changes": changes or {}, "duration": 1.5}


GOOD = {"test_|-a_|-a_|-nop": entry("a", 0), "file_|-b_|-/b_|-managed": entry("/b", 1, changes={"diff": "+x"}, ident="b")}
BAD = dict(GOOD, **{"cmd_|-c_|-false_|-run": entry("false", 2, False, "Command \"false\" run", {"retcode": 1}, "c")})


class StateTest(heat_case.HeatCase):

    def create(self, answer):
        self.master.minions["m1"] = {}
        self.master.answer = lambda order: {"m1": answer}
        rsrc = self.stack(TEMPLATE)["s"]
        self.run_action(rsrc, "create")
        return rsrc

    def test_order(self):
        self.create(returned(GOOD))
        (order,) = self.master.placed
        self.assertRegex(order["id"], r"^heat-[0-9a-f-]{36}-s-[0-9a-f]{16}$")
        self.assertEqual(("state.apply", "m1", ["_order.%s.state" % order["id"]]), (order["fun"], order["tgt"], order["arg"]))
        self.assertEqual(({"state.sls": "a: {test.nop: []}"}, {"password": "canary"}, True), (order["files"], order["pillar"], order["secret"]))
        self.assertEqual("s", order["metadata"]["heat_resource"])
        self.assertNotIn("kwarg", order)

    def test_attributes(self):
        rsrc = self.create(returned(GOOD))
        self.assertEqual((rsrc.CREATE, rsrc.COMPLETE), rsrc.state)
        self.assertEqual({"diff": "+x"}, rsrc.FnGetAtt("results")["b"]["changes"])
        self.assertEqual("file.managed", rsrc.FnGetAtt("results")["b"]["state"])
        self.assertEqual({"b": {"diff": "+x"}}, rsrc.FnGetAtt("changes"))
        self.assertEqual((["a", "b"], []), (rsrc.FnGetAtt("succeeded"), rsrc.FnGetAtt("failed")))
        self.assertEqual("a (test.nop): ok: done\nb (file.managed): changed: done\n2 states, 2 succeeded, 0 failed", rsrc.FnGetAtt("stdout"))

    def failed(self, answer):
        self.master.minions["m1"] = {}
        self.master.answer = lambda order: {"m1": answer}
        rsrc = self.stack(TEMPLATE)["s"]
        return rsrc, self.failure(rsrc)

    def test_failed_state(self):
        rsrc, error = self.failed(returned(BAD, 2))
        self.assertIn('m1: 1 of 3 states failed: c (cmd.run): Command "false" run', error)
        self.assertEqual((["a", "b"], ["c"]), (rsrc.FnGetAtt("succeeded"), rsrc.FnGetAtt("failed")))

    def test_does_not_compile(self):
        _, error = self.failed(returned(["Rendering SLS 'x' failed: no such thing"], 1))
        self.assertIn("m1: the states do not compile: Rendering SLS 'x' failed", error)

    def test_outcomes(self):
        for status in ("undeliverable", "timed out", "cancelled", "lost", "refused"):
            _, error = self.failed({"status": status, "reason": "because"})
            self.assertIn("m1: %s: " % status, error)
            self.assertIn("because", error)

    def test_work_of_a_killed_engine_is_found(self):
        rsrc = self.create(returned(GOOD))
        record = rsrc._record()
        rsrc.data_set(orders.KEY, json.dumps({k: record[k] for k in ("id", "digest", "attempt")}))  # as before the outcome was seen
        successor = self.stack(TEMPLATE)["s"]
        successor.stack.id, successor.replaces = rsrc.stack.id, rsrc.id
        self.run_action(successor, "create")
        self.assertEqual(([record["id"]], ["a", "b"]), ([o["id"] for o in self.master.placed], successor.FnGetAtt("succeeded")))
        # Without such an order the work is asked for deliberately.
        rsrc.data_set(orders.KEY, json.dumps(record))
        other = self.stack(TEMPLATE)["s"]
        other.stack.id, other.replaces = rsrc.stack.id, rsrc.id
        self.run_action(other, "create")
        self.assertEqual(2, len({o["id"] for o in self.master.placed}))

    def test_updates(self):
        rsrc = self.create(returned(GOOD))
        self.update(rsrc, sls="b: {test.nop: []}")
        self.update(rsrc, sls="a: {test.nop: []}")  # what was applied first, once more
        self.update(rsrc, pillar={"password": "other"})
        ids = [o["id"] for o in self.master.placed]
        self.assertEqual((4, 4), (len(ids), len(set(ids))))
        self.update(rsrc, sls_delete="c: {test.nop: []}")  # changes nothing on the machine
        self.assertEqual(4, len(self.master.placed))

    def test_update_after_failure(self):
        rsrc, _ = self.failed(returned(BAD, 2))
        self.master.answer = lambda order: {"m1": returned(GOOD)}
        with self.assertRaises(resource.UpdateReplace):  # also where the template did not change
            self.update(rsrc)
        successor = self.stack(TEMPLATE)["s"]
        successor.stack.id, successor.replaces = rsrc.stack.id, rsrc.id
        self.run_action(successor, "create")
        self.assertEqual(2, len({o["id"] for o in self.master.placed}))
        self.update(successor, sls_delete="gone: {test.nop: []}")
        rsrc.replaced_by = successor.id
        self.run_action(rsrc, "delete")  # undoes nothing of what its successor did
        self.assertEqual(2, len(self.master.placed))

    def test_delete(self):
        rsrc = self.create(returned(GOOD))
        self.update(rsrc, sls_delete="gone: {test.nop: []}")
        self.run_action(rsrc, "delete")
        self.assertEqual({"state.sls": "gone: {test.nop: []}"}, self.master.placed[-1]["files"])
        rsrc = self.create(returned(GOOD))
        self.update(rsrc, sls_delete="gone: {test.nop: []}")
        placed = len(self.master.placed)
        del self.master.minions["m1"]
        self.run_action(rsrc, "delete")
        self.assertEqual(placed, len(self.master.placed))

    def test_large_results_fit(self):
        many = {"file_|-f%d_|-/f%d_|-managed" % (n, n): entry("f%d" % n, n, comment="x" * 5000, changes={"diff": "y" * 5000}) for n in range(60)}
        rsrc = self.create(returned(many))
        self.assertEqual(60, len(rsrc.FnGetAtt("results")))
        self.assertEqual(60, len(rsrc.FnGetAtt("succeeded")))

    def test_repeated_ids(self):
        rsrc = self.create(returned({"file_|-x_|-/x_|-managed": entry("/x", 1, ident="x"), "service_|-x_|-x_|-running": entry("x", 0, ident="x")}))
        self.assertEqual(["x:service.running", "x:file.managed"], rsrc.FnGetAtt("succeeded"))

    def test_bad_input(self):
        for change, text in (("sls: ''", "length (0) is out of range"), ("test: perhaps", '"perhaps" is not a valid boolean'),
                             ("actions: [EXPLODE]", '["EXPLODE"] is not an allowed value'), ("color: red", "Unknown Property color")):
            template = TEMPLATE + "      %s\n" % change
            if change.startswith("sls"):
                template = template.replace('      sls: "a: {test.nop: []}"\n', "")
            self.assertIn(text, self.refused(template))
