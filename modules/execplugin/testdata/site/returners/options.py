"""Settings from the configuration."""
import json
import os

import salt.utils.files



def _write(name, value):
    with salt.utils.files.fopen(os.path.join(__pillar__["shop"]["root"], name), "a") as file:
        json.dump(value, file, sort_keys=True)
        file.write("\n")


import salt.returners


def _options(ret=None):
    return salt.returners.get_returner_options("options", ret, {"host": "host", "port": "port"}, __salt__=__salt__, __opts__=__opts__, defaults={"port": 7})


def returner(ret):
    _write("options", {"options": _options(ret), "fun": ret["fun"], "kernel": __grains__["kernel"]})
