"""A master of the service's own: the static program brine-master beside the service, on a unix socket.

    from brine_openstack import Sidecar

    salt = Sidecar(db="mysql+pymysql://heat:secret@db.example/heat")
    print(salt.call("db-7", "test.ping"))

The first process of a host that needs the master starts it and owns it; the others of the same user and directory use its socket.
A lock on the file owner decides. When the owner ends, for whatever reason, the kernel closes the master's standard input and the
master ends; another process starts the next one. When the master ends, its owner starts it again.
"""

import fcntl
import json
import logging
import os
import pwd
import shutil
import stat
import subprocess
import threading
import time
import weakref

from brine_openstack import master
from brine_openstack import urls

LOG = logging.getLogger(__name__)

PROGRAM = "brine-master"
# Where the program may be besides BRINE_MASTER_PROGRAM, this package and PATH: a service's PATH may lack them.
PLACES = ("/usr/bin", "/usr/local/bin", "/usr/lib/brine", "/opt/brine/bin")


class SidecarError(master.Error):
    """The sidecar cannot be started. The text has the cause in words."""


def find_program(program=None):
    """Return the path of brine-master: program, $BRINE_MASTER_PROGRAM, the one in this package, the one in PATH, or a usual place.

    $BRINE_MASTER does, too, if it is an absolute path: to brine's programs that variable is the option master.
    """
    chosen = program or os.environ.get("BRINE_MASTER_PROGRAM")
    if not chosen and os.path.isabs(os.environ.get("BRINE_MASTER", "")):
        chosen = os.environ["BRINE_MASTER"]
    if chosen:
        found = shutil.which(chosen)
        if not found:
            raise SidecarError("there is no program %s" % chosen)
        return found
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")
    for path in [here, os.environ.get("PATH", os.defpath), *PLACES]:
        found = shutil.which(PROGRAM, path=path)
        if found:
            return found
    raise SidecarError("there is no program %s in PATH; install it, or name it in the environment variable BRINE_MASTER_PROGRAM" % PROGRAM)


def default_directory(name="master"):
    """Return the directory of the sidecar of this user and name: $BRINE_SIDECAR_DIR/name, or .brine/name in the user's home."""
    base = os.environ.get("BRINE_SIDECAR_DIR")
    if not base:
        base = os.path.join(pwd.getpwuid(os.geteuid()).pw_dir, ".brine")
    return os.path.join(base, name)


def private_directory(path):
    """Create a directory with mode 0700, or check that an existing one is ours and closed to others."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    st = os.lstat(path)
    if not stat.S_ISDIR(st.st_mode) or st.st_uid != os.geteuid():
        raise SidecarError("%s is not a directory of this user" % path)
    if stat.S_IMODE(st.st_mode) & 0o077:
        os.chmod(path, 0o700)


def write_private(path, text):
    """Write a file with mode 0600 so that it is never seen in part. Report whether it changed."""
    data = text.encode()
    try:
        with open(path, "rb") as f:
            if f.read() == data:
                return False
    except FileNotFoundError:
        pass
    part = "%s.%d" % (path, os.getpid())
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        os.rename(part, path)
    except BaseException:
        os.unlink(part)
        raise
    return True


# All sidecars of this process: a forked child must let go of what its parent owns.
_all = weakref.WeakSet()


def _forked():
    for s in list(_all):
        s._forget()


os.register_at_fork(after_in_child=_forked)


class Sidecar(master.Master):
    """A master that this process uses, and starts where no process of this host has yet. Every request makes sure that it runs.

    db         the service's SQL database, a URL of SQLAlchemy (mysql+pymysql://…, postgresql://…): all hosts with the same database
               are one master. None: an SQLite file in directory, for a service of one host.
    key        a secret that all hosts share, which seals the master's keys in db; key_file names a file with it. With neither, a
               key is made in directory, which does for one host only.
    directory  where configuration, keys and cache are; see default_directory.
    interface, publish_port, ret_port
               where minions connect to.
    advertise  the addresses that minions are told, each a host or host:port. None: interface, if that is one address.
    config     more options of the master's configuration, over those of this class.
    program    the path of brine-master; see find_program.
    start      for how many seconds the start may take.
    """

    def __init__(self, db=None, key=None, key_file=None, directory=None, interface="0.0.0.0", publish_port=4505, ret_port=4506,
                 advertise=None, config=None, program=None, start=60.0, timeout=30.0, retry=60.0):
        self.directory = os.path.abspath(directory or default_directory())
        super().__init__(os.path.join(self.directory, "api.sock"), timeout=timeout, retry=retry)
        if len(os.fsencode(self.path)) > 107:
            raise SidecarError("the path of the socket is longer than 107 bytes, which the kernel allows: %s" % self.path)
        if key and key_file:
            raise SidecarError("give the sidecar a key or a key_file, not both")
        self._db, self._key, self._key_file = db, key, key_file
        self._interface, self._ports = interface, (publish_port, ret_port)
        self._advertise, self._config = advertise, config or {}
        self._program, self._start = program, start
        self._forget()
        _all.add(self)

    def _forget(self):
        """Close what this process has of the master. In a forked child these are copies, and the parent keeps its own."""
        for f in (getattr(self, "_lock", None), getattr(getattr(self, "_process", None), "stdin", None)):
            if f is not None:
                try:
                    f.close()
                except OSError:
                    pass
        self._lock = None  # the open lock file, while this process owns the master
        self._process = None
        self._watcher = None
        self._closed = False
        self._seen = 0.0
        self._mutex = threading.Lock()
        self._wait = 0.5

    # The life of the master.

    def ensure(self):
        """Return when the master serves: start it if this process may, else wait for the one that does."""
        if self._closed:
            raise SidecarError("this sidecar was closed")
        if self._watcher is None:
            self._watch()
        # A request that finds no master says so by itself; asking before each would double the work.
        if time.monotonic() - self._seen < 5 and os.path.exists(self.path):
            return
        end = time.monotonic() + self._start
        while True:
            self._keep()
            if self.healthy():
                self._seen = time.monotonic()
                return
            if time.monotonic() > end:
                raise master.Unavailable("the master at %s did not serve within %g seconds; see %s" % (self.path, self._start, self._log_path()))
            time.sleep(0.1)

    def _send(self, method, path, body, timeout):
        try:
            return super()._send(method, path, body, timeout)
        except master.Unavailable:
            self._seen = 0.0
            raise

    def owner(self):
        """Report whether this process owns the master."""
        return self._lock is not None

    def close(self):
        """Let go of the master: it ends if this process owns it, and another process that uses it starts the next one."""
        with self._mutex:
            self._closed = True
            process, lock = self._process, self._lock
            self._process = self._lock = None
        if process is not None:
            _end(process)
        if lock is not None:
            lock.close()

    def __enter__(self):
        self.ensure()
        return self

    def __exit__(self, *_):
        self.close()

    def _watch(self):
        """Look after the master in the background, so that minions have one while nobody asks for it."""
        with self._mutex:
            if self._watcher is not None:
                return
            self._watcher = threading.Thread(target=_look_after, args=(weakref.ref(self),), name="brine-sidecar", daemon=True)
        self._watcher.start()

    def _keep(self):
        """Start the master if nobody owns it, or if it is ours and has ended. One call at a time does so."""
        if not self._mutex.acquire(blocking=False):
            return
        try:
            if self._closed:
                return
            if self._lock is None:
                self._lock = self._try_lock()
                if self._lock is None:
                    return
            if self._process is not None:
                code = self._process.poll()
                if code is None:
                    return
                LOG.warning("The master in %s ended with %s; it is started again in %g seconds", self.directory, code, self._wait)
                self._process.stdin.close()
                self._process = None
                time.sleep(self._wait)
                self._wait = min(self._wait * 2, 30.0)
            self._process = self._launch()
        except BaseException:
            if self._process is None and self._lock is not None:
                self._lock.close()
                self._lock = None
            raise
        finally:
            self._mutex.release()

    def _try_lock(self):
        private_directory(self.directory)
        f = open(os.path.join(self.directory, "owner"), "a+")
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            f.close()
            return None
        except BaseException:
            f.close()
            raise
        f.truncate(0)
        f.write("%d\n" % os.getpid())
        f.flush()
        return f

    def _launch(self):
        program = find_program(self._program)
        conf = os.path.join(self.directory, "conf")
        for d in (conf, os.path.join(self.directory, "pki"), os.path.join(self.directory, "cache"), os.path.join(self.directory, "run")):
            private_directory(d)
        # JSON is YAML.
        write_private(os.path.join(conf, "master"), json.dumps(self.configuration(), indent=1, sort_keys=True) + "\n")
        # BRINE_… are options over those of a configuration file; here the file has all of them.
        env = {k: v for k, v in os.environ.items() if not k.startswith("BRINE_")}
        with self._former_ended() as alive, open(self._start_path(), "wb", opener=lambda p, f: os.open(p, f, 0o600)) as log:
            process = subprocess.Popen([program, "master", "-c", conf, "--with-parent"], stdin=subprocess.PIPE, stdout=log, stderr=log,
                                       cwd=self.directory, start_new_session=True, pass_fds=[alive.fileno()], env=env)
        LOG.info("Started the master %s in %s, process %d", program, self.directory, process.pid)
        end = time.monotonic() + self._start
        while process.poll() is None and time.monotonic() < end:
            if self.healthy():
                self._wait = 0.5
                return process
            time.sleep(0.05)
        if process.poll() is not None:
            process.stdin.close()
            raise SidecarError("the master does not start (%s ended with %d): %s" % (program, process.returncode, self._last_words()))
        return process

    def _former_ended(self):
        """Wait for the end of a former owner's master, which has the socket and the ports. Return the lock that the next one inherits."""
        alive = open(os.path.join(self.directory, "alive"), "ab")
        end = time.monotonic() + self._start
        while True:
            try:
                fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return alive
            except BlockingIOError:
                if time.monotonic() > end:
                    alive.close()
                    raise SidecarError("the former master in %s has not ended within %g seconds" % (self.directory, self._start)) from None
            time.sleep(0.05)

    def _log_path(self):
        return os.path.join(self.directory, "log")

    def _start_path(self):
        # The program's standard output and error: what it says before it has its log, and the trace of a crash.
        return os.path.join(self.directory, "stderr")

    def _last_words(self):
        try:
            with open(self._start_path(), "rb") as f:
                f.seek(max(0, f.seek(0, os.SEEK_END) - 4096))
                lines = f.read().decode(errors="replace").strip().splitlines()
        except OSError as e:
            return str(e)
        return " / ".join(lines[-3:]) or "it wrote nothing to %s" % self._start_path()

    # What the master is told.

    def configuration(self):
        """Return the master's configuration as a map. What the caller's config has comes last."""
        d = self.directory
        out = {
            "interface": self._interface,
            "publish_port": self._ports[0],
            "ret_port": self._ports[1],
            "user": pwd.getpwuid(os.geteuid()).pw_name,
            "root_dir": d,
            "pki_dir": os.path.join(d, "pki"),
            "cachedir": os.path.join(d, "cache"),
            "sock_dir": os.path.join(d, "run"),
            "pidfile": os.path.join(d, "pid"),
            "log_file": self._log_path(),
            "file_roots": {"base": []},
            "pillar_roots": {"base": []},
            "rest_cherrypy": {"socket": self.path, "max_request_body_size": 64 << 20},
            "keep_events": ["heat/signal/*", "trove/conductor/*"],
            "netapi_enable_clients": ["local", "local_async", "runner", "wheel"],
            "external_auth": {"peer": {str(os.geteuid()): [".*", "@runner", "@wheel"]}},
        }
        advertise = self._advertise
        if not advertise and self._interface not in ("0.0.0.0", "::", ""):
            advertise = ["%s:%d" % ("[%s]" % self._interface if ":" in self._interface else self._interface, self._ports[1])]
        if advertise:
            out["advertise"] = [advertise] if isinstance(advertise, str) else list(advertise)
        if self._db:
            out["shared_database"] = urls.shared_database(self._db)
            out["shared_key_file"] = self._sealing_key()
        out.update(self._config)
        return out

    def _sealing_key(self):
        if self._key_file:
            return os.path.abspath(self._key_file)
        path = os.path.join(self.directory, "sealing.key")
        if self._key:
            write_private(path, self._key + "\n")
        elif not os.path.exists(path):
            write_private(path, os.urandom(32).hex() + "\n")
        return path


def _look_after(ref):
    while True:
        time.sleep(1.0)
        s = ref()
        if s is None or s._closed or s._watcher is not threading.current_thread():
            return
        try:
            s._keep()
        except Exception as e:  # the next request has the error too; here nobody takes it
            LOG.warning("Cannot look after the master in %s: %s", s.directory, e)
        del s


def _end(process, patience=20.0):
    """End a process by closing its standard input, and wait for it; kill it if it does not end."""
    process.stdin.close()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
