"""Refuses the host."""


def __virtual__():
    if "no_such_module.f" not in __salt__ and __grains__["kernel"] and __opts__["id"]:
        return False, "needs no_such_module"
    return True


def f(name):
    return {"name": name, "result": True, "changes": {}, "comment": ""}
