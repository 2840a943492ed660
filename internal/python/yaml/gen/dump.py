#!/usr/bin/env python3
"""Writes testdata/dump.jsonl.gz: values and the text that an installed Salt makes of them.

usage: SALT_PYTHON gen/dump.py > testdata/dump.jsonl.gz

Values are JSON with the tags of package internal/testkit/tagged.
"""
import gzip
import json
import os
import random
import sys

import salt.utils.yaml

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tagged"))
from tagged import tag

rnd = random.Random(7)

TEXTS = ["", " ", "a", "yes", "No", "on", "true", "null", "~", "Null", "0", "0755", "0o755", "1", "-1", "+1", "1.5", "1e3", "1.0e+3", ".5", ".inf",
         "-.inf", ".nan", "1:30", "1:99", "0x1f", "0b11", "1_000", "2001-01-01", "2001-01-01 10:11:12", "2001-1-1", "=", "<<", "-", "- a", "-a", "--", "---", "--- a",
         "...", "?", "? a", "?a", ":", ": a", ":a", "a:", "a: b", "a:b", "#", "# a", "#a", "a #b", "a#b", "&a", "*a", "!a", "|", "| a", ">", "%a", "@a", "`a`",
         "'", "''", "it's", '"', '"a"', "a\"b", "[", "]", "[a]", "{", "}", "{a}", ",", "a,b", "a, b", " a", "a ", "a  b", "\ta", "a\t", "a\tb", "\n", "a\n", "\na",
         "a\nb", "a\nb\n", "a\n\nb", "a\n b", "a \nb", "a\n\n", "a\r\nb", "a\rb", "\x00", "\x07", "\x1b[0m", "\x7f", "\x85", "\xa0", "\xad", "é", "日本", "\u2028", "a\u2028b",
         "\ufeff", "\ufffe", "😀", "a😀b", "\\", "a\\b", "C:\\foo", "/etc/salt", "http://x/y?z=1#f", "salt://a", "$x", "~/x", "a=b", "a|b", "100%", "x" * 200, "word " * 40,
         "word " * 40 + "x", "a" * 79 + " b c", "a" * 80 + " b c", "a" * 81 + " b c", "  " + "word " * 30, "it's " * 30, "a: b " * 30, "tab\there " * 20, "é " * 70, "x\ny " * 40,
         "a" * 128, "a" * 129, "\"q\" " * 40, "-\t", "a\t#", "line1\nline2\nline3", "  indented\nb", "key: value\nother: value\n", "trailing \n", "#!/bin/sh\necho a\n",
         "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\n", "a  " * 40, "x" * 78 + "  y  z", "10.0.0.1", "1.2.3", "12e03", "1e+3", "-0", "+", "+.inf", "._", "0_", "08", "1__2", "y", "n", "Y", "N"]
NUMBERS = [0, 1, -1, 10**15, 2**63 - 1, -2**63, 2**64 - 1, 0.0, -0.0, 1.5, 1e16, 1e15, 1e-4, 1e-5, 123456789.123, 1e100, 1.5e300, float("inf"), float("-inf"), float("nan"), True, False, None]
BINARY = [b"", b"\xff", b"abc", bytes(range(256))]
VALUES = TEXTS + NUMBERS + BINARY
VALUES += [{t: 1} for t in TEXTS] + [{"k": t} for t in TEXTS] + [[t] for t in TEXTS] + [{"a": {"b": t}} for t in TEXTS if len(t) > 60 or "\n" in t] + [[[t]] for t in TEXTS if len(t) > 60 or "\n" in t]
VALUES += [{"k": n} for n in NUMBERS + BINARY] + [{n: "v"} for n in NUMBERS if n == n] + [[n] for n in NUMBERS + BINARY]
VALUES += [[], {}, [[]], [{}], {"a": []}, {"a": {}}, [[], {}], {"a": [[], {}]}, [[1, [2, [3]]]], {"a": {"b": {"c": [1, {"d": 2}]}}}, [{"a": 1, "b": [1, 2]}, {"c": {"d": 1}}],
           {"b": 1, "a": 2, "B": 3, "é": 4, "10": 5, "9": 6}, {1: "a", 2: "b", 10: "c"}, {"local": {"retcode": 0, "stdout": "a\nb"}}, {"l": [["a", "b"], ["c"]]}, [[["a"]], "b"], {"x": [{"y": []}]}]


def rand(depth):
    r = rnd.random()
    if depth == 0 or r < 0.5:
        return rnd.choice(TEXTS[:160] + NUMBERS[:10])
    if r < 0.75:
        return [rand(depth - 1) for _ in range(rnd.randrange(4))]
    return {rnd.choice(TEXTS): rand(depth - 1) for _ in range(rnd.randrange(4))}


VALUES += [rand(4) for _ in range(400)]
out = []
for v in VALUES:
    v = json.loads(json.dumps(v)) if not isinstance(v, bytes) and "b'" not in repr(v) and not (isinstance(v, dict) and any(not isinstance(k, str) for k in v)) else v  # no shared objects: those would become anchors
    c = {"v": tag(v), "block": salt.utils.yaml.safe_dump(v, default_flow_style=False), "auto": salt.utils.yaml.safe_dump(v), "flow": salt.utils.yaml.safe_dump(v, default_flow_style=True, indent=0), "four": salt.utils.yaml.safe_dump(v, default_flow_style=False, indent=4)}
    out.append(json.dumps(c, ensure_ascii=False))
sys.stdout.buffer.write(gzip.compress(("\n".join(out) + "\n").encode("utf-8", "surrogatepass"), mtime=0))
