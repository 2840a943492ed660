"""
Calls functions of a stock Salt minion (local, without master) for the differential tests of the state system.

Started once with a scratch directory and the directory of the oracle of the execution modules, whose encoding it shares. Prints
one line of JSON with the configuration, grains and pillar, then answers each line {"fun", "args", "kwargs", "opts"} with a line
{"value", "retcode"} or {"error", "message", "retcode"}. opts are laid over the minion's options for that call. With "bus", the
functions find a minion that manages schedule and beacons; "start" is one that has none yet.
"""

import contextlib
import copy
import json
import os
import sys


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
    scratch = sys.argv[1]
    sys.path.insert(0, sys.argv[2])
    import daemon
    from oracle import wrap

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what functions print is not an answer
    questions = os.fdopen(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # and they shall not read our questions

    import salt.client
    import salt.config
    import salt.minion

    opts = salt.config.minion_config(os.path.join(scratch, "conf", "minion"))
    opts["file_client"] = "local"
    opts["__cli"] = "salt-call"  # state runs take the pillar in memory
    quicken()
    caller = salt.client.Caller(mopts=opts)
    funcs = caller.sminion.functions
    funcs["test.ping"]()

    def answer(obj):
        out.write(json.dumps(obj) + "\n")
        out.flush()

    answer(
        {
            "opts": wrap({k: v for k, v in caller.opts.items() if k not in ("grains", "pillar")}),
            "grains": wrap(caller.sminion.opts["grains"]),
            "pillar": wrap(caller.sminion.opts["pillar"]),
            "version": __import__("salt.version").version.__version__,
        }
    )
    for line in questions:
        q = json.loads(line)
        context = funcs.pack["__context__"]
        context["retcode"] = 0
        res = {}
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
        try:
            func = funcs[q["fun"]]
            args = list(q.get("args") or [])
            if q.get("kwargs"):
                args.append(dict(q["kwargs"], __kwarg__=True))
            args, kwargs = salt.minion.load_args_and_kwargs(func, args)
            with daemon.Connected() if q.get("bus") else contextlib.nullcontext():
                res["value"] = wrap(func(*args, **kwargs))
        except BaseException as exc:  # the differential test compares every failure
            if isinstance(exc, KeyboardInterrupt):
                raise
            res["error"] = type(exc).__name__
            res["message"] = str(exc)
        for layer, before in zip(layers, befores):
            for k in list(layer):
                if k not in before:
                    del layer[k]
            layer.update(before)
        res["retcode"] = funcs.pack["__context__"].get("retcode") or 0
        answer(res)


if __name__ == "__main__":
    main()
