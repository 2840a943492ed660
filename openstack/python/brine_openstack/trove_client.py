"""Trove's guest over a Salt master: the options of trove.conf that name this module's functions, and no change of Trove.

    [DEFAULT]
    remote_guest_client = brine_openstack.trove_client.guest_client
    remote_nova_client = brine_openstack.trove_client.nova_client

guest_client makes Trove's own API of the guest, whose calls and casts are orders of the master beside Trove, for the instances that the
master knows; all others go on over the message broker. nova_client makes Trove's own client of Nova, and tells new machines how to join
the master. Everything else that Trove does stays as it is.
"""

import fnmatch
import hashlib
import hmac
import json
import logging
import time
import uuid

from oslo_config import cfg as oslo_cfg
from oslo_serialization import jsonutils
from oslo_utils import importutils
from trove.common import cfg
from trove.common import clients
from trove.common import exception
from trove.common import notification
from trove.common.serializable_notification import SerializableNotification
from trove.datastore import models as datastore_models
from trove.guestagent import api
from trove.instance import models as instance_models

from brine_openstack import master
from brine_openstack import service
from brine_openstack import userdata as _userdata

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

OPTIONS = service.options("trove", "Trove", "Trove service", "it is derived from taskmanager_rpc_encr_key, which must not be Trove's default") + [
    oslo_cfg.ListOpt("guests", default=["*"],
                     help="Which instances are built with a guest that is a minion: names of datastores, datastore/version, or ids of "
                          "instances, as shell patterns. One with ! before it excludes, and the last one that fits decides. The "
                          "other instances go on over the broker."),
    oslo_cfg.StrOpt("nova_client", default="trove.common.clients_admin.nova_client_trove_admin",
                    help="The client of Nova that is used, as remote_nova_client without this package."),
]
CONF.register_group(service.GROUP)
CONF.register_opts(OPTIONS, group=service.GROUP)

# What may take hours. A guest works on other casts in the order in which they came, and on these and all calls beside them.
LONG = ("create_backup", "upgrade")

_known = {}  # what the master said last of an instance: minion_api's answer


def list_opts():
    """Return the options, for oslo-config-generator."""
    return [(service.GROUP, OPTIONS)]


@service.once
def client():
    """Return the master beside this process. It is started with the first request."""
    return service.open_master(CONF.brine, "trove", CONF.database.connection, _sealing_key)


def _sealing_key():
    key = CONF.taskmanager_rpc_encr_key
    if not key or key == next(o.default for o in cfg.common_opts if o.name == "taskmanager_rpc_encr_key"):
        # Everybody knows Trove's default.
        raise master.Error("the master's secrets cannot be sealed: set taskmanager_rpc_encr_key of [DEFAULT] or sealing_key_file of [brine]")
    return hmac.new(key.encode(), b"brine sealing key", hashlib.sha256).hexdigest()


# The guest.


def guest_client(context, id, manager=None):
    """Return the client of an instance's guest, for Trove's option remote_guest_client.

    It is Trove's own class, the one of the cluster strategy manager if that is given. While the guest is a minion of the master, its calls
    and casts are orders; otherwise they go over the broker. Trove keeps the client during a rebuild, which may move the guest.
    """
    is_minion(id)  # GuestError now, if nobody knows
    kind = api.API
    if manager:
        kind = clients.strategy.load_guestagent_strategy(manager).guest_client_class
    return _over_orders(kind)(context, id)


def is_minion(id):
    """Report whether the guest of an instance is a minion. Raises as minion_api."""
    return minion_api(id) is not None


def minion_api(id):
    """Return the newest version of Trove's API that the guest of an instance knows, or None if the guest is not a minion.

    A guest that has not come yet is expected to know all versions. When the master cannot be reached, the answer is the last one; raises
    GuestError if there was none.
    """
    try:
        grains = client().minion(id, retry=10).get("grains") or {}
        _known[id] = grains.get("trove_api") or api.API.API_LATEST_VERSION
    except master.NotFound:
        _known[id] = None
    except master.Error as e:
        if id not in _known:
            raise exception.GuestError(original_message="cannot tell which agent the guest %s has: %s" % (id, e)) from e
        LOG.warning("It is assumed that the guest %s has the same agent as before: %s", id, e)
    return _known[id]


class _Client:
    """What Trove's class wants of its RPC client, for the agent that the guest has when it is asked.

    OrderMixin has decided already when Trove prepares a call or a cast: both are for the broker.
    """

    def __init__(self, id, broker):
        self._id, self._broker = id, broker

    def prepare(self, *args, **kwargs):
        return self._broker().prepare(*args, **kwargs)

    def can_send_version(self, version):
        """Report whether the guest knows a version of the API."""
        known = minion_api(self._id)
        return self._broker().can_send_version(version) if known is None else _version(version) <= _version(known)


def _version(text):
    return [int(n) for n in str(text).split(".")]


class OrderMixin:
    """Sends calls and casts as orders. It goes before a class of Trove's in the bases: trove.guestagent.api.API or a relative."""

    _broker = None

    def _over_broker(self):
        """Return Trove's client of the guest over the broker. The first call opens it."""
        if self._broker is None:
            self._broker = super().get_client(*self._client_args)
        return self._broker

    def get_client(self, target, version_cap, serializer=None):
        # Trove's constructor asks for it, and post_upgrade does again, for the key that an upgraded guest may have.
        self._client_args, self._broker = (target, version_cap, serializer), None
        return _Client(self.id, self._over_broker)

    def _create_guest_queue(self):
        if not is_minion(self.id):  # an order waits for a minion that has not come yet
            super()._create_guest_queue()

    def _call(self, method_name, timeout_sec, version, **kwargs):
        if not is_minion(self.id):
            return super()._call(method_name, timeout_sec, version, **kwargs)
        end = time.monotonic() + timeout_sec
        try:
            order = self._place(method_name, kwargs, timeout_sec, deadline=time.time() + timeout_sec, parallel=True, retry=timeout_sec)
            result = self._await(order, end)
        except master.Error as e:
            raise exception.GuestError(original_message="%s of the guest %s: %s" % (method_name, self.id, e)) from e
        if result["status"] in master.UNFINISHED + (master.UNDELIVERABLE, master.TIMED_OUT, master.CANCELLED):
            LOG.error("The guest %s did not answer %s within %s seconds: %s", self.id, method_name, timeout_sec, master.describe(result))
            raise exception.GuestTimeout()
        if result["status"] != master.RETURNED or not result.get("success"):
            raise exception.GuestError(original_message=failure(result))
        return result.get("return")

    def _await(self, order, end):
        """Return what became of an order. What has not ended at the time end is cancelled in the guest."""
        m = client()
        try:
            while time.monotonic() < end:
                left = end - time.monotonic()
                answer = m.order(order, wait=min(left, 30.0), retry=left)
                if answer["done"]:
                    return answer["minions"][self.id]
            # It may have ended just now: then its answer counts.
            return m.cancel(order, retry=5)["minions"][self.id]
        except master.Unavailable as e:
            # The order has a deadline, at which the guest ends it by itself.
            return {"status": master.UNDERWAY, "reason": str(e)}

    def _cast(self, method_name, version, **kwargs):
        if not is_minion(self.id):
            return super()._cast(method_name, version, **kwargs)
        told = _notification(self.context)
        try:
            with notification.NotificationCastWrapper(self.context, "guest"):
                self._place(method_name, kwargs, _patience(kwargs), parallel=method_name in LONG, told=told)
        except master.Error as e:
            LOG.error("Cannot cast %s to the guest %s: %s", method_name, self.id, e)
            raise exception.GuestError(original_message=str(e)) from e

    def _place(self, method, kwargs, ttl, told=None, **more):
        order = "trove-" + uuid.uuid4().hex
        LOG.debug("Sending %s to the guest %s as the order %s", method, self.id, order)
        metadata = {"trove_method": method}
        if told:
            metadata.update(trove_cast=self.id, trove_notification=told)
        # The broker's driver encodes values so.
        kwargs = jsonutils.loads(jsonutils.dumps(kwargs))
        client().place(order, self.id, "trove." + method, kwarg=kwargs or None, ttl=ttl, secret=True, metadata=metadata, **more)
        return order


class API(OrderMixin, api.API):
    """Trove's API of the guest, whose calls and casts are orders."""


_kinds = {api.API: API}


def _over_orders(kind):
    if kind not in _kinds:
        _kinds[kind] = type(kind.__name__, (OrderMixin, kind), {})
    return _kinds[kind]


def _patience(kwargs):
    """Return for how many seconds a cast may wait for its guest: as long as Trove does."""
    return CONF.restore_usage_timeout if kwargs.get("backup_info") else CONF.usage_timeout


def _notification(context):
    """Return the notification of which the end is still to be told, as text, None if there is none."""
    told = getattr(context, "notification", None)
    if told is None or not getattr(told, "needs_end_notification", False):
        return None
    return json.dumps({"context": {k: v for k, v in context.to_dict().items() if k in ("project_id", "user_id", "request_id")},
                       "notification": jsonutils.to_primitive(SerializableNotification.serialize(context, told))})


def failure(result):
    """Return in words why a guest's function failed: its own words where it said some."""
    said = result.get("return")
    return said if result["status"] == master.RETURNED and isinstance(said, str) and said else master.describe(result)


# The machine.


def nova_client(context, region_name=None, password=None):
    """Return Trove's client of Nova, for the option remote_nova_client: it tells machines that it builds how to join the master."""
    kind = importutils.import_class(CONF.brine.nova_client)
    nova = kind(context) if region_name is None and password is None else kind(context, region_name, password)
    if not isinstance(nova.servers, ServersMixin):
        theirs = type(nova.servers)
        nova.servers = type(theirs.__name__, (ServersMixin, theirs), {})(nova)
    return nova


class ServersMixin:
    """Announces the guests of Trove's machines. It goes before novaclient's ServerManager in the bases."""

    def create(self, name, image, flavor, meta=None, userdata=None, **kwargs):
        id = (meta or {}).get("trove_instance_id")
        ours = id and wanted(id)
        if ours:
            userdata = prepare_userdata(id, meta.get("trove_project_id"), userdata)
        try:
            return super().create(name, image, flavor, meta=meta, userdata=userdata, **kwargs)
        except BaseException:
            if ours:
                revoke(id)
            raise

    def rebuild(self, server, image, *args, **kwargs):
        id = _instance_of(server)
        if id and wanted(id):
            # The old agent's key went with the old disk.
            revoke(id)
            project = server.metadata.get("trove_project_id")
            if "userdata" in kwargs:
                kwargs["userdata"] = prepare_userdata(id, project, kwargs["userdata"])
            else:
                # Before version 2.57 of Nova's API a rebuild takes files and no user data. The user data of the first build may hold a
                # bootstrap that is used up: what is in minion.d counts more.
                boot = _announce(id, project)
                kwargs["files"] = dict(kwargs.get("files") or {}, **{REBUILT: json.dumps(json.loads(boot["json"])["config"])})
        elif id:
            revoke(id)
        return super().rebuild(server, image, *args, **kwargs)

    def delete(self, server):
        out = super().delete(server)
        id = _instance_of(server)
        if id:
            revoke(id)
        return out


# What a machine that is built again reads; JSON is YAML.
REBUILT = "/etc/salt/minion.d/brine-trove.conf"


def _instance_of(server):
    return (getattr(server, "metadata", None) or {}).get("trove_instance_id")


def wanted(id):
    """Report whether the option guests wants the guest of an instance to be a minion."""
    names = [id]
    try:
        instance = instance_models.DBInstance.find_by(id=id)
        version = datastore_models.DatastoreVersion.load_by_uuid(instance.datastore_version_id)
        names += [version.datastore_name, "%s/%s" % (version.datastore_name, version.name)]
    except exception.NotFound:
        pass  # deleted in the meantime: patterns of ids count

    ours = False
    for pattern in (p.strip() for p in CONF.brine.guests):
        if any(fnmatch.fnmatchcase(n, pattern.lstrip("!")) for n in names):
            ours = not pattern.startswith("!")
    return ours


def prepare_userdata(id, project, userdata=None):
    """Announce the guest of an instance and return user data that has userdata and the way to the master in it.

    Raises GuestError if the master cannot be reached, or Nova would not take the result.
    """
    try:
        out = _userdata.with_bootstrap(userdata, _announce(id, project), "cloud_config_files")
        _userdata.check_size(out)
    except master.Error as e:
        raise exception.GuestError(original_message="cannot prepare the guest %s: %s" % (id, e)) from e
    return out


def _announce(id, project):
    boot = service.announce(CONF.brine, client(), id, tenant=project or "", grains={"trove_instance": id})
    _known[id] = api.API.API_LATEST_VERSION
    return boot


def revoke(id):
    """Revoke the minion of an instance. One that cannot be revoked now is named in the log."""
    _known.pop(id, None)
    try:
        client().revoke(id)
    except master.Error as e:
        LOG.error("The guest %s cannot be revoked: %s", id, e)
