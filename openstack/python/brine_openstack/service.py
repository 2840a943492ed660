"""What the plugins for services share: the options that place a master beside a service, and the master that they describe."""

import functools
import logging
import socket
import threading

from oslo_config import cfg

from brine_openstack import master
from brine_openstack import sidecar

LOG = logging.getLogger(__name__)

GROUP = cfg.OptGroup("brine", title="The Salt master beside the service")


def options(name, title, process, key):
    """Return the options of [brine] for a service.

    name names the default directory and the files in examples, title is the service in texts, process what starts the master, and key
    tells how the sealing key is found without sealing_key_file.
    """
    return [
        cfg.StrOpt("socket", help="The unix socket of a master that runs already. With it the %s starts none." % process),
        cfg.StrOpt("tenant", help="The tenant that the %s is of at a master that several services share, which needs socket." % title),
        cfg.StrOpt("program", help="The path of brine-master, if it is not in PATH."),
        cfg.StrOpt("directory", help="Where the master keeps its configuration, keys and cache: .brine/%s in the home of the %s's user."
                   % (name, process)),
        cfg.StrOpt("database", default="service", secret=True,
                   help="The master's database: 'service' for the database of %s, which makes the masters of all hosts one; "
                        "'local' for a file in directory, for one host; or a URL." % title),
        cfg.StrOpt("sealing_key_file", help="A file with the key that seals the master's secrets in the database, the same on all hosts. "
                                            "By default %s." % key),
        cfg.StrOpt("interface", default="0.0.0.0", help="The address on which the master takes minions."),
        cfg.PortOpt("publish_port", default=4505, help="The port for jobs (zeromq)."),
        cfg.PortOpt("ret_port", default=4506, help="The port for requests of minions."),
        cfg.ListOpt("advertise", default=[], help="The addresses at which guests reach the masters, each a host or host:port: those of all "
                                                  "hosts, or a virtual one. By default the address of this host."),
        cfg.DictOpt("config", default={}, help="More options of the master's configuration, each name:value, for example transport:tcp."),
        cfg.DictOpt("ssl", default={}, help="The master's TLS, for the transports tcp and ws: Salt's option ssl, name:value, for example "
                                            "certfile:/etc/%s/salt.pem,keyfile:/etc/%s/salt.key,cert_reqs:CERT_NONE." % (name, name)),
        cfg.DictOpt("guest_ssl", default={}, help="What guests are told of TLS, their option ssl: name:value with commas. By default they "
                                                  "check the masters' certificate with the authorities of their system."),
        cfg.IntOpt("token_ttl", default=86400, min=60, help="For how many seconds a minion's bootstrap may be used for the first time."),
    ]


class Shared(master.Master):
    """A master of which the service is one tenant, so that its projects cannot be tenants.

    A minion has the project as a grain in its configuration, and an order is placed only for minions that report the order's project. A
    minion that has not reported its grains yet has those that it was announced with.
    """

    PROJECT = "brine_project"

    def announce(self, minion, tenant=None, grains=None, **spec):
        return super().announce(minion, grains=dict(grains or {}, **{self.PROJECT: tenant or ""}), **spec)

    def place(self, order, tgt, fun, tenant=None, **more):
        if tenant:
            if more.get("tgt_type") not in (None, "list"):
                raise master.Error("at a master that several services share an order names its minions")
            for minion in [tgt] if isinstance(tgt, str) else tgt:
                if (self.minion(minion, retry=more.get("retry")).get("grains") or {}).get(self.PROJECT) != tenant:
                    raise master.Error("the minion %s is not of the project %s" % (minion, tenant))
        return super().place(order, tgt, fun, **more)


def once(open_client):
    """Decorate a function that opens a master: the first call opens it, and all calls return that one. What it raises is not kept."""
    lock, opened = threading.Lock(), []

    @functools.wraps(open_client)
    def client():
        with lock:
            if not opened:
                opened.append(open_client())
            return opened[0]
    return client


def open_master(o, name, database, key):
    """Return the master that the options o describe. The first request starts it, if it is not a running one's socket.

    name names the default directory. database is the URL of the service's database; key is called, without an argument, for the
    sealing key if the master has a database but no sealing_key_file.
    """
    if o.tenant and not o.socket:
        raise master.Error("the option tenant of [brine] is for a master that several services share: set socket")
    if o.socket:
        return Shared(o.socket) if o.tenant else master.Master(o.socket)
    db = {"service": database, "local": None}.get(o.database, o.database)
    return sidecar.Sidecar(
        db=db, key=key() if db and not o.sealing_key_file else None, key_file=o.sealing_key_file if db else None,
        directory=o.directory or sidecar.default_directory(name), interface=o.interface, publish_port=o.publish_port,
        ret_port=o.ret_port, advertise=o.advertise or [_own_address(o)],
        config=dict(o.config, **({"ssl": dict(o.ssl)} if o.ssl else {})), program=o.program)


def announce(o, client, minion, **spec):
    """Announce a minion with what the options o tell guests, and return its bootstrap. spec is that of Master.announce."""
    if o.ssl or o.guest_ssl:
        spec["config"] = {"ssl": dict(o.guest_ssl) or True}
    return client.announce(minion, token_ttl=o.token_ttl, **spec)


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
