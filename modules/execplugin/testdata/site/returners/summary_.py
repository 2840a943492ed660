"""Only whether it went well."""
import json
import os

import salt.utils.files

__virtualname__ = "summary"


def __virtual__():
    return __virtualname__


def _write(name, value):
    with salt.utils.files.fopen(os.path.join(__pillar__["shop"]["root"], name), "a") as file:
        json.dump(value, file, sort_keys=True)
        file.write("\n")


def returner(ret):
    _write("summary", {"fun": ret["fun"], "ok": ret.get("success"), "retcode": ret.get("retcode"), "by": __opts__["id"], "echo": __salt__["test.echo"]("e")})
