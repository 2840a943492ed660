#!/usr/bin/env python3
"""Writes testdata/stock.jsonl: command line arguments and what an installed Salt makes of them.

usage: SALT_PYTHON gen/cases.py > testdata/stock.jsonl

A line is {"in": [texts], "no_parse": [names], "out": [values]}, the values tagged as package internal/testkit/tagged says.
"""
import json
import os
import sys

import salt.utils.args

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tagged"))
from tagged import tag

SCALARS = """
yes no on off Yes NO On OFF y n Y N true True TRUE false False FALSE tRue null Null NULL ~ none None NONE nil
0 00 007 0755 0o755 08 09 0_7 1 -1 +1 - + -0 +0 -07 -0755 1_000 _1 1_ 1__0 12_34 0x1f 0X1F 0xg 0b101 0b2 1e3 1E3 1e+3 1.0e3 1.0e+3 1.5 -1.5 +1.5 .5 -.5 5. 1. 1.e+5 ._ 1_0.5
.inf -.inf +.inf .Inf .INF .iNf .nan .NaN .NAN -.nan inf nan 1:30 1:60 01:30 1:2:3 -1:30 1:30.5 190:20:30 10:99
9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 123456789012345678901234567890
20260131120000123456 2026013112000012345 20260131120000123456_1 2001-01-01 2001-1-1 2001-01-01T10:00:00Z 12:30:45
a abc a.b a-b a_b a:b a: :a a,b a;b a|b a&b a*b *a &a !a |a >a %a @a `a` 'a' "a" 'it''s' "a\\tb" "a\\q" 'a "a a' [ ] { } [] {} [a] [a,b] [1,2,x] [[1],[2]] [a {a} {a:1} {a,b} {a} {}
= == =a a= a== a==b a=b a=b=c a=1 a=yes a=~ a=[1,2] a={} a.b=c a-b=c a_b=c _a=b -a=b 1a=b a1=1 é=1 ١a=b a١=1 a²=1 ²a=1 日本=語 .a=b a/b=c a:b=c a+b=c
# #a a#b a=#b [1,2]#x {a#b} 5#x 'a#b' ! !! !!str !!int !x !!python/none x=!!int & * | > @ ` % ? ?a - -- --- ... .... --- ,
http://x/y http://x:80/y?a=b /etc/salt C:\\foo \\\\host\\x $HOME ${x} $(x) ~/x *.txt [a-z]* {{x}} {%x%} <x> <<  = := :: ::1 fe80::1 10.0.0.1 10.0 1.2.3 10.0.0.0/24
10G 5m 1h 0.0.0.0 1,000 1.000,5 100% 50%x 1/2 1-2 1.5.2 v1.0 e3 E 1e 1e1000 1.0e+1000 0.1e-5 -1e-5 1_e5 0x 0b 0o 0_ __ _ 1_2_3_4 +_1 0x_1f 0b_1 1:_2
""".split()
SPACED = ["", " ", "  ", "\t", "\n", " a", "a ", " a ", "a b", "a  b", " 1", "1 ", " 1 ", " yes", "yes ", "a: b", "a : b", "a: 1", "a: b: c", "a :b", "- a", "- 1", "-  a", " - a", "? a", "# a", "a # b", "a #b", "1 # b", "yes # b", "[1, 2] # b",
          "[1, 2, 3]", "[a, b, 'c']", "[a, [b, c], {d: e}]", "{a: 1}", "{a: 1, b: [2, 3]}", "{a: {b: c}}", "{'a': 'b'}", '{"a": "b"}', '{"a": [1, 2.5, null, true]}', "{a: 1, a: 2}", "{1: 2}", "{a: 1", "[1, 2", " [1, 2]", " {a: 1}", "[1, 2] ", "{a: 1} x",
          "'a b'", '"a b"', "'a' b", "a 'b'", '"a\\nb"', '"\\u00e9"', "a\nb", "a\tb", "a\rb", "1\n", "[1,\n2]", "a=b\n", "a=b\nc", "a=\n", "a= b", "a =b", "a= ", "a=1 ", "a=[1, 2]", "a={b: c}", "a=b: c", "a=- b", "a=#b", "a=x #b", "a=x # b", "a='b c'", "a=\"b c\"", 'a="b', "a=None", "a=none", "None ", " None",
          "|", "| ", "!", "! ", "! a", "!!str 5", "!!int '5'", "!!int x", "!!float 1", "!!binary aGk=", "!!set {a}", "!!omap [a: 1]", "!!bool x", "!!null x", "!!timestamp 2001-01-01", "&a b", "*a", "&a [*a]", "[&a 1, *a]", "<<: x", "{<<: {a: 1}}", "a, b", "1, 2", "1 2", "0 1",
          "--- a", "--- 1", "... a", "%YAML 1.1", "a: [", "a: {b", "key: [1, 2]", "salt '*' test.ping", "echo 'a: b'", "echo a # b", "grep -c x: y", "sed 's/a/b/'", "awk '{print $1}'", "awk {print}", "{print $1}", "if [ -f x ]; then y; fi", "[ -f x ]", "for i in {1..3}; do :; done", "x && y", "x || y", "x | y", "x > y", "x < y", "x=1 y=2", "PATH=/bin x",
          "\u00a0", "a\u00a0b", "\u2028", "é", "日本", "😀", "\x00", "a\x00b", "\x1b[0m", "\x7f", "\x85", "\ufeff", "\ufeffa", "1\x00", "'\\x41'", "\"\\x41\"", "\"a\\/b\"", "a\\", "\\", "\\n", "0x10 ", " 0755", "0755 "]
CASES = [([s], []) for s in SCALARS + SPACED] + [([s], []) for s in ("arg=" + x for x in SCALARS + SPACED)]
CASES += [(["a", "b=1", "c", "b=2"], []), (["a=1", "b=2"], ["a"]), (["a=[1]", "b=[1]", "[1]"], ["b"]), ([], []), (["x", "20260131120000123456", "jid=20260131120000123456"], []), (["a=1"], ["a", ""]), (["A=1", "a=1"], ["A"])]

for texts, no_parse in CASES:
    try:
        out = tag(salt.utils.args.parse_input(list(texts), no_parse=no_parse))
    except Exception as exc:
        out = {"t": "raises", "v": type(exc).__name__}
    sys.stdout.write(json.dumps({"in": texts, "no_parse": no_parse, "out": out}) + "\n")
