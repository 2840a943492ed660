def once():
    return {"shop_later": "first", "later_order": __opts__["id"]}


def second():
    return {"shop_later": "second", "later_context": sorted(__context__), "later_file": __opts__["file_client"]}
