"""Which order an action uses: nothing runs twice, and what is asked for again does run."""

import unittest
from unittest import mock

from brine_openstack import master

try:
    from brine_openstack.heat import orders
except ModuleNotFoundError as e:
    if not (e.name or "").startswith("oslo"):
        raise
    raise unittest.SkipTest("oslo.config is not installed") from None

GOOD = {"status": "returned", "success": True, "retcode": 0, "return": "x"}
BAD = {"status": "returned", "success": False, "retcode": 3, "return": "x"}


class Choose(unittest.TestCase):
    def setUp(self):
        self.known = {}
        self.client = mock.Mock()
        self.client.order.side_effect = self.order

    def order(self, name):
        if name not in self.known:
            raise master.NotFound("GET", 404, "none")
        return {"id": name, "minions": {"m": self.known[name]}}

    def choose(self, work, record=None):
        failed = lambda result, record: not result.get("success")
        return orders.choose(self.client, "s", "r", work, "m", record, failed)

    def test_first(self):
        record, state = self.choose("w")
        self.assertEqual((record["attempt"], state), (0, None))
        self.assertRegex(record["id"], r"^heat-s-r-[0-9a-f]{16}$")

    def test_interrupted_before_it_was_placed(self):
        left, _ = self.choose("w")
        self.assertEqual(self.choose("w", left), (left, None))

    def test_interrupted_while_it_waits_or_runs(self):
        left, _ = self.choose("w")
        for status in ("queued", "underway"):
            self.known[left["id"]] = {"status": status}
            record, state = self.choose("w", left)
            self.assertEqual((record, state["id"]), (left, left["id"]))

    def test_interrupted_after_it_returned(self):
        left, _ = self.choose("w")
        self.known[left["id"]] = GOOD
        record, state = self.choose("w", left)
        self.assertEqual((record, state["minions"]["m"]), (left, GOOD))

    def test_after_a_failure_it_runs_again(self):
        left, _ = self.choose("w")
        for result in (BAD, {"status": "undeliverable"}, {"status": "timed out"}, {"status": "cancelled"}, {"status": "lost"}, {"status": "refused"}):
            with self.subTest(result["status"]):
                self.known = {left["id"]: result}
                record, state = self.choose("w", left)
                self.assertEqual((record["attempt"], state), (1, None))
                self.assertNotEqual(record["id"], left["id"])

    def test_asked_for_again(self):
        first, _ = self.choose("a")
        self.known[first["id"]] = GOOD
        second, _ = self.choose("b")
        self.known[second["id"]] = GOOD
        third, state = self.choose("a")
        self.assertEqual((third["attempt"], state), (1, None))

    def test_other_work_than_what_was_interrupted(self):
        left, _ = self.choose("a")
        self.known[left["id"]] = {"status": "underway"}
        record, state = self.choose("b", left)
        self.assertEqual((record["digest"], record["attempt"], state), ("b", 0, None))


class Digest(unittest.TestCase):
    CONFIG = {"group": "script", "config": "echo", "options": {}}

    def test_what_heat_adds_does_not_count(self):
        a = orders.digest("m", self.CONFIG, {"who": "x", "deploy_action": "CREATE", "deploy_stack_id": "1"}, "CREATE")
        b = orders.digest("m", self.CONFIG, {"who": "x", "deploy_action": "UPDATE", "deploy_stack_id": "2"}, "UPDATE")
        self.assertEqual(a, b)

    def test_what_counts(self):
        base = ("m", self.CONFIG, {"who": "x"}, "CREATE")
        others = [("n", *base[1:]), ("m", dict(self.CONFIG, config="ls"), *base[2:]), ("m", dict(self.CONFIG, group="salt"), *base[2:]),
                  ("m", self.CONFIG, {"who": "y"}, "CREATE"), (*base[:3], "DELETE"), (*base[:3], "SUSPEND"), (*base[:3], "RESUME")]
        self.assertEqual(len({orders.digest(*o) for o in [base, *others]}), 8)

    def test_names(self):
        names = {orders.name("s", r, "w", 0) for r in ("a.b", "a-b", "a_b", "x" * 70, "x" * 71, "ä", "ö")}
        self.assertEqual(len(names), 7)
        for name in names:
            self.assertRegex(name, r"^[A-Za-z0-9_-]{1,128}$")


if __name__ == "__main__":
    unittest.main()
