"""Made of other grains."""


def from_core(grains):
    return {"derived": {"z": grains["kernel"].lower(), "a": grains["id"] if "id" in grains else __opts__["id"], "u": __utils__["compare.newer"]("2.0", "1.10")}}
