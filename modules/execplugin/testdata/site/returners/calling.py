"""Uses functions and utils."""
import json
import os

import salt.utils.files



def _write(name, value):
    with salt.utils.files.fopen(os.path.join(__pillar__["shop"]["root"], name), "a") as file:
        json.dump(value, file, sort_keys=True)
        file.write("\n")


def returner(ret):
    _write("calling", [__salt__["pillarlook.get"]("shop:place"), ret["fun"], __grains__["id"], __opts__["id"]])
