"""Which minion a server of a template is."""

from heat.objects import resource as resource_objects

from brine_openstack import master
from brine_openstack.heat import engine

# The key of a server's resource data that holds its minion's id.
DATA_KEY = "salt_minion"


def own_id(resource):
    """Return the id of the minion that a server's resource is, or None if it is not one."""
    return resource.data().get(DATA_KEY)


def minion_id(resource, server):
    """Return the id of the minion that runs on a server, for a resource of any stack.

    OS::Salt::Minion and OS::Heat::DeployedServer are named by their own ids. A Nova server is named by Nova's id, which is not known
    when its user data is made: its minion has the id of Heat's resource, which is found here.

    Heat's table has no index by Nova's id. So it is searched only if the server is in no stack that belongs to the resource's, and the
    master knows no minion of this name. Stack.resource_by_refid would make objects of all resources of the stack.
    """
    stack = resource.stack
    rows = resource_objects.Resource.get_all_by_root_stack(resource.context, stack.root_stack_id(), {"physical_resource_id": server})
    if rows:
        return _of_rows(rows.values()) or server
    if _announced(server):
        return server
    return _of_rows(resource_objects.Resource.get_all_by_physical_resource_id(resource.context, server)) or server


def _of_rows(rows):
    return next((item.value for row in rows for item in row.data or () if item.key == DATA_KEY), None)


def _announced(name):
    try:
        engine.client().minion(name)
    except master.Error:
        return False
    return True
