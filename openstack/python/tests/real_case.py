"""A stack in Heat's own engine code, with a real master and real minions."""

import pathlib

from tests import heat_case  # first: it skips without Heat
from tests import test_deployment
from tests import test_sidecar

from brine_openstack.heat import deployment
from brine_openstack.heat import engine
from brine_openstack.heat import minion
from heat.engine import resources
from heat.engine import scheduler
from heat.engine.resources.openstack.heat import software_config
from heat.tests import utils


class RealCase(test_sidecar.SidecarCase, heat_case.HeatCase):
    """Has self.salt in place of self.master, and the directory self.room."""

    def setUp(self):
        heat_case.HeatCase.setUp(self)
        test_sidecar.SidecarCase.setUp(self)
        self.room = pathlib.Path(self.directory).parent
        self.salt = self.sidecar()
        self.patch(engine, "client", return_value=self.salt)
        self.rpc = test_deployment.Rpc()
        for cls in (deployment.SoftwareDeployment, software_config.SoftwareConfig):
            self.patch(cls, "rpc_client", return_value=self.rpc)
        for module in (deployment, minion):
            for name, cls in module.resource_mapping().items():
                resources.global_env().register_class(name, cls)
        scheduler.ENABLE_SLEEP = True

    def join(self, ident):
        """Start a minion that the stacks of the test may use."""
        self.minion(self.salt.announce(ident, tenant=utils.dummy_context().project_id))
