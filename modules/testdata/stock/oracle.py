"""
Calls functions of a stock Salt minion (local, without master) for the differential test of the modules.

Started once with a scratch directory. Prints one line of JSON with the configuration, grains and pillar, then answers each
line {"fun", "args", "kwargs", "pub", "first"} with a line {"value", "retcode"} or {"error", "message", "retcode"}. What JSON cannot
say is wrapped: {"__py__": "bytes", "hex": ...}, {"__py__": "map", "items": [[key, value], ...]}.
"""

import json
import os
import sys


def wrap(v, depth=0):
    if depth > 60:
        return "<deep>"
    if v is None or isinstance(v, (bool, str)):
        if isinstance(v, str):
            return v.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        return v
    if isinstance(v, int):
        return {"__py__": "int", "text": str(v)}
    if isinstance(v, float):
        return {"__py__": "float", "text": repr(v)}
    if isinstance(v, bytes):
        return {"__py__": "bytes", "hex": v.hex()}
    if isinstance(v, (list, tuple, set, frozenset)):
        return [wrap(x, depth + 1) for x in v]
    if hasattr(v, "keys"):
        if all(isinstance(k, str) for k in v.keys()):
            return {k: wrap(v[k], depth + 1) for k in v.keys()}
        return {"__py__": "map", "items": [[wrap(k), wrap(v[k], depth + 1)] for k in v.keys()]}
    return {"__py__": type(v).__name__, "text": str(v)}


def main():
    scratch = sys.argv[1]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what functions print is not an answer
    questions = os.fdopen(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # and they shall not read our questions

    import salt.client
    import salt.config
    import salt.loader
    import salt.minion
    import salt.utils.args

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import daemon

    opts = salt.config.minion_config(os.path.join(scratch, "conf", "minion"))
    opts["file_client"] = "local"
    caller = salt.client.Caller(mopts=opts)
    funcs = caller.sminion.functions
    environ = dict(os.environ)
    # All modules are loaded now: a module that is loaded while a case has other grains would stay for the cases behind it.
    list(funcs)

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
    for line in questions:
        q = json.loads(line)
        context = funcs.pack["__context__"]
        if q.get("first"):  # of a job
            context.clear()
            # A job has a process of its own; what modules put into the environment while they are loaded is gone with it.
            os.environ.clear()
            os.environ.update(environ)
            daemon.start(caller.opts, funcs)
            pose(q.get("providers") or {}, q.get("grains") or {})
        context["retcode"] = 0
        res = {}
        try:
            func = funcs[q["fun"]]
            args = list(q.get("args") or [])
            if q.get("kwargs"):
                args.append(dict(q["kwargs"], __kwarg__=True))
            args, kwargs = salt.minion.load_args_and_kwargs(func, args, data=q.get("pub"))
            if q["fun"].split(".")[0] in ("schedule", "beacons"):
                with daemon.Connected():
                    value = func(*args, **kwargs)
            else:
                value = func(*args, **kwargs)
            if hasattr(value, "__next__"):
                value = list(value)
            res["value"] = wrap(value)
        except BaseException as exc:  # the differential test compares every failure
            if isinstance(exc, KeyboardInterrupt):
                raise
            res["error"] = type(exc).__name__
            res["message"] = str(exc)
        res["retcode"] = funcs.pack["__context__"].get("retcode") or 0
        answer(res)


if __name__ == "__main__":
    main()
