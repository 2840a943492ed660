"""
Prepares a server of Vault for a case: vault.py PORT TAPE. There are secrets of version 1 below one/, of version 2 below two/, a token
"weak" that may read two/first only, and a role; for the tape "states", there are policies.
"""

import json
import sys
import time
import urllib.error
import urllib.request


def ask(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/{path}", data, {"X-Vault-Token": "root"}, method=method)
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as err:
        if err.code == 599:
            sys.exit(err.read())
        return err.code


ask("POST", "tape/" + sys.argv[2])
if sys.argv[2] == "states":
    ask("DELETE", "v1/sys/policy/new")
    for name, text in ("old", 'path "a" {\n}\n'), ("same", 'path "c" {\n}\n'), ("gone", 'path "d" {\n}\n'):
        ask("POST", "v1/sys/policy/" + name, {"policy": text})
    sys.exit()
for mount, version in ("one", "1"), ("two", "2"):
    ask("DELETE", "v1/sys/mounts/" + mount)
    ask("POST", "v1/sys/mounts/" + mount, {"type": "kv", "options": {"version": version}})
ask("POST", "v1/one/first", {"a": "b"})
while ask("POST", "v1/two/data/first", {"data": {"a": "b"}}) != 200:
    time.sleep(0.05)  # the engine makes itself ready
for policy in "weak", "new", "old":
    ask("DELETE", "v1/sys/policy/" + policy)
ask("POST", "v1/sys/policy/weak", {"policy": 'path "two/data/first" {\n  capabilities = ["read"]\n}\n'})
ask("POST", "v1/auth/token/revoke", {"token": "weak"})
ask("POST", "v1/auth/token/create", {"id": "weak", "policies": ["weak"]})
ask("DELETE", "v1/sys/auth/approle")
ask("POST", "v1/sys/auth/approle", {"type": "approle"})
ask("POST", "v1/auth/approle/role/minion", {"policies": ["weak"]})
ask("POST", "v1/auth/approle/role/minion/role-id", {"role_id": "minion"})
ask("POST", "v1/auth/approle/role/minion/custom-secret-id", {"secret_id": "secret"})
