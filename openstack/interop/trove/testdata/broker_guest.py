"""A guest of Trove on the message broker, as Trove's Python agent is: its RPC server and conductor's interface. Its database does not run: it
makes the files of one on the volume, with the users of prepare.

Usage: broker_guest.py GUEST_INFO.CONF TROVE-GUESTAGENT.CONF: the files that Trove gives a machine.
"""

import sys

import eventlet
eventlet.monkey_patch()

import os  # noqa: E402  after monkey patching
import subprocess  # noqa: E402
import time  # noqa: E402

import oslo_messaging as messaging  # noqa: E402
from trove import rpc  # noqa: E402
from trove.common import cfg  # noqa: E402
from trove.common import context  # noqa: E402
from trove.conductor import api  # noqa: E402

CONF = cfg.CONF
CONF([], project="trove", default_config_files=sys.argv[1:3])
rpc.init(CONF)


class Guest:
    target = messaging.Target(version="1.1")
    users = []

    def prepare(self, ctx, users=None, mount_point=None, **kwargs):
        self.users += users or []
        make_database(mount_point, self.users)
        print("prepare over the broker", flush=True)

    def rebuild(self, ctx, ds_version, config_contents=None, config_overrides=None):
        print("rebuild over the broker", flush=True)

    def create_user(self, ctx, users):
        self.users += users

    def list_users(self, ctx, limit=None, marker=None, include_marker=False):
        return [dict(u, _password=None) for u in self.users], None

    def stop_db(self, ctx):
        pass


def make_database(mount_point, users):
    """Leave on the volume what Trove's agent leaves there: the data, and the administrator's option file."""
    statements = ["FLUSH PRIVILEGES", "CREATE USER os_admin@localhost IDENTIFIED BY 'of-the-broker'",
                  "GRANT ALL ON *.* TO os_admin@localhost WITH GRANT OPTION"]
    statements += ["CREATE USER '%(_name)s'@'%%' IDENTIFIED BY '%(_password)s'" % u for u in users]
    extra = "/root/users.sql"
    with open(extra, "w") as f:
        f.write("".join(s + ";\n" for s in statements))
    subprocess.run(["mariadb-install-db", "--no-defaults", "--skip-test-db", "--user=mysql", "--datadir=" + os.path.join(mount_point, "data"),
                    "--extra-file=" + extra], check=True)
    os.remove(extra)
    conf = os.path.join(mount_point, "conf.d")
    os.mkdir(conf)
    with open(os.path.join(conf, "os_admin.cnf"), "w") as f:
        f.write("[client]\nuser = os_admin\npassword = of-the-broker\nhost = localhost\n")


server = rpc.get_server(messaging.Target(topic="guestagent." + CONF.guest_id, server=CONF.guest_id, version="1.1"), [Guest()],
                        key=CONF.instance_rpc_encr_key)
server.start()
while True:
    api.API(context.TroveContext()).heartbeat(CONF.guest_id, {"service_status": "healthy"}, sent=time.time())
    time.sleep(1)
