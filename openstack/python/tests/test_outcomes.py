"""How deployments that do not come to their end fail, in Heat's engine code with a real master and a real minion."""

import subprocess
import threading
import unittest

from tests import real_case  # first: it skips without Heat
from tests import test_sidecar

from brine_openstack.heat import engine

TEMPLATE = """
heat_template_version: 2018-08-31
parameters: {group: {type: string}, config: {type: string}}
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties: {group: {get_param: group}, config: {get_param: config}, inputs: [], outputs: [], options: {}}
  run:
    type: OS::Salt::SoftwareDeployment
    properties: {config: {get_resource: config}, server: m1}
"""


class Outcomes(real_case.RealCase):
    def setUp(self):
        super().setUp()
        self.pids = self.room / "pids"
        self.forever = "echo $$ >>%s; while :; do sleep 0.2; done" % self.pids
        self.join("m1")
        test_sidecar.until(lambda: self.salt.minion("m1").get("present"))

    def reason(self, group, config):
        """Return why a stack with one deployment failed."""
        stack = self.stack(TEMPLATE, {"parameters": {"group": group, "config": config}})
        stack.create()
        self.assertEqual(stack.state, ("CREATE", "FAILED"))
        return stack.status_reason

    def ran_once(self):
        """Check that one process was started, and wait until it has ended."""
        pid, = self.pids.read_text().split()
        test_sidecar.until(lambda: not test_sidecar.alive(int(pid)), 5)
        self.pids.unlink()

    def test_timed_out(self):
        # The fraction matters: the minion counts whole seconds, and must not end the script before the master has its deadline.
        self.patch(engine, "time_left", return_value=3.7)
        for group, config in ("script", "#!/bin/sh\n" + self.forever), ("salt", "forever: {cmd.run: [{name: '%s'}]}" % self.forever):
            with self.subTest(group):
                self.assertIn("timed out: the minion did not return before the deadline (its deadline passed while it ran)", self.reason(group, config))
                self.ran_once()

    def test_interrupted(self):
        def restart():
            test_sidecar.until(self.pids.exists)
            minion = self.processes[-1]
            minion.kill()
            minion.wait()
            self.processes.append(subprocess.Popen(minion.args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

        thread = threading.Thread(target=restart)
        thread.start()
        self.addCleanup(thread.join)
        self.assertIn("interrupted", self.reason("script", "#!/bin/sh\n" + self.forever))


if __name__ == "__main__":
    unittest.main()
