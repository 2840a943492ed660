"""Settings from the pillar."""


def applied(name, key="shop:place"):
    value = __salt__["pillar.get"](key)
    old = __context__.get("pillared")
    __context__["pillared"] = value
    return {"name": name, "result": None if __opts__["test"] else True, "changes": {"old": old, "new": value} if old != value else {},
            "comment": "{} {} {}".format(__pillar__["shop"]["place"], __utils__["paths_of.owner"]()[1], __grains__["id"])}
