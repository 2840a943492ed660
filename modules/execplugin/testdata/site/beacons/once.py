"""Tell one time."""


def validate(config):
    return isinstance(config, list), "list of " + __opts__["id"]


def beacon(config):
    if "once" in __context__:
        return []
    __context__["once"] = True
    return [{"told": __grains__["kernel"], "ping": __salt__["test.ping"]()}]
