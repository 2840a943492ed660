"""docs/openstack/sahara.md: its options are those of the code, and its settings do what it says."""

import configparser
import os
import pathlib
import re
import tempfile

from sahara_tests import sahara_case  # first: it skips without Sahara
from oslo_config import cfg
from sahara import main

from brine_openstack import sahara_remote
from brine_openstack import service

ROOT = pathlib.Path(__file__).resolve().parents[3]


def page():
    return (ROOT / "docs" / "openstack" / "sahara.md").read_text()


def snippet(name):
    """Return the text of the snippet whose fence has this name."""
    indent, text = re.search(r"^( *)```\w+ %s\n(.*?)^ *```$" % name, page(), re.M | re.S).groups()
    return "".join(line[len(indent):] + "\n" for line in text.splitlines())


class Page(sahara_case.SaharaCase):
    def test_options(self):
        rows = re.search(r"^## Options of `\[brine\]`\n(.*?)^## ", page(), re.M | re.S).group(1)
        named = {n for row in re.findall(r"^\| ([^|]+) \|", rows, re.M) for n in re.findall(r"`(\w+)`", row)}
        self.assertEqual(named, {o.name for o in sahara_remote.OPTIONS})

    def test_sahara_conf(self):
        self.assertIn("remote", {o.name for o in main.opts})
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
            f.write(snippet("sahara-conf"))
            f.flush()
            conf = cfg.ConfigOpts()
            conf.register_opts(main.opts)
            conf.register_opts(sahara_remote.OPTIONS, group=service.GROUP)
            conf(["--config-file", f.name], project="sahara")
        self.assertEqual((conf.remote, conf.brine.socket), ("brine", "/run/brine/api.sock"))
        self.assertEqual(service.open_master(conf.brine, "sahara", None, None).path, "/run/brine/api.sock")
        parser = configparser.ConfigParser()
        parser.read_string(snippet("sahara-conf"))
        self.assertEqual(sorted(parser), ["DEFAULT", "brine"])

    def test_master_takes_sahara(self):
        text = snippet("master")
        self.assertIn("socket: %s\n" % "/run/brine/api.sock", text)
        self.assertRegex(text, r"(?m)^    sahara: \['\.\*'\]$")

    def test_stream(self):
        self.master.answer = lambda o: sahara_case.returned({"retcode": 0, "stdout": "cmVzdWx0" if "base64" in str(o["arg"]) else "", "stderr": ""})
        one = sahara_case.instance()
        one.remote = lambda: sahara_remote.Remote(one)
        names = {"instance": one, "instances": [one]}
        directory = tempfile.TemporaryDirectory(prefix="brine-")
        self.addCleanup(directory.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(directory.name)
        pathlib.Path("jobs.tar").write_bytes(b"x" * 100)
        exec(snippet("stream"), names)
        self.assertEqual((pathlib.Path("result").read_text(), names["size"], names["codes"]), ("result", 6, {"n-1": (0, "")}))

    def test_install(self):
        path = snippet("install").split()[-1]
        self.assertTrue((ROOT / path / "pyproject.toml").is_file(), path)

    def test_agent_has_what_the_driver_calls(self):
        has = re.search(r'MODULES="(.*)"', snippet("agent")).group(1).split()
        called = set(re.findall(r'_order\("(\w+)\.', pathlib.Path(sahara_remote.__file__).read_text()))
        self.assertLessEqual(called, set(has))
        self.assertGreaterEqual(called, {"cmd", "grains", "http", "pkg"})
        self.assertIn("cp", has)  # cmd.script has the order's files from it

    def test_words(self):
        said = pathlib.Path(sahara_remote.__file__).read_text() + pathlib.Path(sahara_remote.master.__file__).read_text()
        for words in ("the master's secrets cannot be sealed: set sealing_key_file", "the minion refused the job"):
            self.assertIn(words, said)
            self.assertIn(words, page())
