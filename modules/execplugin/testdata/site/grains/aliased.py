__func_alias__ = {"type_": "type"}
VERSION = (1, 2)


def type_():
    return {"alias_type": list(VERSION), "alias_id": __opts__["id"], "alias_utils": "units.to_bytes" in __utils__}
