#!/usr/bin/env python3
"""Writes testdata/trees.json: configuration trees with what an installed Salt makes of them.

usage: SALT_PYTHON gen/cases.py > testdata/trees.json

Every tree is written below a fresh directory, shown as @ in files and results. The id that Salt would guess from the
host is fixed to guessed.Example.org. Results hold the options that differ from Salt's table of defaults.
"""
import collections.abc as abc
import copy
import json
import logging
import os
import shutil
import sys
import tempfile

os.environ.pop("SALT_CONFIG_DIR", None)
import salt.config as c
import salt.utils.network

salt.utils.network.generate_minion_id = lambda: "guessed.Example.org"

TREES = []


def tree(name, files, role="minion", env=None, strict=True):
    TREES.append({"name": name, "role": role, "files": files, "env": env or {}, "strict": strict})


M = "etc/salt/minion"
D = "etc/salt/minion.d/"
ID = "id: a\n"
tree("missing file", {})
tree("empty file", {M: ""})
tree("comments", {M: "# nothing\n"})
tree("false document", {M: "false\n"})
tree("plain", {M: "id: web1\nmaster: salt.example.org\nmaster_port: 5506\n"})
tree("numeric id", {M: "id: 4711\n"})
tree("float id", {M: "id: 1.50\n"})
tree("bool id", {M: "id: yes\n"})
tree("master list", {M: ID + "master:\n  - a\n  - b\n"})
tree("unknown keys", {M: ID + "Mixed_Case:\n  Deep.Key: 1\n  other: [1, 2.5, ~, yes, '0755', 0755]\n'colon:key': x\n"})
tree("case kept", {M: ID + "grains:\n  Role: Web\n  roles: [A, b]\n"})
tree("grains not a mapping", {M: ID + "grains: nope\n"})
tree("drop-ins sorted", {M: ID + "x: main\n", D + "20.conf": "x: twenty\n", D + "10.conf": "x: ten\ny: ten\n"})
tree("drop-ins case order", {M: ID, D + "b.conf": "x: b\n", D + "B.conf": "x: B\n", D + "_z.conf": "x: z\n"})
tree("drop-in other suffix", {M: ID, D + "a.conf.bak": "x: 1\n", D + ".hidden.conf": "y: 1\n"})
tree("lists of drop-ins add up", {M: ID, D + "a.conf": "master: [m1, m2]\n", D + "b.conf": "master: [m2, m3]\n"})
tree("list of main file is lost", {M: ID + "master: [m0]\n", D + "a.conf": "master: [m1]\n"})
tree("mappings of drop-ins merge", {M: ID, D + "a.conf": "m: {a: 1, n: {x: [1]}}\n", D + "b.conf": "m: {b: 2, n: {x: [1, 2], y: 3}}\n"})
tree("mapping of main file is replaced", {M: ID + "m: {a: 1}\n", D + "a.conf": "m: {b: 2}\n"})
tree("kinds differ in drop-ins", {M: ID, D + "a.conf": "m: {a: 1}\nl: [1]\n", D + "b.conf": "m: text\nl: 2\n"})
tree("python equality of list items", {M: ID, D + "a.conf": "l: [1, true, 'x', [1], {a: 1}]\n", D + "b.conf": "l: [1.0, false, 'x', [true], {a: 1.0}, 0]\n"})
tree("schedule in drop-ins", {M: ID + "schedule: {main: {function: a}}\n", D + "_schedule.conf": "schedule: {j1: {function: test.ping, seconds: 5}}\n", D + "z.conf": "schedule: {j2: {function: test.ping}, j1: {function: b}}\n"})
tree("include", {M: ID + "include: extra/*.conf\nx: main\n", "etc/salt/extra/1.conf": "x: one\n", "etc/salt/extra/2.conf": "y: two\n"})
tree("include list", {M: ID + "include:\n  - extra/b.conf\n  - extra/a.conf\n", "etc/salt/extra/a.conf": "x: a\n", "etc/salt/extra/b.conf": "x: b\n"})
tree("include after drop-ins", {M: ID + "include: last.conf\n", D + "a.conf": "x: dropin\n", "etc/salt/last.conf": "x: last\n"})
tree("include absolute", {M: ID + "include: @/other/a.conf\n", "other/a.conf": "x: other\ninclude: b.conf\n", "other/b.conf": "x: nested\ny: 1\n"})
tree("include misses", {M: ID + "include: nowhere/*.conf\n"})
tree("drop-in includes", {M: ID, D + "a.conf": "x: a\ninclude: sub/*.conf\n", D + "sub/1.conf": "x: sub\nl: [1]\n", D + "b.conf": "l: [2]\n"})
tree("include of a drop-in does not reach main", {M: ID, D + "a.conf": "include: c.inc\n", D + "c.inc": "include: d.inc\nz: 1\n", D + "d.inc": "z: 2\n"})
tree("default_include changed", {M: ID + "default_include: conf.d/*.yaml\n", "etc/salt/conf.d/a.yaml": "x: 1\n", D + "a.conf": "x: 2\n"})
tree("default_include empty", {M: ID + "default_include: ''\n", D + "a.conf": "x: 2\n"})
tree("id in drop-in is a number", {M: "", D + "id.conf": "id: 17\n"})
tree("root_dir", {M: ID + "root_dir: @/r\n"})
tree("root_dir relative paths", {M: ID + "root_dir: @/r\npki_dir: my/pki\ncachedir: /var/cache/salt/other\nlog_file: logs/minion\npidfile: run/x.pid\nsock_dir: s\n"})
tree("root_dir below root", {M: ID + "root_dir: /var\npki_dir: /var/pki\nlog_file: /var/log/x\n"})
tree("log file address", {M: ID + "root_dir: @/r\nlog_file: file:///dev/log\nkey_logfile: udp://x:1/local0\n"})
tree("log_dir", {M: ID + "log_dir: /var/log/other\n"})
tree("log_dir relative file", {M: ID + "log_dir: /var/log/other\nlog_file: m.log\n"})
tree("minion_id file", {M: "root_dir: @/r\n", "r/etc/salt/minion_id": "cached-id\n"})
tree("minion_id file with blanks", {M: "root_dir: @/r\n", "r/etc/salt/minion_id": "  cached-id  \r\nsecond\n"})
tree("minion_id file with mark", {M: "root_dir: @/r\n", "r/etc/salt/minion_id": "\ufeffcached-id\n"})
tree("minion_id file says localhost", {M: "root_dir: @/r\n", "r/etc/salt/minion_id": "localhost\n"})
tree("minion_id file not wanted", {M: "root_dir: @/r\nminion_id_caching: False\n", "r/etc/salt/minion_id": "cached-id\n"})
tree("guessed id", {M: "root_dir: @/r\n"})
tree("guessed id lower case", {M: "root_dir: @/r\nminion_id_lowercase: True\n"})
tree("guessed id without domain", {M: "root_dir: @/r\nminion_id_remove_domain: True\n"})
tree("guessed id without one domain", {M: "root_dir: @/r\nminion_id_remove_domain: example.ORG\n"})
tree("guessed id without other domain", {M: "root_dir: @/r\nminion_id_remove_domain: example.com\n"})
tree("append_domain", {M: ID + "append_domain: example.org\n"})
tree("append_domain there already", {M: "id: a.example.org\nappend_domain: example.org\n"})
tree("append_domain final dot", {M: "id: 'a.'\nappend_domain: example.org\n"})
tree("append_minionid_config_dirs", {M: "id: m1\nappend_minionid_config_dirs: [pki_dir, cachedir, extension_modules, default_include, pidfile]\n"})
tree("sock_dir long", {M: ID + "sock_dir: /very/long/path/for/sockets/that/goes/on\ncachedir: /c\n"})
tree("open_mode text", {M: ID + "open_mode: 'True'\n"})
tree("open_mode yes", {M: ID + "open_mode: yes\n"})
tree("file_roots", {M: ID + "file_roots:\n  base:\n    - @/s/*\n    - /srv/x\n  dev:\n  str: /not/a/list\npillar_roots: nonsense\n", "s/a/x": ""})
tree("file_roots not a mapping", {M: ID + "file_roots: [/srv/x]\n"})
tree("extension_modules empty", {M: ID + "extension_modules: ''\ncachedir: /c/d\n"})
tree("utils_dirs", {M: ID + "utils_dirs: [/u]\n"})
tree("environment", {M: ID + "environment: dev\n"})
tree("environment and saltenv", {M: ID + "environment: dev\nsaltenv: prod\n"})
tree("fileserver_backend old names", {M: ID + "fileserver_backend: [roots, git, minion]\n"})
tree("hash_type upper case", {M: ID + "hash_type: SHA512\n"})
tree("ipc_write_buffer", {M: ID + "ipc_write_buffer: 4096\n"})
tree("ssl true", {M: ID + "ssl: True\n"})
tree("ssl false", {M: ID + "ssl: False\n"})
tree("ssl bad value", {M: ID + "ssl: {cert_reqs: MAYBE}\n"})
tree("discovery", {M: ID + "discovery: {port: 1, mapping: {a: b}}\n"})
tree("discovery true", {M: ID + "discovery: True\n"})
tree("discovery unknown", {M: ID + "discovery: {colour: red}\n"})
tree("encryption algorithm", {M: ID + "encryption_algorithm: OAEP-SHA224\nsigning_algorithm: PKCS1v15-SHA224\n"})
tree("encryption algorithm bad", {M: ID + "encryption_algorithm: ROT13\n"})
tree("signing algorithm bad", {M: ID + "signing_algorithm: none\n"})
tree("wrong types", {M: ID + "loop_interval: '5'\nmaster_port: abc\nopen_mode: 1\ngrains_blacklist: text\nlog_level: 5\nretry_dns: yes\nmine_interval: 1.5\n"})
tree("return list", {M: ID + "return: [a, b]\n"})
tree("yaml 1.1", {M: ID + "a: yes\nb: 0755\nc: 1_000\nd: 1:30\ne: 1e3\nf: 2001-01-01\ng: 0x1f\nh: .inf\ni: ~\nj: 1.5\nk: 'on'\nl: -017\n"})
tree("windows line ends and byte order mark", {M: "\ufeffid: a\r\nmaster: b\r\nl:\r\n  - x\r\n"})
tree("broken yaml", {M: "id: a\nmaster: [a\nx: y\n"})
tree("tab", {M: "id: a\n\tmaster: b\n"})
tree("duplicate key", {M: "id: a\nmaster: x\nmaster: y\n"})
tree("python tag", {M: "id: a\nx: !!python/object/apply:os.getcwd []\n"})
tree("not a mapping", {M: "just text\n"})
tree("a list", {M: "- a\n- b\n"})
tree("two documents", {M: "id: a\n---\nid: b\n"})
tree("undefined alias", {M: "id: a\nx: *y\n"})
tree("broken drop-in", {M: ID, D + "a.conf": "x: [\n", D + "b.conf": "y: 1\n"})
tree("broken drop-in tolerated", {M: ID, D + "a.conf": "x: [\n", D + "b.conf": "y: 1\n"}, strict=False)
tree("broken nested include", {M: ID, D + "a.conf": "include: bad.inc\nx: 1\n", D + "bad.inc": "x: [\n"})
tree("broken schedule", {M: ID, D + "_schedule.conf": "schedule: [\n", D + "b.conf": "y: 1\n"})
tree("drop-in not a mapping", {M: ID, D + "a.conf": "text\n"})
tree("merge keys", {M: ID + "base: &b {x: 1, y: 2}\nd: {<<: *b, y: 3}\n"})
tree("master defaults", {"etc/salt/master": "id: m\n"}, role="master")
tree("master guessed id", {"etc/salt/master": "root_dir: @/r\n"}, role="master")
tree("master drop-ins", {"etc/salt/master": "id: m\n", "etc/salt/master.d/a.conf": "nodegroups:\n  - g1: 'a*'\n  - g2: 'b*'\n", "etc/salt/master.d/b.conf": "autosign_file: x/autosign\nauto_accept: 1\n"}, role="master")
tree("master broken drop-in", {"etc/salt/master": "id: m\n", "etc/salt/master.d/a.conf": "x: [\n"}, role="master", strict=False)
tree("master broken", {"etc/salt/master": "id: [\n"}, role="master", strict=False)
tree("master roots", {"etc/salt/master": "id: m\nfile_roots: {base: [/a], dev: ~}\npillar_roots: ~\nfile_ignore_regex: '/\\.git($|/)'\nfile_ignore_glob: '*.pyc'\nnodegroups: ~\nauto_accept: yes\nopen_mode: on\n"}, role="master")
tree("master cluster", {"etc/salt/master": "id: m\ncluster_peers: [a]\ncluster_pki_dir: /x\n"}, role="master")
tree("master rest auth", {"etc/salt/master": "id: m\nexternal_auth: {rest: {a: [b]}}\nworker_threads: 1\npeer: {'.*': ['.*']}\n"}, role="master")
tree("master ssh_minion_opts", {"etc/salt/master": "id: m\nssh_minion_opts: {gitfs_x: 1, pillar_roots: {}, ssh_merge_pillar: false, ok: 1}\n"}, role="master")
tree("master signing algorithm bad", {"etc/salt/master": "id: m\npublish_signing_algorithm: x\n"}, role="master", strict=False)


def plain(v):
    if isinstance(v, abc.Mapping):
        if all(isinstance(k, str) for k in v):
            return {k: plain(x) for k, x in v.items()}
        return {"__pairs__": [[plain(k), plain(x)] for k, x in v.items()]}
    if isinstance(v, (list, tuple)) or type(v).__name__ == "ImmutableList":
        return [plain(x) for x in v]
    if isinstance(v, float):
        return {"__float__": repr(v)}
    return v


class Log(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append("%s: %s" % (record.levelname, record.getMessage()))


def run(case):
    root = tempfile.mkdtemp(prefix="saltconf")
    try:
        for name, text in case["files"].items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", newline="") as f:
                f.write(text.replace("@", root))
        handler = Log()
        logging.getLogger("salt").addHandler(handler)
        result = {}
        path = os.path.join(root, "etc/salt", case["role"])
        table = plain(copy.deepcopy(c.DEFAULT_MINION_OPTS if case["role"] == "minion" else c.DEFAULT_MASTER_OPTS))
        try:
            if case["role"] == "minion":
                opts = c.minion_config(path, ignore_config_errors=not case["strict"])
            else:
                opts = c.master_config(path, exit_on_config_errors=case["strict"])
            opts = plain(opts)
            result["changed"] = {k: v for k, v in opts.items() if k not in table or table[k] != v}
            for k in ("__cli", "__role"):
                result["changed"].pop(k, None)
        except SystemExit as exc:
            result["exit"] = exc.code
        except Exception as exc:  # what Salt does not catch either
            result["error"] = "%s: %s" % (type(exc).__name__, exc)
        finally:
            logging.getLogger("salt").removeHandler(handler)
        result["log"] = sorted(set(handler.lines))
        result["left"] = sorted(os.path.relpath(os.path.join(d, f), root) for d, _, fs in os.walk(root) for f in fs)
        return json.loads(json.dumps(result).replace(root, "@"))
    finally:
        shutil.rmtree(root)


for case in TREES:
    case["result"] = run(case)
json.dump(TREES, sys.stdout, indent=1, ensure_ascii=False)
print()
