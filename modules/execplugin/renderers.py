# The renderers py, pyobjects and pydsl, for state trees that lie on the host itself (renderer_python: local). They run in the
# process of host.py and see its names: ask, __salt__, __grains__, __pillar__, __opts__, __states__.
import os
import re
import types
import uuid
import traceback
from collections import OrderedDict

from salt.exceptions import SaltRenderError


def source(url, saltenv):
    text = ask("render.source", url=url, saltenv=saltenv)
    if text is None:
        raise ImportError("Could not find the file '%s'" % url)
    return text


def py(template, saltenv="base", sls="", tmplpath=None, **kws):
    """A file with a function run, which gives the data."""
    mod = types.ModuleType(os.path.basename(tmplpath).split(".")[0])
    mod.__file__ = tmplpath
    exec(compile(template.read(), tmplpath, "exec"), mod.__dict__)
    names = {
        "__salt__": __salt__, "salt": __salt__, "__grains__": __grains__, "grains": __grains__, "__opts__": __opts__, "opts": __opts__,
        "__pillar__": __pillar__, "pillar": __pillar__, "__env__": saltenv, "saltenv": saltenv, "__sls__": sls, "sls": sls,
    }
    mod.__dict__.update(names, **kws)
    try:
        return mod.run()
    except Exception:
        raise SaltRenderError(traceback.format_exc())


# pyobjects

REQUISITES = [r + s for s in ("", "_in") for r in ("listen", "onchanges", "onfail", "require", "watch", "use")]


class DuplicateState(Exception):
    pass


class InvalidFunction(Exception):
    pass


class Registry:
    def __init__(self):
        self.states, self.extends, self.includes, self.requisites, self.enabled = OrderedDict(), OrderedDict(), [], [], True

    def include(self, *names):
        if self.enabled:
            self.includes += names

    def extend(self, name):
        return Extend(name)

    def add(self, state):
        if not self.enabled:
            return
        name, into = state.id_, self.states
        if isinstance(name, Extend):
            name, into = name.name, self.extends
            state.id_ = name
        if state.full_func in into.setdefault(name, OrderedDict()):
            raise DuplicateState("A state with id ''%s'', type ''%s'' exists" % (name, state.full_func))
        for req in self.requisites:
            state.kwargs.setdefault(req.requisite, []).append(req())
        into[name].update(state())

    def data(self):
        out = OrderedDict(self.states)
        if self.includes:
            out["include"] = self.includes
        if self.extends:
            out["extend"] = self.extends
        return out


class Extend:
    def __init__(self, name):
        self.name = name


class Requisite:
    def __init__(self, registry, requisite, module, id_):
        self.registry, self.requisite, self.module, self.id_ = registry, requisite, module, id_

    def __call__(self):
        return {self.module: self.id_}

    def __enter__(self):
        if self.registry.enabled:
            self.registry.requisites.append(self)

    def __exit__(self, *exc):
        if self.registry.enabled:
            del self.registry.requisites[-1]


class Factory:
    def __init__(self, registry, module, functions=()):
        self.registry, self.module, self.functions = registry, module, functions

    def __getattr__(self, func):
        if self.functions and func not in self.functions:
            raise InvalidFunction("The function '%s' does not exist in the StateFactory for '%s'" % (func, self.module))
        return lambda id_, **kwargs: State(self.registry, id_, self.module, func, kwargs)

    def __call__(self, id_, requisite="require"):
        return Requisite(self.registry, requisite, self.module, id_)


class State:
    def __init__(self, registry, id_, module, func, kwargs):
        self.registry, self.id_, self.module, self.func, self.kwargs = registry, id_, module, func, kwargs
        for attr in REQUISITES:
            if attr in kwargs and not hasattr(kwargs[attr], "__iter__"):
                kwargs[attr] = [kwargs[attr]]
        registry.add(self)
        self.requisite = Requisite(registry, "require", module, self.id_)

    @property
    def attrs(self):
        for attr in REQUISITES:
            if attr in self.kwargs:
                self.kwargs[attr] = [r() if isinstance(r, Requisite) else r for r in self.kwargs[attr]]
        return [{k: self.kwargs[k]} for k in sorted(self.kwargs)]

    @property
    def full_func(self):
        return "%s.%s" % (self.module, self.func)

    def __call__(self):
        return {self.full_func: self.attrs}

    def __enter__(self):
        self.requisite.__enter__()

    def __exit__(self, *exc):
        self.requisite.__exit__()


class SaltObject:
    def __init__(self, mod=None):
        self.__dict__["mod"] = mod

    def __getattr__(self, name):
        if self.mod is None:
            return SaltObject(name)
        try:
            return __salt__[self.mod + "." + name]
        except KeyError:
            raise AttributeError(name)


class MapMeta(type):
    """Data by grain: of the classes inside, those count whose grain has their name."""

    @classmethod
    def __prepare__(metacls, name, bases):
        return OrderedDict()

    def __init__(cls, name, bases, names):
        super().__init__(name, bases, names)
        found, attrs = [], {}
        for item, filt in names.items():
            if item[0] != "_" and isinstance(filt, type):
                grain, match = getattr(filt, "__grain__", "os_family"), getattr(filt, "__match__", item)
                found.append((grain, match, {k: v for k, v in vars(filt).items() if k[0] != "_"}))
        order = list(getattr(cls, "priority", ()))
        found.sort(key=lambda f: order.index(f[0]) if f[0] in order else len(order))
        if found:
            values = __salt__["grains.item"](*{f[0] for f in found})
            for grain, match, more in found:
                if grain in values and values[grain] == match:
                    attrs.update(more)
        if hasattr(cls, "merge"):
            attrs.update(__salt__["pillar.get"](cls.merge) or {})
        for key, value in attrs.items():
            setattr(cls, key, value)


IMPORTS = re.compile(r"^\s*import\s+(salt://\S+)|^\s*from\s+(salt://\S+)\s+import\s+(.*)$")


def pyobjects(template, saltenv="base", sls="", salt_data=True, context=None, **kwargs):
    registry = Registry()
    by_module = {}
    for full in __states__.keys():
        module, _, func = full.partition(".")
        by_module.setdefault(module, []).append(func)
    names = {"".join(part.capitalize() for part in m.split("_")): Factory(registry, m, f) for m, f in by_module.items()}
    names.update({
        "StateFactory": lambda module, valid_funcs=(): Factory(registry, module, valid_funcs), "include": registry.include, "extend": registry.extend,
        "Map": MapMeta("Map", (), {}), "salt": SaltObject(), "pillar": __salt__["pillar.get"], "grains": __salt__["grains.get"],
        "mine": __salt__.get("mine.get"), "config": __salt__["config.get"], "__salt__": __salt__, "__pillar__": __pillar__,
        "__grains__": __grains__, "__opts__": __opts__, "__sls__": sls,
    })
    names.update(context or {})
    if not salt_data:
        return names

    def read(text):
        """Carry out the imports of other files of the tree, and give the rest."""
        lines, scope = [], dict(names)
        for line in text.splitlines():
            found = IMPORTS.match(line)
            if not found:
                lines.append(line.rstrip("\r\n"))
                continue
            url = found.group(1) or found.group(2)
            code, inner = read(source(url, saltenv))
            exec(compile(code, url, "exec"), inner)
            if found.group(1):
                name = os.path.splitext(os.path.basename(url))[0]
                scope[name] = types.SimpleNamespace(**inner)
                continue
            for item in found.group(3).split(","):
                name, _, alias = (part.strip() for part in item.strip().partition(" as "))
                if name not in inner:
                    raise ImportError("'%s' was not found in '%s'" % (name, url))
                scope[alias or name] = inner[name]
        return "\n".join(lines), scope

    registry.enabled = False
    code, scope = read(template.read())
    registry.enabled = True
    names.update(scope)
    exec(compile(code, kwargs.get("tmplpath") or "<pyobjects>", "exec"), names)
    return registry.data()


# pydsl

DSL_REQUISITES = set("listen require watch prereq use listen_in require_in watch_in prereq_in use_in onchanges onfail".split())
STACK = []  # the files that are rendered, the innermost last
DECLARED = {}  # the states of all of them, by id


class PyDslError(SaltRenderError):
    pass


class Options(dict):
    def __getattr__(self, name):
        return self.get(name)


class Sls:
    def __init__(self, sls, saltenv):
        self.name, self.saltenv, self.options = sls, saltenv, Options()
        self.includes, self.included, self.extends, self.decls, self.funcs = [], OrderedDict(), [], [], []

    def set(self, **options):
        self.options.update(options)

    def include(self, *names, **kws):
        """Include state files. Those that are pydsl themselves are rendered now, and their modules are given, as in Salt."""
        saltenv = kws.get("saltenv", self.saltenv)
        mods = []
        for name in names:
            text = None
            if not kws.get("delayed"):
                path = "salt://" + name.replace(".", "/")
                text = ask("render.source", url=path + ".sls", saltenv=saltenv) or ask("render.source", url=path + "/init.sls", saltenv=saltenv)
            if text is None or not text.startswith("#!pydsl"):
                self.includes.append((saltenv, name))
                continue
            mod, high = compile_sls(text, saltenv, name, {"__file__": name})
            self.includes.extend(tuple(next(iter(i.items()))) for i in high.pop("include", []))
            self.included.update(high)
            mods.append(mod)
        return mods[0] if len(mods) == 1 else mods or None

    def extend(self, *functions):
        if self.options.ordered or self.last_func():
            raise PyDslError("Cannot extend() after the ordered option was turned on!")
        for f in functions:
            self.extends.append(DECLARED.pop(f.mod._state_id))
            self.decls = [d for d in self.decls if d._id != f.mod._state_id]

    def state(self, id=None):
        id = id or ".%s" % uuid.uuid4()
        if id not in DECLARED:
            DECLARED[id] = Declaration(id)
            self.decls.append(DECLARED[id])
        return DECLARED[id]

    def last_func(self):
        return self.funcs[-1] if self.funcs else None

    def highstate(self):
        marker = "_slsmod_" + self.name
        self.state(marker).stateconf.set(slsmod=self.name)
        del DECLARED[marker]
        high = OrderedDict()
        if self.includes:
            high["include"] = [{env: name} for env, name in self.includes]
        if self.extends:
            high["extend"] = OrderedDict((d._id, d._repr(True)) for d in self.extends)
        high.update(self.included)
        for decl in self.decls:
            high[decl._id] = decl._repr()
        return high


class Declaration:
    def __init__(self, id):
        self._id, self._mods = id, []

    def __getattr__(self, name):
        for m in self._mods:
            if m._name == name:
                return m
        self._mods.append(Module(name, self._id))
        return self._mods[-1]

    __getitem__ = __getattr__

    def __str__(self):
        return self._id

    def __iter__(self):
        return iter(self._mods)

    def _repr(self, extend=False):
        return OrderedDict((m._name, m._func._repr(extend)) for m in self._mods)

    def __call__(self, check=True):
        """Run the state now."""
        sls = STACK[-1]
        if self._id in DECLARED:
            last = sls.last_func()
            if last and self._mods[-1]._func is not last:
                raise PyDslError("Cannot run state(%s: %s) that is required by a runtime state(%s: %s), at compile time." % (
                    self._mods[-1]._name, self._id, last.mod, last.mod._state_id))
            DECLARED.pop(self._id)
            sls.decls.remove(self)
            self._mods[0]._func._remove_auto_require()
            sls.funcs = [f for f in sls.funcs if f not in [m._func for m in self._mods]]
        result = __salt__["state.high"]({self._id: self._repr()})
        if not isinstance(result, dict):
            raise PyDslError("An error occurred while running highstate: %s" % "; ".join(result))
        result = sorted(result.items(), key=lambda t: t[1]["__run_num__"])
        for k, v in result if check else ():
            if not v["result"]:
                import pprint

                raise PyDslError("Failed executing low state at compile time:\n%s" % pprint.pformat({k: v}))
        return result


class Module:
    def __init__(self, name, id):
        self._state_id, self._name, self._func = id, name, None

    def __getattr__(self, name):
        f = self._func
        if f is None:
            self._func = f = Function(None if name in DSL_REQUISITES else name, self)
            return getattr(f, name) if name in DSL_REQUISITES else f
        if name == f.name:
            return f
        if name in DSL_REQUISITES:
            return getattr(f, name)
        if f.name:
            raise PyDslError("Multiple state functions(%s) not allowed in a state module(%s)!" % (name, self._name))
        f.name = name
        return f

    def __call__(self, _fname, *args, **kws):
        return getattr(self, _fname).configure(args, kws)

    def __str__(self):
        return self._name


class Function:
    def __init__(self, name, mod):
        self.mod, self.name, self.args, self.require_index = mod, name, [], None
        sls = STACK[-1]
        if sls.options.ordered:
            if sls.last_func():
                self.require(sls.last_func().mod)
                self.require_index = len(self.args) - 1
            sls.funcs.append(self)

    def _remove_auto_require(self):
        if self.require_index is not None:
            del self.args[self.require_index]
            self.require_index = None

    def __call__(self, *args, **kws):
        return self.configure(args, kws)

    def __getattr__(self, name):
        if name not in DSL_REQUISITES:
            raise AttributeError(name)

        def requisite(*args, **kws):
            for mod in args:
                self.reference(name, mod, None)
            for mod, ref in kws.items():
                self.reference(name, mod, ref)
            return self

        return requisite

    def _repr(self, extend):
        if not self.name:
            if extend:
                return self.args
            raise PyDslError("No state function specified for module: %s" % self.mod._name)
        return [self.name] + self.args

    def configure(self, args, kws):
        args = list(args)
        if args:
            if callable(args[0]):
                raise PyDslError("cmd.call with a Python function is not supported: states run outside of the renderer")
            args[0] = {"name": args[0]}
        self.args.extend(args + [{k: v} for k, v in kws.items()])
        return self

    def reference(self, kind, mod, ref):
        if isinstance(mod, Module):
            ref = mod._state_id
        elif not (mod and ref):
            raise PyDslError("Invalid a requisite reference declaration! %s: %s" % (mod, ref))
        self.args.append({kind: [{str(mod): str(ref)}]})


def compile_sls(text, saltenv, sls, names):
    mod = types.ModuleType(sls)
    dsl = Sls(sls, saltenv)

    def on_top(name):
        return lambda *args, **kws: getattr(STACK[-1], name)(*args, **kws)

    mod.__dict__.update(
        __pydsl__=dsl, include=on_top("include"), extend=on_top("extend"), state=on_top("state"), __salt__=__salt__, __grains__=__grains__,
        __opts__=__opts__, __pillar__=__pillar__, __env__=saltenv, __sls__=sls)
    mod.__dict__.update(names)
    STACK.append(dsl)
    try:
        exec(compile(text, names.get("__file__") or sls, "exec"), mod.__dict__)
        return mod, dsl.highstate()
    finally:
        STACK.pop()


def pydsl(template, saltenv="base", sls="", tmplpath=None, **kws):
    if not STACK:
        DECLARED.clear()
    return compile_sls(template.read(), saltenv, sls, dict(kws, __file__=tmplpath))[1]


RENDERERS = {"py": py, "pyobjects": pyobjects, "pydsl": pydsl}
