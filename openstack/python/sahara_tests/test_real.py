"""The driver with a real master and real minions: BRINE_MASTER_PROGRAM and BRINE_MINION_PROGRAM, or those in PATH; as root."""

import collections
import concurrent.futures
import hashlib
import http.server
import json
import os
import pathlib
import pwd
import subprocess
import threading
import time

from sahara_tests import sahara_case  # first: it skips without Sahara
from tests import test_sidecar
from sahara import exceptions as ex

from brine_openstack import sahara_remote

# Memory, in bytes, beside what each program has before: a file of a gibibyte has to fit through.
MOST = {"client": 160 << 20, "master": 300 << 20, "minion": 200 << 20}


class Real(test_sidecar.SidecarCase):
    """Minions of this host, each with a directory of its own."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs root, to run commands as other users")
        sahara_case.CONF([], project="sahara", default_config_files=[])
        self.salt = self.sidecar()
        patcher = sahara_case.mock.patch.object(sahara_remote, "client", return_value=self.salt)
        self.addCleanup(patcher.stop)
        patcher.start()
        self.room = pathlib.Path(self.directory).parent

    def start(self, name, user="root"):
        """Start a minion and return the driver's remote of it."""
        directory = self.room / name
        directory.mkdir()
        config = dict(json.loads(self.salt.announce(name)["json"])["config"], user="root", root_dir=str(directory), log_file=str(directory / "log"),
                      pidfile=str(directory / "pid"), **{n: str(directory / n) for n in ("cachedir", "sock_dir", "pki_dir")})
        (directory / "minion").write_text(json.dumps(config))
        p = subprocess.Popen([test_sidecar.program("brine-minion", "BRINE_MINION_PROGRAM"), "minion", "-c", str(directory)],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]})
        self.processes.append(p)
        return sahara_remote.Remote(sahara_case.instance(name, user=user, management_ip="198.51.100.7", internal_ip="127.0.0.1"))


class Methods(Real):
    def test_one_node(self):
        user = "games"
        home = pwd.getpwnam(user).pw_dir
        r = self.start("node-1", user)
        for directory in (self.room, self.room / "work"):
            directory.mkdir(exist_ok=True)
            directory.chmod(0o777)
        work = self.room / "work"

        # Commands: as the image's user, and as root, with what a shell does.
        self.assertEqual(r.execute_command("id -un; echo $USER", get_stderr=True), (0, "%s\n%s\n" % (user, user), ""))
        self.assertEqual(r.execute_command("id -un && echo {a,b} >&2", run_as_root=True, get_stderr=True)[:2], (0, "root\n"))
        self.assertEqual(r.execute_command("exit 3", raise_when_error=False), (3, ""))
        with self.assertRaises(ex.RemoteCommandException) as caught:
            r.execute_command("echo out; echo err >&2; exit 4")
        self.assertEqual((caught.exception.ret_code, caught.exception.stdout, caught.exception.stderr), (4, "out\n", "err\n"))
        if os.path.isdir(home):
            self.assertEqual([r.execute_command("pwd", run_as_root=root)[1] for root in (False, True)], [home + "\n"] * 2)
        mark = work / "survivor"
        with self.assertRaises(ex.TimeoutException):
            r.execute_command("sleep 4; touch %s" % mark, timeout=1)
        time.sleep(4)
        self.assertFalse(mark.exists(), "what timed out went on")

        # Files.
        odd = bytes(range(256)) * 7
        files = {str(work / "a b"): "text \u00e9\n", str(work / "it's"): odd}
        r.write_files_to(files)
        r.write_file_to(str(work / "root"), "r", run_as_root=True)
        self.assertEqual([(p.owner(), p.stat().st_mode & 0o777) for p in (work / "a b", work / "root")], [(user, 0o644), ("root", 0o644)])
        self.assertEqual([r.read_file_from(f) for f in files], ["text \u00e9\n", odd])
        r.append_to_file(str(work / "a b"), "more\n")
        r.append_to_files({str(work / "a b"): "yet more\n"}, run_as_root=True)
        r.prepend_to_file(str(work / "a b"), "first\n")
        self.assertEqual(r.read_file_from(str(work / "a b")), "first\ntext \u00e9\nmore\nyet more\n")
        (work / "root").chmod(0o600)
        with self.assertRaisesRegex(ex.RemoteCommandException, "(?i)permission denied"):
            r.read_file_from(str(work / "root"))
        self.assertEqual(r.read_file_from(str(work / "root"), run_as_root=True), "r")
        with self.assertRaisesRegex(ex.RemoteCommandException, "No such file"):
            r.read_file_from(str(work / "none"))
        r.write_file_to(str(work / "conf"), "a=1,2\nb='x'\nb=3\n", run_as_root=True)
        r.replace_remote_string(str(work / "conf"), "1,2", "3,4")
        r.replace_remote_line(str(work / "conf"), "b=", "c='it/s'")
        self.assertEqual((work / "conf").read_text(), "a=3,4\nc='it/s'\nc='it/s'\n")

        # What the host is.
        release = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
        self.assertEqual(r.get_os_distrib(), release["ID"].strip('"'))
        self.assertTrue(r.get_os_version().startswith(release["VERSION_ID"].strip('"')))
        self.assertEqual(r.get_python_version(), "python3")
        r.install_packages(["bash"])  # is there; the package manager is asked all the same
        with self.assertRaises(ex.RemoteCommandException):
            r.install_packages(["no-such-package-brine"])

        # The order's files are gone from the minion.
        self.assertEqual([p for p in (self.room / "node-1" / "cachedir").rglob("write") if p.is_file()], [])

    def test_http_from_the_guest(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                out = json.dumps([self.command, self.path, body.decode(), self.headers.get("X-A")]).encode()
                self.send_response(404 if self.path == "/none" else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(out)))
                self.end_headers()
                self.wfile.write(out)
            do_GET = do_PUT = do_POST = do_DELETE = answer

            def log_message(self, *args):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        r = self.start("node-1")
        session = r.get_http_client(port, info=r.get_neutron_info())
        url = "http://198.51.100.7:%d" % port  # which leads nowhere from here
        self.assertEqual(session.get(url + "/x?y=1", headers={"X-A": "b"}).json(), ["GET", "/x?y=1", "", "b"])
        self.assertEqual(session.put(url + "/x", data="body \u00e9".encode()).json()[:3], ["PUT", "/x", "body \u00e9"])
        self.assertEqual(session.get(url + "/none").status_code, 404)
        r.close_http_session(port)


class Large(Real):
    def test_each_way(self):
        size = int(os.environ.get("BRINE_SAHARA_MIB", "64")) << 20
        r = self.start("node-1")
        r.execute_command("true")
        source, target = self.room / "source", self.room / "target"
        digest = hashlib.sha256()
        with open(source, "wb") as f:
            block = os.urandom(1 << 20)
            for i in range(size >> 20):
                piece = i.to_bytes(8, "big") + block[8:]
                digest.update(piece)
                f.write(piece)
        pids = {"client": os.getpid(), "master": self.pid(), "minion": self.processes[-1].pid}
        for pid in pids.values():
            pathlib.Path("/proc/%d/clear_refs" % pid).write_text("5")  # the peak begins here
        before = {n: memory(pid, "VmRSS") for n, pid in pids.items()}
        with open(source, "rb") as f:
            r.write_file_to(str(target), f, timeout=3000)
        self.assertEqual(target.stat().st_size, size)
        self.assertEqual(sum_of(target), digest.hexdigest())
        source.unlink()
        back = hashlib.sha256()
        self.assertEqual(r.read_file_into(Sink(back), str(target), timeout=3000), size)
        self.assertEqual(back.hexdigest(), digest.hexdigest())
        grown = {n: memory(pid, "VmHWM") - before[n] for n, pid in pids.items()}
        print("a file of %d MiB each way; memory grew by %s" % (size >> 20, {n: "%d MiB" % (v >> 20) for n, v in grown.items()}))
        for n, most in MOST.items():
            self.assertLess(grown[n], most, n)


class Sink:
    """A file object that keeps the checksum only."""

    def __init__(self, digest):
        self.write = digest.update


def sum_of(path):
    return subprocess.run(["sha256sum", str(path)], check=True, capture_output=True, text=True).stdout.split()[0]


def memory(pid, field):
    for line in pathlib.Path("/proc/%d/status" % pid).read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) << 10
    raise AssertionError(field)


class Clusters(Real):
    def test_word_count_over_five_minions(self):
        # A job as Hadoop's: the input is distributed, each node maps its part, the results are fetched and reduced.
        nodes = [self.start("node-%d" % i) for i in range(5)]
        words = ["sahara", "savanna", "murano", "solum", "trove"]
        lines = [" ".join(words[(i * j) % 5] for j in range(1, 8)) for i in range(5000)]
        want = collections.Counter(w for line in lines for w in line.split())
        mapper = "import collections, json, sys\njson.dump(collections.Counter(sys.stdin.read().split()), sys.stdout)\n"

        def work(n):
            r, home = nodes[n], self.room / ("node-%d" % n)
            with r:
                r.write_files_to({str(home / "input"): "\n".join(lines[n::5]), str(home / "map.py"): mapper})
                r.execute_command("python3 {0}/map.py <{0}/input >{0}/output".format(home))
                return collections.Counter(json.loads(r.read_file_from(str(home / "output"))))
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            parts = list(pool.map(work, range(5)))
        self.assertEqual(len({tuple(sorted(p.items())) for p in parts}) > 1, True)
        self.assertEqual(sum(parts, collections.Counter()), want)
        got = sahara_remote.execute_everywhere([r.instance for r in nodes], "hostname", timeout=60)
        self.assertEqual({v for v in got.values()}, {(0, os.uname().nodename + "\n")})

    def test_two_hundred_nodes(self):
        swarm = test_sidecar.program("brine-swarm", "BRINE_SWARM_PROGRAM")
        self.salt.ensure()
        p = subprocess.Popen([swarm, "-masters", "127.0.0.1:%d" % self.ports[1], "-n", "200", "-prefix", "node-", "-show-key"], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stdin.close)
        self.processes.append(p)
        key = json.loads(p.stdout.readline())
        names = ["node-%05d" % i for i in range(200)]  # as the swarm has them
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            list(pool.map(lambda name: self.salt.announce(name, public_key=key), names))
        nodes = [sahara_case.instance(n) for n in names]
        # One order for all, and one for each from as many threads, as Sahara does.
        # A minion of the swarm returns the command.
        self.assertEqual(sahara_remote.execute_everywhere(nodes, "true", timeout=240), {n: (0, "cd ~root; true") for n in names})
        with concurrent.futures.ThreadPoolExecutor(200) as pool:
            got = list(pool.map(lambda n: sahara_remote.Remote(n).execute_command("true", timeout=240), nodes))
        self.assertEqual(got, [(0, "cd ~root; true")] * 200)
