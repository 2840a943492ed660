"""
Calls functions of a stock Salt minion (local, without master) for the differential tests of the state system.

Started once with a scratch directory. A question is {"fun", "args", "kwargs", "opts", "bus"}: opts are laid over the minion's
options for that call. With bus, the functions find a minion that manages schedule and beacons; "start" is one that has none yet.
"""

import contextlib
import copy
import sys

import wire


def quicken():
    """
    What is the same for every call is loaded once: modules without state of their own, and that nothing is installed beside Salt.
    """
    import salt.loader
    import salt.utils.entrypoints

    salt.utils.entrypoints.iter_entry_points = lambda *args, **kwargs: []
    for name in ("utils", "serializers"):
        kept = {}

        def once(*args, _make=getattr(salt.loader, name), _kept=kept, **kwargs):
            if "it" not in _kept:
                _kept["it"] = _make(*args, **kwargs)
            return _kept["it"]

        setattr(salt.loader, name, once)


def main():
    talk = wire.Wire()
    wire.etcd()
    wire.clients()

    import daemon
    import salt.client

    opts = talk.minion(sys.argv[1])
    opts["__cli"] = "salt-call"  # state runs take the pillar in memory
    quicken()
    caller = salt.client.Caller(mopts=opts)
    funcs = caller.sminion.functions
    funcs["test.ping"]()
    talk.hello(caller)
    for q in talk.asked():
        if q.get("bus") == "start":
            daemon.start(caller.opts, funcs)
        # Calls leave things in the options, of which loaded modules have copies; in a minion each call has a process of its own.
        layers = [funcs.opts]
        state = sys.modules.get(getattr(funcs["state.running"], "__module__", ""))
        if isinstance(getattr(state, "__opts__", None), dict):
            layers.append(state.__opts__)
        befores = [copy.deepcopy(dict(layer)) for layer in layers]
        for layer in layers:
            layer.update(q.get("opts") or {})
        res = talk.call(funcs, q, daemon.Connected() if q.get("bus") else contextlib.nullcontext())
        for layer, before in zip(layers, befores):
            for k in list(layer):
                if k not in before:
                    del layer[k]
            layer.update(before)
        talk.answer(res)


if __name__ == "__main__":
    main()
