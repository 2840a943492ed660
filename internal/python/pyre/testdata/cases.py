"""Prints what Python's module re answers for patterns, replacements and texts, one JSON list a line (see regexp_test.go)."""

import itertools
import json
import re

TEXTS = ["", "abc", "a\nb\n", "one two\nthree  \n", "é=Ü µ\n", "xaax", "key = value # c\nkey2=v\r\n", "aXbXc", "\n\n", "日本 語"]
PATTERNS = [
    ("x*", 0), ("a*?", 0), ("|a", 0), ("^", 8), ("$", 8), ("$", 0), ("^(\\w+)\\s*=\\s*(.*)$", 8), ("(a)|(b)", 0), ("\\bb?", 0),
    ("(?i)X", 0), ("é", 2), ("\\w+", 0), ("\\W", 0), ("(?<=a)a", 0), ("(.)\\1", 0), ("(?P<first>\\S)(?P<rest>\\S*)", 0), (".", 16),
    ("[^\\n]*", 0), ("t(?!h)", 2), ("^.*$", 8), (" +", 64), ("\\s+$", 8), ("#.*", 0), ("(?:ab?)+", 0), ("((a)|x)*", 0), ("[à-ü]", 2), ("\\B", 0),
    ("\\d|", 0), ("(?s).*", 0), ("X(?=b)", 0), ("^\\s*$", 8), ("[[:alpha:]]", 0), ("(", 0), ("a)", 0), ("*a", 0), ("[z-a]", 0), ("\\q", 0),
]
REPLACEMENTS = ["-", "<\\g<0>>", "\\1", "[\\1|\\2]", "\\g<first>!", "a\\nb\\\\", "\\q", "\\g<9>", "\\.", "\\07\\101", "é"]


def answer(f):
    try:
        return f()
    except (re.error, IndexError) as exc:
        return ["error", type(exc).__name__, str(exc)]


def text(v, mode):
    return v.encode() if mode == "bytes" else v


def plain(v):
    if isinstance(v, bytes):
        return v.decode("latin-1")
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    return v


def groups(m):
    return None if m is None else [m.group(0), *[g if g is not None else m.string[:0] for g in m.groups()]]


for (p, flags), t, mode in itertools.product(PATTERNS, TEXTS, ("text", "bytes")):
    s, q = text(t, mode), text(p, mode)
    row = [mode, p, flags, t]
    row.append(plain(answer(lambda: groups(re.search(q, s, flags)))))
    row.append(plain(answer(lambda: groups(re.match(q, s, flags)))))
    row.append(plain(answer(lambda: re.fullmatch(q, s, flags) is not None)))
    row.append(plain(answer(lambda: [x if x is not None else s[:0] for x in re.split(q, s, flags=flags)])))
    n = (len(p) * 7 + len(t)) % len(REPLACEMENTS)
    for r in (REPLACEMENTS[n], REPLACEMENTS[(n + 4) % len(REPLACEMENTS)]):
        count = len(t) % 3
        row.append([r, count, plain(answer(lambda: re.subn(q, text(r, mode), s, count, flags)))])
    print(json.dumps(row, ensure_ascii=False))
