"""What minions return in the words of Heat."""

import json
import unittest

from brine_openstack.heat import groups
from brine_openstack.heat import results

MARK = "heat-outputs-x"


def returned(value, code=0):
    return {"status": "returned", "return": value, "retcode": code, "success": code == 0}


def ran(stdout="", stderr="", code=0):
    return returned({"stdout": stdout, "stderr": stderr, "retcode": code, "pid": 1}, code)


class Details(unittest.TestCase):
    def details(self, result, group="script", outputs=()):
        return results.details(result, group, list(outputs), MARK)

    def test_script(self):
        out = "hello\n\n%s\nanswer 2 3432.\n%s-end" % (MARK, MARK)
        answer, words = self.details(ran(out, "warn\n\n" + MARK), outputs=[{"name": "answer"}, {"name": "err", "error_output": True}])
        self.assertEqual(answer, {"deploy_stdout": "hello\n", "deploy_stderr": "warn\n", "deploy_status_code": 0, "answer": "42"})
        self.assertEqual(words, "returned")

    def test_script_that_took_too_long(self):
        answer, words = self.details(ran("/bin/sh -c x : Timed out after 30 seconds", code=1))
        self.assertEqual(answer["deploy_stderr"], "stopped: the configuration took longer than its time limit (Timed out after 30 seconds)")
        self.assertIn("took longer than its time limit", words)
        self.assertEqual(self.details(ran("x : Timed out after 30 seconds", "mine", 1))[0]["deploy_stderr"], "mine")
        self.assertEqual(self.details(ran("x : Timed out after 30 seconds"))[0]["deploy_stderr"], "")

    def test_error_output(self):
        outputs = [{"name": "err", "error_output": True}]
        answer, words = self.details(ran("\n%s\nerr 0 .\n" % MARK), outputs=outputs)
        self.assertEqual(answer["err"], "")
        self.assertTrue(results.failed(answer, outputs))
        self.assertFalse(results.failed(self.details(ran("\n%s\n" % MARK), outputs=outputs)[0], outputs))
        self.assertEqual(words, "err : ")

    def test_exit_code(self):
        answer, words = self.details(ran("", "first\nthe cause\n", 3))
        self.assertEqual(answer["deploy_status_code"], 3)
        self.assertEqual(words, "deploy_status_code : Deployment exited with non-zero status code: 3, deploy_stderr : the cause")

    def test_outcomes(self):
        for status in ("undeliverable", "timed out", "cancelled", "lost", "refused"):
            answer, words = self.details({"status": status, "reason": "why"})
            self.assertEqual(answer, {"deploy_stdout": "", "deploy_stderr": words, "deploy_status_code": 1})
            self.assertTrue(words.startswith(status + ": ") and "why" in words, words)

    def test_no_file(self):
        answer, _ = self.details(returned({"pid": 0, "retcode": 1, "stdout": "", "stderr": "", "cache_error": True}, 1))
        self.assertEqual(answer["deploy_stderr"], "the minion could not fetch the configuration from its master")

    def test_unknown_function(self):
        answer, words = self.details(returned("'heat.hook' is not available.", 254), "puppet")
        self.assertEqual((answer["deploy_status_code"], answer["deploy_stderr"]), (254, "'heat.hook' is not available."))
        self.assertIn("'heat.hook' is not available.", words)

    def test_hook(self):
        answer, _ = self.details(returned({"deploy_stdout": "o", "deploy_stderr": "", "deploy_status_code": 0, "a": 1, "b": 2}), "ansible", [{"name": "a"}])
        self.assertEqual(answer, {"deploy_stdout": "o", "deploy_stderr": "", "deploy_status_code": 0, "a": 1})

    def test_states(self):
        value = {
            "cmd_|-answer_|-echo_|-run": {"__id__": "answer", "__run_num__": 0, "result": True, "changes": {"stdout": "42"}, "comment": ""},
            "file_|-f_|-/f_|-managed": {"__id__": "f", "__run_num__": 1, "result": False, "changes": {}, "comment": "no such directory"},
            "x_|-y_|-y_|-z": {"__id__": "y", "__run_num__": 2, "result": True, "changes": {"outputs": {"port": 80, "other": 1}}},
        }
        answer, words = self.details(returned(value, 2), "salt", [{"name": "answer"}, {"name": "port"}])
        self.assertEqual(answer["deploy_stderr"], "f (file): no such directory\n")
        self.assertEqual((answer["deploy_status_code"], answer["answer"], answer["port"]), (2, "42", 80))
        self.assertEqual(json.loads(answer["deploy_stdout"]), value)
        self.assertTrue(words.endswith("deploy_stderr : f (file): no such directory"))

    def test_states_that_do_not_compile(self):
        answer, words = self.details(returned(["Rendering SLS failed: x", "y"], 1), "salt")
        self.assertEqual(answer, {"deploy_stdout": "", "deploy_stderr": "Rendering SLS failed: x\ny\n", "deploy_status_code": 1})
        self.assertTrue(words.endswith("deploy_stderr : Rendering SLS failed: x"))


class Limits(unittest.TestCase):
    def test_head_and_tail(self):
        text = "HEAD" + 'é"\n' * (2 << 20) + "TAIL"
        out, err = results.streams(text, "short")
        self.assertLessEqual(results.size(out) + results.size(err), results.MAX_STREAMS)
        self.assertGreater(results.size(out), results.MAX_STREAMS - 100)
        self.assertTrue(out.startswith("HEAD") and out.endswith("TAIL"))
        self.assertRegex(out, r"\n\.\.\. \d+ characters left out \.\.\.\n")
        self.assertEqual(err, "short")

    def test_both(self):
        out, err = results.streams("a" * (5 << 20), "b" * (5 << 20))
        self.assertLessEqual(results.size(out) + results.size(err), results.MAX_STREAMS)
        self.assertGreater(len(err), results.MAX_STREAMS // 2 - 100)

    def test_fits(self):
        self.assertEqual(results.streams("a" * 475000, "b" * 475000), ("a" * 475000, "b" * 475000))


class Groups(unittest.TestCase):
    def config(self, group, config, **more):
        return dict({"group": group, "config": config, "inputs": [{"name": "who", "value": "x"}], "outputs": [], "id": "c"}, **more)

    def order(self, *args, **more):
        return groups.order(self.config(*args, **more), "heat-1", MARK, 100.5)

    def test_script(self):
        o = self.order("script", "echo")
        self.assertEqual((o["fun"], o["arg"], o["kwarg"]), ("cmd.script", ["salt://_order/heat-1/script"], {"timeout": 103, "live_output": True, "output_limit": 2 << 20}))
        self.assertIn("export who='x'", o["files"]["script"])

    def test_inputs_of_a_script(self):
        inputs = [{"name": "yes", "type": "String", "value": True}, {"name": "flag", "type": "Boolean", "value": True},
                  {"name": "unset", "type": "String"}]
        text = self.order("script", "echo", inputs=inputs)["files"]["script"]
        for line in ("export yes='True'", "export flag='true'", "export unset=''"):
            self.assertIn(line + "\n", text)

    def test_salt(self):
        self.assertEqual(self.order("salt", "a: test.nop"), {
            "fun": "state.apply", "arg": ["_order.heat-1.config"], "kwarg": {"queue": True}, "files": {"config.sls": "a: test.nop"},
            "pillar": {"heat": {"who": "x"}}})
        self.assertEqual(self.order("salt", {"a": 1})["files"], {"config.sls": '#!yaml\n{\n "a": 1\n}'})

    def test_hooks(self):
        for group in ("cfn-init", "ansible", "puppet", "chef", "docker-compose", "mine"):
            o = self.order(group, "x", outputs=[{"name": "a"}])
            self.assertEqual(o["fun"], "heat.hook")
            self.assertEqual(o["kwarg"], {
                "group": group, "source": "salt://_order/heat-1/config", "inputs": [{"name": "who", "value": "x"}], "outputs": [{"name": "a"}],
                "options": {}, "name": "", "id": "c", "creation_time": "", "timeout": 102.5})
            self.assertEqual(o["files"], {"config": "x"})
        o = self.order("cfn-init", {"AWS::CloudFormation::Init": {}})
        self.assertEqual((o["kwarg"]["config"], o.get("files")), ({"AWS::CloudFormation::Init": {}}, None))

    def test_component(self):
        o = groups.order(self.config("component", {"configs": [{"actions": ["CREATE"], "tool": "script", "config": "echo"}]},
                                     inputs=[{"name": "deploy_action", "value": "CREATE"}]), "heat-1", MARK, 1)
        self.assertEqual(o["fun"], "cmd.script")

    def test_none(self):
        for group, config in (("Heat::Ungrouped", "x"), ("../x", "x"), (None, "x"), ("script", {"a": 1}), ("script", "\0")):
            with self.subTest(group), self.assertRaises(groups.GroupError):
                self.order(group, config)


if __name__ == "__main__":
    unittest.main()
