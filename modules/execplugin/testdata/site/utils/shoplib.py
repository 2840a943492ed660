"""Names of the shop's things."""
import salt.utils.data

__virtualname__ = "shoplib"


def __virtual__():
    return __virtualname__


def label(shelf, item):
    return "{}-{}@{}".format(shelf, item, __opts__["id"])


def place(default="nowhere"):
    return salt.utils.data.traverse_dict_and_list(__pillar__, "shop:place", default)


def kernel():
    return __grains__["kernel"]
