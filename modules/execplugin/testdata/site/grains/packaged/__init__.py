DATA = {"k": [1, 2]}


def packaged():
    return {"packaged": DATA, "packaged_id": __opts__["id"], "packaged_ctx": __context__.get("none"), "packaged_utils": "no.such" in __utils__}
