"""What all resources of this package share: the options of heat.conf, the master of this engine, names and times of orders."""

import hashlib
import hmac
import re
import threading

from oslo_config import cfg
from oslo_log import log as logging

from brine_openstack import service
from brine_openstack.heat import drain

LOG = logging.getLogger(__name__)

OPTIONS = service.options("heat", "Heat", "engine", "it is derived from auth_encryption_key") + [
    cfg.IntOpt("event_limit", default=20, min=0, help="How many events with live output one deployment may have. 0: none."),
]


def list_opts():
    """Return the options, for oslo-config-generator."""
    return [(service.GROUP, OPTIONS)]


cfg.CONF.register_group(service.GROUP)
cfg.CONF.register_opts(OPTIONS, group=service.GROUP)

@service.once
def client():
    """Return the master of this engine. It is started with the first request."""
    return service.open_master(cfg.CONF.brine, "heat", _service_database(cfg.CONF), _sealing_key)


def start():
    """Start the master with the engine, in the background: guests need it before the first stack does. Other programs start none."""
    if getattr(cfg.CONF, "prog", None) != "heat-engine":
        return
    drain.install()
    if not cfg.CONF.brine.socket:
        threading.Thread(target=_start, name="brine-start", daemon=True).start()


def _start():
    try:
        client().ensure()
    except Exception as e:  # nobody waits for this thread; each request of a resource has the error again
        LOG.error("The Salt master cannot be started, so OS::Salt resources will fail: %s", e)


def _sealing_key():
    return hmac.new(cfg.CONF.auth_encryption_key.encode(), b"brine sealing key", hashlib.sha256).hexdigest()


def announce(stack, resource, minion, **spec):
    """Announce the minion of a resource to the master and return its bootstrap."""
    grains = dict(spec.pop("grains", {}), heat_stack=stack.name, heat_resource=resource)
    return service.announce(cfg.CONF.brine, client(), minion, tenant=tenant(stack), grains=grains, **spec)


def _service_database(conf):
    conf.import_opt("connection", "oslo_db.options", group="database")
    return conf.database.connection


def tenant(stack):
    """Return the tenant of a stack's minions and orders: the Keystone project."""
    # Heat 19 has tenant_id, Heat 27 only project_id.
    context = stack.context
    return getattr(context, "project_id", None) or getattr(context, "tenant_id", None) or ""


def order_name(stack_id, resource, digest):
    """Return the id of an order of a resource. Names that differ give ids that differ."""
    safe = re.sub(r"[^A-Za-z0-9_-]", "-", resource)
    if safe != resource or len(safe) > 60:
        safe = "%s-%s" % (safe[:48], hashlib.sha256(resource.encode()).hexdigest()[:8])
    return "heat-%s-%s-%s" % (stack_id, safe, digest[:16])


# An order ends so many seconds, or a tenth of its time, before Heat gives up: the event then has the outcome of the order, and not only
# that time is over.
MARGIN = 5.0


def time_left(stack):
    """Return for how many seconds an order of the stack's action may take."""
    whole = stack.timeout_secs()
    left = stack.time_remaining()
    # The clock of a stack starts with its creation or update; a suspend or delete later on has the whole time.
    left = float(left if 0 < left <= whole else whole)
    return left - min(MARGIN, left / 10)
