"""Has no validate."""


def beacon(config):
    return [{"tag": "t/u", "n": len(config), "id": "other", "o": __opts__["id"], "g": __grains__["kernel"], "s": __salt__["test.ping"]()}]
