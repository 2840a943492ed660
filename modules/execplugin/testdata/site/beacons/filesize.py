"""Tell when a file has grown."""
import os

SIZES = {}


def validate(config):
    for part in config:
        if "files" in part and not isinstance(part["files"], list):
            return False, "files must be a list ({})".format(__opts__["id"])
    return True, "Valid beacon configuration"


def beacon(config):
    ret = []
    for part in config:
        for name in part.get("files", ()):
            path = os.path.join(__pillar__["shop"]["root"], name)
            size = os.path.getsize(path) if os.path.exists(path) else -1
            if SIZES.setdefault(name, 0) != size:
                ret.append({"tag": "grown", "file": name, "size": size, "by": __grains__["id"]})
            SIZES[name] = size
    return ret
