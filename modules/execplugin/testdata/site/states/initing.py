"""mod_init and module level state."""
STARTED = []


def mod_init(low):
    STARTED.append(low["name"])
    __context__["initing"] = low["__id__"]
    return True


def here(name):
    return {"name": name, "result": True, "changes": {}, "comment": "{} {} {} {}".format(STARTED, __context__.get("initing"), __opts__["id"], __grains__["id"])}
