"""Fails."""
import json
import os

import salt.utils.files



def _write(name, value):
    with salt.utils.files.fopen(os.path.join(__pillar__["shop"]["root"], name), "a") as file:
        json.dump(value, file, sort_keys=True)
        file.write("\n")


def returner(ret):
    _write("raising", [ret["fun"], __opts__["id"], __grains__["kernel"]])
    raise RuntimeError("cannot return " + ret["fun"])
