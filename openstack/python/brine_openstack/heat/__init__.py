"""Heat resources that hand their work to a Salt master beside the engine.

Heat finds them by a file of two lines in one of its plugin_dirs:

    \"\"\"Salt resources.\"\"\"
    from brine_openstack.heat import resource_mapping
"""

import importlib

MODULES = ("minion", "deployment", "state", "job", "waitcondition", "server")


def resource_mapping():
    """Return the resource types of this package and their classes, for Heat. In heat-engine, start the master."""
    out = {}
    for name in MODULES:
        try:
            module = importlib.import_module("%s.%s" % (__name__, name))
        except ModuleNotFoundError as e:
            if e.name != "%s.%s" % (__name__, name):
                raise
            continue
        out.update(module.resource_mapping())
    # Not at the top: this package has parts that need neither Heat nor oslo.
    from brine_openstack.heat import engine
    engine.start()
    return out
