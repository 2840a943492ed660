"""A state for a function."""


def ran(name, function, args=(), kwargs=None):
    if function not in __salt__:
        return {"name": name, "result": False, "changes": {}, "comment": "{} is not available on {}".format(function, __opts__["id"])}
    if __opts__["test"]:
        return {"name": name, "result": None, "changes": {}, "comment": "would run {}".format(function)}
    value = __salt__[function](*args, **(kwargs or {}))
    return {"name": name, "result": True, "changes": {"ret": value}, "comment": "ran {} in {}".format(function, __env__)}
