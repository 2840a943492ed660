"""OS::Salt::Job against Heat's own engine code and a fake master."""

from tests import heat_case
from tests.heat_case import returned

TEMPLATE = """
heat_template_version: 2018-08-31
resources:
  j:
    type: OS::Salt::Job
    properties:
      function: cmd.run_all
      targets: [m2, m1, m1]
      args: [id]
      kwargs: {password: canary}
"""


class JobTest(heat_case.HeatCase):

    def job(self, results, template=TEMPLATE):
        for m in results:
            self.master.minions[m] = {}
        self.master.answer = lambda order: results
        return self.stack(template)["j"]

    def create(self, results, template=TEMPLATE):
        rsrc = self.job(results, template)
        self.run_action(rsrc, "create")
        return rsrc

    def test_order(self):
        rsrc = self.create({"m1": returned({"stdout": "a"}), "m2": returned({"stdout": "b"})})
        (order,) = self.master.placed
        self.assertEqual(("cmd.run_all", ["m1", "m2"], ["id"], {"password": "canary"}, True),
                         (order["fun"], order["tgt"], order["arg"], order["kwarg"], order["secret"]))
        self.assertEqual({"m1": {"stdout": "a"}, "m2": {"stdout": "b"}}, rsrc.FnGetAtt("results"))
        self.assertEqual(({"m1": 0, "m2": 0}, {"m1": "returned", "m2": "returned"}), (rsrc.FnGetAtt("return_codes"), rsrc.FnGetAtt("outcomes")))
        self.assertEqual((["m1", "m2"], []), (rsrc.FnGetAtt("succeeded"), rsrc.FnGetAtt("failed")))

    def test_expression(self):
        template = TEMPLATE.replace("targets: [m2, m1, m1]", "target: {expression: 'role:db', type: grain}")
        self.create({"m1": returned(True)}, template)
        (order,) = self.master.placed
        self.assertEqual(("role:db", "grain", "test_tenant_id"), (order["tgt"], order["tgt_type"], order["tenant"]))

    def test_policies(self):
        mixed = {"m1": returned("yes"), "m2": returned("no", 3), "m3": {"status": "lost", "reason": "no trace of it"}}
        for policy, good in (("all", False), ("any", True), ("1", True), ("2", False)):
            rsrc = self.job(mixed, TEMPLATE + "      success: '%s'\n" % policy)
            if good:
                self.run_action(rsrc, "create")
            else:
                error = self.failure(rsrc)
                self.assertIn("succeeded on 1 of 3 minions, %s are needed: m2: returned with code 3: no; m3: lost: " % {"all": 3}.get(policy, policy), error)
                self.assertIn("(no trace of it)", error)
            self.assertEqual((["m1"], ["m2", "m3"]), (rsrc.FnGetAtt("succeeded"), rsrc.FnGetAtt("failed")))
            self.assertEqual({"m1": 0, "m2": 3}, rsrc.FnGetAtt("return_codes"))

    def test_no_minion(self):
        self.assertIn("no minion is meant", self.failure(self.job({})))

    def test_updates(self):
        rsrc = self.create({"m1": returned(1)})
        self.update(rsrc, args=["whoami"])
        self.update(rsrc, args=["id"])
        self.update(rsrc, success="any")
        self.assertEqual([["id"], ["whoami"], ["id"]], [o["arg"] for o in self.master.placed])

    def test_timeout_is_bounded(self):
        self.create({"m1": returned(1)}, TEMPLATE + "      timeout: 7\n")
        self.assertEqual(7, self.master.placed[0]["ttl"])

    def test_cancel(self):
        rsrc = self.job({})
        self.master.answer = None
        rsrc.store()
        name = rsrc._start(rsrc.CREATE)
        self.assertFalse(rsrc.check_create_complete(name))
        rsrc.handle_create_cancel(name)
        self.assertEqual([name], self.master.cancelled)

    def test_large_results_fit(self):
        rsrc = self.create({"m%d" % n: returned("x" * 100000) for n in range(50)}, TEMPLATE)
        self.assertEqual(50, len(rsrc.FnGetAtt("results")))
        self.assertIn(" left out ", rsrc.FnGetAtt("results")["m1"])

    def test_bad_input(self):
        for old, new, text in (
                ("cmd.run_all", "rm -rf", "does not match pattern"),
                ("targets: [m2, m1, m1]", "targets: []", "length (0) is out of range"),
                ("targets: [m2, m1, m1]", "timeout: 3", "one of targets and target is required"),
                ("targets: [m2, m1, m1]", "targets: [m]\n      target: {expression: x}", "Cannot define the following properties at the same time"),
                ("targets: [m2, m1, m1]", "target: {expression: x, type: magic}", '"magic" is not an allowed value'),
                ("targets: [m2, m1, m1]", "target: {type: glob}", "Property expression not assigned"),
                ("args: [id]", "success: some", "does not match pattern"),
                ("args: [id]", "args: 3", "is not a list"),
                ("args: [id]", "timeout: 0", "0 is out of range")):
            self.assertIn(text, self.refused(TEMPLATE.replace(old, new)))
