"""Arguments whose names mean something in bridges."""


def give(name=None, self=None, args=None, kwargs=None, fun=None, method=None, type=None, id=None, kind=None, module=None, message=None, **more):
    given = dict(name=name, self=self, args=args, kwargs=kwargs, fun=fun, method=method, type=type, id=id, kind=kind, module=module, message=message)
    return {k: v for k, v in given.items() if v is not None}, {k: v for k, v in more.items() if not k.startswith("__pub")}


def through(**names):
    names = {k: v for k, v in names.items() if not k.startswith("__pub")}
    names.update(fun="f", method="m", kwargs={"a": 1}, args=[1], __id__="i", type="t", id=__opts__["id"], cls=__grains__["kernel"])
    got = __salt__["test.kwarg"](**names)
    return {k: v for k, v in got.items() if not k.startswith("__pub")}


def own():
    return give(name="n", self="s", args=[1], kwargs={"x": 1}, __id__="i"), __salt__["reservedargs.give"](name="n", fun="f", __id__="i")


def utils():
    return __utils__["reserved.set"](name="n", args=1, kwargs=2, __id__="i", cls="c")


def user():
    return __salt__["user.info"](name="root")["uid"]
