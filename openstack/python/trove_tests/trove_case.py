"""Trove's own code over a database in memory, and a master that is a few dictionaries."""

import atexit
import inspect
import os
import tempfile
import unittest
import uuid
from unittest import mock

try:
    import trove  # noqa: F401
except ModuleNotFoundError:
    # make openstack sets it: there, a missing Trove is a failure.
    if os.environ.get("BRINE_OPENSTACK"):
        raise
    raise unittest.SkipTest("Trove's Python is not installed") from None

from trove.common import cfg
from trove.common import context
from trove.datastore import models as datastore_models
from trove.db import get_db_api
from trove.instance import models as instance_models

from brine_openstack import master as brine
from brine_openstack import trove_client

CONF = cfg.CONF


class FakeMaster:
    """Keeps what is placed; answer, called with an order, returns its result on the minion."""

    def __init__(self):
        self.placed, self.announced, self.cancelled, self.revoked, self.kept, self.queue, self.asked = [], {}, [], [], {}, [], []
        self.answer = lambda order: returned(None)
        self.down = None

    def _up(self):
        if self.down:
            raise brine.Unavailable(self.down)

    def place(self, name, tgt, fun, retry=None, **more):
        self._up()
        self.placed.append(dict(more, id=name, tgt=tgt, fun=fun))
        return self.order(name)

    def order(self, name, wait=0, retry=None):
        self._up()
        o = next(o for o in self.placed if o["id"] == name)
        result = o.setdefault("result", self.answer(o))
        return {"id": name, "jid": "jid-" + name, "done": result["status"] not in brine.UNFINISHED, "minions": {o["tgt"]: result},
                "metadata": o.get("metadata")}

    def cancel(self, name, retry=None):
        self._up()
        self.cancelled.append(name)
        return self.order(name)

    def orders(self, **metadata):
        return [self.order(o["id"]) for o in self.placed if all(o["metadata"].get(k) == v for k, v in metadata.items())]

    def announce(self, minion, **spec):
        self._up()
        self.announced[minion] = spec
        return {"cloud_config_files": '#cloud-config\n{"write_files": [{"path": "/etc/salt/join_token"}]}\n',
                "json": '{"id": "%s", "config": {"id": "%s", "join_token": "t-%d"}}' % (minion, minion, len(self.announced))}

    def minion(self, minion, retry=None):
        self._up()
        self.asked.append(minion)
        if minion not in self.announced:
            raise brine.NotFound("GET /v1/minions", 404, "There is no such order or minion")
        return {"id": minion, "present": True, "grains": self.announced[minion].get("grains")}

    def minions(self):
        return [self.minion(m) for m in self.announced]

    def revoke(self, minion):
        self._up()
        self.revoked.append(minion)
        self.announced.pop(minion, None)

    def kept_events(self, minion, tag=None):
        return [e for e in self.kept.get(minion, []) if tag in (None, e["tag"])]

    def forget_events(self, minion, tag):
        self.kept[minion] = [e for e in self.kept.get(minion, []) if e["tag"] != tag]

    def events(self, *tags, cursor=None, timeout=60.0):
        self.followed = (tags, cursor)
        while self.queue:
            yield self.queue.pop(0)
        raise brine.Unavailable("the stream ended")


def returned(value, code=0):
    """Return the result of a minion whose function returned."""
    return {"status": "returned", "return": value, "retcode": code, "success": code == 0}


class TroveCase(unittest.TestCase):
    """Has a database with one datastore, and self.master in place of the sidecar."""

    maxDiff = None
    ready = False

    def setUp(self):
        super().setUp()
        if not TroveCase.ready:
            TroveCase.ready = True
            CONF([], project="trove", default_config_files=[])
            directory = tempfile.TemporaryDirectory(prefix="brine-trove-")
            atexit.register(directory.cleanup)
            CONF.set_override("connection", "sqlite:///%s/trove.sqlite" % directory.name, "database")
            get_db_api().db_sync(CONF)
            # Trove 18 wants its options there, Trove 26 nothing.
            db = get_db_api()
            db.configure_db(*[CONF] * ("options" in inspect.signature(db.configure_db).parameters))
        self.addCleanup(CONF.clear_override, "guests", "brine")
        self.master = FakeMaster()
        self.patch(trove_client, "client", return_value=self.master)
        self.patch(trove_client, "_known", new={})
        self.context = context.TroveContext(project_id="p1", user_id="u1")

    def patch(self, *args, **kwargs):
        patcher = mock.patch.object(*args, **kwargs)
        self.addCleanup(patcher.stop)
        return patcher.start()

    def instance(self, datastore="mysql", version="8.0"):
        """Return the id of an instance that Trove's database has."""
        def one(model, find, **more):
            rows = model.find_all(**find).all()
            return rows[0] if rows else model.create(**find, **more)
        ds = one(datastore_models.DBDatastore, {"name": datastore}, default_version_id=None)
        ver = one(datastore_models.DBDatastoreVersion, {"datastore_id": ds.id, "name": version}, version=version, manager=datastore,
                  image_id="i1", packages="", active=True, registry_ext="", repl_strategy="")  # the last two are of Trove 26
        row = instance_models.DBInstance.create(
            name="db", flavor_id="1", tenant_id="p1", volume_size=1, datastore_version_id=ver.id, cluster_id=None, shard_id=None, type=None,
            task_status=instance_models.InstanceTasks.BUILDING, slave_of_id=None, configuration_id=None, region_id="RegionOne", access=None,
            id=str(uuid.uuid4()))
        instance_models.InstanceServiceStatus.create(instance_id=row.id, status=instance_models.srvstatus.ServiceStatuses.NEW)
        return row.id
