"""Run until something holds."""

__func_alias__ = {"until_": "until"}


def until_(name, want=3):
    tries = 0
    while __salt__["counter.up"]() < want and tries < 10:
        tries += 1
    return {"name": name, "result": True, "changes": {}, "comment": "{} tries {} {}".format(tries, __opts__["id"], __context__["counter"])}
