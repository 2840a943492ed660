"""What the driver makes of operations, with a master that is a few dictionaries."""

import hashlib
import io
import re
import subprocess
import tempfile
import time

from sahara_tests import sahara_case  # first: it skips without Sahara
import requests
from sahara import exceptions as ex

from brine_openstack import master as brine
from brine_openstack import sahara_remote


def ran(stdout="", code=0, stderr=""):
    return sahara_case.returned({"retcode": code, "stdout": stdout, "stderr": stderr, "pid": 1})


class Commands(sahara_case.SaharaCase):
    def test_order(self):
        self.master.answer = lambda o: ran("out\n", 0, "err\n")
        r = sahara_remote.Remote(sahara_case.instance(user="ubuntu", tenant="p1"))
        before = time.time()
        with r as same:
            self.assertEqual(same.execute_command("id", get_stderr=True, timeout=20), (0, "out\n", "err\n"))
        order, = self.master.placed
        self.assertEqual((order["tgt"], order["fun"], order["arg"], order["tenant"]), (["n-1"], "cmd.run_all", ["id"], "p1"))
        self.assertEqual((order["kwarg"]["runas"], order["kwarg"]["shell"], order["kwarg"]["rstrip"]), ("ubuntu", "/bin/bash", False))
        self.assertEqual((order["parallel"], order["secret"], order["ttl"]), (True, True, 20))
        self.assertAlmostEqual(order["deadline"], before + 20, delta=5)

    def test_root_begins_in_the_users_home(self):
        r = sahara_remote.Remote(sahara_case.instance(user="ubuntu"))
        r.execute_command("ls", run_as_root=True)
        order, = self.master.placed
        self.assertEqual(order["arg"], ["cd ~ubuntu; ls"])
        self.assertNotIn("runas", order["kwarg"])
        self.assertEqual(order["ttl"], 300)

    def test_no_name_of_a_user(self):
        for user in ("a b", "", "$(id)", None):
            with self.assertRaises(ex.InvalidDataException):
                sahara_remote.Remote(sahara_case.instance(user=user))

    def test_failures(self):
        r = sahara_remote.Remote(sahara_case.instance())
        self.master.answer = lambda o: ran("o", 3, "e")
        self.assertEqual(r.execute_command("false", raise_when_error=False), (3, "o"))
        with self.assertRaises(ex.RemoteCommandException) as caught:
            r.execute_command("false")
        self.assertEqual((caught.exception.ret_code, caught.exception.stdout, caught.exception.stderr), (3, "o", "e"))
        for status in ("undeliverable", "timed out", "cancelled"):
            self.master.answer = lambda o, status=status: {"status": status}
            with self.assertRaisesRegex(ex.TimeoutException, r'Executing "false".* timed out after 300 second'):
                r.execute_command("false")
        self.master.answer = lambda o: {"status": "lost"}
        with self.assertRaisesRegex(ex.RemoteCommandException, "lost: the minion took the job"):
            r.execute_command("false")
        self.master.answer = lambda o: sahara_case.returned("'pkg.install' is not available.", 254)
        with self.assertRaisesRegex(ex.RemoteCommandException, "'pkg.install' is not available"):
            r.install_packages(["x"])

    def test_what_is_late_is_ended(self):
        r = sahara_remote.Remote(sahara_case.instance())
        self.master.answer = lambda o: {"status": "underway"}
        with self.assertRaises(ex.TimeoutException):
            r.execute_command("sleep 100", timeout=0.2)
        self.assertEqual(self.master.cancelled, [o["id"] for o in self.master.placed])

    def test_no_master(self):
        def away(*args, **kwargs):
            raise brine.Unavailable("cannot reach the master")
        self.master.place = away
        with self.assertRaisesRegex(ex.SystemError, "cannot reach the master"):
            sahara_remote.Remote(sahara_case.instance()).execute_command("id")

    def test_everywhere(self):
        self.master.answer = lambda o: ran("x\n")
        nodes = [sahara_case.instance("n-%d" % i) for i in range(200)]
        self.assertEqual(sahara_remote.execute_everywhere(nodes, "id"), {"n-%d" % i: (0, "x\n") for i in range(200)})
        self.assertEqual(len(self.master.placed), 1)
        self.assertEqual(sahara_remote.execute_everywhere([], "id"), {})
        with self.assertRaisesRegex(ex.InvalidDataException, "different projects"):
            sahara_remote.execute_everywhere([sahara_case.instance(tenant="a"), sahara_case.instance("n-2", tenant="b")], "id")

    def test_os(self):
        r = sahara_remote.Remote(sahara_case.instance())
        self.master.answer = lambda o: sahara_case.returned({"os": "CentOS", "osrelease": "7.9.2009"}[o["arg"][0]])
        self.assertEqual((r.get_os_distrib(), r.get_os_version()), ("centos", "7.9.2009"))
        self.master.answer = lambda o: ran(code=1 if "python3" in o["arg"][0] else 0)
        self.assertEqual(r.get_python_version(), "python2")
        with self.assertRaisesRegex(ex.NotImplementedException, "needs a terminal"):
            r.execute_on_vm_interactive("x", None)

    def test_sealing_key(self):
        with self.assertRaisesRegex(brine.Error, "set sealing_key_file"):
            sahara_remote._sealing_key()


class Files(sahara_case.SaharaCase):
    """The scripts that write files, run by this host's shell."""

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory(prefix="brine-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def write(self, writes):
        text = sahara_remote.script(writes, "root").replace(b"cd ~root", ("cd %s" % self.directory).encode().ljust(8), 1)
        # The place of the content counts from the start of the file.
        grown = len(self.directory) - len("~root")
        text = re.sub(rb"tail -c \+(\d+)", lambda m: b"tail -c +%d" % (int(m.group(1)) + grown), text)
        with open(self.directory + "/script", "wb") as f:
            f.write(text)
        subprocess.run(["sh", self.directory + "/script"], check=True)

    def read(self, name):
        with open(self.directory + "/" + name, "rb") as f:
            return f.read()

    def test_script(self):
        odd = bytes(range(256)) * 9
        self.write([("a b", ">", b""), ("it's", ">", odd), ("c", ">", b"exit 1\n")])
        self.assertEqual([self.read(n) for n in ("a b", "it's", "c")], [b"", odd, b"exit 1\n"])
        self.write([("c", ">>", odd), ("it's", "prepend", b"first\n"), ("new", ">>", b"x")])
        self.assertEqual([self.read(n) for n in ("c", "it's", "new")], [b"exit 1\n" + odd, b"first\n" + odd, b"x"])

    def test_one_order_for_several_files(self):
        r = sahara_remote.Remote(sahara_case.instance(user="ubuntu"))
        r.write_files_to({"/etc/a": "text \u00e9", "/etc/b": b"\0\xff"})
        order, = self.master.placed
        self.assertEqual((order["fun"], order["arg"], order["kwarg"]), ("cmd.script", ["salt://_order/%s/write" % order["id"]], {"runas": "ubuntu"}))
        self.assertTrue(order["uploads"]["write"].endswith("text \u00e9".encode() + b"\0\xff"))
        self.assertAlmostEqual(order["ttl"], 600, delta=5)

    def test_large_files_go_in_parts(self):
        self.patch(sahara_remote, "SEND", new=10)
        r = sahara_remote.Remote(sahara_case.instance())
        r.write_file_to("/x", io.BytesIO(b"0123456789" * 2 + b"abc"))
        *parts, last = self.master.placed
        self.assertEqual([re.search(rb'head -c (\d+) (>>?)', o["uploads"]["write"]).groups() for o in parts], [(b"10", b">"), (b"10", b">>"), (b"3", b">>")])
        self.assertIn(hashlib.sha256(b"0123456789" * 2 + b"abc").hexdigest(), last["arg"][0])
        self.assertRegex(last["arg"][0], r"mv -f -- /x\.\w+ /x$")

    def test_what_is_in_part_is_removed(self):
        self.patch(sahara_remote, "SEND", new=10)
        self.master.answer = lambda o: ran(code=1, stderr="No space left") if len(self.master.placed) == 2 else ran()
        with self.assertRaisesRegex(ex.RemoteCommandException, "No space left"):
            sahara_remote.Remote(sahara_case.instance()).append_to_file("/x", "0123456789" * 3)
        self.assertRegex(self.master.placed[-1]["arg"][0], r"rm -f -- /x\.\w+$")

    def test_content_is_in_no_log(self):
        with self.assertLogs(level="DEBUG") as logs:
            sahara_remote.Remote(sahara_case.instance()).write_file_to("/x", "k4n4rie")
        self.assertIn('Writing files "[\'/x\']" on n-1', logs.output[0])
        self.assertNotIn("k4n4rie", "".join(logs.output))


class Web(sahara_case.SaharaCase):
    def setUp(self):
        super().setUp()
        self.remote = sahara_remote.Remote(sahara_case.instance())
        self.said = {"status": 200, "headers": {"Content-Type": "application/json", "Content-Encoding": "gzip"}, "body": '{"a": 1}'}
        self.master.answer = lambda o: sahara_case.returned(self.said)

    def test_request(self):
        session = self.remote.get_http_client(8080)
        got = session.post("http://198.51.100.7:8080/x?y=1", json={"q": 2}, headers={"X-A": "b"}, timeout=7, verify=False)
        self.assertEqual((got.status_code, got.json(), got.ok, got.reason), (200, {"a": 1}, True, "ok"))
        order, = self.master.placed
        self.assertEqual((order["fun"], order["arg"]), ("http.query", ["http://192.0.2.7:8080/x?y=1"]))
        kwarg = order["kwarg"]
        self.assertEqual((kwarg["method"], kwarg["data"].replace(" ", ""), kwarg["verify_ssl"], kwarg["raise_error"]), ("POST", '{"q":2}', False, False))
        self.assertEqual((kwarg["header_dict"]["X-A"], kwarg["header_dict"]["Content-Type"]), ("b", "application/json"))
        self.assertEqual(kwarg["opts"], {"http_request_timeout": 7, "http_max_body": 64 << 20})

    def test_errors(self):
        session = self.remote.get_http_client(8080)
        self.said = {"status": 404, "headers": {}, "body": "no"}
        self.assertEqual(session.get("http://127.0.0.1/").status_code, 404)
        self.said = {"status": 0, "error": "[Errno 111] Connection refused"}
        with self.assertRaisesRegex(requests.exceptions.ConnectionError, "Connection refused"):
            session.get("http://127.0.0.1/")
        self.said = {"status": 599, "error": "Timeout"}
        with self.assertRaises(requests.exceptions.ReadTimeout):
            session.get("http://127.0.0.1/")
        self.master.answer = lambda o: {"status": "timed out"}
        with self.assertRaises(requests.exceptions.ReadTimeout):
            session.get("http://127.0.0.1/", timeout=(1, 2))

    def test_sessions(self):
        session = self.remote.get_http_client(8080, info=self.remote.get_neutron_info())
        self.assertIs(sahara_remote.Remote(sahara_case.instance()).get_http_client("8080"), session)
        self.remote.close_http_session(8080)
        with self.assertRaisesRegex(ex.NotFoundException, "not cached"):
            self.remote.close_http_session(8080)
