"""Run Trove's own manager of a datastore: each line of standard input is a call, each of standard output its answer.

Usage: manager.py DATASTORE PORT UID PATH, in a mount namespace whose /etc/mysql, /var/run/mysqld and so on are the instance's
(testdata/manager.sh). UID is the database's user, PATH the PATH of the database's programs. A call is a list of a manager's method, its arguments and whether an
administrator calls. An answer is {"return": …, "sent": …} or {"error": …, "sent": …}: sent is what went to Trove's conductor. For
errors of the server, the error is null: their text is the database library's.

With DOCKER_SOCKET the manager's containers are those of a real Docker daemon, whose image DOCKER_IMAGE has the server and the program for
backups, with STORE as its store. All of them have the network of the daemon's host, because the daemon has no bridge.

Trove's code is not changed but for:
 - its client of Docker, without DOCKER_SOCKET, which is Docker below: a container is a process of this host, an image what Debian's packages have;
 - its clients of the conductor and of Swift, which are lists here;
 - InnoDB's log, which Trove removes after a restore, and without which MariaDB 10.8 and later do not start;
 - the results of modules, which Trove cannot read with a newer oslo.serialization;
 - psycopg2 2.9 and later, with which Trove's "with" begins a transaction, in which no database can be created.
"""
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import types
from unittest import mock

import docker
import docker.models.containers
import psycopg2
import sqlalchemy
from swiftclient.client import ClientException
from trove.common import cfg
from trove.conductor import api as conductor

# The library of databases prints statements.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
CONF = cfg.CONF
datastore, port, uid, path = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
BACKUPS = os.path.expanduser("~/backups/")
DATA = {"mariadb": "/var/lib/mysql/data", "postgresql": "/var/lib/postgresql/data/pgdata"}[datastore]


def as_owner(args, **more):
    return subprocess.run(args, user=uid, group=uid, extra_groups=[], cwd="/", check=True, **more)


class Container:
    """A container of a server: a process group of this host."""

    def __init__(self, image, command, environment):
        self.image, self.command = image, shlex.split(command)
        self.environment = dict({k: str(v) for k, v in environment.items()}, PATH=path, PGPORT=port, LANG="C.UTF-8")
        self.process = None
        self.log = os.path.expanduser("~/server.log")
        if self.command[0].startswith("-"):
            self.command.insert(0, "mariadbd")
        self.initialize()
        self.start()

    def initialize(self):
        """What the entry points of the images that Trove takes do with an empty directory."""
        if datastore == "postgresql":
            if not os.path.exists(DATA + "/PG_VERSION"):
                as_owner(["initdb", "-D", DATA, "-U", "postgres", "--encoding=UTF8", "--locale=C.UTF-8", "--auth=reject"],
                         env=self.environment, stdout=subprocess.DEVNULL)
        elif not os.path.exists(DATA + "/mysql"):
            as_owner(["mariadb-install-db", "--no-defaults", "--skip-test-db", "--datadir=" + DATA, "--auth-root-authentication-method=normal"],
                     env=self.environment, stdout=subprocess.DEVNULL)
            password = self.environment["MYSQL_ROOT_PASSWORD"]
            sql = "USE mysql;\nFLUSH PRIVILEGES;\nALTER USER 'root'@'localhost' IDENTIFIED BY '%s';\nCREATE USER 'root'@'%%' IDENTIFIED BY '%s';\n"
            as_owner(["mariadbd", "--no-defaults", "--bootstrap", "--datadir=" + DATA], env=self.environment,
                     input=(sql % (password, password)).encode(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @property
    def status(self):
        return "running" if self.process and self.process.poll() is None else "exited"

    def start(self):
        if self.status == "running":
            return
        if datastore == "postgresql":
            os.chmod(DATA, 0o700)  # as the image does: Trove opens the directory of a log
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, env=self.environment, user=uid, group=uid, extra_groups=[], cwd="/",
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        # Trove takes a psql that cannot connect, which ends with 2, for one that has succeeded.
        probe = ["pg_isready", "-q"] if datastore == "postgresql" else ["mysqladmin", "--no-defaults", "--silent", "ping"]
        while self.status == "running" and subprocess.run(probe, env=self.environment, stdout=subprocess.DEVNULL,
                                                          stderr=subprocess.DEVNULL).returncode:
            time.sleep(0.05)
        if self.status != "running":
            sys.stderr.write(self.logs().decode(errors="replace")[-3000:])

    def stop(self, timeout):
        if self.status == "running":
            self.process.send_signal(signal.SIGINT if datastore == "postgresql" else signal.SIGTERM)
            self.process.wait(timeout)

    def restart(self, timeout):
        self.stop(timeout)
        self.start()

    def remove(self, force):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        containers.all.clear()

    def exec_run(self, command):
        if self.status != "running":
            raise docker.errors.APIError("the container does not run")
        r = subprocess.run(shlex.split(command), env=self.environment, user=uid, group=uid, extra_groups=[], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
        return r.returncode, r.stdout

    def logs(self, tail=50):
        with open(self.log, "rb") as f:
            return f.read()


class Containers:
    def __init__(self):
        self.all = {}

    def get(self, name):
        if name not in self.all:
            raise docker.errors.NotFound("no container " + name)
        return self.all[name]

    def run(self, image, name, command="", environment={}, **_more):
        if name == "database":
            self.all[name] = Container(image, command, environment)
            return self.all[name]
        words = shlex.split(command)
        try:
            return backup(words[2:]) if words[1:2] == ["main.py"] else as_owner(
                words, env={"PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        except (subprocess.CalledProcessError, ValueError) as e:
            output = getattr(e, "stdout", None) or str(e).encode()
            failed = mock.Mock()
            failed.logs = lambda: output
            raise docker.errors.ContainerError(failed, 1, command, image, output)


class Images:
    def prune(self, filters):
        pass


def real_docker(socket):
    """The client of a real daemon. Its containers have the network of the daemon's host, and servers answer when they have started:
    Trove takes a psql that cannot connect, which ends with 2, for one that has succeeded."""
    model = docker.models.containers
    run, start, restart = model.ContainerCollection.run, model.Container.start, model.Container.restart
    probe = "pg_isready -q" if datastore == "postgresql" else "mysqladmin --no-defaults --silent --socket=/var/run/mysqld/mysqld.sock ping"
    store = os.environ["STORE"]

    def answers(container):
        while True:
            container.reload()
            if container.status != "running":
                sys.stderr.write(container.logs(tail=50).decode(errors="replace"))
                break
            try:
                if container.exec_run(probe)[0] == 0:
                    break
            except docker.errors.APIError:
                pass  # it has ended meanwhile
            time.sleep(0.1)

    def new_run(self, image, command=None, **more):
        more.pop("ports", None)
        more["network_mode"] = "host"
        more["environment"] = dict(more.get("environment") or {}, PGPORT=port, LANG="C.UTF-8", STORE=store)
        if " main.py " in (command or ""):
            more["volumes"] = dict(more["volumes"], **{store: {"bind": store, "mode": "rw"}})
        result = run(self, image, command, **more)
        if more.get("detach"):
            answers(result)
        return result

    def new_start(self, **more):
        known = self.attrs.get("State", {}).get("Status")
        start(self, **more)
        if known == "exited":  # run() starts what it has created, and waits itself
            answers(self)

    def new_restart(self, **more):
        restart(self, **more)
        answers(self)

    model.ContainerCollection.run, model.Container.start, model.Container.restart = new_run, new_start, new_restart
    return docker.DockerClient(base_url="unix://" + socket)


def backup(words):
    """The program of Trove's image for backups, with a directory as its store."""
    options = dict((w[2:].split("=", 1) + [""])[:2] for w in words)
    if "backup" in options:
        file = BACKUPS + options["backup-id"] + ".gz"
        if datastore == "postgresql":
            script = "pg_basebackup -h /var/run/postgresql -p %s -U postgres -D - -Ft -X fetch" % port
        else:
            os.makedirs(BACKUPS + options["backup-id"])
            script = "mariabackup --backup --stream=xbstream --user=%s --password=%s --extra-lsndir=%s" % (
                options["db-user"], options["db-password"], BACKUPS + options["backup-id"])
            if "incremental" in options:
                script += " --incremental-basedir=" + options["parent-location"].removeprefix("file://").removesuffix(".gz")
        subprocess.run(["bash", "-o", "pipefail", "-c", "%s 2>>%slog | gzip >%s" % (script, BACKUPS, file)], check=True,
                       env={"PATH": path}, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with open(file, "rb") as f:
            checksum = hashlib.md5(f.read()).hexdigest()
        return b"INFO\nINFO Backup successfully, checksum: %s, location: file://%s\n" % (checksum.encode(), file.encode())
    file = options["restore-from"].removeprefix("file://")
    with open(file, "rb") as f:
        if hashlib.md5(f.read()).hexdigest() != options["restore-checksum"]:
            raise ValueError("the checksum is another one")
    script = "gunzip <%s | tar -x -C %s" % (file, DATA)
    if datastore == "mariadb":
        script = "gunzip <%s | mbstream -x -C %s && mariabackup --prepare --target-dir=%s" % (file, DATA, DATA)
    return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], check=True, env={"PATH": path}, cwd="/",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


class Swift:
    """An object store as swiftclient's Connection shows it."""

    def __init__(self):
        self.objects = {}

    def get_container(self, container, prefix=""):
        return {}, [{"name": n} for c, n in sorted(self.objects) if c == container and n.startswith(prefix)]

    def put_container(self, container, headers=None):
        pass

    def get_object(self, container, name):
        if (container, name) not in self.objects:
            raise ClientException("no object " + name, http_status=404)
        return {}, self.objects[container, name]

    def put_object(self, container, name, content, headers=None):
        self.objects[container, name] = content

    def delete_object(self, container, name):
        self.objects.pop((container, name), None)


class Conductor:
    """The client of the conductor's queue."""

    sent = []

    def prepare(self, version):
        return self

    def cast(self, _context, method, **args):
        args.pop("sent", None)
        Conductor.sent.append([method, args])


def execute(self, statement, identifiers, data_values, fetch, autocommit=False):
    connection = psycopg2.connect(self.connect_str)
    try:
        connection.autocommit = autocommit
        with connection.cursor() as cursor:
            cursor.execute(self._bind(statement, identifiers), data_values)
            return cursor.fetchall() if fetch else None
    finally:
        connection.close()


def main():
    CONF([], project="trove", default_config_files=[])
    for name, value in {"datastore_manager": datastore, "guest_id": "inst-1", "database_service_uid": str(uid),
                        "datastore_version": {"mariadb": "10.11", "postgresql": "15"}[datastore],
                        "state_change_wait_time": 60, "state_change_poll_time": 0}.items():
        CONF.set_override(name, value)
    # With its default Trove takes sys, which MariaDB has since 10.6, for a user's database, and fails to list it.
    CONF.set_override("ignore_dbs", ["mysql", "information_schema", "performance_schema", "sys"], "mariadb")
    if "VOLUME" in os.environ:
        CONF.set_override("mount_point", os.environ["VOLUME"], datastore)
        CONF.set_override("volume_fstype", os.environ["FSTYPE"])
    CONF.set_override("postgresql_port", int(port), "postgresql")

    global containers
    swift = Swift()
    if "DOCKER_SOCKET" in os.environ:
        image = os.environ["DOCKER_IMAGE"]
        CONF.set_override("docker_image", image, datastore)
        CONF.set_override("backup_docker_image", image + ":backup", datastore)
        CONF.set_override("state_change_poll_time", 1)
        client = real_docker(os.environ["DOCKER_SOCKET"])
        containers = client.containers
    else:
        containers = Containers()
        client = types.SimpleNamespace(containers=containers, images=Images())
    with mock.patch.object(docker, "from_env", lambda: client), \
            mock.patch.object(conductor.API, "get_client", lambda *a, **k: Conductor()), \
            mock.patch("trove.common.clients.swift_client", lambda context: swift), \
            mock.patch("oslo_utils.netutils.get_my_ipv4", lambda: "127.0.0.1"), \
            mock.patch("trove.common.stream_codecs.JsonCodec.deserialize", lambda self, stream: json.loads(stream)), \
            mock.patch("trove.guestagent.datastore.mysql_common.service.BaseMySqlApp.wipe_ib_logfiles", lambda self: None):
        if datastore == "mariadb":
            from trove.guestagent.datastore.mariadb.manager import Manager
        else:
            from trove.guestagent.datastore.postgres import service
            from trove.guestagent.datastore.postgres.manager import PostgresManager as Manager
            service.PostgresConnection._execute_stmt = execute
        try:
            serve(Manager(), swift)
        finally:
            for container in containers.list(all=True) if "DOCKER_SOCKET" in os.environ else list(containers.all.values()):
                container.remove(force=True)


def serve(manager, swift):
    for line in sys.stdin:
        method, args, admin = json.loads(line)
        context = types.SimpleNamespace(is_admin=admin, auth_token="token", project_id="project",
                                        notification=mock.Mock(server_type="api", payload={}))
        Conductor.sent = []
        try:
            if method == "remove the container":  # as when the instance is built again
                containers.get("database").remove(force=True)
                answer = {"return": None}
            elif method == "published":
                answer = {"return": ["".join(c for (_, n), c in sorted(swift.objects.items()) if n.startswith(args["prefix"]))]}
            else:
                returned = getattr(manager, method)(context, **args)
                answer = {"return": list(returned) if isinstance(returned, filter) else returned}
        except (sqlalchemy.exc.SQLAlchemyError, psycopg2.Error):
            answer = {"error": None}
        except Exception as e:
            # Volumes add a traceback, and what Trove's API class says before every text.
            answer = {"error": str(e).split("\nExc: ")[0].removeprefix("An error occurred communicating with the guest: ")}
        print(json.dumps(dict(answer, sent=Conductor.sent)), file=answers, flush=True)


containers = None
main()
