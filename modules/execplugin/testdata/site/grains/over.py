"""Overrides what is built in."""


def over():
    return {"kernelparams": "ours " + __opts__["id"], "over_utils": "seen.count" in __utils__, "over_grains": type(__grains__).__name__ != ""}
