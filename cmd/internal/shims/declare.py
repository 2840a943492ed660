"""Prints what a module of Salt declares, as JSON. usage: declare.py FILE

Reads the source and runs nothing of it. Defaults that are no plain values are given as their text, under "unclear".
"""
import ast
import json
import sys

HIDDEN = {"states": {"mod_init", "mod_watch", "mod_aggregate", "mod_run_check"}}


def parameters(args):
    first = len(args.posonlyargs + args.args) - len(args.defaults)
    named = [(a, args.defaults[i - first] if i >= first else None, False) for i, a in enumerate(args.posonlyargs + args.args)]
    named += [(a, d, True) for a, d in zip(args.kwonlyargs, args.kw_defaults)]
    for arg, default, only in named:
        p = {"name": arg.arg, "keyword_only": only}
        if default is not None:
            try:
                p["default"], p["optional"] = ast.literal_eval(default), True
                json.dumps(p)
            except (ValueError, TypeError):
                p["default"], p["unclear"] = None, ast.unparse(default)
        yield p


path = sys.argv[1]
tree = ast.parse(open(path, encoding="utf-8").read(), path)
kind, called, alias, functions = path.split("/")[-2], "", {}, []
for node in tree.body:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        if node.targets[0].id == "__virtualname__":
            called = ast.literal_eval(node.value)
        if node.targets[0].id == "__func_alias__":
            alias = ast.literal_eval(node.value)
    if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name not in HIDDEN.get(kind, ()):
        functions.append({
            "name": node.name, "params": list(parameters(node.args)),
            "args": node.args.vararg.arg if node.args.vararg else "", "kwargs": node.args.kwarg.arg if node.args.kwarg else "",
        })
for f in functions:
    if f["name"] in alias:
        f["python"], f["name"] = f["name"], alias[f["name"]]
functions.sort(key=lambda f: f["name"])
json.dump({"called": called, "functions": functions}, sys.stdout)
