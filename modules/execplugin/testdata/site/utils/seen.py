"""Count what was seen in this run."""


def __virtual__():
    return True if __opts__.get("id") else (False, "no id")


def count(key):
    seen = __context__.setdefault("seen", {})
    seen[key] = seen.get(key, 0) + 1
    return seen[key], __grains__["id"]
