def tree():
    __context__["nested"] = 1
    return {"nested_tree": {"b": {"y": 1, "x": [__opts__["id"], None]}, "a": True}, "nested_kernel": __utils__["chain.upper"]("k") if __grains__ else "early"}
