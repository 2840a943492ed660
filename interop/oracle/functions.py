"""
Calls functions of a stock Salt minion (local, without master) for the differential test of the modules.

Started once with a scratch directory. A question is {"fun", "args", "kwargs", "pub", "first", "providers", "grains", "opts"};
first begins a job, with modules behind other names, other grains and other options if it says so.
"""

import contextlib
import copy
import os
import sys

import wire


class OldSSL:
    """
    Lends stock's module tls the pyOpenSSL that it needs, and the cryptography that goes with it, while it is loaded and called; what
    Salt demands has neither. They are in a directory of their own (fetch-salt.sh).
    """

    path = os.path.join(sys.prefix, "tls")
    names = ("OpenSSL", "cryptography")

    def __init__(self):
        self.old = {}

    def swap(self, lent):
        taken = {n: m for n, m in sys.modules.items() if n.split(".")[0] in self.names}
        for n in taken:
            del sys.modules[n]
        sys.modules.update(lent)
        return taken

    @staticmethod
    def take_lists():
        """tls.validate gives pyOpenSSL a list that cryptography made, which only those take that the module refuses."""
        from OpenSSL import crypto
        from cryptography.hazmat.primitives.serialization import Encoding

        add = crypto.X509Store.add_crl

        def add_crl(self, crl):
            if not isinstance(crl, crypto.CRL):
                crl = crypto.load_crl(crypto.FILETYPE_PEM, crl.public_bytes(Encoding.PEM))
            add(self, crl)

        crypto.X509Store.add_crl = add_crl

    def __enter__(self):
        self.new = self.swap(self.old)
        sys.path.insert(0, self.path)

    def __exit__(self, *_):
        sys.path.remove(self.path)
        self.old = self.swap(self.new)


def keep_states():
    """What sys says of states it reads each time from a State of its own, for which all of them are loaded; one does for all questions."""
    import salt.state

    kept = []

    def state(*args, _make=salt.state.State, **kwargs):
        if len(args) != 1 or kwargs:
            return _make(*args, **kwargs)
        if not kept:
            kept.append(_make(*args))
        return kept[0]

    salt.state.State = state


def main():
    talk = wire.Wire()
    wire.etcd()
    wire.clients()

    import daemon
    import salt.client
    import salt.loader

    caller = salt.client.Caller(mopts=talk.minion(sys.argv[1]))
    funcs = caller.sminion.functions
    environ = dict(os.environ)
    tls = contextlib.nullcontext()
    if "BRINE_OLD_SSL" in os.environ:
        tls = OldSSL()
        with tls:
            for loader in (funcs, funcs.pack["__salt__"]):  # through the other one modules see one another
                loader.get("tls.ca_exists")
            tls.take_lists()
    # All modules are loaded now: a module that is loaded while a case has other grains would stay for the cases behind it.
    list(funcs)
    keep_states()
    talk.hello(caller)
    before = {}

    def pose(providers, grains):
        """Puts modules behind names, as the option providers does, and changes grains, for one job."""
        for fun, code in before.items():
            if code is None:
                del funcs[fun]
            else:
                funcs._dict[fun] = code
        before.clear()
        own = funcs.pack["__grains__"]
        for name in list(own):
            if name not in real:
                del own[name]
        own.update(real)
        own.update(grains)
        for name, module in providers.items():
            other = dict(caller.sminion.opts, grains=dict(real, **grains))
            for fun, code in list(salt.loader.raw_mod(other, module, funcs).items()):
                fun = name + fun[fun.rindex(".") :]
                # What the loader itself keeps: funcs[fun] is a wrapper that looks there, and would find itself.
                before[fun] = funcs._dict[fun] if fun in funcs else None
                funcs[fun] = code

    real = dict(funcs.pack["__grains__"])
    loaded = [mod for name, mod in sys.modules.items() if name.startswith("salt.loaded.")]
    options = {mod: mod.__opts__ for mod in loaded if hasattr(mod, "__opts__")}
    layers = list({id(o): o for o in [funcs.opts, *options.values()] if isinstance(o, dict)}.values())
    laid = []

    def lay(opts):
        """Lays options over those of all modules, for one job."""
        for layer, had, names in laid:
            for name in names:
                layer.pop(name, None)
            layer.update(had)
        laid.clear()
        for layer in layers if opts else ():
            laid.append((layer, {name: layer[name] for name in opts if name in layer}, list(opts)))
            layer.update(copy.deepcopy(opts))

    managing = False  # a job of its own has begun to manage schedule and beacons
    for q in talk.asked():
        if q.get("first"):  # of a job
            funcs.pack["__context__"].clear()
            # A job has a process of its own. What modules put into the environment while they are loaded is gone with it, and so are the
            # options that a second loader gives to the modules of the first, such as that of saltutil.mmodule, which has no pillar.
            os.environ.clear()
            os.environ.update(environ)
            for mod, own in options.items():
                mod.__opts__ = own
            managing = False
            pose(q.get("providers") or {}, q.get("grains") or {})
            lay(q.get("opts") or {})
        connected = contextlib.nullcontext()
        if q["fun"].split(".")[0] in ("schedule", "beacons"):
            if not managing:
                daemon.start(caller.opts, funcs)
            managing, connected = True, daemon.Connected()
        if q["fun"].startswith("tls."):
            connected = tls
        talk.answer(talk.call(funcs, q, connected))


if __name__ == "__main__":
    main()
