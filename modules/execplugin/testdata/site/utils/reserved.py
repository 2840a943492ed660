"""Arguments of every name."""
__func_alias__ = {"set_": "set"}


def set_(name=None, self=None, args=None, kwargs=None, **more):
    return {"name": name, "self": self, "args": args, "kwargs": kwargs, "more": more, "id": __opts__["id"], "place": __pillar__["shop"]["place"],
            "kernel": __grains__["kernel"]}
