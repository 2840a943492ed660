"""The sidecar with the real programs: BRINE_MASTER_PROGRAM and BRINE_MINION_PROGRAM, or those in PATH."""

import glob
import json
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import brine_openstack
from brine_openstack import sidecar

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def program(name, variable):
    """Return the path of a program of brine. make openstack sets BRINE_OPENSTACK: there, a missing one is a failure."""
    found = shutil.which(os.environ.get(variable) or name)
    if not found and not os.environ.get("BRINE_OPENSTACK"):
        raise unittest.SkipTest("%s is not in PATH, and %s is not set" % (name, variable))
    assert found, name
    return found


def ports():
    """Return two ports that are free now."""
    with socket.create_server(("127.0.0.1", 0)) as a, socket.create_server(("127.0.0.1", 0)) as b:
        return a.getsockname()[1], b.getsockname()[1]


def until(what, seconds=30):
    """Wait until what() is true and return it."""
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("it did not happen within %g seconds" % seconds)
        time.sleep(0.05)


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class SidecarCase(unittest.TestCase):
    def setUp(self):
        program("brine-master", "BRINE_MASTER_PROGRAM")
        directory = tempfile.TemporaryDirectory(prefix="brine-")
        self.addCleanup(directory.cleanup)
        self.directory = os.path.join(directory.name, "sc")
        self.ports = ports()
        self.processes = []
        self.addCleanup(self.end)

    def end(self):
        for p in self.processes:
            p.kill()
            p.wait()
        until(lambda: not (self.pid() and alive(self.pid())))

    def options(self):
        return dict(directory=self.directory, interface="127.0.0.1", publish_port=self.ports[0], ret_port=self.ports[1])

    def sidecar(self, **more):
        s = brine_openstack.Sidecar(**dict(self.options(), **more))
        self.addCleanup(s.close)
        return s

    def pid(self):
        try:
            with open(os.path.join(self.directory, "pid")) as f:
                return int(f.read() or 0)
        except (FileNotFoundError, ValueError):
            return 0

    def child(self, code, before=""):
        """Start a Python process that has a Sidecar s, and return it once it has printed a line."""
        text = "%s\nimport sys, time, os\nfrom brine_openstack import Sidecar\ns = Sidecar(**%r)\n%s\n" % (before, self.options(), code)
        p = subprocess.Popen([sys.executable, "-W", "ignore", "-c", text], cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(p.stdin.close)
        self.addCleanup(p.stdout.close)
        self.processes.append(p)
        return p

    def minion(self, bootstrap):
        directory = os.path.join(os.path.dirname(self.directory), "minion")
        os.makedirs(directory)
        config = dict(json.loads(bootstrap["json"])["config"], user="root" if os.geteuid() == 0 else "")
        for name in ("cachedir", "sock_dir", "pki_dir"):
            config[name] = os.path.join(directory, name)
        config.update(root_dir=directory, log_file=os.path.join(directory, "log"), pidfile=os.path.join(directory, "pid"))
        with open(os.path.join(directory, "minion"), "w") as f:
            json.dump(config, f)
        p = subprocess.Popen([program("brine-minion", "BRINE_MINION_PROGRAM"), "minion", "-c", directory], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]})
        self.processes.append(p)


class Life(SidecarCase):
    def test_call(self):
        salt = self.sidecar()
        self.minion(salt.announce("db-7"))
        self.assertIs(salt.call("db-7", "test.ping"), True)
        self.assertEqual(salt.call(["db-7"], "test.echo", "x"), {"db-7": "x"})
        with self.assertRaises(brine_openstack.JobError) as caught:
            salt.call("db-7", "no.such")
        self.assertIn("'no.such' is not available", str(caught.exception))
        with self.assertRaises(brine_openstack.JobError) as caught:
            salt.call("db-8", "test.ping", timeout=0.5)
        self.assertIn("db-8", str(caught.exception))

    def test_order_with_files(self):
        salt = self.sidecar()
        self.minion(salt.announce("db-7"))
        salt.place("o-1", "db-7", "cmd.script", arg=["salt://_order/o-1/script"], files={"script": "#!/bin/sh\necho ran"}, secret=True, metadata={"a": "b"})
        done = salt.order("o-1", wait=30)
        self.assertEqual(done["minions"]["db-7"]["return"]["stdout"], "ran")
        self.assertEqual([o["id"] for o in salt.orders(a="b")], ["o-1"])

    def test_nobody_else_may_look(self):
        salt = self.sidecar()
        salt.ensure()
        for name, mode in {"": 0o700, "conf": 0o700, "pki": 0o700, "cache": 0o700, "run": 0o700, "conf/master": 0o600, "stderr": 0o600}.items():
            st = os.stat(os.path.join(self.directory, name))
            self.assertEqual(stat.S_IMODE(st.st_mode) & 0o077, 0, name)
        with open(os.path.join(self.directory, "conf", "master")) as f:
            conf = json.load(f)
        self.assertEqual(conf["external_auth"], {"peer": {str(os.geteuid()): [".*", "@runner", "@wheel"]}})
        self.assertFalse([k for k in conf if "password" in k])

    def test_ends_with_close(self):
        salt = self.sidecar()
        salt.ensure()
        pid = self.pid()
        salt.close()
        self.assertFalse(alive(pid))

    def test_ends_with_its_parent(self):
        p = self.child("s.ensure(); print(s.owner(), flush=True); time.sleep(600)")
        self.assertEqual(p.stdout.readline(), "True\n")
        pid = self.pid()
        self.assertTrue(alive(pid))
        p.kill()
        p.wait()
        until(lambda: not alive(pid), 10)

    def test_starts_again(self):
        salt = self.sidecar()
        salt.ensure()
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(salt.minions(), [])
        self.assertNotEqual(self.pid(), pid)

    def test_starts_again_without_a_request(self):
        salt = self.sidecar()
        salt.ensure()
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        until(lambda: self.pid() not in (0, pid) and salt.healthy())

    def test_workers_share_one(self):
        code = "s.ensure(); print(os.getpid(), s.owner(), flush=True)\nfor line in sys.stdin: print(s.minions(), s.owner(), flush=True)"
        workers = [self.child(code) for _ in range(3)]
        said = {p: p.stdout.readline().split() for p in workers}
        owners = [p for p in workers if said[p][1] == "True"]
        self.assertEqual(len(owners), 1)
        first = self.pid()
        owners[0].kill()
        owners[0].wait()
        rest = [p for p in workers if p not in owners]
        until(lambda: self.pid() not in (0, first) and alive(self.pid()))
        answers = []
        for p in rest:
            p.stdin.write("\n")
            p.stdin.flush()
            answers.append(p.stdout.readline().split())
        self.assertEqual(sorted(answers), [["[]", "False"], ["[]", "True"]])

    def test_a_forked_child_holds_nothing(self):
        code = """
s.ensure(); parent = os.getpid()
if os.fork() == 0:
    print(s.minions(), s.owner(), flush=True); time.sleep(600); os._exit(0)
time.sleep(600)
"""
        p = self.child(code)
        self.assertEqual(p.stdout.readline(), "[] False\n")
        pid = self.pid()
        children = subprocess.run(["pgrep", "-P", str(p.pid), "-f", "python"], capture_output=True, text=True).stdout.split()
        p.kill()
        p.wait()
        until(lambda: not alive(pid), 10)
        until(lambda: self.pid() not in (0, pid) and alive(self.pid()))  # the child takes over
        for c in children:
            os.kill(int(c), signal.SIGKILL)

    def test_an_owner_that_stops_is_no_owner(self):
        # The lock is the process's, not a file's: a stale file does not matter.
        sidecar.private_directory(self.directory)
        with open(os.path.join(self.directory, "owner"), "w") as f:
            f.write("1\n")
        salt = self.sidecar()
        self.assertEqual(salt.minions(), [])
        self.assertTrue(salt.owner())


class Hosts(SidecarCase):
    """Two hosts with a sidecar each over one PostgreSQL, Debian's: they are one master."""

    def postgres(self):
        """Start a server and return its database's URL, as a service's configuration has it."""
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if (not found or os.geteuid() != 0) and not os.environ.get("BRINE_OPENSTACK"):
            raise unittest.SkipTest("this needs root and Debian's postgresql")
        directory = tempfile.TemporaryDirectory(prefix="brine-pg-")
        self.addCleanup(directory.cleanup)
        user = pwd.getpwnam("postgres")
        os.chown(directory.name, user.pw_uid, user.pw_gid)
        data, port = os.path.join(directory.name, "data"), ports()[0]
        run = dict(user=user.pw_uid, group=user.pw_gid, extra_groups=[], cwd=directory.name, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"})
        subprocess.run([found[-1] + "/initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8"], check=True, **run)
        server = subprocess.Popen([found[-1] + "/postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", directory.name, "-F"], **run)
        self.addCleanup(server.wait)
        self.addCleanup(server.send_signal, signal.SIGINT)

        def serves():
            return subprocess.run([found[-1] + "/psql", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-c", "select 1"], **run).returncode == 0
        until(serves)
        return "postgresql+psycopg2://postgres@127.0.0.1:%d/postgres" % port

    def test_one_master_over_postgresql(self):
        db, base = self.postgres(), self.directory
        addresses = ["127.0.0.1", "127.0.0.2"]
        advertise = ["%s:%d" % (a, self.ports[1]) for a in addresses]
        one, two = (self.sidecar(db=db, key="shared by both hosts", directory=base + a[-1], interface=a, advertise=advertise) for a in addresses)
        self.minion(one.announce("db-7"))
        self.assertIs(one.call("db-7", "test.ping"), True)
        self.assertEqual(two.call("db-7", "test.echo", "from the other"), "from the other")
        one.place("o-1", "db-8", "test.ping")
        self.assertEqual(two.order("o-1")["minions"]["db-8"]["status"], "queued")
        one.close()
        self.assertIs(two.call("db-7", "test.ping", timeout=60), True)


class Mistakes(SidecarCase):
    def test_no_program(self):
        salt = self.sidecar(program="/no/such/program")
        with self.assertRaisesRegex(brine_openstack.SidecarError, "there is no program /no/such/program"):
            salt.minions()

    def test_a_program_that_ends(self):
        salt = self.sidecar(config={"shared_database": "/nowhere/x", "shared_key_file": "/nowhere/key"})
        with self.assertRaisesRegex(brine_openstack.SidecarError, "the master does not start .*nowhere"):
            salt.minions()

    def test_long_path(self):
        with self.assertRaisesRegex(brine_openstack.SidecarError, "longer than 107 bytes"):
            brine_openstack.Sidecar(directory="/tmp/" + "x" * 120)

    def test_someone_elses_directory(self):
        os.symlink("/", self.directory)
        with self.assertRaisesRegex(brine_openstack.SidecarError, "is not a directory of this user"):
            self.sidecar().minions()


class Surroundings(SidecarCase):
    def test_eventlet(self):
        try:
            import eventlet  # noqa: F401
        except ModuleNotFoundError:
            if os.environ.get("BRINE_OPENSTACK"):
                raise
            self.skipTest("eventlet is not installed")
        code = """
ticks = []
def tick():
    while True: ticks.append(time.monotonic()); eventlet.sleep(0.01)
eventlet.spawn(tick)
s.announce("db-7")
pile = [eventlet.spawn(s.call, "db-7", "test.ping", timeout=1) for _ in range(50)]
errors = 0
for g in pile:
    try: g.wait()
    except Exception as e: errors += "undeliverable" in str(e) or "no result" in str(e)
gap = max(b - a for a, b in zip(ticks, ticks[1:]))
print(errors, gap < 1, s.owner(), flush=True)
sys.stdin.read()
"""
        p = self.child(code, before="import eventlet; eventlet.monkey_patch()")
        self.assertEqual(p.stdout.readline(), "50 True True\n")
        pid = self.pid()
        p.kill()
        p.wait()
        until(lambda: not alive(pid), 10)

    def test_uwsgi(self):
        uwsgi = shutil.which("uwsgi") or shutil.which("uwsgi-core")
        if not uwsgi:
            if os.environ.get("BRINE_OPENSTACK"):
                self.fail("uwsgi is not installed")
            self.skipTest("uwsgi is not installed")
        work = os.path.dirname(self.directory)
        with open(os.path.join(work, "app.py"), "w") as f:
            f.write("import os, sys\nsys.path.insert(0, %r)\nfrom brine_openstack import Sidecar\ns = Sidecar(**%r)\n"
                    "def application(env, start):\n    text = '%%d %%s %%s' %% (os.getpid(), s.minions(), s.owner())\n"
                    "    start('200 OK', [])\n    return [text.encode()]\n" % (HERE, self.options()))
        port = ports()[0]
        p = subprocess.Popen([uwsgi, "--plugin", "python3", "--http-socket", "127.0.0.1:%d" % port, "--master", "--workers", "3", "--enable-threads",
                              "--wsgi-file", os.path.join(work, "app.py"), "--die-on-term", "--lazy-apps"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(p)
        until(lambda: self.listens(port))
        answers = {self.get(port) for _ in range(30)}
        self.assertTrue(all(re.fullmatch(r"\d+ \[\] (True|False)", a) for a in answers), answers)
        self.assertLessEqual(len({a.split()[0] for a in answers if a.endswith("True")}), 1)
        pid = self.pid()
        p.terminate()
        p.wait(30)
        until(lambda: not alive(pid), 10)

    @staticmethod
    def listens(port):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0

    @staticmethod
    def get(port):
        with socket.create_connection(("127.0.0.1", port), 30) as s:
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            data = b""
            while True:
                piece = s.recv(4096)
                if not piece:
                    return data.partition(b"\r\n\r\n")[2].decode()
                data += piece


if __name__ == "__main__":
    unittest.main()
