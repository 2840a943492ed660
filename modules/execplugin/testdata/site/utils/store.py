"""Keep values in files."""
import json
import os

import salt.utils.files


def put(name, value):
    path = os.path.join(__pillar__["shop"]["root"], name + ".json")
    with salt.utils.files.fopen(path, "w") as file:
        json.dump({"value": value, "by": __opts__["id"], "on": __grains__["kernel"]}, file, sort_keys=True)
    return path


def get(name, default=None):
    path = os.path.join(__pillar__["shop"]["root"], name + ".json")
    if not os.path.exists(path):
        return default
    with salt.utils.files.fopen(path) as file:
        return json.load(file)["value"]
