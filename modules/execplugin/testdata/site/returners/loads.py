"""Keeps jobs as well."""
import json
import os

import salt.utils.files



def _write(name, value):
    with salt.utils.files.fopen(os.path.join(__pillar__["shop"]["root"], name), "a") as file:
        json.dump(value, file, sort_keys=True)
        file.write("\n")


def returner(ret):
    _write("loads", {"ret": ret["fun"], "keys": sorted(k for k in ret if k in ("id", "fun", "return", "jid", "fun_args")), "id": __opts__["id"], "k": __grains__["kernel"]})


def save_load(jid, load, minions=None):
    _write("loads", ["load", load["fun"], minions])


def get_load(jid):
    return {"jid": jid, "fun": __salt__["test.echo"]("x")}


def prep_jid(nocache=False, passed_jid=None):
    return passed_jid or "1"
