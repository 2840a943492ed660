import os


def roles():
    path = os.path.join(__opts__["shop_root"], "roles")
    if not os.path.exists(path):
        return {"site_roles": ["none"]}
    with open(path) as file:
        return {"site_roles": file.read().split(), "site_by": __utils__["chain.upper"].__name__ and __opts__["id"]}
