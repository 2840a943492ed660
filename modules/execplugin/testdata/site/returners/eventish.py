"""Returns and events."""
import json
import os

import salt.utils.files



def _write(name, value):
    with salt.utils.files.fopen(os.path.join(__pillar__["shop"]["root"], name), "a") as file:
        json.dump(value, file, sort_keys=True)
        file.write("\n")


def returner(ret):
    _write("eventish", [ret["id"], __opts__["id"], __grains__["kernel"], "pillar.get" in __salt__])


def event_return(events):
    _write("eventish", [sorted(e["tag"] for e in events)])
