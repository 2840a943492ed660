"""Print what Trove's own classes say of the guest's interface, as JSON: what its API class puts on the wire, and what its managers take.

For each method of trove.guestagent.api.API: the name on the wire, call or cast, the timeout's seconds, the version of the interface, and
the arguments that are sent. For each of these names, the parameters of the managers that have it, with their defaults.
"""
import importlib
import inspect
import json
import sys
from unittest import mock

from trove.common import cfg
from trove.guestagent import api

sent = []


class Context:
    def __init__(self, **prepared):
        self.prepared = prepared

    def call(self, _context, method, **args):
        sent.append(("call", method, self.prepared, args))

    def cast(self, _context, method, **args):
        sent.append(("cast", method, self.prepared, args))


class Client:
    def prepare(self, **prepared):
        return Context(**prepared)

    def can_send_version(self, _version):
        return True


def parameters(function):
    return {name: {} if p.default is p.empty else {"default": p.default}
            for name, p in inspect.signature(function).parameters.items()
            if name not in ("self", "context") and p.kind is not p.VAR_KEYWORD}


def example(name):
    if name == "packages":
        return ""
    return mock.MagicMock() if name in ("backup_info", "snapshot", "kwargs") else "<%s>" % name


def main():
    cfg.CONF([], project="trove", default_config_files=[])
    managers = {}
    for name, path in (("mariadb", "trove.guestagent.datastore.mariadb.manager:Manager"),
                       ("mysql", "trove.guestagent.datastore.mysql.manager:Manager"),
                       ("postgresql", "trove.guestagent.datastore.postgres.manager:PostgresManager")):
        module, cls = path.split(":")
        managers[name] = getattr(importlib.import_module(module), cls)
    methods = {}
    with mock.patch.object(api.API, "get_client", lambda *a, **k: Client()), \
            mock.patch.object(api, "NotificationCastWrapper", mock.MagicMock()), \
            mock.patch.object(api.API, "_create_guest_queue", lambda self: None, create=True):
        guest = api.API(mock.MagicMock(), "instance")
        for name, function in inspect.getmembers(api.API, inspect.isfunction):
            if name.startswith("_") or name == "get_client":
                continue
            args = {p.name: example(p.name) for p in list(inspect.signature(function).parameters.values())[1:]
                    if p.kind is not p.VAR_KEYWORD}
            sent.clear()
            getattr(guest, name)(**args)
            (kind, wire, prepared, kwargs), = sent
            methods[wire] = {
                "api": name, "kind": kind, "timeout": prepared.get("timeout"), "version": prepared.get("version"),
                "sent": sorted(kwargs), "signature": parameters(function),
                "managers": {m: parameters(getattr(cls, wire)) for m, cls in managers.items() if hasattr(cls, wire)}}
    json.dump({"api_version": api.API.API_LATEST_VERSION, "methods": methods}, sys.stdout, indent=1, sort_keys=True)
    print()


main()
