"""Sahara's own classes, instances as its objects have them, and a master that is a few dictionaries."""

import os
import types
import unittest
from unittest import mock

try:
    import sahara  # noqa: F401
except ModuleNotFoundError:
    # make openstack sets it: there, a missing Sahara is a failure.
    if os.environ.get("BRINE_OPENSTACK"):
        raise
    raise unittest.SkipTest("Sahara's Python is not installed") from None

from oslo_config import cfg

from brine_openstack import sahara_remote

CONF = cfg.CONF


def instance(name="n-1", user="root", tenant="", management_ip="198.51.100.7", internal_ip="192.0.2.7"):
    cluster = types.SimpleNamespace(id="c1", tenant_id=tenant)
    group = types.SimpleNamespace(image_username=user, cluster=cluster)
    return types.SimpleNamespace(instance_id=name, instance_name=name, node_group=group, management_ip=management_ip, internal_ip=internal_ip)


class FakeMaster:
    """Keeps what is placed. answer, called with an order, returns what became of it on a minion."""

    def __init__(self):
        self.placed, self.cancelled = [], []
        self.answer = lambda order: returned({"retcode": 0, "stdout": "", "stderr": ""})

    def place(self, name, tgt, fun, retry=None, uploads=None, **more):
        self.placed.append(dict(more, id=name, tgt=tgt, fun=fun, uploads=uploads))

    def order(self, name, wait=0, retry=None):
        o = next(o for o in self.placed if o["id"] == name)
        results = {t: self.answer(o) for t in o["tgt"]}
        return {"done": all(r["status"] not in ("queued", "underway") for r in results.values()), "minions": results}

    def cancel(self, name, retry=None):
        self.cancelled.append(name)
        return self.order(name)


def returned(value, code=0):
    return {"status": "returned", "return": value, "retcode": code, "success": code == 0}


class SaharaCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        super().setUp()
        CONF([], project="sahara", default_config_files=[])
        self.master = FakeMaster()
        self.patch(sahara_remote, "client", return_value=self.master)
        self.patch(sahara_remote, "_sessions", new={})

    def patch(self, *args, **kwargs):
        patcher = mock.patch.object(*args, **kwargs)
        self.addCleanup(patcher.stop)
        return patcher.start()
