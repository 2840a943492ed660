"""
Calls returners of stock Salt for the differential test: reads {"returner", "opts", "calls"} as JSON from standard input and writes
what each call gave, or {"missing": why} where the client library is not installed.
"""

import json
import sys
import tempfile

import salt.config
import salt.loader

question = json.load(sys.stdin)
opts = salt.config.DEFAULT_MINION_OPTS.copy()
opts.update({"id": "web1", "root_dir": tempfile.gettempdir(), "cachedir": tempfile.mkdtemp(), "file_client": "local", "grains": {}, "pillar": {}})
opts.update(question["opts"])
functions = salt.loader.minion_mods(opts)
returners = salt.loader.returners(opts, functions)
if question["returner"] + ".returner" not in returners:
    json.dump({"missing": returners.missing_fun_string(question["returner"] + ".returner")}, sys.stdout)
    sys.exit()
out = []
for name, args in question["calls"]:
    try:
        out.append({"value": returners[question["returner"] + "." + name](*args)})
    except Exception as exc:  # pylint: disable=broad-except
        out.append({"error": f"{type(exc).__name__}: {exc}"})
json.dump({"answers": out}, sys.stdout, default=str)
