#!/usr/bin/env python3
"""The module "deploy": functions that talk in messages, in Python."""

import hashlib
import json
import sys

DESCRIPTION = {
    "protocol": 1,
    "doc": "Puts a release of the shop in place.",
    "functions": {
        "release": {
            "doc": "Deploy a release.\n\nCLI Example:\n\n    salt 'web*' deploy.release 1.4.2 hosts='[a, b]'\n",
            "params": [
                {"name": "version", "type": "string", "pattern": r"^\d+(\.\d+)*$"},
                {"name": "hosts", "type": "array", "items": {"type": "string"}, "maxItems": 100, "default": []},
                {"name": "token", "type": "string", "secret": True, "optional": True, "keyword_only": True},
            ],
            "messages": True,
            "timeout": 600,
            "examples": [
                {"args": ["1.4.2", ["a"]], "return": {"version": "1.4.2", "hosts": ["a"], "signed": False}},
                {"args": ["1.4.2"], "kwargs": {"token": "not in the log"}, "retcode": 0},
                {"args": ["0.0"], "error": "there is no release 0.0", "retcode": 1},
            ],
        },
        "where": {"doc": "Tell which system this is.", "messages": True, "examples": [{}]},
    },
}


def send(**message):
    print(json.dumps(message), flush=True)


def ask(method, **fields):
    """Ask the agent for something and wait for the answer."""
    send(type="request", id=1, method=method, **fields)
    answer = json.loads(sys.stdin.readline())
    if "error" in answer:
        raise RuntimeError(answer["error"]["message"])
    return answer["value"]


def release(version, hosts, token):
    if version == "0.0":
        send(type="error", kind="execution", message="there is no release 0.0")
        return
    for host in hosts:
        send(type="progress", item={"host": host, "version": version})
    print("deploying", version, file=sys.stderr)
    signed = token is not None and len(hashlib.sha256(token.encode()).hexdigest()) == 64
    send(type="return", value={"version": version, "hosts": hosts, "signed": signed})


def where():
    text = ask("salt.call", fun="test.echo", args=["%s on %s" % (ask("config", key="id"), ask("grains", key="os"))])
    send(type="return", value=text)


if sys.argv[1] == "describe":
    print(json.dumps(DESCRIPTION))
elif sys.argv[2] in DESCRIPTION["functions"]:
    call = json.loads(sys.stdin.readline())
    globals()[sys.argv[2]](**call["args"])
else:
    sys.exit("there is no function " + sys.argv[2])
