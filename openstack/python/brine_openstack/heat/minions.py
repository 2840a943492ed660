"""Which minion a server of a template is."""

from heat.objects import resource as resource_objects

# The key of a server's resource data that holds its minion's id.
DATA_KEY = "salt_minion"


def own_id(resource):
    """Return the id of the minion that a server's resource is, or None if it is not one."""
    return resource.data().get(DATA_KEY)


def minion_id(resource, server):
    """Return the id of the minion that runs on a server, for a resource of the same stack or of one nested in it.

    OS::Salt::Minion and OS::Heat::DeployedServer are named by their own ids. A Nova server is named by Nova's id, which is not known
    when its user data is made: its minion has the id of Heat's resource, which is found here.
    """
    local = resource.stack.resource_by_refid(server)
    if local is not None:
        return own_id(local) or server
    for row in resource_objects.Resource.get_all_by_physical_resource_id(resource.context, server):
        for item in row.data or ():
            if item.key == DATA_KEY:
                return item.value
    return server

