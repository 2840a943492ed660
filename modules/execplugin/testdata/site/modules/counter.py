"""Things that last as long as a run."""


def __init__(opts):
    __context__["counter.started"] = opts["id"]


def up(by=1):
    __context__["counter"] = __context__.get("counter", 0) + by
    return __context__["counter"]


def twice():
    return [up(), __salt__["counter.up"](2), __context__.get("counter.started"), __grains__["id"], __opts__["id"]]
