"""docs/openstack/trove.md: its options are those of the code, and its settings do what it says."""

import configparser
import os
import re

from trove_tests import trove_case  # first: it skips without Trove
from trove.common import cfg

from brine_openstack import trove_client
from brine_openstack import trove_conductor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def page():
    with open(os.path.join(ROOT, "docs", "openstack", "trove.md")) as f:
        return f.read()


def settings(name):
    """Return the snippet with this name as a configuration file."""
    indent, text = re.search(r"^( *)```ini %s\n(.*?)^ *```$" % name, page(), re.M | re.S).groups()
    conf = configparser.ConfigParser()
    conf.read_string("".join(line[len(indent):] + "\n" for line in text.splitlines()))
    return conf


class Page(trove_case.TroveCase):
    def test_options(self):
        rows = re.search(r"^## Options of `\[brine\]`\n(.*?)^## ", page(), re.M | re.S).group(1)
        named = {n for row in re.findall(r"^\| ([^|]+) \|", rows, re.M) for n in re.findall(r"`(\w+)`", row)}
        self.assertEqual(named, {o.name for o in trove_client.OPTIONS})

    def test_trove_conf(self):
        conf = settings("trove-conf")
        known = {o.name for o in cfg.common_opts}
        self.assertLessEqual(set(conf["DEFAULT"]), known)
        values = conf["DEFAULT"]
        self.assertEqual([values["remote_guest_client"], values["remote_nova_client"], values["conductor_manager"]],
                         ["%s.%s" % (x.__module__, x.__name__) for x in (trove_client.guest_client, trove_client.nova_client, trove_conductor.Manager)])
        trove_case.CONF.set_override("taskmanager_rpc_encr_key", values["taskmanager_rpc_encr_key"])
        self.addCleanup(trove_case.CONF.clear_override, "taskmanager_rpc_encr_key")
        self.assertTrue(trove_client._sealing_key())
        self.assertLessEqual(set(conf["brine"]) - set(values), {o.name for o in trove_client.OPTIONS})

    def test_guests(self):
        trove_case.CONF.set_override("guests", settings("guests")["brine"]["guests"].split(","), "brine")
        wanted = [trove_client.wanted(self.instance(*v)) for v in (("mariadb", "10.11"), ("mariadb", "10.6"), ("mysql", "8.0"))]
        self.assertEqual(wanted, [True, False, False])

    def test_files(self):
        self.assertIn(trove_client.REBUILT, page())

    def test_words(self):
        # What the page says is seen is what the code says.
        with open(trove_client.__file__) as f:
            said = f.read()
        with open(trove_conductor.__file__) as f:
            said += f.read()
        for words in ("the master's secrets cannot be sealed: set taskmanager_rpc_encr_key", "cannot tell which agent the guest",
                      "which is not its own"):
            self.assertIn(words, said)
            self.assertIn(words, page())
