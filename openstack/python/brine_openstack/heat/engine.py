"""What all resources of this package share: the options of heat.conf, the master of this engine, names and times of orders."""

import hashlib
import hmac
import re
import socket
import threading

from oslo_config import cfg
from oslo_log import log as logging

from brine_openstack import master
from brine_openstack import sidecar
from brine_openstack.heat import drain

LOG = logging.getLogger(__name__)

GROUP = cfg.OptGroup("brine", title="The Salt master beside the engine")
OPTIONS = [
    cfg.StrOpt("socket", help="The unix socket of a master that runs already. With it the engine starts none."),
    cfg.StrOpt("program", help="The path of brine-master, if it is not in PATH."),
    cfg.StrOpt("directory", help="Where the master keeps its configuration, keys and cache: .brine/heat in the home of the engine's user."),
    cfg.StrOpt("database", default="service", secret=True,
               help="The master's database: 'service' for the database of Heat, which makes the masters of all engines one; "
                    "'local' for a file in directory, for one engine host; or a URL."),
    cfg.StrOpt("sealing_key_file", help="A file with the key that seals the master's secrets in the database, the same for all engines. "
                                        "By default it is derived from auth_encryption_key."),
    cfg.StrOpt("interface", default="0.0.0.0", help="The address on which the master takes minions."),
    cfg.PortOpt("publish_port", default=4505, help="The port for jobs (zeromq)."),
    cfg.PortOpt("ret_port", default=4506, help="The port for requests of minions."),
    cfg.ListOpt("advertise", default=[], help="The addresses at which guests reach the masters, each a host or host:port: those of all "
                                              "engines, or a virtual one. By default the address of this host."),
    cfg.DictOpt("config", default={}, help="More options of the master's configuration, each name:value, for example transport:tcp."),
    cfg.DictOpt("ssl", default={}, help="The master's TLS, for the transports tcp and ws: Salt's option ssl, name:value, for example "
                                        "certfile:/etc/heat/salt.pem,keyfile:/etc/heat/salt.key,cert_reqs:CERT_NONE."),
    cfg.DictOpt("guest_ssl", default={}, help="What guests are told of TLS, their option ssl: name:value with commas. By default they "
                                              "check the masters' certificate with the authorities of their system."),
    cfg.IntOpt("event_limit", default=20, min=0, help="How many events with live output one deployment may have. 0: none."),
    cfg.IntOpt("token_ttl", default=86400, min=60, help="For how many seconds a minion's bootstrap may be used for the first time."),
]


def list_opts():
    """Return the options, for oslo-config-generator."""
    return [(GROUP, OPTIONS)]


cfg.CONF.register_group(GROUP)
cfg.CONF.register_opts(OPTIONS, group=GROUP)

_lock = threading.Lock()
_master = None


def client():
    """Return the master of this engine. It is started with the first request."""
    global _master
    with _lock:
        if _master is None:
            _master = _open(cfg.CONF)
        return _master


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


def _open(conf):
    o = conf.brine
    if o.socket:
        return master.Master(o.socket)
    key = None
    db = {"service": _service_database(conf), "local": None}.get(o.database, o.database)
    if db and not o.sealing_key_file:
        key = hmac.new(conf.auth_encryption_key.encode(), b"brine sealing key", hashlib.sha256).hexdigest()
    return sidecar.Sidecar(
        db=db, key=key, key_file=o.sealing_key_file if db else None, directory=o.directory or sidecar.default_directory("heat"),
        interface=o.interface, publish_port=o.publish_port, ret_port=o.ret_port,
        advertise=o.advertise or [_own_address(o)], config=dict(o.config, **({"ssl": dict(o.ssl)} if o.ssl else {})), program=o.program)


def announce(stack, resource, minion, **spec):
    """Announce the minion of a resource to the master and return its bootstrap."""
    o = cfg.CONF.brine
    if o.ssl or o.guest_ssl:
        spec["config"] = {"ssl": dict(o.guest_ssl) or True}
    grains = dict(spec.pop("grains", {}), heat_stack=stack.name, heat_resource=resource)
    return client().announce(minion, tenant=tenant(stack), grains=grains, token_ttl=o.token_ttl, **spec)


def _service_database(conf):
    conf.import_opt("connection", "oslo_db.options", group="database")
    return conf.database.connection


def _own_address(o):
    """Return the address and port at which other hosts probably reach this one: the source of its default route."""
    host = o.interface
    if host in ("", "0.0.0.0", "::"):
        host = "127.0.0.1"
        for family, far in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
            try:
                with socket.socket(family, socket.SOCK_DGRAM) as s:
                    s.connect((far, 9))  # sends nothing
                    host = s.getsockname()[0]
                    break
            except OSError:
                continue
        LOG.warning("The option advertise of [brine] is not set: guests are told %s", host)
    return "%s:%d" % ("[%s]" % host if ":" in host else host, o.ret_port)


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
