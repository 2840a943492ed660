"""Python's values as JSON for package tagged."""
import base64


def tag(v):
    if isinstance(v, bool) or v is None or isinstance(v, str):
        return v
    if isinstance(v, int):
        return {"t": "i", "v": str(v)}
    if isinstance(v, float):
        return {"t": "f", "v": repr(v)}
    if isinstance(v, bytes):
        return {"t": "b", "v": base64.b64encode(v).decode()}
    if isinstance(v, dict):
        return {"t": "d", "v": [[tag(k), tag(x)] for k, x in v.items()]}
    return {"t": "l", "v": [tag(x) for x in v]}
