"""Stock Salt's pillar_cache: a JSON object with a step on each line of standard input, the pillar on each line of standard output.
Arguments are a scratch directory, the directory of the pillar files, the cachedir and the time, which stands still but for what a step
says."""

import json
import os
import sys
import time

import salt.config
import salt.pillar

scratch, roots, cachedir, start = sys.argv[1:]
conf = os.path.join(scratch, "master")
with open(conf, "w", encoding="utf-8") as f:
    f.write(f"root_dir: {scratch}\nid: the-master\nlog_level: quiet\n")

clock = 0
time.time = lambda: float(start) + clock

for line in sys.stdin:
    q = json.loads(line)
    clock += q.get("later", 0)
    opts = salt.config.master_config(conf)
    opts.update(
        pillar_roots={"base": [roots], "dev": [roots]},
        cachedir=cachedir,
        pillar_cache=True,
        pillar_cache_ttl=60,
        pillar_cache_backend="disk",
    )
    os.makedirs(os.path.join(cachedir, "pillar_cache"), exist_ok=True)
    p = salt.pillar.get_pillar(
        opts,
        {"id": "web1"},
        "web1",
        None,
        pillarenv=q.get("env"),
        clean_cache=q.get("clean"),
    )
    print(json.dumps(p.compile_pillar()), flush=True)
