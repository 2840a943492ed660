"""Gives back what it holds."""
HELD = []


def validate(config):
    return True, "fine " + __opts__["id"]


def beacon(config):
    HELD.append(1)
    return [{"held": len(HELD), "k": __grains__["kernel"], "c": __context__.setdefault("closing", 5)}]


def close(config):
    HELD.clear()
