"""docs/openstack/heat.md: its snippets do what it says, and its table of options is that of the code."""

import ast
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def page():
    with open(os.path.join(ROOT, "docs", "openstack", "heat.md")) as f:
        return f.read()


def snippet(name):
    """Return the text of the snippet whose fence has this name."""
    found = re.search(r"^( *)```\w+ %s\n(.*?)^ *```$" % name, page(), re.M | re.S)
    return "".join(line[len(found.group(1)):] + "\n" for line in found.group(2).splitlines())


class Sidecar(unittest.TestCase):
    def test_five_lines(self):
        from unittest import mock

        import brine_openstack
        text = snippet("sidecar")
        self.assertLessEqual(len(text.strip().splitlines()), 5)
        with mock.patch.object(brine_openstack.Sidecar, "call", return_value=True) as call:
            exec(compile(ast.parse(text), "heat.md", "exec"), {"DATABASE": "sqlite:////tmp/x", "print": lambda *a: None})
        call.assert_called_once_with("db-7", "test.ping")


class Heat(unittest.TestCase):
    def setUp(self):
        from tests import heat_case  # noqa: F401  skips without Heat

    def test_plugin(self):
        names = {}
        exec(snippet("heat-plugin"), names)
        self.assertIn("OS::Salt::SoftwareDeployment", names["resource_mapping"]())

    def test_environment(self):
        import yaml

        import brine_openstack.heat
        from heat.engine.resources.openstack.heat import software_deployment, structured_config
        registry = yaml.safe_load(snippet("heat-environment"))["resource_registry"]
        self.assertLessEqual(set(registry.values()), set(brine_openstack.heat.resource_mapping()))
        self.assertLessEqual(set(registry), {**software_deployment.resource_mapping(), **structured_config.resource_mapping()}.keys())

    def test_options(self):
        import configparser

        from brine_openstack.heat import engine
        rows = re.search(r"^## Options of `\[brine\]`\n(.*?)^## ", page(), re.M | re.S).group(1)
        named = {n for row in re.findall(r"^\| ([^|]+) \|", rows, re.M) for n in re.findall(r"`(\w+)`", row)}
        self.assertEqual(named, {o.name for o in engine.OPTIONS})
        for name in ("heat-conf", "heat-conf-virtual", "heat-conf-tls"):
            conf = configparser.ConfigParser()
            conf.read_string(snippet(name))
            self.assertLessEqual(set(conf["brine"]), named, name)


if __name__ == "__main__":
    unittest.main()
