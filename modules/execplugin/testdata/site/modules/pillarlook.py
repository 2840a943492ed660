"""Look things up in pillar and options."""
import salt.utils.data


def get(key, default=""):
    return salt.utils.data.traverse_dict_and_list(__pillar__, key, default)


def both(key):
    return {"pillar": __salt__["pillar.get"](key), "own": get(key), "option": __salt__["config.get"]("id"), "opts": __opts__["id"]}


def order():
    return list(__pillar__["shop"]["ordered"])


def seen():
    return [__utils__["seen.count"]("a")[0], __utils__["seen.count"]("a")[0], __context__["seen"]]
