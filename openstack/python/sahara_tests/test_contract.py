"""brine's remote driver beside Sahara's own, whichever version is installed: the same methods with the same arguments."""

import inspect
import pathlib
import re

from sahara_tests import sahara_case  # first: it skips without Sahara
from sahara import exceptions as ex
from sahara import main
from sahara.service import engine
from sahara.utils import remote
from sahara.utils import ssh_remote

from brine_openstack import sahara_remote

HERE = pathlib.Path(__file__).resolve().parents[1]


def public(cls):
    return {n: f for n, f in inspect.getmembers(cls, inspect.isfunction) if not n.startswith("_")}


def arguments(function):
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


class Contract(sahara_case.SaharaCase):
    def test_nothing_abstract_is_left(self):
        self.assertEqual(len(remote.Remote.__abstractmethods__), 11)
        self.assertEqual(len(remote.RemoteDriver.__abstractmethods__), 4)
        for cls in (sahara_remote.Remote, sahara_remote.Driver):
            self.assertEqual(cls.__abstractmethods__, frozenset())

    def test_every_method_of_ssh_is_there_with_its_arguments(self):
        for ours, theirs in ((sahara_remote.Remote, ssh_remote.InstanceInteropHelper), (sahara_remote.Driver, ssh_remote.SshRemoteDriver)):
            for name, function in public(theirs).items():
                with self.subTest(name):
                    self.assertEqual(arguments(getattr(ours, name)), arguments(function))
        extras = set(public(ssh_remote.InstanceInteropHelper)) - remote.Remote.__abstractmethods__
        self.assertEqual(extras, {"prepend_to_file", "get_os_version", "get_python_version", "install_packages", "update_repository",
                                  "replace_remote_line", "execute_on_vm_interactive"})
        self.assertEqual(set(public(sahara_remote.Remote)) - set(public(ssh_remote.InstanceInteropHelper)), {"prepend_to_files", "read_file_into"})
        # What Sahara calls on the driver's remote and is not a method of the class: a context.
        for name in ("__enter__", "__exit__"):
            self.assertTrue(hasattr(sahara_remote.Remote, name))

    def test_defaults_are_those_of_ssh(self):
        for ours, theirs in (("timeout_common", "ssh_timeout_common"), ("timeout_files", "ssh_timeout_files")):
            self.assertEqual(sahara_case.CONF.brine[ours], sahara_case.CONF[theirs])

    def test_sahara_loads_it(self):
        # Sahara asks stevedore for sahara.remote; pyproject.toml says where it is.
        project = (HERE / "pyproject.toml").read_text()
        name, place = re.search(r'\[project.entry-points."sahara.remote"\]\n(\w+) = "(.+)"', project).groups()
        self.assertEqual((name, place), ("brine", "%s:%s" % (sahara_remote.Driver.__module__, sahara_remote.Driver.__qualname__)))
        self.assertIn("'sahara.remote', CONF.remote", inspect.getsource(main._get_remote_driver))
        driver = sahara_remote.Driver()
        remote.setup_remote(driver, "engine")
        self.addCleanup(setattr, remote, "DRIVER", None)
        self.assertEqual(remote.get_remote_type_and_version(), "brine.1.0")
        self.assertIsInstance(remote.get_remote(sahara_case.instance()), sahara_remote.Remote)

    def test_user_data_stays_as_it_is(self):
        # Heat replaces a server whose user data changes, so the template must have nothing that does.
        self.patch(remote, "DRIVER", new=sahara_remote.Driver())
        node_group = sahara_case.instance().node_group
        node_group.cluster.management_public_key = "key"
        texts = [engine.Engine._generate_user_data_script(None, node_group, n) for n in ("a", "b")]
        self.assertEqual(texts[0], texts[1])

    def test_exceptions(self):
        self.assertEqual([p for p in inspect.signature(ex.RemoteCommandException.__init__).parameters][1:], ["cmd", "ret_code", "stdout", "stderr"])
        self.assertEqual([p for p in inspect.signature(ex.TimeoutException.__init__).parameters][1:], ["timeout", "op_name", "timeout_name"])
