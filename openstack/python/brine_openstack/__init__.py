"""OpenStack services as Salt masters: a sidecar master, its client, and plugins for Heat and Trove.

    from brine_openstack import Sidecar

    salt = Sidecar(db="mysql+pymysql://heat:secret@db.example/heat")
    print(salt.call("db-7", "test.ping"))
"""

from brine_openstack.master import Conflict, Error, JobError, Master, NotFound, Refused, Timeout, Unavailable
from brine_openstack.sidecar import Sidecar, SidecarError

__all__ = ["Conflict", "Error", "JobError", "Master", "NotFound", "Refused", "Sidecar", "SidecarError", "Timeout", "Unavailable"]
