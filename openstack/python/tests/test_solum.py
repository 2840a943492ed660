"""docs/openstack/solum.md: its template in Heat's engine code, with a real master and a real minion that deploys an application."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

from tests import real_case  # first: it skips without Heat
from tests import test_sidecar

from brine_openstack.heat import deployment

ROOT = pathlib.Path(__file__).resolve().parents[3]
TEMPLATE = "openstack/interop/templates/example-solum.yaml"

START = """#!/bin/sh
echo $$ >../app.pid
exec %s -m http.server --bind 127.0.0.1 $PORT
""" % sys.executable


class Deploy(real_case.RealCase):
    def setUp(self):
        super().setUp()
        for name in ("git", "curl", "setsid"):
            if not shutil.which(name) and not os.environ.get("BRINE_OPENSTACK"):
                self.skipTest("%s is missing" % name)
        self.events = []
        self.patch(deployment.SoftwareDeployment, "_add_event", side_effect=lambda action, status, reason: self.events.append((status, reason)))
        # What the guest calls salt-call, for the minion of this test.
        (self.room / "bin").mkdir()
        program = self.room / "bin" / "salt-call"
        program.write_text("#!/bin/sh\nexec %s call -c %s \"$@\"\n" % (test_sidecar.program("brine-minion", "BRINE_MINION_PROGRAM"), self.room / "minion"))
        program.chmod(0o755)
        environ = unittest.mock.patch.dict(os.environ, PATH="%s:%s" % (self.room / "bin", os.environ["PATH"]))
        self.addCleanup(environ.stop)
        environ.start()
        self.join("app-1")

    def repository(self, start):
        directory = self.room / "repository"
        (directory / "bin").mkdir(parents=True)
        for name, text in {"build": "#!/bin/sh\nfor i in 1 2 3 4 5; do echo \"step $i\"; sleep 1; done\n", "start": start}.items():
            (directory / "bin" / name).write_text(text)
            (directory / "bin" / name).chmod(0o755)
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(directory)]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
            subprocess.run(git + words, check=True)
        return str(directory), subprocess.run(git + ["rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()

    def deploy(self, start):
        repository, self.commit = self.repository(start)
        port = test_sidecar.ports()[0]
        self.addCleanup(self.stop)
        stack = self.stack((ROOT / TEMPLATE).read_text(), {"parameters": {
            "server": "app-1", "repository": repository, "directory": str(self.room / "app"), "port": port}})
        stack.create()
        return stack

    def stop(self):
        if (self.room / "app.pid").exists():
            os.kill(int((self.room / "app.pid").read_text()), signal.SIGKILL)

    def test_it_answers(self):
        stack = self.deploy(START)
        self.assertEqual(stack.state, ("CREATE", "COMPLETE"), stack.status_reason)
        self.assertEqual((stack["deployment"].FnGetAtt("commit"), json.loads(stack["answers"].FnGetAtt("data"))), (self.commit, {"app": "answers"}))
        # The output was seen while the deployment ran, not only in its result. What is printed before the engine follows the order,
        # a second after it was placed, is in the result only.
        live = "\n".join(reason for status, reason in self.events if status == "IN_PROGRESS")
        self.assertIn("step 3", live)
        self.assertEqual(stack["deployment"].FnGetAtt("deploy_stdout").splitlines()[1:4], ["building", "step 1", "step 2"])

    def test_it_ends_at_once(self):
        stack = self.deploy("#!/bin/sh\nexit 1\n")
        self.assertEqual(stack.state, ("CREATE", "FAILED"))
        self.assertIn("the application ended", stack.status_reason)


class Page(unittest.TestCase):
    def test_template(self):
        page = (ROOT / "docs" / "openstack" / "solum.md").read_text()
        (path, text), = re.findall(r"From `(openstack/interop/templates/[^`]+)`, which the tests run:\n\n```yaml\n(.*?)```", page, re.S)
        self.assertEqual((path, text), (TEMPLATE, (ROOT / TEMPLATE).read_text()))
