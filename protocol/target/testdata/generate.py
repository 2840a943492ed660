"""
Generates cases.json.gz from the real matchers of an installed Salt:

    <venv>/bin/python generate.py cases.json.gz [seed]

Everything is random but reproducible. An answer is true, false, or "error" when the matcher raises (a minion then does
not run the job). Maps with keys that are not text are written as {"__map__": [[key, value], ...]}, maps have sorted keys.
"""

import fnmatch
import gzip
import json
import random
import re
import sys
import warnings

import salt.config
import salt.loader
import salt.utils.data
import salt.utils.minions
import salt.version

warnings.simplefilter("ignore")

KEYS = ["os", "role", "a", "b", "a:b", "c", "kernel", "0", "1", "x y", "Ä", "true", "site"]
TEXTS = ["web", "db", "Debian", "debian", "a", "b", "c", "a:b", "1", "1.0", "True", "None", "", "x y", "Straße", "web1.example.org",
         "ΑΣ", "[a]", "*", "b:c", "10.0.0.1"]
IDS = ["web1.example.org", "web2.example.org", "db-1", "Db-1", "a", "b", "minion", "web[1]", "Straße", "10.0.0.1", "x,y"]


def scalar(rng):
    return rng.choice([
        rng.choice(TEXTS), rng.choice(TEXTS), rng.choice(TEXTS), rng.randint(-3, 12), rng.choice([True, False, None]),
        rng.choice([1.0, 0.5, -2.25, 1e16, 1e-5, 1e22, 123456.789, 1e15]), 12345678901234567890,
    ])


def value(rng, depth):
    k = rng.random()
    if depth > 0 and k < 0.28:
        return mapping(rng, depth - 1)
    if depth > 0 and k < 0.5:
        return [value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return scalar(rng)


def mapping(rng, depth, odd=True):
    n = rng.randint(0 if odd else 3, 5)
    keys = set(rng.choice(KEYS) for _ in range(n))
    if odd and rng.random() < 0.15:
        keys = {k for k in keys if k not in ("1", "true", "0")}
        keys.add(rng.choice([1, 2.5, None, 0]))
    return {k: value(rng, depth) for k in sorted(keys, key=str)}


def subject(rng, i):
    grains = mapping(rng, 3, odd=False)
    grains.setdefault("os", rng.choice(["Debian", "Ubuntu"]))
    if rng.random() < 0.85:
        grains["ipv4"] = rng.sample(["127.0.0.1", "10.0.0.1", "10.1.2.3", "192.168.1.77", "255.255.255.255"], rng.randint(0, 3))
    if rng.random() < 0.7:
        grains["ipv6"] = rng.sample(["::1", "fe80::1", "2001:db8::7", "::ffff:a00:1"], rng.randint(0, 3))
    return {"id": IDS[i % len(IDS)], "grains": grains, "pillar": mapping(rng, 3, odd=False),
            "data": {"k": rng.choice(TEXTS), "l": [scalar(rng) for _ in range(3)], "m": {"web": 1}, "n": 5}}


def path_into(rng, data):
    """A path that leads somewhere, or nearly."""
    parts = []
    while True:
        if isinstance(data, dict) and data:
            k = rng.choice(list(data))
            parts.append("*" if rng.random() < 0.12 else str(k))
            data = data[k]
        elif isinstance(data, list) and data:
            i = rng.randrange(len(data))
            data = data[i]
            if rng.random() < 0.5:
                parts.append(str(rng.choice([i, i, i - 3, 99])))
        else:
            break
        if parts and rng.random() < 0.2:
            break
    if isinstance(data, dict) and data and rng.random() < 0.5:
        parts.append(str(rng.choice(list(data))))
    else:
        parts.append(str(data))
    if rng.random() < 0.1:
        parts.insert(rng.randint(0, len(parts)), rng.choice(["*", "", "zz", "os"]))
    return parts


def globify(rng, s):
    k = rng.random()
    if k < 0.4 or not s:
        return s
    i = rng.randrange(len(s))
    return rng.choice([s[:i] + "*", "*" + s[i:], s[:i] + "?" + s[i + 1:], s[:i] + "[" + s[i] + "-z]" + s[i + 1:], s[:i] + "[!" + s[i] + "]" + s[i + 1:],
                       s.upper(), s + "x", "*", s[:i] + "[" + s[i:]])


def regexify(rng, s):
    k = rng.random()
    if k < 0.3 or not s:
        return s
    i = rng.randrange(len(s))
    esc = re.escape(s)
    return rng.choice([s[:i] + ".*", ".*" + s[i:], esc + "$", "(" + esc + "|zz)", "(?P<n>" + esc + ")", "^" + esc, s[:i] + r"\w" + s[i + 1:],
                       s[:i] + "+", s[:i] + r"\S*", "(?i)" + s.upper(), s + r"\Z", "(" + s, "[" + s, s[:i] + "[^z]" + s[i + 1:], s[:i] + "{0,3}"])


def delimited(rng, data, regex, delim):
    parts = path_into(rng, data)
    parts[-1] = (regexify if regex else globify)(rng, parts[-1])
    return delim.join(parts)


def compound_word(rng, s, groups):
    k = rng.choice("GGPIJLSENN....G")
    if k == ".":
        return globify(rng, rng.choice(IDS)).replace(" ", "") or "*"
    delim = ":"
    if k in "GPIJ":
        mark = rng.choice(["", "", "", "|", "^", "é"])
        delim = mark or ":"
        data = s["grains"] if k in "GP" else s["pillar"]
        return f"{k}{mark}@" + delimited(rng, data, k in "PJ", delim).replace(" ", "?")
    if k == "L":
        return "L@" + ",".join(rng.sample(IDS, rng.randint(1, 3)))
    if k == "S":
        return "S@" + rng.choice(CIDRS)
    if k == "E":
        return "E@" + (regexify(rng, rng.choice(IDS)).replace(" ", "") or ".")
    return "N@" + rng.choice(list(groups) + ["g1", "g2"])


CIDRS = ["10.0.0.0/8", "10.0.0.1", "10.0.0.1/8", "192.168.1.0/24", "192.168.1.0/255.255.255.0", "10.0.0.0/0.255.255.255", "0.0.0.0/0",
         "::1", "fe80::/10", "2001:db8::/32", "2001:0db8:0::7", "::/0", "junk", "10.0.0.01", "10.0.0.0/33", "10.0.0", "::ffff:10.0.0.1",
         "10.0.0.0/255.0.255.0", "::ffff:0:0/96", "", "10.0.0.1/32", "127.0.0.0/08", "1.2.3.4/", "fe80::1%eth0", "2001:db8::7/128"]


def compound(rng, s, groups, depth=2):
    if depth == 0 or rng.random() < 0.35:
        return [compound_word(rng, s, groups)]
    left, right = compound(rng, s, groups, depth - 1), compound(rng, s, groups, depth - 1)
    k = rng.random()
    if k < 0.3:
        out = left + ["and"] + right
    elif k < 0.6:
        out = left + ["or"] + right
    elif k < 0.75:
        out = left + ["not"] + right
    elif k < 0.9:
        out = ["not", "("] + left + ["or"] + right + [")"]
    else:
        out = ["("] + left + [")"]
    if rng.random() < 0.06:
        out.insert(rng.randint(0, len(out)), rng.choice(["and", "or", "not", "(", ")", "X@y", "G@os", "R@range"]))
    if rng.random() < 0.04:
        out.pop(rng.randrange(len(out)))
    return out


GROUPS = {
    "g1": "web* or db-1",
    "g2": "G@os:Debian and not db*",
    "names": ["web1.example.org", "a"],
    "namestext": "web1.example.org a b",
    "regex": "web[12].example.org db-?",
    "nested": "N@g1 and not N@g2",
    "nestednames": "N@names or N@namestext",
    "listed": ["N@g1", "and", "E@web.*"],
    "one": "minion",
    "star": "*",
    "ored": "N@nested or a",
}

REGEXES = [
    "", "a", "web", "web$", "^web", r"web\Z", r"\Aweb", "web1.*", "(?P<n>w)eb", "(?P<n>w)(?P=n)", r"(a|b)\1", r"(\w)\1", "(?i)WEB", "(?i:W)eb", "(?:web|db)-?1",
    "web(?=1)", "web(?!1)", r"(?<=w)eb", r".*(?<=example)\.org", r".*(?<!x)org", "a{2}", "a{,2}b", "a{1,}", "a{x}", "a{", "a{}", "x{0}", "a**", "*a", "a++b", "a*+a", "a?+a",
    "(?>a+)b", "(?>a+)ab", "[abc]+", "[^abc]+", "[]a]+", "[^]a]+", "[a-]+", "[-a]+", "[a-c-e]+", "[z-a]", r"[\w-]+", r"[\w-z]", r"[a\]b]+", r"[\d\s]+", r"[^\W]+", r"[\W_]+", r"[\S]+",
    r"[\D-]+", "[[]+", "[[:alpha:]]+", "[a&&b]+", r"\d+", r"\D+", r"\s+", r"\S+", r"\w+", r"\W+", r"\bweb\b", r"web\B", r"\b", r"\B", r"\z", r"\q", r"\_", r"\-", r"\é", r"\x41", r"\x4", r"\u00e9",
    r"\u12", r"\U0001F600", r"\101", r"\0", r"\1", r"\8", r"(a)\2", "(", ")", "a)", "(a", "(?", "(?P", "(?P<", "(?P<a", "(?P<1>a)", "(?P<a>a)(?P<a>b)", "(?P=x)", "(?#comment)a", "(?#a", "(?x) w e b # c",
    "(?x)[ w]eb", "(?s)a.b", "a.b", "(?m)^b", "(?m)a$", "a$", "a\nb$", "(?a)\\w+", "(?a:\\w)+", "(?L)a", "(?u)a", "(?au)a", "a(?i)b", "(?i)(?m)A", "(?i-s:A)", "(?-i:a)", "(?i-i:a)", "(?-a:a)", "(?z)a", "(a)?(?(1)b|c)",
    "(?P<q>a)?(?(q)b|c)", "(?(1)a|b|c)", "(?(2)a)", "(?(0)a)", "(?<=a+)b", "(?<=a|bc)d", "(?<=(a))b", "(?<=ab|cd)e", "x*", "x*?", "(x*)*", "(x+)+y", "(?:)*", "^*", "$*", r"\b*", "(?=a)*", "a|", "|a", "a||b", "()", "(|a)+b",
    "[", "[a", "[]", "[^]", "\\", "a\\", "a{3,2}", "a{99999999999}", "a{1001}", "(a{100}){100}", ".", "..", "ß", "(?i)STRASSE", "(?i)straSSe", "(?i)É", "[à-ü]+", "(?i)[À-Ü]+", r"\w+\s\w+", r"(?:(?:a)+)+", r"(\d+)\.(\d+)", r"x{,}", "x{2,}?", "(?i)ß", "(?i)ſ",
    "a.c", "[.]", "web1\\.example\\.(?:org|com)", "((a)|b)+\\2", "(?:a|ab)(?:c|bcd)(?:d*)", r"(?=.*1)(?=.*o).*", r"(?!db)", r"[\b]", r"[\101-\103]", r"[\x61-\x63]+", "{", "}", "]", "{2}", "(?P<ä>a)", "a{2}{3}", "(?:a{2}){3}", "(?i)\u212a",
]
SUBJECTS = ["", "a", "b", "aa", "ab", "aab", "aaa", "aaaaaa", "abc", "abcd", "bcd", "web", "web1", "web1.example.org", "WEB", "Web 1", "web ", "a\nb", "a\n", "b\n", "\n", "été", "Straße", "STRASSE", "É", "1", "12", "1.2", "a b", "_", "-", "[a]",
            "{", "}", "]", "a{x}", "a{", "x", "xx", "xxxxxy", "d", "abd", "cde", "\x00", "A", "ABC", "\u00a0", "\x1c", "१", "½", "ⅷ", "😀", "é", "a\u0301", "K", "ſ", "c", "\b", "db-1", "a,b", "aa" * 40, "e\u200b"]

GLOBS = ["*", "", "a", "a*", "*a", "*a*b*", "?", "??", "[a]", "[!a]", "[]a]", "[!]a]", "[a-c]", "[!a-c]", "[c-a]", "[!c-a]", "[a-]", "[-a]", "[!-a]", "[", "[a", "[]", "[!]", "[!", "[[]", "[^a]", "[a-c-e]", "[--z]", "[a\\]", "\\*", "a[b-", "[a-bd-e]", "[z-ac]", "[z-a!b]",
         "[z-a!-x]", "[z-az-a]", "[!!]", "[!^]", "[a-a]", "[&&]", "[||~]", "**a**", "a**b", "*?*", "[é-ü]", "ß", "web[12].*", "*.org", "[\\-a]", "[+--]", "[a-z-9]", "[]-a]", "[!]-a]", "[---]", "[a--]"]


def encode(v):
    if isinstance(v, dict):
        if all(isinstance(k, str) for k in v):
            return {k: encode(x) for k, x in v.items()}
        return {"__map__": [[k, encode(x)] for k, x in v.items()]}
    if isinstance(v, list):
        return [encode(x) for x in v]
    return v


def answer(fun):
    try:
        return bool(fun())
    except Exception:  # a minion logs it and does not run the job
        return "error"


def matchers(opts):
    loaded = {}

    def run(kind, tgt, delim, s):
        opts["grains"], opts["pillar"], opts["id"], opts["minion_id"] = s["grains"], s["pillar"], s["id"], s["id"]
        # the nodegroup matcher takes the minion's data from the options it was loaded with
        if id(s) not in loaded:
            loaded[id(s)] = salt.loader.matchers(opts)
        funcs = loaded[id(s)]
        f = funcs[f"{kind}_match.match"]
        kw = {"opts": opts}
        if kind in ("grain", "grain_pcre", "pillar"):
            kw["delimiter"] = delim
        if kind == "nodegroup":
            kw["nodegroups"] = opts["nodegroups"]
        if kind == "data":
            kw["functions"] = {"data.getval": s["data"].get}
        return answer(lambda: f(tgt, **kw))

    return run


def main(path, seed):
    rng = random.Random(seed)
    opts = dict(salt.config.DEFAULT_MINION_OPTS)
    opts["nodegroups"] = GROUPS
    run = matchers(opts)
    subjects = [subject(rng, i) for i in range(60)]
    match = []

    def add(kind, tgt, delim, i):
        match.append([kind, tgt, delim, i, run(kind, tgt, delim, subjects[i])])

    for i, s in enumerate(subjects):
        for _ in range(4):
            add("glob", globify(rng, rng.choice(IDS)), ":", i)
            add("pcre", regexify(rng, rng.choice(IDS)), ":", i)
            add("list", rng.choice([",".join(rng.sample(IDS, 3)), rng.choice(IDS), rng.sample(IDS, 3), s["id"] + ",", "," + s["id"], [s["id"]], s["id"] + ", b", {s["id"]: 1}, 5]), ":", i)
            add("ipcidr", rng.choice(CIDRS), ":", i)
            add("data", rng.choice(["k:", "l:", "m:", "n:", "z:", "k"]) + globify(rng, rng.choice(TEXTS)), ":", i)
        for _ in range(16):
            delim = rng.choice([":", ":", ":", "|", "::", "-"])
            add("grain", delimited(rng, s["grains"], False, delim), delim, i)
            add("grain_pcre", delimited(rng, s["grains"], True, delim), delim, i)
            add("pillar", delimited(rng, s["pillar"], False, delim), delim, i)
            add("pillar_pcre", delimited(rng, s["pillar"], True, ":"), ":", i)
            add("pillar_exact", delimited(rng, s["pillar"], False, ":"), ":", i)
        for _ in range(40):
            words = compound(rng, s, GROUPS)
            add("compound", words if rng.random() < 0.2 else " ".join(words), ":", i)
        for g in GROUPS:
            add("nodegroup", g, ":", i)
        add("nodegroup", "unknown", ":", i)
        add("range", "%web", ":", i)

    # subdict_match and traverse_dict_and_list straight, also on data that is no map
    subdict, traverse, datas = [], [], [mapping(rng, 4) for _ in range(150)] + [None, [], [1, {"a": 2}], "text", 5]
    for i, d in enumerate(datas):
        for _ in range(12):
            regex, exact = rng.choice([(False, False), (True, False), (False, True)])
            delim = rng.choice([":", ":", "|"])
            expr = delimited(rng, d, regex, delim)
            got = answer(lambda: salt.utils.data.subdict_match(d, expr, delim, regex_match=regex, exact_match=exact))
            subdict.append([i, expr, delim, 1 if regex else 2 if exact else 0, got])
            key = delim.join(path_into(rng, d)[:-1] or ["a"])
            marker = object()
            got = salt.utils.data.traverse_dict_and_list(d, key, marker, delimiter=delim)
            traverse.append([i, key, delim, got is not marker, None if got is marker else encode(got)])
    odd = {1: "one", 2.5: "float", None: "null", "x": [{"1": "text"}, {1: "int"}], "y z": 1, 16: "hex", 8: "oct"}
    datas.append(odd)
    for key in ["1", "2.5", "None", "null", "~", "x:1", "x:0", "x:-1", "x:+1", "x: 1", "x:1_0", " y z", "'y z'", '"y z"', "1.0", "0x10", "0b1", "010", "+1", "1_0", "1e0", "", "x:", "[1]", "{}", "y z ", "@", "-", "true", "1 # c", "0o10", "x::1", "x:0:1"]:
        marker = object()
        got = salt.utils.data.traverse_dict_and_list(odd, key, marker)
        traverse.append([len(datas) - 1, key, ":", got is not marker, None if got is marker else encode(got)])

    texts = [scalar(rng) for _ in range(200)] + [value(rng, 3) for _ in range(200)]
    texts += ["it's", 'a"b', "it's \"x\"", ["it's"], ["a\nb", "\x00", "\x7f", "\u00a0", "é", "\u200b", "😀", "\ue000"], [1e100, 1e-4, 0.0, -0.0, 1e16, 9999999999999998.0]]

    nodegroup = []
    for g in GROUPS:
        nodegroup.append([g, salt.utils.minions.nodegroup_comp(g, GROUPS)])

    out = {
        "salt": str(salt.version.__version__),
        "python": sys.version.split()[0],
        "nodegroups": GROUPS,
        "subjects": encode(subjects),
        "match": match,
        "data": encode(datas),
        "subdict": subdict,
        "traverse": traverse,
        "text": [[encode(v), str(v), str(v).lower()] for v in texts],
        "nodegroup": nodegroup,
        "regex": [[p, "".join("x" if a == "error" else "1" if a else "0" for a in (answer(lambda: re.match(p, s)) for s in SUBJECTS))] for p in REGEXES],
        "regex_subjects": SUBJECTS,
        "glob": [[p, "".join("1" if fnmatch.fnmatch(s, p) else "0" for s in SUBJECTS + GLOBS)] for p in GLOBS],
        "glob_subjects": SUBJECTS + GLOBS,
        "word": [[w, [p["engine"] or "", p["delimiter"] or "", p["pattern"]]] for w, p in ((w, salt.utils.minions.parse_target(w)) for w in
                 ["G@a:b", "G|@a|b", "G@", "G|@", "G@@x", "G@x@y", "L|@a", "X@a", "a", "@a", "G@a\n", "G@a\nb", "N@g", "E@.*", "GG@a", "g@a", "G:@a", "I@@@", "Gé@x", "R@a", "S@10.0.0.0/8"])],
    }
    with gzip.GzipFile(path, "wb", 9, mtime=0) as f:
        f.write(json.dumps(out, sort_keys=True).encode())
    print(len(match), "matches,", sum(1 for m in match if m[4] is True), "true,", sum(1 for m in match if m[4] == "error"), "errors;", len(subdict), "subdict,", len(traverse), "traverse")


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
