"""
How a stock Salt process talks with the differential tests (package oracle): a line of JSON with the configuration, grains and
pillar first, then an answer to each line of standard input. What JSON cannot say is wrapped: {"__py__": "bytes", "hex": ...},
{"__py__": "map", "items": [[key, value], ...]}.
"""

import contextlib
import gc
import importlib
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


def remember_files():
    """
    Salt lists its directories twice for every loader, and a state run has half a dozen of them: most of the time of a call. What
    Salt itself has does not change, so that it is listed once for each kind of loader.
    """
    import salt
    from salt.loader.lazy import LazyLoader

    inside = os.path.dirname(salt.__file__) + os.sep
    known = {}

    def refresh(self, _list=LazyLoader._refresh_file_mapping):
        dirs = [d for d in self.module_dirs if d.startswith(inside) or os.path.isdir(d)]
        if not all(d.startswith(inside) for d in dirs):
            return _list(self)
        options = [repr(self.opts.get(k)) for k in ("cython_enable", "enable_zip_modules", "optimization_order")]
        key = (*dirs, *options, *sorted(self.disabled), *self.static_modules)
        if key not in known:
            _list(self)
            known[key] = dict(self.suffix_map), list(self.suffix_order), dict(self.file_mapping)
        suffixes, order, files = known[key]
        self.suffix_map, self.suffix_order, self.file_mapping = dict(suffixes), list(order), dict(files)

    LazyLoader._refresh_file_mapping = refresh


def load_what_matters():
    """
    For a function that no module has, Salt loads all its modules, as any may go by the name that is looked for; every run with a
    state of packages asks for such a function. A module whose text does not have the name cannot go by it.
    """
    import salt
    from salt.loader.lazy import LazyLoader

    inside = os.path.dirname(salt.__file__) + os.sep
    texts, known = {}, {}

    def names(path, name):
        if not path.startswith(inside) or not path.endswith(".py"):
            return True
        if path not in texts:
            with open(path, "rb") as file:
                texts[path] = file.read()
        if (path, name) not in known:
            known[path, name] = f'"{name}"'.encode() in texts[path] or f"'{name}'".encode() in texts[path]
        return known[path, name]

    def candidates(self, name, _all=LazyLoader._iter_files):
        for file in _all(self, name):
            if name in file or names(self.file_mapping[file][0], name):
                yield file

    LazyLoader._iter_files = candidates


def no_bus():
    """
    There is no event bus beside these minions but what daemon.py lends them. Salt waits a second for one whenever it fires an event, as
    after each state that has its modules loaded anew.
    """
    from salt.utils.event import SaltEvent

    SaltEvent.connect_pull = lambda self, timeout=1: False


def etcd():
    """
    Loads python-etcd for stock's module. It imports dnspython, with which Salt would look up names in another way if it were
    there, and asks urllib3 for two methods that 2.6 has no more.
    """
    import types

    import urllib3

    if not hasattr(urllib3.HTTPResponse, "getheader"):
        urllib3.HTTPResponse.getheader = lambda self, name, default=None: self.headers.get(name, default)
        urllib3.HTTPResponse.getheaders = lambda self: self.headers
    names = ("dns", "dns.resolver")
    for name in names:
        sys.modules[name] = types.ModuleType(name)
    sys.modules["dns"].resolver = sys.modules["dns.resolver"]
    with contextlib.suppress(ImportError):
        importlib.import_module("etcd")
    for name in names:
        del sys.modules[name]


def clients():
    """Lets Salt find the libraries that are in directories of their own (fetch-salt.sh), if the test has cases for them."""
    if "BRINE_CLIENTS" in os.environ:
        sys.path[:0] = [os.path.join(sys.prefix, name) for name in ("docker", "influxdb")]


class Wire:
    def __init__(self):
        self.out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # what functions print is not an answer
        self.questions = os.fdopen(os.dup(0))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # and they shall not read our questions

    def minion(self, scratch):
        """The minion without master that is configured below scratch."""
        import salt.config

        gc.set_threshold(100_000, 50, 100)  # modules that are loaded and dropped by the thousand are no garbage of ours
        no_bus()
        remember_files()
        load_what_matters()
        opts = salt.config.minion_config(os.path.join(scratch, "conf", "minion"))
        opts["file_client"] = "local"
        return opts

    def answer(self, obj):
        self.out.write(json.dumps(obj) + "\n")
        self.out.flush()

    def hello(self, caller):
        gc.collect()
        gc.freeze()  # what is loaded by now stays, and need not be looked through again
        self.answer(
            {
                "opts": wrap({k: v for k, v in caller.opts.items() if k not in ("grains", "pillar")}),
                "grains": wrap(caller.sminion.opts["grains"]),
                "pillar": wrap(caller.sminion.opts["pillar"]),
            }
        )

    def asked(self):
        for line in self.questions:
            yield json.loads(line)

    def call(self, funcs, q, connected):
        """Calls a function and answers {"value", "retcode"} or {"error", "message", "retcode"}."""
        import salt.minion

        funcs.pack["__context__"]["retcode"] = 0
        res = {}
        try:
            func = funcs[q["fun"]]
            args = list(q.get("args") or [])
            if q.get("kwargs"):
                args.append(dict(q["kwargs"], __kwarg__=True))
            args, kwargs = salt.minion.load_args_and_kwargs(func, args, data=q.get("pub"))
            with connected:
                value = func(*args, **kwargs)
            if hasattr(value, "__next__"):
                value = list(value)
            res["value"] = wrap(value)
        except BaseException as exc:  # the differential tests compare every failure
            if isinstance(exc, KeyboardInterrupt):
                raise
            res["error"] = type(exc).__name__
            res["message"] = str(exc)
        res["retcode"] = funcs.pack["__context__"].get("retcode") or 0
        return res
