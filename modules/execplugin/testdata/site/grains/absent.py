__virtualname__ = "absent"


def __virtual__():
    return False, "absent on {}".format(__opts__["id"])


def f():
    return {"absent_grain": True, "x": __grains__}
