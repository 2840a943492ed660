"""Run Trove's own administrator of MariaDB on a server: each line of standard input is a call, each of standard output its answer.

Usage: replay.py SOCKET PASSWORD. A call is a list of a method of trove.guestagent.datastore.mariadb.service.MariaDBAdmin and its arguments.
An answer is {"return": …} or {"error": …}; for errors of the server, {"error": null}: their text is the database library's.
"""
import json
import sys

import sqlalchemy
from trove.common import cfg

CONF = cfg.CONF
CONF([], project="trove", default_config_files=[])
CONF.set_override("datastore_manager", "mariadb")
CONF.set_override("datastore_version", "10.11")
# With its default Trove takes sys, which MariaDB has since 10.6, for a user's database, and fails to list it.
CONF.set_override("ignore_dbs", ["mysql", "information_schema", "performance_schema", "sys"], "mariadb")

from trove.guestagent.datastore.mariadb import service  # noqa: E402  the class reads the configuration


class App:
    def __init__(self, socket, password):
        self.engine = sqlalchemy.create_engine(
            "mysql+pymysql://os_admin:%s@localhost/?unix_socket=%s" % (password, socket))

    def get_engine(self):
        return self.engine


admin = service.MariaDBAdmin(App(*sys.argv[1:]))
for line in sys.stdin:
    method, args = json.loads(line)
    try:
        answer = {"return": getattr(admin, method)(**args)}
    except sqlalchemy.exc.SQLAlchemyError:
        answer = {"error": None}
    except Exception as e:
        answer = {"error": str(e)}
    print(json.dumps(answer), flush=True)
