"""Records the templates that Jinja2's own tests render, as a pytest plugin: one JSON object a line in $RECORD_TO."""

import functools
import json
import os

import jinja2
from jinja2 import environment, loaders, runtime, sandbox
from jinja2.defaults import DEFAULT_FILTERS, DEFAULT_NAMESPACE, DEFAULT_POLICIES, DEFAULT_TESTS
from markupsafe import Markup

out = open(os.environ["RECORD_TO"], "w")
seen = set()
depth = 0
OPTIONS = ("block_start_string", "block_end_string", "variable_start_string", "variable_end_string", "comment_start_string",
           "comment_end_string", "line_statement_prefix", "line_comment_prefix", "trim_blocks", "lstrip_blocks",
           "newline_sequence", "keep_trailing_newline")
UNDEFINED = {runtime.Undefined: "Undefined", runtime.StrictUndefined: "StrictUndefined",
             runtime.ChainableUndefined: "ChainableUndefined", runtime.DebugUndefined: "DebugUndefined"}


class Unsupported(Exception):
    pass


def value(v, level=0):
    kind = type(v)
    if level > 20:
        raise Unsupported
    if v is None or kind in (bool, str):
        return v
    if kind is int:
        return {"t": "i", "v": str(v)}
    if kind is float:
        return {"t": "f", "v": repr(v)}
    if kind is Markup:
        return {"t": "m", "v": str(v)}
    if kind is range:
        return {"t": "r", "v": [v.start, v.stop, v.step]}
    if kind in (list, tuple):
        return {"t": kind.__name__[0], "v": [value(x, level + 1) for x in v]}
    if kind is dict:
        return {"t": "d", "v": [[value(k, level + 1), value(x, level + 1)] for k, x in v.items()]}
    raise Unsupported


def options(env):
    if env.is_async or env.finalize or env.overlayed and False or callable(env.autoescape) or env.undefined not in UNDEFINED:
        raise Unsupported
    if env.policies != DEFAULT_POLICIES or type(env) not in (jinja2.Environment, sandbox.SandboxedEnvironment):
        raise Unsupported
    if any(e not in ("jinja2.ext.ExprStmtExtension", "jinja2.ext.LoopControlExtension", "jinja2.ext.do", "jinja2.ext.loopcontrols") for e in env.extensions):
        raise Unsupported
    if any(env.filters.get(k) is not v for k, v in DEFAULT_FILTERS.items()) or len(env.filters) != len(DEFAULT_FILTERS):
        raise Unsupported
    if any(env.tests.get(k) is not v for k, v in DEFAULT_TESTS.items()) or len(env.tests) != len(DEFAULT_TESTS):
        raise Unsupported
    o = {k: getattr(env, k) for k in OPTIONS}
    o["autoescape"], o["undefined"] = env.autoescape, UNDEFINED[env.undefined]
    o["globals"] = {k: value(v) for k, v in env.globals.items() if k not in DEFAULT_NAMESPACE}
    files = {}
    if isinstance(env.loader, loaders.DictLoader):
        files = dict(env.loader.mapping)
    elif env.loader is not None:
        raise Unsupported
    o["files"] = files
    return o


def record(env, source, name, context, result, error):
    try:
        row = {"src": source, "name": name or "", "opts": options(env), "ctx": {k: value(v) for k, v in context.items()}, "test": os.environ.get("PYTEST_CURRENT_TEST", "")}
    except (Unsupported, Exception):
        return
    if error is None:
        row["out"] = str(result)
    else:
        row["err"] = [type(error).__name__, error.message if isinstance(error, jinja2.TemplateSyntaxError) else str(error), getattr(error, "lineno", None)]
    line = json.dumps(row)
    if line not in seen:
        seen.add(line)
        out.write(line + "\n")
        out.flush()


def from_string(original):
    @functools.wraps(original)
    def wrapper(self, source, *args, **kwargs):
        try:
            t = original(self, source, *args, **kwargs)
        except jinja2.TemplateSyntaxError as exc:
            if isinstance(source, str):
                record(self, source, None, {}, None, exc)
            raise
        # Globals of a template's own are not recorded.
        t.recorded_source = source if isinstance(source, str) and not args and not kwargs else None
        return t
    return wrapper


def render(original):
    @functools.wraps(original)
    def wrapper(self, *args, **kwargs):
        global depth
        source = getattr(self, "recorded_source", None)
        if source is None and self.name is not None and isinstance(self.environment.loader, loaders.DictLoader):
            source = self.environment.loader.mapping.get(self.name)
        depth += 1
        try:
            context = dict(*args, **kwargs)
            snapshot = dict(context)
            error = result = None
            try:
                result = original(self, *args, **kwargs)
            except Exception as exc:
                error = exc
        finally:
            depth -= 1
        # Globals of a template's own and intercepted operators are not recorded.
        own = self.globals.maps[0] or getattr(self.environment, "intercepted_binops", None) or getattr(self.environment, "intercepted_unops", None)
        if source is not None and depth == 0 and not own:
            record(self.environment, source, self.name, snapshot, result, error)
        if error is not None:
            raise error
        return result
    return wrapper


jinja2.Environment.from_string = from_string(jinja2.Environment.from_string)
environment.Template.render = render(environment.Template.render)
