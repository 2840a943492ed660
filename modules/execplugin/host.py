# The process in which the Python code of the host's owner runs: execution modules, states, grains, beacons, returners, renderers
# and utils. It is part of the agent, which passes this text to the Python of the host and then talks with it on standard input and
# output: one JSON object a line, as modules/execplugin and docs/plugins.md have it, with more than one call to a process. It needs
# nothing but the standard library; where Salt's own library is installed, modules get that, else the small stand-ins at the end of
# this file.
import base64
import builtins
import functools
import importlib
import importlib.util
import inspect
import io
import json
import logging
import os
import re
import sys
import threading
import traceback
import types

sys.dont_write_bytecode = True
PREFIX = "salt.loaded.ext."
TAGS = {"modules": "module", "returners": "returner", "renderers": "render"}  # the loader's names, where they differ


class Channel:
    """The messages. Modules that print, or run programs that do, print into the log."""

    def __init__(self):
        self.input = os.fdopen(os.dup(0), "rb")
        self.output = os.fdopen(os.dup(1), "wb")
        self.log = os.dup(2)
        self.lock = threading.RLock()
        self.pid = os.getpid()
        self.number = 0
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        sys.stdout = os.fdopen(1, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)

    def send(self, **message):
        text = json.dumps(message, default=str, allow_nan=False)
        self.output.write(text.encode("utf-8", "surrogateescape") + b"\n")
        self.output.flush()

    def finish(self, **message):
        """The last message of a call. A mark behind what the call printed tells the agent whose lines these were."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:  # modules may put anything there
                pass
        try:
            os.write(self.log, b"\n\x1dend of call\n")
        except OSError:
            pass
        self.send(**message)

    def receive(self):
        line = self.input.readline()
        if not line:
            os._exit(0)
        return json.loads(line)

    def ask(self, method, **fields):
        """Ask the agent. Until it answers it may want something of this process: a state calls a state calls a module."""
        if os.getpid() != self.pid:
            raise exceptions().CommandExecutionError("only the process that runs the module can call functions of the agent")
        with self.lock:
            self.number += 1
            self.send(type="request", id=self.number, method=method, **{k: plain(v) for k, v in fields.items()})
            answer = self.receive()
            while answer["type"] != "answer":
                self.host.handle(answer)
                answer = self.receive()
        if "error" in answer:
            raise error_of(answer["error"])
        return rich(answer["value"])


def plain(value, ordered=False):
    """A value as JSON has it. Bytes that are no text and maps with other keys than texts are marked; ordered marks all maps."""
    if value is None or isinstance(value, (bool, int, str)):
        return value if type(value) in (type(None), bool, int, str) else (str(value) if isinstance(value, str) else int(value))
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, (bytes, bytearray)):
        try:
            return bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            return {"__bytes__": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, dict) or hasattr(value, "items") and hasattr(value, "keys"):
        if not ordered and all(isinstance(k, str) for k in value):
            return {str(k): plain(v) for k, v in value.items()}
        return {"__pairs__": [[plain(k), plain(v, ordered)] for k, v in value.items()]}
    if isinstance(value, (list, tuple, set, frozenset)) or inspect.isgenerator(value) or hasattr(value, "__next__"):
        return [plain(v, ordered) for v in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)


def rich(value):
    """The value that plain made JSON of."""
    if isinstance(value, list):
        return [rich(v) for v in value]
    if isinstance(value, dict):
        if len(value) == 1:
            if "__bytes__" in value:
                return base64.b64decode(value["__bytes__"])
            if "__pairs__" in value:
                return {hashable(rich(k)): rich(v) for k, v in value["__pairs__"]}
        return {k: rich(v) for k, v in value.items()}
    return value


def hashable(key):
    return tuple(key) if isinstance(key, list) else key


def exceptions():
    import salt.exceptions

    return salt.exceptions


def error_of(fields):
    """The exception for an error of the agent."""
    e = exceptions()
    text = fields.get("message", "")
    kinds = {
        "usage": e.SaltInvocationError, "type": TypeError, "missing_command": e.CommandNotFoundError, "not_available": KeyError,
    }
    return kinds.get(fields.get("kind"), e.CommandExecutionError)(text)


def message_of(exc):
    """An exception as an error message."""
    e = exceptions()
    for cls, kind in (
        (e.CommandNotFoundError, "missing_command"), (e.CommandExecutionError, "execution"), (e.SaltInvocationError, "usage"), (TypeError, "type"),
    ):
        if isinstance(exc, cls):
            return {"kind": kind, "message": str(exc)}
    trace = exc.__traceback__
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename == "host.py":
        trace = trace.tb_next  # our own part says nothing to users
    text = "".join(traceback.format_exception(type(exc), exc, trace)).rstrip("\n")
    return {"kind": "traceback", "exception": type(exc).__name__, "message": text}


class Log(logging.Handler):
    """Lines for the agent's log, with the level in front."""

    def emit(self, record):
        level = 3 if record.levelno >= 40 else 4 if record.levelno >= 30 else 6 if record.levelno >= 20 else 7
        try:
            text = self.format(record)
        except Exception:  # a format that does not fit its arguments
            text = str(record.msg)
        sys.stderr.write("".join("<%d>%s\n" % (level, line) for line in text.splitlines()))
        sys.stderr.flush()


def start_log(level):
    names = {"all": 1, "garbage": 1, "trace": 5, "debug": 10, "profile": 15, "info": 20, "warning": 30, "error": 40, "critical": 50, "quiet": 1000}
    for name in ("garbage", "trace", "profile"):
        number = names[name]
        logging.addLevelName(number, name.upper())
        if not hasattr(logging.Logger, name):
            setattr(logging.Logger, name, functools.partialmethod(logging.Logger.log, number))
    root = logging.getLogger()
    root.handlers[:] = [Log()]
    root.setLevel(names.get(str(level).lower(), 30))


class Functions(dict):
    """Functions by name: those of Python files in this process, all others through the agent."""

    def __init__(self, host, kind):
        super().__init__()
        self.host, self.kind, self.names, self.known = host, kind, None, {}

    def __missing__(self, name):
        if not isinstance(name, str):
            raise KeyError("The key must be a string.")
        function = self.host.function(self.kind, name)
        if function is None:
            if not self.has(name):
                raise KeyError(name)
            function = self.elsewhere(name)
            self[name] = function
        return function

    def elsewhere(self, name):
        """A function of the agent. It is positional only here: callers may have arguments of any name."""

        def function(*args, **kwargs):
            return self.host.channel.ask(METHODS[self.kind] + ".call", fun=name, args=args, kwargs=kwargs)

        function.__name__ = name
        return function

    def remote(self):
        """The names of all functions of the agent. It takes time, as modules look at the host for it."""
        if self.names is None:
            self.names = set(self.host.channel.ask(METHODS[self.kind] + ".list"))
        return self.names

    def has(self, name, module=False):
        """Whether the agent has a function, or a module of its own."""
        if (name, module) not in self.known:
            self.known[name, module] = self.host.channel.ask(METHODS[self.kind] + ".has", fun=name, module=module)
        return self.known[name, module]

    def __contains__(self, name):
        return isinstance(name, str) and (self.host.function(self.kind, name) is not None or self.has(name))

    def get(self, name, default=None):
        return self[name] if name in self else default

    def keys(self):
        return sorted(self.remote() | self.host.names(self.kind))

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return len(self.keys())

    def items(self):
        return [(k, self[k]) for k in self.keys()]

    def values(self):
        return [self[k] for k in self.keys()]


METHODS = {"modules": "salt", "states": "state"}


class Utils(Functions):
    """__utils__: functions of the host's own utils, then those of salt.utils."""

    def __missing__(self, name):
        if not isinstance(name, str):
            raise KeyError("The key must be a string.")
        function = self.host.function(self.kind, name)
        if function is None:
            module, _, attr = name.rpartition(".")
            try:
                function = getattr(importlib.import_module("salt.utils." + module), attr)
            except (ImportError, AttributeError, ValueError):
                raise KeyError(name) from None
            self[name] = function
        return function

    def remote(self):
        return set()

    def __contains__(self, name):
        try:
            self[name]
        except KeyError:
            return False
        return True


class Module:
    """A module that was loaded. Called is the name of its functions, reason why it cannot be used."""

    def __init__(self, host, kind, name, path):
        self.kind, self.name, self.called, self.reason, self.functions, self.doc, self.outputters = kind, name, name, None, {}, "", {}
        self.tag, self.wants, self.scope = TAGS.get(kind, kind), (), {}
        try:
            self.load(host, path)
        except BaseException as exc:  # modules may do anything when they are imported, also exit
            if isinstance(exc, KeyboardInterrupt):
                raise
            logging.getLogger(__name__).debug("Cannot load %s", path, exc_info=True)
            self.reason = "cannot load %s: %s: %s" % (path, type(exc).__name__, exc)

    def load(self, host, path):
        package = os.path.isdir(path)
        with open(os.path.join(path, "__init__.py") if package else path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        self.wants = [name for name in ("__running__", "__lowstate__") if name in text]
        spec = importlib.util.spec_from_file_location(
            PREFIX + self.tag + "." + self.name, os.path.join(path, "__init__.py") if package else path,
            submodule_search_locations=[path] if package else None,
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        self.scope = module.__dict__
        beside = os.path.dirname(path)
        sys.path.append(beside)  # modules import what lies beside them
        try:
            spec.loader.exec_module(module)
        finally:
            sys.path.remove(beside)
        self.scope.update(host.dunders(self.kind))
        if hasattr(module, "__init__") and inspect.isfunction(module.__init__):
            module.__init__(host.opts)
        if not self.virtual(module):
            return
        self.doc = module.__doc__ or ""
        aliases = getattr(module, "__func_alias__", {})
        self.outputters = getattr(module, "__outputter__", {})
        for attr in getattr(module, "__load__", getattr(module, "__all__", dir(module))):
            function = getattr(module, attr, None)
            if not attr.startswith("_") and (inspect.isfunction(function) or isinstance(function, functools.partial)):
                self.functions[aliases.get(attr, attr)] = function
        self.depends()

    def virtual(self, module):
        """Ask the module whether it suits the host, and what it is called."""
        if not inspect.isfunction(getattr(module, "__virtual__", None)):
            return True
        virtual, reason = module.__virtual__(), ""
        if isinstance(virtual, tuple):
            virtual, reason = virtual[0], virtual[1]
        if not virtual:
            self.reason = str(reason or "")
            return False
        name = getattr(module, "__virtualname__", virtual)
        if isinstance(name, str):
            self.called = name
        return True

    def depends(self):
        """Take away the functions whose dependencies, named by the decorator depends, are missing."""
        from salt.utils.decorators import Depends

        full = {self.called + "." + name: f for name, f in self.functions.items()}
        before = dict(full)
        Depends.enforce_dependencies(full, self.tag, self.name)
        for name in before:
            if name not in full:
                del self.functions[name.split(".", 1)[1]]
            elif full[name] is not before[name]:
                self.functions[name.split(".", 1)[1]] = full[name]

    def describe(self):
        return {
            "protocol": 1, "doc": self.doc or "", "available": self.reason is None, "reason": self.reason or "",
            "functions": {name: self.declare(name, f) for name, f in self.functions.items()},
        }

    def declare(self, name, function):
        d = {"doc": without_markup(function.__doc__ or ""), "messages": True, "params": [], "out": self.outputters.get(name, "")}
        python = getattr(function, "__name__", name)
        if python != name:
            d["python"] = python
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return dict(d, args="args", kwargs="kwargs")
        for p in signature.parameters.values():
            if p.kind == p.VAR_POSITIONAL:
                d["args"] = p.name
            elif p.kind == p.VAR_KEYWORD:
                d["kwargs"] = p.name
            else:
                d["params"].append(self.parameter(p))
        return d

    def parameter(self, p):
        d = {"name": p.name}
        if p.kind == p.KEYWORD_ONLY:
            d["keyword_only"] = True
        if p.default is not p.empty:
            try:
                d["default"] = json.loads(json.dumps(p.default, allow_nan=False))
            except (TypeError, ValueError):
                d["optional"] = True
        if any(word in p.name for word in ("password", "passwd", "secret", "token")):
            d["secret"] = True
        return d


def without_markup(text):
    """Documentation as sys.doc shows it: without the commonest directives of reStructuredText."""
    text = re.sub(r" *.. code-block:: \S+\n{1,2}", "", text)
    for directive, word in (("note::", "Note:"), ("warning::", "Warning:"), ("versionadded::", "New in version"), ("versionchanged::", "Changed in version")):
        text = text.replace(".. " + directive, word)
    return text


class Host:
    def __init__(self, channel, init):
        self.channel = channel
        channel.host = self
        self.files = {kind: {} for kind in ("modules", "states", "grains", "beacons", "returners", "renderers", "utils")}
        self.files.update(init["files"])
        self.modules, self.loading = {}, set()
        self.permits = {}
        self.opts = rich(init["opts"])
        self.context = {}
        self.globals = {}
        self.common = {
            "__opts__": self.opts, "__grains__": rich(init["grains"]), "__pillar__": rich(init["pillar"]), "__context__": self.context,
            "__utils__": Utils(self, "utils"), "__proxy__": {}, "__file_client__": None,
        }
        self.salt, self.states = Functions(self, "modules"), Functions(self, "states")
        self.static = self.opts.get("grains") or {}
        self.opts["grains"], self.opts["pillar"] = self.common["__grains__"], self.common["__pillar__"]
        for path in init.get("imports", ()):
            sys.path.insert(0, path)
        self.renderers = {}
        if init.get("renderers"):
            scope = dict(self.common, __name__="renderers", __salt__=self.salt, __states__=self.states, ask=channel.ask)
            exec(compile(init["renderers"], "renderers.py", "exec"), scope)
            self.renderers = scope["RENDERERS"]
        start_log(self.opts.get("log_level_logfile") or self.opts.get("log_level") or "warning")

    def dunders(self, kind):
        """The names that a file of some kind sees. As in Salt, grains have no functions to call."""
        names = dict(self.common)
        if kind != "grains":
            names["__salt__"] = self.salt
        if kind in ("states", "renderers"):
            names["__states__"] = self.states
        if kind == "states":
            names.update(self.globals, __serializers__={})
        return names

    def module(self, kind, name):
        """The module of a file, None if there is none, or while it is loaded: its __virtual__ may ask for functions of others."""
        key = kind, name
        if key not in self.modules and name in self.files[kind] and key not in self.loading:
            self.loading.add(key)
            self.modules[key] = Module(self, kind, name, self.files[kind][name])
            self.loading.remove(key)
        return self.modules.get(key)

    def called(self, kind, name):
        """The module whose functions have that name before the dot: the file of the name, else one that calls itself so."""
        module = self.module(kind, name)
        if module is not None and module.reason is None and module.called == name:
            return module
        if kind == "modules" or kind == "states" and self.states.has(name, True):
            return None  # the agent finds modules by such names; and only a file of its name replaces states of the agent
        for other in list(self.files[kind]):
            module = self.module(kind, other)
            if module is not None and module.reason is None and module.called == name:
                return module
        return None

    def function(self, kind, name):
        """A function of a Python file, None if there is none that may be called."""
        prefix, _, attr = name.partition(".")
        if not self.files[kind] or not attr:
            return None
        module = self.called(kind, prefix)
        if module is None or attr not in module.functions or not self.permitted(kind, name):
            return None
        return module.functions[attr]

    def names(self, kind):
        modules = [m for m in (self.module(kind, name) for name in self.files[kind]) if m is not None]
        return {m.called + "." + f for m in modules if m.reason is None for f in m.functions if self.permitted(kind, m.called + "." + f)}

    def permitted(self, kind, name):
        """Whether the minion's policy lets a function be called: calls inside this process do not pass the registry."""
        if kind not in METHODS:
            return True
        if (kind, name) not in self.permits:
            self.permits[kind, name] = self.channel.ask(METHODS[kind] + ".permits", fun=name)
        return self.permits[kind, name]

    def call(self, message):
        self.context.pop("retcode", None)
        module = self.module(message["kind"], message["module"])
        if module is None or module.reason is not None or message["fun"] not in module.functions:
            reason = module.reason if module is not None and module.reason else "it has gone"
            self.channel.finish(type="error", kind="execution", message="the module cannot be used any more: %s" % reason)
            return
        function = module.functions[message["fun"]]
        args, kwargs = self.bind(function, rich(message["args"]), rich(message["extra"]), rich(message["kwargs"]))
        before = self.enter(module, message.get("globals"))
        try:
            value = function(*args, **kwargs)
            if inspect.isgenerator(value):
                value = self.collect(value) if message["kind"] == "modules" else list(value)
            result = {"type": "return", "value": plain(value)}
        finally:
            if before is not None:
                self.leave(before)
        retcode = self.context.get("retcode")
        if isinstance(retcode, int):
            result["retcode"] = int(retcode)
        self.channel.finish(**result)

    def enter(self, module, given):
        """Give states the names that belong to the run: __low__, __env__ and more."""
        if given is None:
            return None
        before = dict(self.globals), self.opts.get("test")
        given = rich(given)
        self.opts["test"] = given.pop("test")
        for name in module.wants:
            given[name] = self.channel.ask("state.global", name=name)
        self.spread(given)
        return before

    def leave(self, before):
        self.opts["test"] = before[1]
        self.spread(before[0])

    def spread(self, names):
        self.globals.update(names)
        for module in self.modules.values():
            if module.kind == "states":
                module.scope.update(names)

    def bind(self, function, named, extra, kwargs):
        """Place the arguments; where there are more than parameters, those before them too."""
        parameters = inspect.signature(function).parameters.values()
        args = []
        for p in parameters:
            if p.kind == p.POSITIONAL_ONLY or extra and p.kind == p.POSITIONAL_OR_KEYWORD:
                args.append(named.pop(p.name) if p.name in named else p.default)
        return args + extra, dict(named, **kwargs)

    def collect(self, items):
        """What a generator yields is reported as it comes."""
        whole = {}
        for item in items:
            self.channel.send(type="progress", item=plain(item))
            if isinstance(item, dict) and isinstance(whole, dict):
                whole.update(item)
            else:
                whole = whole if isinstance(whole, list) else []
                whole.append(item)
        return whole

    def gather(self, message):
        """Run every function of the grains, in order; later ones see what earlier ones found, and override it."""
        found, deep = {}, self.opts.get("grains_deep_merge") is True
        built_in = dict(self.common["__grains__"])
        self.common["__grains__"].clear()  # as in Salt, where only those of the configuration are there so early
        self.common["__grains__"].update(self.static)
        for name in sorted(self.files["grains"]):
            module = self.module("grains", name)
            if module.reason is not None:
                logging.getLogger(__name__).log(30 if module.reason else 10, "The grains of %s are not used: %s", self.files["grains"][name], module.reason)
                continue
            for attr, function in module.functions.items():
                try:
                    parameters = inspect.signature(function).parameters
                    kwargs = {"grains": dict(built_in, **found)} if "grains" in parameters else {}
                    if "proxy" in parameters:
                        kwargs["proxy"] = None
                    value = function(**kwargs)
                except Exception:
                    logging.getLogger(__name__).critical(
                        "Failed to load grains defined in grain file %s in function %s, error:\n", name + "." + attr, function, exc_info=True)
                    continue
                if isinstance(value, dict):
                    merge_grains(found, value, deep)
        self.channel.finish(type="return", value=plain(found, True))

    def render(self, message):
        """Send a text or data through a renderer."""
        name, data, kwargs = message["name"], rich(message["data"]), rich(message["vars"])
        function = self.renderers.get(name)
        if function is None:
            module = self.called("renderers", name)
            if module is None or "render" not in module.functions:
                raise exceptions().SaltRenderError("The renderer %s is not available" % name)
            function = module.functions["render"]
        if isinstance(data, str):
            data = io.StringIO(data)
        if message["argline"]:
            kwargs["argline"] = message["argline"]
        value = function(data, message["saltenv"], message["sls"], **kwargs)
        if hasattr(value, "read"):
            value.seek(0)
            value = value.read()
        self.channel.finish(type="return", value=plain(value, True))

    def describe(self, message):
        for name in message["modules"]:
            module = self.module(message["kind"], name)
            self.channel.send(type="description", module=name, called=module.called, description=module.describe())
        self.channel.finish(type="return", value=None)

    def handle(self, message):
        try:
            {"describe": self.describe, "grains": self.gather, "render": self.render, "call": self.call}[message["type"]](message)
        except SystemExit as exc:
            self.channel.finish(type="error", kind="execution", message="the module called sys.exit(%s)" % exc.code)
        except Exception as exc:
            self.channel.finish(type="error", **message_of(exc))

    def serve(self):
        while True:
            self.handle(self.channel.receive())


def merge_grains(found, more, deep):
    for key, value in more.items():
        if deep and isinstance(value, dict) and isinstance(found.get(key), dict):
            merge_grains(found[key], value, True)
        else:
            found[key] = value


# Stand-ins for Salt's library, for hosts that do not have it.


def have_salt():
    try:
        import salt.exceptions
        import salt.utils.decorators
        import salt.utils.path
    except ImportError:
        for name in [n for n in sys.modules if n == "salt" or n.startswith("salt.")]:
            del sys.modules[name]
        return False
    return True


def stand_in(name, **names):
    """Make a module, and the packages above it."""
    module = sys.modules.get(name)
    if module is None:
        module = sys.modules[name] = types.ModuleType(name, "A stand-in for Salt's module.")
        module.__path__ = []
        above, _, last = name.rpartition(".")
        if above:
            setattr(stand_in(above), last, module)
    for key, value in names.items():
        setattr(module, key, value)
    return module


def stand_ins():
    errors()
    builtins.__salt_system_encoding__ = "utf-8"
    stand_in("salt", __version__="0")
    stand_in("salt.defaults", DEFAULT_TARGET_DELIM=":")
    stand_in("salt.defaults.exitcodes", EX_OK=0, EX_GENERIC=1, EX_USAGE=64, EX_SOFTWARE=70)
    platforms()
    paths()
    texts()
    arguments()
    versions()
    decorators()
    helpers()


def errors():
    class SaltException(Exception):
        def __init__(self, message=""):
            super().__init__(message)
            self.message = self.strerror = message

    class CommandExecutionError(SaltException):
        def __init__(self, message="", info=None):
            super().__init__(message)
            self.error, self.info = message, info

    names = {"SaltException": SaltException, "CommandExecutionError": CommandExecutionError}
    names["SaltInvocationError"] = type("SaltInvocationError", (SaltException, TypeError), {})
    for name in ("ArgumentValueError", "CheckError", "InvalidConfigError", "InvalidEntityError", "CodePageError"):
        names[name] = type(name, (CommandExecutionError,), {})
    for name in (
        "CommandNotFoundError", "MinionError", "SaltClientError", "SaltRenderError", "PkgParseError", "LoaderError", "TimedProcTimeoutError",
        "SaltCacheError", "SaltConfigurationError", "SaltReqTimeoutError", "AuthenticationError", "AuthorizationError", "FileLockError",
        "SaltDeserializationError", "SaltValidationError", "TemplateError", "SaltRunnerError", "NotImplemented",
    ):
        names[name] = type(name, (SaltException,), {})
    module = stand_in("salt.exceptions", **names)
    for value in names.values():
        value.__module__ = module.__name__


def platforms():
    name = sys.platform
    tests = {
        "windows": name == "win32", "linux": name.startswith("linux"), "darwin": name == "darwin", "freebsd": name.startswith("freebsd"),
        "openbsd": name.startswith("openbsd"), "netbsd": name.startswith("netbsd"), "sunos": name.startswith("sunos"), "aix": name.startswith("aix"),
        "proxy": False, "smartos": False, "smartos_globalzone": False, "smartos_zone": False, "junos": False,
        "fedora": os.path.exists("/etc/fedora-release"), "photonos": False,
    }
    stand_in("salt.utils.platform", **{"is_" + k: functools.partial(bool, v) for k, v in tests.items()})


def paths():
    import contextlib
    import shutil
    import tempfile

    def which(exe=None):
        extra = ["/sbin", "/bin", "/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"]
        return shutil.which(exe, path=os.pathsep.join([os.environ.get("PATH", "")] + extra)) if exe else None

    def which_bin(exes):
        return next((p for p in map(which, exes) if p), None) if isinstance(exes, (list, tuple, set)) else None

    def join(*parts, **kwargs):
        root, rest = (str(parts[0]), parts[1:]) if parts else ("", ())
        return os.path.normpath(os.path.join(root, *[str(p).lstrip(os.sep) for p in rest]))

    def fopen(*args, **kwargs):
        if "b" not in (args[1] if len(args) > 1 else kwargs.get("mode", "r")):
            kwargs.setdefault("encoding", "utf-8")
        return open(*args, **kwargs)

    @contextlib.contextmanager
    def set_umask(mask):
        if mask is None:
            yield
            return
        before = os.umask(mask)
        try:
            yield
        finally:
            os.umask(before)

    def safe_rm(path):
        try:
            os.remove(path)
        except OSError:
            pass

    def mkstemp(*args, **kwargs):
        kwargs.setdefault("prefix", "__salt.tmp.")
        close = kwargs.pop("close_fd", True)
        fd, path = tempfile.mkstemp(*args, **kwargs)
        if not close:
            return fd, path
        os.close(fd)
        return path

    stand_in("salt.utils.path", which=which, which_bin=which_bin, join=join, islink=os.path.islink, readlink=os.readlink, os_walk=os.walk)
    stand_in(
        "salt.utils.files", fopen=fopen, flopen=fopen, fpopen=fopen, set_umask=set_umask, safe_rm=safe_rm, mkstemp=mkstemp, rename=os.replace,
        is_empty=lambda path: os.path.isfile(path) and os.path.getsize(path) == 0, list_files=lambda d: sorted(
            {d} | {os.path.join(root, n) for root, dirs, files in os.walk(d) for n in dirs + files}),
    )


def texts():
    import hashlib
    import random as generator
    from collections import OrderedDict

    def to_str(s, encoding=None, errors="strict", normalize=False):
        if isinstance(s, (bytes, bytearray)):
            return bytes(s).decode(encoding or "utf-8", errors)
        if isinstance(s, str):
            return s
        raise TypeError("expected str, bytearray, or bytes not %s" % type(s))

    def to_bytes(s, encoding=None, errors="strict"):
        if isinstance(s, (bytes, bytearray)):
            return bytes(s)
        if isinstance(s, str):
            return s.encode(encoding or "utf-8", errors)
        raise TypeError("expected str, bytes, or bytearray not %s" % type(s))

    def to_num(text):
        for kind in (int, float):
            try:
                return kind(text)
            except (TypeError, ValueError):
                pass
        return text

    def decode(value, *args, **kwargs):
        if isinstance(value, (bytes, bytearray)):
            try:
                return bytes(value).decode("utf-8")
            except UnicodeDecodeError:
                return value
        if isinstance(value, dict):
            return type(value)((decode(k), decode(v)) for k, v in value.items())
        if isinstance(value, (list, tuple, set)):
            return type(value)(decode(v) for v in value)
        return value

    def is_true(value=None):
        if isinstance(value, str):
            return value.lower() in ("true", "yes", "on", "1") if not value.lstrip("-").replace(".", "", 1).isdigit() else float(value) > 0
        if isinstance(value, (int, float)):
            return value > 0
        return bool(value)

    def traverse_dict_and_list(data, key, default=None, delimiter=":"):
        for part in key if isinstance(key, (list, tuple)) else str(key).split(delimiter):
            if isinstance(data, list) and str(part).lstrip("-").isdigit():
                try:
                    data = data[int(part)]
                    continue
                except IndexError:
                    return default
            if isinstance(data, list):
                found = [d[part] for d in data if isinstance(d, dict) and part in d]
                if not found:
                    return default
                data = found[0]
            elif isinstance(data, dict) and part in data:
                data = data[part]
            else:
                return default
        return data

    def repack_dictlist(data, *args, **kwargs):
        out = {}
        for item in data or []:
            out.update(item if isinstance(item, dict) else {item: None})
        return out

    def compare_dicts(old=None, new=None):
        old, new = old or {}, new or {}
        return {
            k: {"old": old.get(k, ""), "new": new.get(k, "")} for k in set(old) | set(new) if k not in old or k not in new or old[k] != new[k]
        }

    def compare_lists(old=None, new=None):
        changes = {"new": [i for i in new or [] if i not in (old or [])], "old": [i for i in old or [] if i not in (new or [])]}
        return {k: v for k, v in changes.items() if v}

    def merge(dest, upd, recursive_update=True, merge_lists=False):
        for key, value in upd.items():
            if recursive_update and isinstance(value, dict) and isinstance(dest.get(key), dict):
                merge(dest[key], value, True, merge_lists)
            elif merge_lists and isinstance(value, list) and isinstance(dest.get(key), list):
                dest[key] = dest[key] + [v for v in value if v not in dest[key]]
            else:
                dest[key] = value
        return dest

    def get_hash(path, form="sha256", chunk_size=65536):
        digest = hashlib.new(form)
        with open(path, "rb") as file:
            for chunk in iter(lambda: file.read(chunk_size), b""):
                digest.update(chunk)
        return digest.hexdigest()

    stand_in("salt.utils.stringutils", to_str=to_str, to_unicode=to_str, to_bytes=to_bytes, to_num=to_num, to_none=lambda s: s or None,
             is_binary=lambda data: b"\0" in to_bytes(data), contains_whitespace=lambda t: any(c.isspace() for c in t))
    stand_in("salt.utils.data", decode=decode, decode_dict=decode, decode_list=decode, is_true=is_true, traverse_dict=traverse_dict_and_list,
             traverse_dict_and_list=traverse_dict_and_list, repack_dictlist=repack_dictlist, compare_dicts=compare_dicts, compare_lists=compare_lists,
             is_list=lambda v: isinstance(v, list), is_iter=lambda v, ignore=(str,): hasattr(v, "__iter__") and not isinstance(v, ignore),
             is_dictlist=lambda v: isinstance(v, list) and bool(v) and all(isinstance(i, (dict, str)) for i in v) and any(isinstance(i, dict) for i in v),
             stringify=lambda data: [str(d) for d in data])
    stand_in("salt.utils.dictupdate", update=merge, merge=merge, merge_recurse=merge)
    stand_in("salt.utils.json", loads=json.loads, load=json.load, dumps=json.dumps, dump=json.dump)
    stand_in("salt.utils.odict", OrderedDict=OrderedDict)
    stand_in("salt.utils.hashutils", get_hash=get_hash, base64_b64encode=lambda t: base64.b64encode(to_bytes(t)).decode(),
             base64_b64decode=lambda t: decode(base64.b64decode(to_bytes(t))),
             sha256_digest=lambda t: hashlib.sha256(to_bytes(t)).hexdigest(), sha512_digest=lambda t: hashlib.sha512(to_bytes(t)).hexdigest(),
             md5_digest=lambda t: hashlib.md5(to_bytes(t)).hexdigest(), random_hash=lambda size=0, **kw: hashlib.sha256(
                 str(generator.SystemRandom().random()).encode()).hexdigest())
    try:
        import yaml
    except ImportError:
        return
    stand_in("salt.utils.yaml", safe_load=yaml.safe_load, load=yaml.safe_load, safe_dump=functools.partial(yaml.safe_dump, default_flow_style=False),
             dump=functools.partial(yaml.safe_dump, default_flow_style=False), YAMLError=yaml.YAMLError)


def arguments():
    import getpass
    import shlex

    def clean_kwargs(**kwargs):
        return {k: v for k, v in kwargs.items() if not k.startswith("__")}

    def invalid_kwargs(kwargs, raise_exc=True):
        if kwargs and raise_exc:
            raise exceptions().SaltInvocationError(
                "The following keyword arguments are not valid: %s" % ", ".join("%s=%s" % pair for pair in kwargs.items()))

    def split_input(value, mapper=None):
        mapper = mapper or (lambda x: x)
        return list(map(mapper, value)) if isinstance(value, (list, tuple)) else [mapper(x.strip()) for x in str(value).split(",")]

    def namespaced_function(function, global_dict, defaults=None, preserve_context=None):
        new = types.FunctionType(function.__code__, global_dict, function.__name__, defaults or function.__defaults__, function.__closure__)
        new.__dict__.update(function.__dict__)
        new.__kwdefaults__ = function.__kwdefaults__
        return new

    def alias_function(function, name, doc=None):
        new = types.FunctionType(function.__code__, function.__globals__, str(name), function.__defaults__, function.__closure__)
        new.__dict__.update(function.__dict__)
        new.__kwdefaults__ = function.__kwdefaults__
        new.__doc__ = doc if isinstance(doc, str) else "\nThis function is an alias of ``%s``.\n%s" % (function.__name__, function.__doc__ or "")
        return new

    def split(text, sep=None):
        return iter(text.split(sep))

    stand_in("salt.utils.args", clean_kwargs=clean_kwargs, invalid_kwargs=invalid_kwargs, split_input=split_input,
             shlex_split=lambda s, **kw: shlex.split(s, **kw) if isinstance(s, str) else s, get_function_argspec=inspect.getfullargspec)
    stand_in("salt.utils.functools", namespaced_function=namespaced_function, alias_function=alias_function)
    stand_in("salt.utils.itertools", split=split)
    stand_in("salt.utils.user", get_user=getpass.getuser)
    stand_in("salt.utils.compat", cmp=lambda a, b: (a > b) - (a < b), pack_dunder=lambda name: None)


def versions():
    @functools.total_ordering
    class LooseVersion:
        def __init__(self, vstring="0"):
            self.vstring = str(vstring)
            self.version = [int(p) if p.isdigit() else p for p in re.findall(r"\d+|[a-z]+", self.vstring.lower())]
            self.key = [(1, p, "") if isinstance(p, int) else (0, 0, p) for p in self.version]

        def __str__(self):
            return self.vstring

        def __eq__(self, other):
            return self.key == LooseVersion(str(other)).key

        def __lt__(self, other):
            return self.key < LooseVersion(str(other)).key

    def version_cmp(pkg1, pkg2, ignore_epoch=False):
        one, two = (LooseVersion(re.sub(r"^\d+:", "", str(p)) if ignore_epoch else p) for p in (pkg1, pkg2))
        return (one > two) - (one < two)

    def compare(ver1="", oper="==", ver2="", cmp_func=None, ignore_epoch=False):
        result = (cmp_func or version_cmp)(ver1, ver2)
        return {"==": result == 0, "<": result < 0, "<=": result <= 0, ">": result > 0, ">=": result >= 0, "!=": result != 0, "": result == 0}[oper]

    def quiet(*args, **kwargs):
        """Warnings of deprecation mean the version of Salt, of which there is none."""

    stand_in("salt.utils.versions", Version=LooseVersion, LooseVersion=LooseVersion, StrictVersion=LooseVersion, version_cmp=version_cmp,
             compare=compare, warn_until=quiet, warn_until_date=quiet, kwargs_warn_until=quiet)


def decorators():
    class Depends:
        wanted = []

        def __init__(self, *names, **params):
            self.names, self.params = names, params

        def __call__(self, function):
            frame = sys._getframe(1)
            Depends.wanted.append((frame.f_globals.get("__name__", ""), function, self.names, self.params, frame.f_globals))
            return function

        @classmethod
        def enforce_dependencies(cls, functions, kind, module):
            for name, function, names, params, scope in cls.wanted:
                if name != PREFIX + kind + "." + module or all(n is True or n is not False and scope.get(n) for n in names):
                    continue
                for full in [k for k, f in functions.items() if f is function]:
                    if params.get("fallback_function") is not None:
                        functions[full] = params["fallback_function"]
                    else:
                        del functions[full]

    def memoize(function):
        cached = functools.lru_cache(maxsize=None)(function)

        @functools.wraps(function)
        def remembered(*args, **kwargs):
            return cached(*args, **kwargs)

        return remembered

    def needs(find, text):
        def named(*names):
            def decorate(function):
                @functools.wraps(function)
                def checked(*args, **kwargs):
                    if not find(*names):
                        raise exceptions().CommandNotFoundError(text % ", ".join(map(str, names)))
                    return function(*args, **kwargs)

                return checked

            return decorate

        return named

    def plain_decorator(*args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else (lambda function: function)

    path = sys.modules["salt.utils.path"]
    stand_in("salt.utils.decorators", Depends=Depends, depends=Depends, memoize=memoize, is_deprecated=plain_decorator,
             with_deprecated=plain_decorator, allow_one_of=lambda *names: plain_decorator, require_one_of=lambda *names: plain_decorator)
    stand_in("salt.utils.decorators.path", which=needs(path.which, "The '%s' binary was not found in $PATH."),
             which_bin=needs(path.which_bin, "None of provided binaries %s were found in $PATH."))


def helpers():
    """What beacons and returners import."""

    class DictDiffer:
        def __init__(self, current_dict, past_dict):
            self.current_dict, self.past_dict = current_dict, past_dict
            self.set_current, self.set_past = set(current_dict), set(past_dict)
            self.intersect = self.set_current & self.set_past

        def added(self):
            return self.set_current - self.intersect

        def removed(self):
            return self.set_past - self.intersect

        def changed(self):
            return {k for k in self.intersect if self.past_dict[k] != self.current_dict[k]}

        def unchanged(self):
            return self.intersect - self.changed()

    def deep_diff(old, new, ignore=None):
        out = {}
        for key in set(old) | set(new):
            if key in (ignore or ()) or old.get(key) == new.get(key):
                continue
            if isinstance(old.get(key), dict) and isinstance(new.get(key), dict):
                inner = deep_diff(old[key], new[key], ignore)
                for side, value in inner.items():
                    out.setdefault(side, {})[key] = value
                continue
            for side, values in (("old", old), ("new", new)):
                if key in values:
                    out.setdefault(side, {})[key] = values[key]
        return out

    def list_to_dict(config):
        out = {}
        for item in config if isinstance(config, list) else [config]:
            out.update(item)
        return out

    def remove_hidden_options(config, whitelist):
        return [o for o in config if not isinstance(o, dict) or [k for k in o if not k.startswith("_") or k in whitelist]]

    def get_returner_options(virtualname=None, ret=None, attrs=None, **kwargs):
        """The settings of a returner: of the job, then of the configuration, then its own defaults."""
        ret = ret or {}
        config = kwargs.get("__salt__", {}).get("config.option") if kwargs.get("__salt__") else None
        config = config or (lambda key, default="": kwargs.get("__opts__", {}).get(key, default))
        alternative, defaults, out = ret.get("ret_config", ""), kwargs.get("defaults") or {}, {}
        names = ([alternative + "." + virtualname] if alternative else []) + [virtualname]
        for option, attr in (attrs or {}).items():
            for name in names:
                value = (config(name, {}) or {}).get(attr) if isinstance(config(name, {}), dict) else None
                value = value or config(name + "." + attr, "")
                if value:
                    break
            if value:
                out[option] = value
            elif option in defaults:
                out[option] = defaults[option]
        out.update(ret.get("ret_kwargs", {}))
        return out

    stand_in("salt.utils.dictdiffer", DictDiffer=DictDiffer, deep_diff=deep_diff)
    stand_in("salt.utils.beacons", list_to_dict=list_to_dict, remove_hidden_options=remove_hidden_options)
    stand_in("salt.returners", get_returner_options=get_returner_options)


def main():
    channel = Channel()
    init = channel.receive()
    sys.path[:0] = init.get("path", [])
    if not have_salt():
        stand_ins()
    Host(channel, init).serve()


main()
