"""Prints what one release of stock Salt has: functions, states, options, flags, requests. Run with that release's Python.

    python inventory.py >inventory-LINE.json
"""

import ast
import collections.abc
import json
import os
import re

import yaml

import salt
import salt.config
import salt.daemons.masterapi
import salt.master
import salt.utils.parsers
import salt.version

HOME = os.path.dirname(salt.__file__)


def literal(node):
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def functions(folder):
    """Public functions by the name they are called by, read from the sources, whether or not this host could load them."""
    found = {}
    for root, _, files in os.walk(os.path.join(HOME, folder)):
        for file in files:
            if not file.endswith(".py") or file == "__init__.py" and root.endswith(folder):
                continue
            module = os.path.basename(root) if file == "__init__.py" else file[:-3]
            with open(os.path.join(root, file), encoding="utf-8") as source:
                tree = ast.parse(source.read())
            name, alias, names = module, {}, set()
            for node in tree.body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    names.add(node.name)
                elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    target = node.targets[0].id
                    if target == "__virtualname__" and isinstance(literal(node.value), str):
                        name = literal(node.value)
                    elif target == "__func_alias__":
                        alias = literal(node.value) or {}
                    elif "alias_function" in ast.dump(node.value) and not target.startswith("_"):
                        names.add(target)
                    elif isinstance(node.value, ast.Name) and node.value.id in names and not target.startswith("_"):
                        names.add(target)
            for function in names:
                found.setdefault(name, set()).add(alias.get(function, function))
    return {name: sorted(names) for name, names in sorted(found.items())}


def flags(parser):
    """The long or short name of every option of a command."""
    groups = [parser] + list(parser.option_groups)
    names = set()
    for group in groups:
        for option in group.option_list:
            names.add(option.get_opt_string())
    return sorted(names)


def read_options():
    """Options of the core that have no default: those that its sources read by name."""
    known = set(salt.config.DEFAULT_MINION_OPTS) | set(salt.config.DEFAULT_MASTER_OPTS)
    names = set()
    for part in ("auth", "channel", "crypt.py", "daemons", "key.py", "master.py", "minion.py", "modules/cmdmod.py", "netapi/__init__.py", "state.py", "utils/http.py", "utils/templates.py"):
        path = os.path.join(HOME, part)
        files = [path] if part.endswith(".py") else [os.path.join(d, f) for d, _, list_ in os.walk(path) for f in list_ if f.endswith(".py")]
        for file in files:
            with open(file, encoding="utf-8") as source:
                names.update(re.findall(r"""opts(?:__)?(?:\.get\(|\[)\s*["']([a-z][a-z_0-9]*)["']""", source.read()))
    return sorted(names - known)


def further_options():
    """Options of our table that have no default in stock, and that its sources name."""
    with open(os.path.join(os.path.dirname(__file__), "../../../internal/conf/options.yaml"), encoding="utf-8") as table:
        themes = yaml.safe_load(table)["themes"]
    wanted = {name for options in themes.values() for name, option in options.items() if "of" in option}
    names = set()
    for folder, _, files in os.walk(HOME):
        for file in files:
            if file.endswith(".py"):
                with open(os.path.join(folder, file), encoding="utf-8") as source:
                    text = source.read()
                names.update(re.findall(r"""["']([a-z][a-z_0-9]*)["']""", text))
                if 'f"{tag}_dirs"' in text:  # the loader forms the names of these options
                    names.update(name for name in wanted if name.endswith("_dirs"))
    return sorted(wanted & names)


def plain(value):
    """A default as JSON has it; floats are marked, since JSON's are numbers like others."""
    if isinstance(value, collections.abc.Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)) or type(value).__name__ == "ImmutableList":
        return [plain(v) for v in value]
    if isinstance(value, float):
        return {"__float__": repr(value)}
    return value


def defaults(options):
    """Defaults by name, without what depends on the memory of the machine."""
    return {name: 0 if name == "ipc_write_buffer" else plain(value) for name, value in options.items()}


def types(allowed):
    """The names of the types that VALID_OPTS allows."""
    if allowed is None:
        return "NoneType"
    if isinstance(allowed, tuple):
        return " ".join(types(t) for t in allowed)
    return allowed.__name__


print(
    json.dumps(
        {
            "version": salt.version.__version__,
            "functions": functions("modules"),
            "states": functions("states"),
            "minion_options": defaults(salt.config.DEFAULT_MINION_OPTS),
            "master_options": defaults(salt.config.DEFAULT_MASTER_OPTS),
            "option_types": {name: types(allowed) for name, allowed in salt.config.VALID_OPTS.items()},
            "read_options": read_options(),
            "further_options": further_options(),
            "flags": {
                "salt-minion": flags(salt.utils.parsers.MinionOptionParser()),
                "salt-call": flags(salt.utils.parsers.SaltCallOptionParser()),
                "salt-master": flags(salt.utils.parsers.MasterOptionParser()),
                "salt": flags(salt.utils.parsers.SaltCMDOptionParser()),
                "salt-key": flags(salt.utils.parsers.SaltKeyOptionParser()),
            },
            "requests": sorted(salt.master.AESFuncs.expose_methods),
            "clear_requests": sorted(salt.master.ClearFuncs.expose_methods),
        },
        indent=0,
        sort_keys=True,
    )
)
