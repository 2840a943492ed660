"""Run the cases of this site with stock Salt: python stock.py CONFIG_DIR < cases.json > answers.json"""
import json
import os
import sys

import salt.beacons
import salt.client
import salt.config
import salt.loader

conf = sys.argv[1]
cases = json.load(sys.stdin)


def options():
    return salt.config.minion_config(os.path.join(conf, "minion"))


def job(function):
    """Do something in a process of its own, as a minion does each job."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = {"value": function()}
        except BaseException as exc:
            answer = {"error": str(exc), "type": type(exc).__name__}
        os.write(write, json.dumps(answer, default=lambda v: v.decode() if isinstance(v, bytes) else str(v)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        answer = json.loads(file.read())
    os.waitpid(pid, 0)
    return answer


caller = salt.client.Caller(mopts=options())
root = caller.sminion.opts["pillar"]["shop"]["root"]
out = {"functions": [], "states": [], "beacons": {}, "returners": {}}


def call(case):
    def run():
        value = caller.cmd(case["fun"], *case.get("args", []), **case.get("kwargs", {}))
        code = caller.sminion.functions.pack["__context__"].get("retcode", 0)
        return [value, code]

    return job(run)


for case in cases["functions"]:
    out["functions"].append(call(case))
for case in cases["states"]:
    out["states"].append(job(lambda: caller.cmd("state.apply", case["sls"], test=case.get("test", False))))
grains = caller.sminion.opts["grains"]
out["grains"] = {k: v for k, v in grains.items() if any(k.startswith(p) for p in cases["grains"])}


def beacons():
    opts = options()
    opts["grains"], opts["pillar"] = grains, caller.sminion.opts["pillar"]
    opts["beacons"] = {}
    manager = salt.beacons.Beacon(opts, caller.sminion.functions)
    rounds = []
    for config in cases["beacons"]:
        rounds.append(manager.process(json.loads(json.dumps(config)), grains))
        with open(os.path.join(root, "grows"), "a") as file:
            file.write("x")
    return rounds


out["beacons"] = job(beacons)


def returner(name):
    ret = {"id": caller.sminion.opts["id"], "fun": "shop.list", "fun_args": ["3"], "jid": "20200101000000000000", "retcode": 0, "success": True,
           "return": ["3-0@web1", "3-1@web1"]}
    functions = salt.loader.returners(caller.sminion.opts, caller.sminion.functions, context={})
    functions[name + ".returner"](ret)


for name in cases["returners"]:
    answer = job(lambda: returner(name))
    path = os.path.join(root, cases["returners"][name])
    out["returners"][name] = [open(path).read() if os.path.exists(path) else None, answer.get("error")]
print(json.dumps(out, sort_keys=True).replace(root, "/ROOT").replace(sys.prefix, "/SALT"))
