#!/usr/bin/python3
"""A guest of Trove for tests, as a module of brine-minion: a database that is a file. It says what it runs in the file calls beside it."""

import fcntl
import inspect
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SECRET = ("users", "root_password", "config_contents", "snapshot", "backup_info")


def ask(method, **fields):
    print(json.dumps(dict(fields, type="request", id=1, method=method)), flush=True)
    answer = json.loads(sys.stdin.readline())
    if "error" in answer:
        raise RuntimeError(answer["error"]["message"])
    return answer["value"]


def fire(tag, **data):
    ask("salt.call", fun="event.send", args=[tag, data])


def heartbeat(status):
    fire("salt/beacon/%s/trove/heartbeat" % CALL["id"], payload={"service_status": status}, sent=time.time())


class State(dict):
    """The database, locked while it is used."""

    def __enter__(self):
        self._file = open(os.path.join(HERE, "state"), "a+")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._file.seek(0)
        text = self._file.read()
        self.update(json.loads(text) if text else {"status": None, "databases": [], "users": []})
        return self

    def __exit__(self, *_):
        self._file.seek(0)
        self._file.truncate()
        json.dump(self, self._file)
        self._file.close()


class Guest:
    def rpc_ping(self):
        return True

    def prepare(self, packages, databases, memory_mb, users, device_path=None, mount_point=None, backup_info=None, config_contents=None,
                root_password=None, overrides=None, cluster_config=None, snapshot=None, modules=None, ds_version=None):
        heartbeat("building")
        with State() as s:
            s.update(databases=databases or [], users=users or [])
        fire("trove/conductor/report_root", instance_id=CALL["id"], sent=time.time())
        with State() as s:
            s["status"] = "healthy"
        heartbeat("healthy")

    def rebuild(self, ds_version, config_contents=None, config_overrides=None):
        with State() as s:
            s["status"] = "healthy"
        heartbeat("healthy")

    def beat(self):
        """Report the state, every second by the schedule."""
        with State() as s:
            status = s["status"]
        if status:
            heartbeat(status)

    def create_database(self, databases):
        with State() as s:
            s["databases"] += databases

    def create_user(self, users):
        with State() as s:
            s["users"] += users

    def delete_user(self, user):
        with State() as s:
            s["users"] = [u for u in s["users"] if u["_name"] != user["_name"]]

    def list_databases(self, limit=None, marker=None, include_marker=False):
        with State() as s:
            return [s["databases"], None]

    def list_users(self, limit=None, marker=None, include_marker=False):
        with State() as s:
            return [[{k: v for k, v in dict(u, _password=None).items()} for u in s["users"]], None]

    def is_root_enabled(self):
        return False

    def get_filesystem_stats(self, fs_path):
        return {"block_size": 4096, "total_blocks": 262144, "free_blocks": 131072, "total": 1.0, "free": 536870912, "used": 0.5}

    def create_backup(self, backup_info):
        for state, more in (("BUILDING", {}), ("COMPLETED", {"size": 0.25, "checksum": "abc", "location": "http://object/" + backup_info["id"],
                                                             "backup_type": "mariabackup"})):
            fire("trove/conductor/update_backup", instance_id=CALL["id"], backup_id=backup_info["id"], sent=time.time(), state=state, **more)

    def stop_db(self):
        with State() as s:
            s["status"] = "shutdown"
        heartbeat("shutdown")

    def enable_root(self):
        """Take longer than the test's patience."""
        time.sleep(600)

    def restart(self):
        """Take a few seconds, as a database does."""
        time.sleep(3)
        with State() as s:
            s["restarts"] = s.get("restarts", 0) + 1


def describe(function):
    params = []
    for p in list(inspect.signature(function).parameters.values())[1:]:
        d = {"name": p.name, "secret": p.name in SECRET}
        if p.default is not p.empty:
            d["default"] = p.default
        params.append(d)
    return {"doc": function.__doc__ or function.__name__, "params": params, "messages": True}


if __name__ == "__main__":
    functions = {n: f for n, f in vars(Guest).items() if not n.startswith("_")}
    if sys.argv[1] == "describe":
        print(json.dumps({"protocol": 1, "doc": "A guest of Trove.", "functions": {n: describe(f) for n, f in functions.items()}}))
        sys.exit()
    CALL = json.loads(sys.stdin.readline())
    name = CALL["fun"].rpartition(".")[2]
    if name != "beat":
        with open(os.path.join(HERE, "calls"), "a") as f:
            f.write("%s %.3f\n" % (name, time.time()))
    print(json.dumps({"type": "return", "value": functions[name](Guest(), **CALL["args"])}), flush=True)
