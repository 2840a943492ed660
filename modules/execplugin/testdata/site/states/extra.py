"""Keyword arguments of every name."""


def given(name, args=None, kwargs=None, fun_=None, **more):
    known = {k: v for k, v in more.items() if not k.startswith("__")}
    return {"name": name, "result": True, "changes": {}, "comment": "{} {} {} {} {}".format(
        args, kwargs and dict(kwargs), sorted(known), __env__, __salt__["test.echo"](__opts__["id"]))}


def single(name):
    ret = __salt__["state.single"]("test.nop", name="inner " + __grains__["kernel"])
    one = list(ret.values())[0]
    return {"name": name, "result": one["result"], "changes": {}, "comment": one["comment"] + " " + one["name"]}
