#!/usr/bin/env python3
"""Writes testdata/stock.jsonl.gz: values, options, and what the outputters of an installed Salt make of them.

usage: SALT_PYTHON gen/cases.py > testdata/stock.jsonl.gz
"""
import gzip
import json
import logging
import os
import random
import sys

import salt.config
import salt.output

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tagged"))
from tagged import tag

logging.disable(logging.CRITICAL)
rnd = random.Random(11)
BASE = salt.config.minion_config(None)


def order(v):
    """Dictionaries with their keys sorted: brine has no other order."""
    if isinstance(v, dict):
        try:
            keys = sorted(v)
        except TypeError:
            keys = sorted(v, key=lambda k: (isinstance(k, str), k if isinstance(k, (int, float)) else 0, str(k)))
        return {k: order(v[k]) for k in keys}
    if isinstance(v, list):
        return [order(x) for x in v]
    return v

TEXTS = ["", "a", "two\nlines", "trailing\n", "\n", "a\r\nb\rc", "tab\tx", "quote ' and \"", "it's", "back\\slash", "\x1b[31mred\x1b[0m", "\x00\x07", "é日本😀", "\u2028x", "\x85y", "\x0bv\x0cf", "long word " * 20,
         "x" * 100, "a: b", "yes", "1", "null", " lead", "trail ", "\xa0nbsp", "\xad", "\ufeff", "C:\\temp", "{'a': 1}"]
NUMBERS = [0, 1, -5, 2**63 - 1, 2**64 - 1, 1.0, 1.5, -0.0, 1e16, 1e-5, 123456.789, 1e100, float("inf"), float("nan"), True, False, None]
BINARY = [b"", b"text", b"\xff\xfe\x00", bytes(range(120, 200)), b"line\nline"]
VALUES = TEXTS + NUMBERS + BINARY
VALUES += [{"local": v} for v in VALUES] + [[v] for v in VALUES] + [{"local": [v, v]} for v in VALUES[:20]] + [{"local": {"k": v}} for v in VALUES]
VALUES += [
    [], {}, {"local": []}, {"local": {}}, {"local": {"a": {}, "b": [], "c": ""}}, {"local": [[], {}, [[]]]}, {"local": [1, [2, [3, [4]]], {"a": [1]}]},
    {"local": {"a": [{"b": 1, "c": [2, 3]}, ["x", ["y"]]], "d": {"e": {"f": None}}}}, {"m1": True, "m2": False, "m3": None}, {"m1": ["a", "b"], "m2": "c", "m3": {"x": 1}},
    {1: "a", 2: "b", 10: "c"}, {1: "a", "b": 2}, {True: "x", "y": 1}, {None: 1}, {1.5: "x"}, {"local": {1: {2: 3}, 10: {}}}, {"local": {"retcode": 0, "stderr": "", "stdout": "a\nb", "pid": 5}},
    {"local": {"ipv4": ["127.0.0.1", "10.0.0.1"], "os": "Debian", "cpu_flags": ["flag%d" % i for i in range(40)]}}, list(range(50)), ["item %d" % i for i in range(20)], {"k%d" % i: "v" * i for i in range(15)},
    {"local": "x" * 200}, {"local": {"deep": {"deeper": {"deepest": "word " * 30}}}}, {"local": ["word " * 30, "x"]}, {"a" * 90: "b" * 90}, {"local": [b"\xff" * 40]}, "word " * 40, "line one is here\n" * 8, [["a", "b"], ["c", "d"]],
    {"local": [["a", "b"], ["c", "d"]]}, {"rows": [{"a": 1, "b_c": "x"}, {"a": 2, "b_c": "y"}]}, {"m": {"table": [{"name": "eth0", "mac_address": "aa:bb", "mtu": 1500}, {"name": "lo", "mac_address": "", "mtu": 65536}]}},
    {"m": ["a", "bb", "ccc"]}, {"m": [["one two three " * 10, "x"], ["y", "z"]]}, {"m": [["a"], "b"]}, {"m": [[1, 2], [3, 4]]}, {"m": [{}]}, {"m": [["a", "b", "c"], ["d", "e"]]}, {"m": [1, 2]}, {"labels": ["A", "B"], "rows": [["1", "2"], ["333", "4"]]},
]
KEYS = [{"minions": ["a", "b"], "minions_denied": [], "minions_pre": ["c"], "minions_rejected": ["d\x1b[1m"]}, {"minions": {"a": "aa:bb:cc"}, "local": {"master.pem": "11:22"}}, {"minions": ["x"]}, {}, {"other": ["x"]}]


def state(num, result=True, changes=None, comment="Done", module="file", fun="managed", id_="/etc/x", name=None, **more):
    name = name or id_
    d = {"__id__": id_, "__run_num__": num, "__sls__": "web", "changes": changes or {}, "comment": comment, "duration": 12.345, "name": name, "result": result, "start_time": "10:11:12.131415"}
    d.update(more)
    return "%s_|-%s_|-%s_|-%s" % (module, id_, name, fun), d


STATES = [
    dict([state(0)]), dict([state(0), state(1, False, comment="It failed\nbadly\n", id_="b"), state(2, None, {"diff": "New file"}, id_="c")]),
    dict([state(0, True, {"pid": 12, "retcode": 0, "stdout": "a\nb"}, "Command run", "cmd", "run", "do it", "echo a")]), dict([state(0, warnings=["first warning that is long enough to be wrapped at the end of a line, which is at column eighty", "second-warning with well-known words"])]),
    dict([state(i, i % 3 != 0, {"x": i} if i % 2 else {}, id_="s%02d" % i) for i in range(12)]), dict([state(0, data=["x", 1]), state(1, data={"a": 1, "b": "c"}, id_="b"), state(2, data="d", id_="c")]),
    dict([state(0, duration="5.5 ms"), state(1, duration=1234.5, id_="b")]), dict([state(0, duration=3, __parallel__=True), state(1, duration=7.25, id_="b", __parallel__=True), state(2, id_="c")]), dict([state(0, comment=["a", "b"]), state(1, comment="", id_="e")]),
    dict([state(0, True, {"out": "highstate", "ret": {"m1": dict([state(0, True, {"a": "b"})]), "m2": "text\nmore", "m3": ["error one"]}}, module="salt", fun="state", id_="orch")]), dict([state(0, True, "not a dict")]), dict([state(0, True, {"m": dict([state(0)])}, name="state.sls", module="saltutil", fun="x")]),
    ["Rendering SLS 'base:x' failed: Jinja", "second\x1b[31m"], "plain text\nsecond", 5, True, None, {}, {"x": {"result": True, "changes": {}, "comment": "", "name": "x"}}, {"file_|-a_|-a_|-b": {"no": "result"}},
    dict([state(i, True, {"n": i} if i else {}, id_="same", name="n%d" % i, module="cmd", fun="run") for i in range(4)] + [state(9, False, id_="other")]), {k: v for k, v in [state(0)] if not v.pop("start_time") is None},
]
HIGH = [{"local": s} for s in STATES] + [{"m1": STATES[0], "m2": STATES[1]}, {"data": {"a_master": STATES[0], "retcode": 1}}, {"return": {"data": {"m": STATES[0]}}}, "text", None, 7, ["a"], {"local": STATES[1], "retcode": 2}, {"a_master": STATES[1], "retcode": 2}]
cases = []


def add(out, v, opts=None, color=False, **kwargs):
    v = order(v)
    o = dict(BASE)
    o.update(opts or {})
    o["color"] = color
    try:
        text = salt.output.out_format(copy(v), out, o, **kwargs)
    except Exception as exc:
        text = {"raises": type(exc).__name__}
    cases.append({"out": out, "v": tag(v), "opts": tag(opts or {}), "color": color, "kwargs": tag(kwargs), "want": text})


def copy(v):
    if isinstance(v, dict):
        return {k: copy(x) for k, x in v.items()}
    if isinstance(v, list):
        return [copy(x) for x in v]
    return v


for v in VALUES:
    for out in ("nested", "json", "yaml", "txt", "raw", "pprint", "newline_values_only", "quiet", "no_return", "table"):
        add(out, v)
    add("nested", v, color=True)
for v in VALUES[-60:]:
    for indent in (-1, 0, 2):
        for out in ("json", "pprint", "yaml"):
            if out == "pprint" and indent < 0 or out == "yaml" and indent == 0:
                continue
            add(out, v, {"output_indent": indent})
    add("nested", v, {"strip_colors": False})
    add("nested", v, color=True, _retcode=1)
    add("table", v, color=True)
    add("no_return", v, color=True)
for v in KEYS:
    add("key", v)
    add("key", v, color=True)
    add("key", v, {"__multi_key": True})
for v in HIGH:
    for color in (False, True):
        add("highstate", v, color=color)
    for mode in ("terse", "mixed", "changes", "full_id", "terse_id", "mixed_id", "changes_id"):
        add("highstate", v, {"state_output": mode})
    add("highstate", v, {"state_verbose": False})
    add("highstate", v, {"state_output_diff": True})
    add("highstate", v, {"state_output_profile": False})
    add("highstate", v, {"state_output_pct": True})
    add("highstate", v, {"state_tabular": True, "state_output": "terse"}, color=True)
    add("highstate", v, {"state_compress_ids": True})
    add("highstate", v, {"state_output": "filter", "state_output_exclude": "True", "state_output_terse": "None,False"})
    add("nested", v)
    add("profile", v)
for kw in ({"out.table.justify": "left"}, {"out.table.justify": "right", "out.table.width": 10}, {"out.table.separate_rows": False}, {"out.table.has_header": False}, {"out.table.rows_key": "rows", "out.table.labels_key": "labels", "out.table.title": "T"}, {"out.table.delim": "#", "out.table.row_delimiter": "="}):
    for v in VALUES[-20:]:
        add("table", v, kw)
text = "\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n"
sys.stdout.buffer.write(gzip.compress(text.encode("utf-8", "surrogatepass"), mtime=0))
print(len(cases), file=sys.stderr)
