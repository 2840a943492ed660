"""What the run tells a state."""

__virtualname__ = "lows"


def __virtual__():
    return __virtualname__


def tell(name, **kwargs):
    comment = "{} {} {} {}".format(__low__["__id__"], __low__["fun"], __env__, __low__.get("extra"))
    return {"name": name, "result": True, "changes": {}, "comment": comment + " " + __opts__["id"] + " " + __grains__["kernel"]}


def before(name):
    done = sorted(k for k in __running__ if "stocked" in k)
    later = len([c for c in __lowstate__ if c["state"] == "lows"])
    return {"name": name, "result": True, "changes": {}, "comment": "{} {} {}".format(done, later, bool(__instance_id__))}
