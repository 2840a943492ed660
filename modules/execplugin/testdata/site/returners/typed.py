"""Types of what is returned."""
import json
import os

import salt.utils.files



def _write(name, value):
    with salt.utils.files.fopen(os.path.join(__pillar__["shop"]["root"], name), "a") as file:
        json.dump(value, file, sort_keys=True)
        file.write("\n")


def returner(ret):
    _write("typed", [type(ret["return"]).__name__, type(ret["jid"]).__name__, ret["fun"], __opts__["id"], __grains__["kernel"], __salt__["test.ping"]()])
