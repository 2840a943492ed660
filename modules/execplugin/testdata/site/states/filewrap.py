"""A state around another one."""


def present(name, contents, **kwargs):
    kwargs = {k: v for k, v in kwargs.items() if not k.startswith("__") and k not in ("order", "state", "fun")}
    ret = __states__["file.managed"](name=name, contents=contents + " on " + __grains__["kernel"], **kwargs)
    ret["comment"] = "wrapped in {}: ".format(__env__) + ret["comment"]
    return ret


def both(name):
    one = __states__["shop.stocked"](name=name, count=3)
    return {"name": name, "result": one["result"], "changes": one["changes"], "comment": "inner: " + one["comment"] + " " + __opts__["id"]}
