"""Keep the shop in order."""

__virtualname__ = "shop"


def __virtual__():
    return __virtualname__ if "shop.list" in __salt__ else (False, "no shop module")


def stocked(name, count=1, shelf=1):
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    have = __salt__["store_.get"](name, 0)
    if have == count:
        ret["comment"] = "{} of {} are there".format(count, name)
        return ret
    if __opts__["test"]:
        ret["result"] = None
        ret["comment"] = "would stock {}".format(__utils__["shoplib.label"](shelf, name))
        return ret
    __salt__["store_.put"](name, count)
    ret["changes"] = {"old": have, "new": count}
    ret["comment"] = "stocked {} in {}".format(name, __env__)
    return ret


def mod_watch(name, sfun=None, **kwargs):
    return {"name": name, "result": True, "changes": {"watched": sfun}, "comment": "watched by {}".format(__opts__["id"])}
