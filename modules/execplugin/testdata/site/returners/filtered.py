"""Leaves secrets out."""
import json
import os

import salt.utils.files



def _write(name, value):
    with salt.utils.files.fopen(os.path.join(__pillar__["shop"]["root"], name), "a") as file:
        json.dump(value, file, sort_keys=True)
        file.write("\n")


def returner(ret):
    value = ret["return"]
    if isinstance(value, dict):
        value = {k: v for k, v in value.items() if "secret" not in k}
    _write("filtered", {"value": value, "place": __pillar__["shop"]["place"], "fun_args": ret.get("fun_args"), "id": __opts__["id"], "kernel": __grains__["kernel"]})
