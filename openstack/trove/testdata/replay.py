"""Run Trove's own administrator of a server: each line of standard input is a call, each of standard output its answer.

Usage: replay.py mariadb SOCKET PASSWORD, or replay.py postgresql DIRECTORY PORT. A call is a list of a method of MariaDBAdmin or
PgSqlAdmin of trove.guestagent.datastore and its arguments.
An answer is {"return": …} or {"error": …}; for errors of the server, {"error": null}: their text is the database library's.
"""
import json
import sys

from trove.common import cfg

CONF = cfg.CONF
CONF([], project="trove", default_config_files=[])
# With its default Trove takes sys, which MariaDB has since 10.6, for a user's database, and fails to list it.
CONF.set_override("ignore_dbs", ["mysql", "information_schema", "performance_schema", "sys"], "mariadb")


def mariadb(socket, password):
    import sqlalchemy

    from trove.guestagent.datastore.mariadb import service

    class App:
        def __init__(self):
            self.engine = sqlalchemy.create_engine(
                "mysql+pymysql://os_admin:%s@localhost/?unix_socket=%s" % (password, socket))

        def get_engine(self):
            return self.engine

    return service.MariaDBAdmin(App()), sqlalchemy.exc.SQLAlchemyError


def postgresql(directory, port):
    import psycopg2

    from trove.guestagent.datastore.postgres import service

    class Connection(service.PostgresConnection):
        # With psycopg2 2.9 and later Trove's "with" begins a transaction, in which no database can be created.
        def _execute_stmt(self, statement, identifiers, data_values, fetch, autocommit=False):
            connection = psycopg2.connect(self.connect_str)
            try:
                connection.autocommit = autocommit
                with connection.cursor() as cursor:
                    cursor.execute(self._bind(statement, identifiers), data_values)
                    return cursor.fetchall() if fetch else None
            finally:
                connection.close()

    admin = service.PgSqlAdmin(service.SUPER_USER_NAME)
    admin.connection = Connection(service.SUPER_USER_NAME, host=directory, port=port)
    return admin, psycopg2.Error


manager = sys.argv[1]
CONF.set_override("datastore_manager", manager)
CONF.set_override("datastore_version", {"mariadb": "10.11", "postgresql": "15"}[manager])
admin, server_error = {"mariadb": mariadb, "postgresql": postgresql}[manager](*sys.argv[2:])
for line in sys.stdin:
    method, args = json.loads(line)
    try:
        answer = {"return": getattr(admin, method)(**args)}
    except server_error:
        answer = {"error": None}
    except Exception as e:
        answer = {"error": str(e)}
    print(json.dumps(answer), flush=True)
