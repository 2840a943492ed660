"""The stock of the shop."""
import logging

from salt.exceptions import CommandExecutionError

log = logging.getLogger(__name__)
__virtualname__ = "shop"
__func_alias__ = {"list_": "list"}
__outputter__ = {"list": "txt"}


def __virtual__():
    return __virtualname__ if __grains__["kernel"] == "Linux" else (False, "only on Linux")


def list_(shelf=1, count=2):
    """List a shelf."""
    if shelf > 9:
        raise CommandExecutionError("there is no shelf {}".format(shelf))
    return [__utils__["shoplib.label"](shelf, n) for n in range(count)]


def where():
    return {"place": __utils__["shoplib.place"](), "pillar": __pillar__["shop"]["place"], "id": __opts__["id"], "kernel": __utils__["shoplib.kernel"]()}
