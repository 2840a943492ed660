"""A package."""
__func_alias__ = {"set_": "set"}


def set_(value):
    return {"value": value * 2, "id": __opts__["id"], "kernel": __grains__["kernel"], "root": __pillar__["shop"]["place"]}
