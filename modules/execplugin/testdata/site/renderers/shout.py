"""Upper case, with the renderer's arguments."""


def render(template, saltenv="base", sls="", argline="", **kwargs):
    text = template.read() if hasattr(template, "read") else template
    return text.replace("WHERE", __grains__["kernel"] + saltenv + sls + argline + __opts__["id"])
