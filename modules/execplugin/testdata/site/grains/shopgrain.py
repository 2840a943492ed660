"""What kind of shop this is."""


def kind():
    return {"shop_kind": "grocery" if __opts__["id"] == "web1" else "none"}


def _private():
    return {"never": True}


def size():
    return {"shop_size": __utils__["units.to_bytes"]("2k"), "shop_context": __context__ is not None}
