"""brine's classes beside Trove's own, whichever version is installed: the same method, with the same arguments, reaches the guest."""

import inspect
from unittest import mock

from trove_tests import trove_case  # first: it skips without Trove
from novaclient.v2 import servers
from trove.common import cfg
from trove.common import clients
from trove.conductor import manager
from trove.guestagent import api

from brine_openstack import trove_client
from brine_openstack import trove_conductor

# What our classes have of their own. Trove must have none of these names.
OURS = {"_over_broker", "_place", "_await"}


class Wire:
    """Records what Trove's class gives to its RPC client."""

    def __init__(self):
        self.sent = []

    def prepare(self, version=None, timeout=None):
        self.timeout = timeout
        return self

    def can_send_version(self, version):
        return True

    def call(self, context, method, **kwargs):
        self.sent.append(("call", self.timeout, method, kwargs))

    def cast(self, context, method, **kwargs):
        self.sent.append(("cast", self.timeout, method, kwargs))


def methods():
    return [(n, f) for n, f in inspect.getmembers(api.API, inspect.isfunction) if not n.startswith("_") and n != "get_client"]


def arguments(function):
    """Return a value for each argument of a method: defaults stay."""
    out = {}
    for p in list(inspect.signature(function).parameters.values())[1:]:
        if p.kind is not p.VAR_KEYWORD and p.default is p.empty:
            out[p.name] = {"id": "x", "master": {"id": "y"}} if p.name in ("snapshot", "backup_info") else "a b" if p.name == "packages" else "<%s>" % p.name
    return out


class Contract(trove_case.TroveCase):
    def test_every_method_sends_what_troves_own_does(self):
        id = self.instance()
        self.master.announce(id)
        ours = trove_client.guest_client(self.context, id)
        wire = Wire()
        with mock.patch.object(api.API, "get_client", return_value=wire), mock.patch.object(api.API, "_create_guest_queue"):
            theirs = api.API(self.context, id)
        self.assertEqual(len(methods()), {"1.1": 56, "1.3": 61}[api.API.API_LATEST_VERSION])
        counts = {"call": 0, "cast": 0}
        for name, function in methods():
            # post_upgrade makes its client again.
            with self.subTest(name), mock.patch.object(api.API, "_create_guest_queue"), mock.patch.object(api.API, "get_client", return_value=wire):
                args = arguments(function)
                del wire.sent[:], self.master.placed[:]
                getattr(theirs, name)(**args)
                getattr(ours, name)(**args)
                (kind, timeout, method, kwargs), = wire.sent
                order, = self.master.placed
                counts[kind] += 1
                self.assertEqual((order["fun"], order["kwarg"] or {}), ("trove." + method, kwargs))
                self.assertEqual("deadline" in order, kind == "call")
                if kind == "call":
                    self.assertEqual(order["ttl"], timeout)
        self.assertEqual(counts["cast"], 11)

    def test_what_is_overridden(self):
        pairs = [(trove_client.OrderMixin, api.API), (trove_conductor.Manager, manager.Manager), (trove_client.ServersMixin, servers.ServerManager)]
        for ours, theirs in pairs:
            for name, f in vars(ours).items():
                if not inspect.isfunction(f) or name in OURS:
                    continue
                with self.subTest("%s.%s" % (ours.__name__, name)):
                    mine, want = (inspect.signature(x).parameters.values() for x in (f, getattr(theirs, name)))
                    if theirs is servers.ServerManager:
                        # What is not named is passed on; what is named is in front of theirs, under the same name.
                        known = [p.name for p in want]
                        self.assertLessEqual({p.name for p in mine if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}, set(known))
                    else:
                        self.assertEqual([(p.name, p.kind, p.default) for p in mine], [(p.name, p.kind, p.default) for p in want])
        for name in OURS | {"brine"}:
            self.assertFalse(hasattr(api.API, name) or hasattr(manager.Manager, name), name)

    def test_factories(self):
        for option, ours, theirs in (("remote_guest_client", trove_client.guest_client, clients.guest_client),
                                     ("remote_nova_client", trove_client.nova_client, None)):
            default = next(o.default for o in cfg.common_opts if o.name == option)
            module, _, name = default.rpartition(".")
            theirs = getattr(__import__(module, fromlist=[name]), name)
            self.assertEqual([(p.name, p.default) for p in inspect.signature(ours).parameters.values()],
                             [(p.name, p.default) for p in inspect.signature(theirs).parameters.values()], option)
        self.assertEqual(next(o.default for o in trove_client.OPTIONS if o.name == "nova_client"),
                         next(o.default for o in cfg.common_opts if o.name == "remote_nova_client"))
        self.assertEqual(next(o.default for o in cfg.common_opts if o.name == "conductor_manager"), "trove.conductor.manager.Manager")

    def test_handlers(self):
        mine = {m for m in trove_conductor.METHODS}
        theirs = {n for n, f in vars(manager.Manager).items() if inspect.isfunction(f) and not n.startswith("_")}
        self.assertEqual(theirs - mine, {"notify_end", "notify_exc_info"})
