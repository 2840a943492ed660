"""Deployments in Heat's own engine code over a database in memory: rows, derived configs and signals are Heat's."""

import contextlib
import functools
import json
import time
import unittest
from unittest import mock

from tests import heat_case

from heat.common import exception
from heat.common import grouputils
from heat.engine import resources
from heat.engine import scheduler
from heat.engine import service_software_config
from heat.engine import template as templates
from heat.engine.resources import stack_resource
from heat.objects import resource as resource_objects
from heat.tests import utils
from oslo_config import cfg

from brine_openstack import master
from brine_openstack.heat import deployment
from brine_openstack.heat import engine
from brine_openstack.heat import minion
from brine_openstack.heat import orders
from brine_openstack.heat import progress

CONFIG = {
    "group": "script", "name": "config", "config": "echo $who", "options": {},
    "inputs": [{"name": "who"}, {"name": "list", "type": "CommaDelimitedList", "default": ["a", "b"]}],
    "outputs": [{"name": "answer"}, {"name": "err", "error_output": True}],
}

TEMPLATE = """
heat_template_version: 2018-08-31
resources:
  run:
    type: OS::Salt::SoftwareDeployment
    properties:
      config: CONFIG
      server: m1
      actions: [CREATE, UPDATE, DELETE, SUSPEND, RESUME]
      input_values: {who: world, extra: 1}
"""


class Rpc:
    """Heat's service of software configs, called in this process."""

    UPDATE = dict.fromkeys(("config_id", "input_values", "output_values", "action", "status", "status_reason", "updated_at"))

    def __init__(self):
        self._service = service_software_config.SoftwareConfigService()

    def update_software_deployment(self, context, deployment_id, **values):
        return self._service.update_software_deployment(context, deployment_id=deployment_id, **dict(self.UPDATE, **values))

    @contextlib.contextmanager
    def ignore_error_by_name(self, name):
        try:
            yield
        except exception.NotFound:
            pass

    def __getattr__(self, name):
        return functools.partial(getattr(self._service, name))


def ran(stdout="", stderr="", code=0):
    return heat_case.returned({"stdout": stdout, "stderr": stderr, "retcode": code, "pid": 1}, code)


class Deployments(heat_case.HeatCase):
    def setUp(self):
        super().setUp()
        self.rpc = rpc = Rpc()
        for cls in (deployment.SoftwareDeployment, deployment.StructuredDeployment):
            self.patch(cls, "rpc_client", return_value=rpc)
        self.patch(progress.Follower, "watch")
        for module in (deployment, minion):
            for name, cls in module.resource_mapping().items():
                resources.global_env().register_class(name, cls)
        self.master.minions["m1"] = {}
        self.result = ran("hello\n")
        self.master.answer = lambda order: {order["tgt"]: self.result}

    def stack(self, text=TEMPLATE, **config):
        made = self.rpc.create_software_config(utils.dummy_context(), **dict(CONFIG, **config))
        return super().stack(text.replace("config: CONFIG", "config: " + made["id"]))

    def made(self, text=TEMPLATE):
        run = self.stack(text)["run"]
        self.run_action(run, "create")
        return run

    def test_create(self):
        run = self.made()
        self.assertEqual(run.state, ("CREATE", "COMPLETE"))
        order = self.master.placed[0]
        self.assertEqual((order["tgt"], order["fun"], order["secret"]), ("m1", "cmd.script", True))
        self.assertEqual(order["metadata"], {"heat_stack": run.stack.id, "heat_resource": "run"})
        self.assertRegex(order["id"], "^heat-%s-run-[0-9a-f]{16}$" % run.stack.id)
        for line in ("export who='world'", "export list='[\"a\", \"b\"]'", "export extra='1'", "export deploy_action='CREATE'",
                     "export deploy_server_id='m1'", "export deploy_resource_name='run'"):
            self.assertIn(line + "\n", order["files"]["script"])
        self.assertTrue(0 < order["ttl"] <= run.stack.timeout_secs())
        self.assertEqual(run.FnGetAtt("deploy_stdout"), "hello\n")
        self.assertEqual(run.FnGetAtt("deploy_status_code"), 0)
        self.assertIsNone(run.FnGetAtt("answer"))

    def test_no_credentials(self):
        run = self.made()
        self.assertEqual(list(run.data()), [orders.KEY])

    def test_outcomes_show_in_the_reason(self):
        for status in ("undeliverable", "timed out", "cancelled", "lost", "refused"):
            with self.subTest(status):
                self.result = {"status": status, "reason": "so it is", "success": False}
                run = self.stack()["run"]
                text = self.failure(run)
                self.assertIn("Deployment to server failed: %s: the " % status, text)
                self.assertIn("(so it is)", text)
                self.assertIn(status, run.FnGetAtt("deploy_stderr"))

    def test_exit_code_and_error_output(self):
        self.result = ran("", "boom", 3)
        self.assertIn("Deployment exited with non-zero status code: 3, deploy_stderr : boom", self.failure(self.stack()["run"]))
        self.master.answer = lambda order: {"m1": ran("\nheat-outputs-%s\nerr 3 626164.\n" % order["id"][-16:])}
        self.assertIn("err : bad", self.failure(self.stack()["run"]))

    def test_update_there_and_back(self):
        run = self.made()
        self.update(run, input_values={"who": "b"})
        self.update(run, input_values={"who": "world", "extra": 1})
        self.assertEqual(len(self.master.placed), 3)
        self.assertEqual(len({o["id"] for o in self.master.placed}), 3)
        self.assertIn("export deploy_action='UPDATE'", self.master.placed[2]["files"]["script"])

    def test_suspend_resume_delete(self):
        run = self.made()
        for action in ("suspend", "resume", "suspend", "resume", "delete"):
            self.run_action(run, action)
        actions = [o["files"]["script"].partition("deploy_action='")[2].partition("'")[0] for o in self.master.placed]
        self.assertEqual(actions, ["CREATE", "SUSPEND", "RESUME", "SUSPEND", "RESUME", "DELETE"])
        self.assertEqual(run.state, ("DELETE", "COMPLETE"))

    def recover(self, run):
        """Create the resource that Heat makes in place of one whose engine was killed."""
        resource_objects.Resource.get_obj(run.context, run.id).update_and_save({"status": "FAILED"})
        text = TEMPLATE.replace("config: CONFIG", "config: " + run.properties["config"])
        new = super().stack(text)["run"]
        new.stack.id, new.replaces = run.stack.id, run.id
        self.run_action(new, "create")
        return new

    def interrupted(self, results=None):
        run = self.stack()["run"]
        self.master.answer = None
        task = self.task = scheduler.TaskRunner(run.create)  # its end would cancel the creation
        task.start()
        for _ in range(3):
            task.step()
        self.assertEqual(run.state, ("CREATE", "IN_PROGRESS"))
        if results:
            self.master.finish(self.master.placed[0]["id"], results)
        return run

    def test_engine_killed_after_the_return(self):
        new = self.recover(self.interrupted({"m1": ran("once\n")}))
        self.assertEqual((len(self.master.placed), new.FnGetAtt("deploy_stdout")), (1, "once\n"))

    def test_engine_killed_after_a_failure(self):
        run = self.interrupted({"m1": ran("", "no", 1)})
        self.master.answer = lambda order: {"m1": ran("again\n")}
        new = self.recover(run)
        self.assertEqual((len(self.master.placed), new.FnGetAtt("deploy_stdout")), (2, "again\n"))

    def test_cancel(self):
        run = self.interrupted()
        run.handle_create_cancel(None)
        self.assertEqual(self.master.cancelled, [self.master.placed[0]["id"]])
        row = run.rpc_client().show_software_deployment(run.context, run.resource_id)
        self.assertEqual((row["status"], row["status_reason"]), ("FAILED", "Deployment cancelled."))

    def test_delete_of_a_running_one_cancels(self):
        run = self.interrupted()
        self.patch(type(run), "_handle_action", return_value=None)
        run.check_delete_complete(run.handle_delete())
        self.assertEqual(self.master.cancelled, [self.master.placed[0]["id"]])

    def test_delete_without_the_minion(self):
        run = self.made()
        del self.master.minions["m1"]
        self.result = {"status": "undeliverable", "success": False}
        self.run_action(run, "delete")
        self.assertEqual(run.state, ("DELETE", "COMPLETE"))

    def test_no_signal(self):
        self.master.answer = None
        run = self.made(TEMPLATE.replace("server: m1", "server: m1\n      signal_transport: NO_SIGNAL"))
        self.assertEqual((run.state, len(self.master.placed)), (("CREATE", "COMPLETE"), 1))

    def test_master_away_for_a_while(self):
        run = self.interrupted({"m1": ran("late\n")})
        with mock.patch.object(self.master, "order", side_effect=master.Unavailable("no master listens there")):
            self.assertFalse(run.check_create_complete({"id": 1}))
        self.assertTrue(run.check_create_complete({"id": 1}))

    def test_signalled_from_outside(self):
        run = self.interrupted()
        run.handle_signal({"deploy_status_code": 0, "deploy_stdout": "by hand"})
        self.assertIn(True, [run.check_create_complete({"id": 1}) for _ in range(deployment.ROW_EVERY)])
        self.assertEqual(run.FnGetAtt("deploy_stdout"), "by hand")

    def test_live_output_is_bounded(self):
        run = self.interrupted()
        self.patch(progress.Follower, "take", return_value=["x" * 200 + "\nheat-outputs-1\n"] * 7)
        self.patch(type(run), "_add_event")
        self.master.orders[self.master.placed[0]["id"]]["jid"] = "20260101000000000000"
        for _ in range(9):
            run.check_create_complete({"id": 1})
        texts = [c.args[2] for c in run._add_event.call_args_list]
        self.assertEqual(len(texts), cfg.CONF.brine.event_limit + 1)
        self.assertEqual(set(texts[:-1]), {"x" * 200})
        self.assertEqual(texts[-1], "more output is not shown until the deployment has ended")

    def test_wrong_properties(self):
        for change, want in (("server: m1", ""), ("actions: [CREATE", "actions: [CRATE"), ("server: m1", "server: m1\n      servr: x"),
                             ("server: m1", "server: m1\n      signal_transport: SMOKE")):
            ours = TEMPLATE.replace(change, want)
            with self.subTest(want):
                self.assertEqual(self.refused(ours), self.refused(ours.replace("OS::Salt::S", "OS::Heat::S")))

    def test_unknown_group(self):
        self.assertIn("there is no function for the group '../x'", self.failure(self.stack(group="../x")["run"]))

    def test_a_server_of_nova(self):
        stack = self.stack()
        other = self.stack("heat_template_version: 2018-08-31\nresources: {s: {type: 'OS::Heat::None'}}")["s"]
        other.store()
        other.resource_id_set("m1")
        other.data_set("salt_minion", "minion-of-m1")
        self.master.minions = {"minion-of-m1": {}}
        self.run_action(stack["run"], "create")
        self.assertEqual(self.master.placed[0]["tgt"], "minion-of-m1")

    def test_a_server_is_found_without_its_stack(self):
        # A deployment must not cost what all resources of its stack cost.
        stack = self.stack()
        self.patch(type(stack), "resource_by_refid", side_effect=AssertionError("all resources of the stack are made"))
        scan = self.patch(resource_objects.Resource, "get_all_by_physical_resource_id")
        self.run_action(stack["run"], "create")
        self.assertEqual((self.master.placed[0]["tgt"], scan.call_count), ("m1", 0))


class Minions(heat_case.HeatCase):
    def setUp(self):
        super().setUp()
        resources.global_env().register_class("OS::Salt::Minion", minion.Minion)
        self.patch(self.master, "announce", side_effect=self.announced)

    def announced(self, ident, **spec):
        self.master.minions[ident] = spec
        return {"cloud_config": "#cloud-config", "env": "A=1", "json": "{}"}

    def test_life(self):
        m = self.stack("heat_template_version: 2018-08-31\nresources: {m: {type: OS::Salt::Minion, properties: {grains: {role: db}}}}")["m"]
        self.run_action(m, "create")
        self.assertEqual(m.FnGetRefId(), m.uuid)
        self.assertEqual(self.master.minions[m.uuid]["grains"], {"role": "db", "heat_stack": m.stack.name, "heat_resource": "m"})
        self.assertEqual([m.FnGetAtt(a) for a in ("user_data", "env", "json")], ["#cloud-config", "A=1", "{}"])
        self.run_action(m, "delete")
        self.assertEqual(self.master.minions, {})


class Groups(heat_case.HeatCase):
    def test_members(self):
        for kind, member in (("SoftwareDeploymentGroup", "OS::Salt::SoftwareDeployment"),
                             ("StructuredDeploymentGroup", "OS::Salt::StructuredDeployment")):
            resources.global_env().register_class("OS::Salt::" + kind, getattr(deployment, kind))
            g = self.stack(json.dumps({"heat_template_version": "2018-08-31", "resources": {"g": {
                "type": "OS::Salt::" + kind, "properties": {"servers": {"a": "m1"}, "config": "c", "input_values": {"x": 1}}}}}))["g"]
            definition = g.build_resource_definition("a", g.get_resource_def())
            self.assertEqual(definition.resource_type, member)
            self.assertEqual((definition._properties["server"], definition._properties["config"]), ("m1", "c"))

    def batches(self, policy, size, before):
        """Run a group of three by an update_policy, over the members that are there, and return the nested stacks that it made in turn."""
        g = self.stack(json.dumps({"heat_template_version": "2018-08-31", "resources": {"g": {
            "type": "OS::Salt::SoftwareDeploymentGroup", "properties": {"servers": {"a": "m1", "b": "m2", "c": "m3"}, "config": "new"},
            "update_policy": {policy: {"max_batch_size": size, "pause_time": 0.1}}}}}))["g"]
        made = []
        members = mock.Mock()  # what Heat asks its database: the members of the nested stack as it is now

        def nest(template):
            names = list(template.resource_definitions(None))
            members.template.return_value, members.size.return_value, members.member_names.return_value = template, len(names), names

        def nested(template, *_):
            made.append({n: (d.resource_type, d._properties["server"], d._properties["config"])
                         for n, d in template.resource_definitions(g.stack).items()})
            nest(template)

        nest(templates.Template({"heat_template_version": "2015-04-30", "resources": {
            name: {"type": kind, "properties": {"server": server, "config": config}} for name, (kind, server, config) in before.items()}}))
        self.patch(grouputils.GroupInspector, "from_parent_resource", return_value=members)
        self.patch(g, "update_with_template", side_effect=nested)
        self.patch(stack_resource.StackResource, "check_update_complete", return_value=True)
        if before:
            tasks, check = g._try_rolling_update(), g.check_update_complete
        else:
            tasks, check = g.handle_create(), g.check_create_complete
        began = time.monotonic()
        while not check(tasks):
            pass
        self.assertGreaterEqual(time.monotonic() - began, 0.1 * (len(made) - 1))
        return made

    def test_batches(self):
        resources.global_env().register_class("OS::Salt::SoftwareDeploymentGroup", deployment.SoftwareDeploymentGroup)

        def members(**configs):
            return {n: ("OS::Salt::SoftwareDeployment", {"a": "m1", "b": "m2", "c": "m3"}[n], c) for n, c in configs.items()}

        self.assertEqual(self.batches("batch_create", 2, {}), [members(a="new", b="new"), members(a="new", b="new", c="new")])
        self.assertEqual(self.batches("rolling_update", 1, members(a="old", b="old", c="old")), [
            members(a="old", b="old", c="new"), members(a="old", b="new", c="new"), members(a="new", b="new", c="new")])


class Engine(unittest.TestCase):
    def test_time_left(self):
        stack = mock.Mock()
        stack.timeout_secs.return_value = 3600
        for left, want in ((100, 95), (-5, 3595), (0, 3595), (4000, 3595), (10, 9)):
            stack.time_remaining.return_value = left
            self.assertEqual(engine.time_left(stack), want)


if __name__ == "__main__":
    unittest.main()
