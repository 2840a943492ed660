"""Numbers the returns."""
import json
import os

import salt.utils.files



def _write(name, value):
    with salt.utils.files.fopen(os.path.join(__pillar__["shop"]["root"], name), "a") as file:
        json.dump(value, file, sort_keys=True)
        file.write("\n")


COUNT = [0]


def returner(ret):
    COUNT[0] += 1
    __context__["counted"] = COUNT[0]
    _write("counted", [COUNT[0], __context__["counted"], ret["fun"], __opts__["id"]])
