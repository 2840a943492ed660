"""Writes vectors.json: what Murano's engine signs, and what its agent makes of plans. Run it with the Python of a host that has Debian's
python3-murano and murano-agent (14.0.0 and 10.0.0 made the file):

    python3 vectors.py vectors.json
"""

import json
import os
import stat
import sys
import tempfile

import muranoagent
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from murano.engine.system import agent
from muranoagent import bunch
from muranoagent import execution_plan_runner
from muranoagent import execution_result
from muranoagent import validation
from muranoagent.common import config

SH = {"Name": "deploy.sh", "BodyType": "Text", "Body": "#!/bin/sh\necho \"got $# $*\"\necho to stderr >&2\ncat data/part 2>/dev/null\nexit ${1:-0}\n"}
PART = {"Name": "data/part", "BodyType": "Base64", "Body": "cGFydAo=\n"}

# Programs that say what they were given.
PROGRAMS = {
    "puppet": "#!/bin/sh\nshift; echo \"$@\" | sed 's,[^ =]*/,,g'; cat manifest.pp; echo 'ERROR: one'; echo two >&2\n",
    "chef-solo": "#!/bin/sh\ncat node.json; exit 4\n",
    "berks": "#!/bin/sh\nmkdir -p \"$3\" && echo vendored\n",
}


def script(type="Application", entry="sh", files=(), **options):
    return {"Type": type, "EntryPoint": entry, "Files": list(files), "Options": options, "Version": "1.0.0"}


def plan(body, calls, scripts, files=None, version="2.2.0", **more):
    """Return a plan with a Body for Murano's agent and Calls for ours."""
    return dict({"FormatVersion": version, "ID": "p1", "Name": "a plan", "Action": "Execute", "Parameters": {}, "Body": body, "Calls": calls,
                 "Scripts": scripts, "Files": {"sh": SH, "part": PART} if files is None else files}, **more)


NO = {"captureStdout": False, "captureStderr": False}
PLANS = {
    "two calls": plan("return [deploy('0 \"b c\"'), deploy()]", [{"Script": "deploy", "CommandLine": "0 \"b c\""}, {"Script": "deploy"}],
                      {"deploy": script(files=["part"])}),
    "a failure": plan("return [deploy('3')]", [{"Script": "deploy", "CommandLine": "3"}], {"deploy": script()}),
    "a failure that is allowed": plan("return [deploy('3')]", [{"Script": "deploy", "CommandLine": "3"}], {"deploy": script(verifyExitcode=False)}),
    "without output": plan("return [deploy('0')]", [{"Script": "deploy", "CommandLine": "0"}], {"deploy": script(**NO)}),
    "2.0": plan("return [deploy('0')]", [{"Script": "deploy", "CommandLine": "0"}], {"deploy": script()}, version="2.0.0"),
    "puppet": plan("return [p()]", [{"Script": "p"}], {"p": script("Puppet", "tomcat::install")}),
    "puppet, the module itself": plan("return [p()]", [{"Script": "p"}], {"p": script("Puppet", "tomcat::")}),
    "chef": plan("return [c({'port': 80})]", [{"Script": "c", "Attributes": {"port": 80}}], {"c": script("Chef", "tomcat::install")}),
    "chef, allowed": plan("return [c()]", [{"Script": "c"}], {"c": script("Chef", "tomcat::install", verifyExitcode=False)}),
}

BAD = {
    "a format of tomorrow": plan("", [], {}, version="2.3.0"),
    "no scripts": {k: v for k, v in plan("", [], {}).items() if k != "Scripts"},
    "no files": {k: v for k, v in plan("", [], {}).items() if k != "Files"},
    "no type": plan("", [], {"s": {"EntryPoint": "sh", "Options": {}}}),
    "no entry point": plan("", [], {"s": {"Type": "Application", "Options": {}}}),
    "an unknown type": plan("", [], {"s": script("Ansible", "a::b")}),
    "puppet in 2.0": plan("", [], {"s": script("Puppet", "a::b")}, version="2.0.0"),
    "an entry point that is no file": plan("", [], {"s": script(entry="none")}),
    "the same in 2.0": plan("", [], {"s": script(entry="none")}, version="2.0.0"),
    "an entry point without ::": plan("", [], {"s": script("Chef", "a")}),
    "a file that is missing": plan("", [], {"s": script(files=["none"])}),
    "berkshelf in 2.1": plan("", [], {"s": script("Chef", "a::b", useBerkshelf=True)}, version="2.1.0"),
    "berkshelf of an application": plan("", [], {"s": script(useBerkshelf=True)}),
    "a download in 2.0": plan("", [], {}, {"f": {"Name": "n", "Type": "Downloadable", "URL": "http://x/"}}, version="2.0.0"),
    "a download without an address": plan("", [], {}, {"f": {"Name": "n", "Type": "Downloadable"}}),
    "a download without a name": plan("", [], {}, {"f": {"Type": "Downloadable", "URL": "http://x/"}}),
    "a body without its type": plan("", [], {}, {"f": {"Name": "n", "Body": "x"}}),
    "a body of another type": plan("", [], {}, {"f": {"Name": "n", "Body": "x", "BodyType": "Hex"}}),
}


def result(p):
    """Return what the agent answers to a plan, without what differs each time."""
    p = bunch.Bunch(json.loads(json.dumps(p)))
    try:
        validation.validate_plan(p)
        with execution_plan_runner.ExecutionPlanRunner(p) as runner:
            out = execution_result.ExecutionResult.from_result(runner.run(), p)
    except Exception as e:
        out = execution_result.ExecutionResult.from_error(e, p)
    del out["ID"], out["Time"]
    return json.loads(json.dumps(out))


def main():
    here = os.path.join(os.path.dirname(muranoagent.__file__), "executors")
    sys.path.insert(1, here)
    for name in ("application", "chef", "puppet"):
        __import__(name)
    with tempfile.TemporaryDirectory() as directory:
        config.CONF.set_override("storage", directory)
        os.makedirs(directory + "/bin")
        for name, text in PROGRAMS.items():
            with open("%s/bin/%s" % (directory, name), "w") as f:
                f.write(text)
            os.chmod(f.name, stat.S_IRWXU)
        os.environ["PATH"] = directory + "/bin:" + os.environ["PATH"]
        runs = {}
        for name, p in PLANS.items():
            os.chdir(directory)
            runs[name] = {"plan": p, "result": result(p)}
        bad = {name: {"plan": p, "result": result(p)} for name, p in BAD.items()}
        os.chdir("/")
    engine = object.__new__(agent.Agent)
    engine._queue = str("e%s-h%s" % ("1A", "2B")).lower()
    engine._signing_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = engine._signing_key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.PKCS1).decode()
    text = json.dumps(plan(None, [{"Script": "deploy", "CommandLine": "0 \u00e9"}], {"deploy": script()}, Stamp=engine._generate_stamp()))
    signed = {"queue": engine._queue, "key": public, "plan": text, "signature": engine._sign(text).hex()}
    with open(sys.argv[1], "w") as f:
        json.dump({"programs": PROGRAMS, "signed": signed, "runs": runs, "bad": bad}, f, indent=1)
        f.write("\n")


agent.Agent._last_stamp = 0
main()
