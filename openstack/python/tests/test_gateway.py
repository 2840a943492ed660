"""One master as the gateway of three services (docs/openstack/gateway.md): each is a tenant and sees its own minions, orders and events only."""

import configparser
import json
import os
import pathlib
import re
import subprocess
import threading
import unittest
import unittest.mock

from tests import test_sidecar

from brine_openstack import master

ROOT = pathlib.Path(__file__).resolve().parents[3]
SERVICES = {"heat": "cmd.run", "trove": "test.echo", "deployer": "cmd.run_all"}


def snippet(name):
    """Return the snippet of the page with this name as text."""
    page = (ROOT / "docs" / "openstack" / "gateway.md").read_text()
    return re.search(r"^```\w+ %s\n(.*?)^```$" % name, page, re.M | re.S).group(1)


class Gateway(test_sidecar.SidecarCase):
    def setUp(self):
        super().setUp()
        self.room = pathlib.Path(self.directory).parent
        users = self.room / "users"
        users.write_text("".join("%s:secret-of-%s\n" % (s, s) for s in SERVICES))
        users.chmod(0o600)
        # What the page configures, with this test's socket and users; the operator is who runs the sidecar.
        config = json.loads(subprocess.run(["python3", "-c", "import sys, yaml, json; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"],
                                           input=snippet("master"), check=True, capture_output=True, text=True).stdout)
        config["rest_cherrypy"]["socket"] = os.path.join(self.directory, "api.sock")
        config["advertise"] = ["127.0.0.1:%d" % self.ports[1]]
        operator = str(os.geteuid())
        rules = config["external_auth"].pop("peer")
        config["external_auth"] = {"peer": {operator: [".*", "@runner", "@wheel"]}, "file": dict(rules, **{"^filename": str(users)})}
        config["rest_cherrypy"]["tenants"][operator] = ""
        self.operator = self.sidecar(config=config)
        self.operator.ensure()
        self.services = {s: master.Master(self.operator.path, login=(s, "secret-of-" + s)) for s in SERVICES}

    def start(self, service, name):
        directory = self.room / name
        directory.mkdir()
        boot = self.services[service].announce(name)
        self.assertEqual(self.operator.minion(name)["tenant"], service)
        config = dict(json.loads(boot["json"])["config"], root_dir=str(directory), log_file=str(directory / "log"), pidfile=str(directory / "pid"),
                      user="root" if os.geteuid() == 0 else "", **{n: str(directory / n) for n in ("cachedir", "sock_dir", "pki_dir")})
        (directory / "minion").write_text(json.dumps(config))
        self.processes.append(subprocess.Popen([test_sidecar.program("brine-minion", "BRINE_MINION_PROGRAM"), "minion", "-c", str(directory)],
                                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                               env={"PATH": os.environ["PATH"]}))

    def test_no_service_sees_another(self):
        seen = {s: [] for s in SERVICES}
        following = []

        def follow(service):
            try:
                for event in self.services[service].events("*", timeout=120):
                    if service not in following:
                        following.append(service)
                    seen[service].append(json.dumps(event))
            except master.Error:
                pass  # the master ended
        for s in SERVICES:
            threading.Thread(target=follow, args=(s,), daemon=True).start()
        for s in SERVICES:
            self.start(s, s + "-1")
        for s, fun in SERVICES.items():
            service = self.services[s]
            service.place("order-of-" + s, s + "-1", fun, arg=["echo canary-of-" + s], ttl=60, metadata={"service": s})
            result = service.order("order-of-" + s, wait=60)["minions"][s + "-1"]
            self.assertIn("canary-of-" + s, json.dumps(result))
        for s, service in self.services.items():
            others = [o for o in SERVICES if o != s]
            with self.subTest(s):
                # Lists have what is its own.
                self.assertEqual([m["id"] for m in service.minions()], [s + "-1"])
                self.assertEqual([o["id"] for o in service.orders()], ["order-of-" + s])
                for other in others:
                    # What is another's is unknown, as what does not exist.
                    for ask in (lambda: service.minion(other + "-1"), lambda: service.kept_events(other + "-1"), lambda: service.order("order-of-" + other),
                                lambda: service.cancel("order-of-" + other), lambda: service.order("no-such-order")):
                        with self.assertRaises(master.NotFound):
                            ask()
                    service.revoke(other + "-1")  # an unknown minion is no error, and nothing happens
                    # A job never reaches another's minion, and a minion cannot be taken over.
                    with self.assertRaises(master.Error) as caught:
                        service.call(other + "-1", "test.ping", timeout=3)
                    self.assertNotIn("returned", str(caught.exception))
                    with self.assertRaises(master.Refused):
                        service.announce(other + "-1")
                    with self.assertRaises(master.Refused):
                        service.announce("new-1", tenant=other)
                # "*" is the tenant's minions.
                self.assertEqual(service.request("POST", "/", [{"client": "local", "tgt": "*", "fun": "test.ping"}])["return"], [{s + "-1": True}])
                # Nor is anything of the master itself its own.
                for client in ("runner", "wheel"):
                    with self.assertRaises(master.Refused):
                        service.request("POST", "/", [{"client": client, "fun": {"runner": "manage.up", "wheel": "key.list_all"}[client]}])
        # All are still there, and the operator sees all of them.
        self.assertEqual({m["id"]: m["tenant"] for m in self.operator.minions()}, {s + "-1": s for s in SERVICES})
        self.assertEqual({s: self.services[s].call(s + "-1", "test.ping") for s in SERVICES}, dict.fromkeys(SERVICES, True))
        test_sidecar.until(lambda: len(following) == len(SERVICES))
        for s in SERVICES:
            test_sidecar.until(lambda s=s: any("canary-of-" + s in e or s + "-1" in e for e in list(seen[s])))
            told = "".join(seen[s])
            for other in SERVICES:
                if other != s:
                    self.assertNotIn("canary-of-" + other, told)
                    self.assertNotIn('/' + other + '-1', told)


class Projects(unittest.TestCase):
    """A service that is one tenant keeps its projects apart itself."""

    def setUp(self):
        try:
            from brine_openstack import service
        except ModuleNotFoundError:
            if os.environ.get("BRINE_OPENSTACK"):
                raise
            self.skipTest("oslo.config is not installed")
        self.service = service
        self.sent, self.minions = [], {"a-1": {"brine_project": "p1"}, "a-2": {"brine_project": "p2"}, "none": {}}

        def request(client, method, path, body=None, **more):
            self.sent.append((method, path, body))
            return {"id": path.rpartition("/")[2], "grains": self.minions[path.rpartition("/")[2]]} if method == "GET" else {}
        patcher = unittest.mock.patch.object(master.Master, "request", request)
        self.addCleanup(patcher.stop)
        patcher.start()

    def test_a_master_is_opened_once(self):
        opened = []

        @self.service.once
        def client():
            """Return the master."""
            opened.append(len(opened))
            if len(opened) == 1:
                raise master.Error("not yet")
            return object()
        with self.assertRaisesRegex(master.Error, "not yet"):
            client()
        self.assertIs(client(), client())
        self.assertEqual((opened, client.__doc__), ([0, 1], "Return the master."))

    def test_page_has_the_options(self):
        from oslo_config import cfg
        conf = configparser.ConfigParser()
        conf.read_string(snippet("service-conf"))
        options = cfg.ConfigOpts()
        options.register_opts(self.service.options("heat", "Heat", "engine", ""), group="brine")
        options([])
        for name, value in conf["brine"].items():
            options.set_override(name, value, "brine")
        client = self.service.open_master(options.brine, "heat", None, None)
        self.assertEqual((type(client), client.path), (self.service.Shared, "/run/brine/api.sock"))
        options.clear_override("socket", "brine")
        with self.assertRaisesRegex(master.Error, "set socket"):
            self.service.open_master(options.brine, "heat", None, None)

    def test_projects(self):
        client = self.service.Shared("/nowhere")
        client.announce("a-1", tenant="p1", grains={"role": "web"})
        self.assertEqual(self.sent.pop(), ("POST", "/v1/minions", {"id": "a-1", "grains": {"role": "web", "brine_project": "p1"}}))
        client.place("o", "a-1", "test.ping", tenant="p1", ttl=3)
        self.assertEqual(self.sent.pop(), ("POST", "/v1/jobs", {"id": "o", "tgt": ["a-1"], "fun": "test.ping", "ttl": 3}))
        for tgt in ("a-2", ["a-1", "a-2"], "none"):
            del self.sent[:]
            with self.assertRaisesRegex(master.Error, "is not of the project p1"):
                client.place("o", tgt, "test.ping", tenant="p1")
            self.assertNotIn("POST", [s[0] for s in self.sent])
        with self.assertRaisesRegex(master.Error, "names its minions"):
            client.place("o", "*", "test.ping", tenant="p1", tgt_type="glob")
