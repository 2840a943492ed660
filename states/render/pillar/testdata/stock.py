"""Compiles pillars with stock Salt: a JSON object on each line of standard input, the repr of the pillar or the error on each line of
standard output. The argument is a scratch directory."""

import json
import os
import sys

import salt.config
import salt.pillar
import salt.syspaths

scratch = sys.argv[1]
conf = os.path.join(scratch, "master")
with open(conf, "w", encoding="utf-8") as f:
    f.write(f"root_dir: {scratch}\nid: the-master\nlog_level: quiet\n")


def plain(v):
    """What a minion gets: the texts of yamlex show themselves in another way than others."""
    if isinstance(v, str):
        return str.__str__(v)
    if isinstance(v, dict):
        return {plain(k): plain(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    return v


for line in sys.stdin:
    q = json.loads(line)
    opts = salt.config.master_config(conf)
    opts.update(q["opts"])
    opts["pillar_roots"] = q["roots"]
    opts["file_roots"] = {"base": [os.path.join(scratch, "files")]}
    # Nodegroups are made of minions whose keys are accepted.
    os.makedirs(os.path.join(opts["pki_dir"], "minions"), exist_ok=True)
    with open(os.path.join(opts["pki_dir"], "minions", q["id"]), "wb"):
        pass
    out = {}
    try:
        p = salt.pillar.Pillar(
            opts,
            q["grains"],
            q["id"],
            q["saltenv"],
            pillar_override=q["override"],
            pillarenv=q["pillarenv"],
            extra_minion_data={},
        )
        out["pillar"] = repr(plain(p.compile_pillar()))
    except Exception as exc:  # pylint: disable=broad-except
        out["error"] = str(exc)
    print(json.dumps(out), flush=True)
