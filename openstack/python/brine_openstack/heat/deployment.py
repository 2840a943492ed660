"""OS::Salt::SoftwareDeployment and its relatives: Heat's own resources, whose configs a Salt master brings to the servers."""

import json

from heat.common import exception
from heat.engine import rsrc_defn
from heat.engine.resources.openstack.heat import software_deployment as sd
from heat.engine.resources.openstack.heat import structured_config as sc
from heat.objects import resource as resource_objects
from heat.rpc import api as rpc_api
from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import timeutils

from brine_openstack import master
from brine_openstack.heat import engine
from brine_openstack.heat import groups
from brine_openstack.heat import minions
from brine_openstack.heat import orders
from brine_openstack.heat import progress
from brine_openstack.heat import results

LOG = logging.getLogger(__name__)

# A deployment may also be signalled or cancelled from outside: its row is looked at every so many checks, which Heat makes each second.
ROW_EVERY = 15
# A replacement of a replacement of …: so far back the record of an order is looked for.
MAX_REPLACED = 16

_followers = {}


def follower(client):
    """Return the follower of a master's progress events."""
    return _followers.setdefault(id(client), progress.Follower(client))


class SaltDeployment:
    """Carries the derived config of a deployment as an order of the master. It goes before Heat's class in the bases."""

    _derived = None
    _checks = 0
    _events = 0

    # No credentials are made: neither a Keystone user, nor a signed URL, nor a queue. NO_SIGNAL keeps its meaning.
    def _signal_transport_cfn(self):
        return False

    def _signal_transport_heat(self):
        return False

    def _signal_transport_temp_url(self):
        return False

    def _signal_transport_zaqar(self):
        return False

    def _master(self):
        return engine.client()

    # Placing the order.

    def _create_derived_config(self, action, source_config):
        self._derived = super()._create_derived_config(action, source_config)
        return self._derived

    def _handle_action(self, action, config=None, prev_derived_config=None):
        self._derived = None
        deployment = super()._handle_action(action, config, prev_derived_config)
        if self._derived is not None:
            self._place(action, self._derived)
        return deployment

    def _place(self, action, config_id):
        config = self.rpc_client().show_software_config(self.context, config_id)
        client, stack = self._master(), self.stack
        inputs = groups.inputs(config)
        if config.get("group") == "component":
            config = groups.component(config, action)
        minion = minions.minion_id(self, self.properties[self.SERVER])
        work = orders.digest(minion, config, inputs, action)
        try:
            record, state = orders.choose(client, stack.id, self.name, work, minion, self._left_record(action), self._failed(config))
            self.data_set(orders.KEY, json.dumps(record))
            if state is not None:
                LOG.info("%s takes over the order %s of an earlier try", self.name, record["id"])
                return
            left = engine.time_left(stack)
            order = groups.order(config, record["id"], self._mark(record), left)
            client.place(record["id"], minion, order.pop("fun"), ttl=left, deadline=timeutils.utcnow_ts() + left, tenant=engine.tenant(stack),
                         secret=True, metadata={"heat_stack": stack.id, "heat_resource": self.name}, **order)
        except (groups.GroupError, master.Error) as e:
            raise exception.Error("Deployment to server failed: %s" % e) from e

    @staticmethod
    def _mark(record):
        return "heat-outputs-" + record["id"].rpartition("-")[2]

    def _failed(self, config):
        outputs = config.get("outputs") or []

        def failed(result, record):
            answer, _ = results.details(result, config.get("group"), outputs, self._mark(record))
            return results.failed(answer, outputs)
        return failed

    def _record(self):
        text = self.data().get(orders.KEY)
        return json.loads(text) if text else None

    def _left_record(self, action):
        """Return the record that an interrupted or failed try of this action left, None if the action is asked for deliberately.

        A DELETE, SUSPEND or RESUME is tried again by the same resource, a CREATE or UPDATE by a replacement: Heat replaces a resource
        that is not COMPLETE.
        """
        if action not in orders.CLASSES:
            record = self._record()
            return record if record and not record.get("done") else None
        if action != self.CREATE:
            return None
        before = self.replaces
        for _ in range(MAX_REPLACED):
            if before is None:
                return None
            try:
                res = resource_objects.Resource.get_obj(self.context, before)
            except exception.NotFound:
                return None
            if res.status == self.COMPLETE and res.action != self.INIT:
                return None
            for data in res.data or ():
                if data.key == orders.KEY:
                    return json.loads(data.value)
            before = res.replaces
        return None

    # Waiting for it.

    def _check_complete(self):
        record = self._record()
        if record is None:
            return super()._check_complete()
        self._checks += 1
        try:
            state = orders.find(self._master(), record["id"])
        except master.Unavailable as e:
            LOG.warning("%s: %s", self.name, e)
            return False
        except master.Error as e:
            raise exception.Error("Deployment to server failed: %s" % e) from e
        if state is None:
            result = {"status": master.LOST, "reason": "the master does not know the order %s any more" % record["id"]}
        else:
            result = state["minions"].get(record["minion"]) or next(iter(state["minions"].values()))
            self._show_output(state)
        if result["status"] in master.UNFINISHED:
            if self._checks % ROW_EVERY:
                return False
        else:
            self._signal(result, record)
        if not super()._check_complete():
            return False
        if self.action not in orders.CLASSES:
            self.data_set(orders.KEY, json.dumps(dict(record, done=True)))
        return True

    def _signal(self, result, record):
        rpc = self.rpc_client()
        row = rpc.show_software_deployment(self.context, self.resource_id)
        if row[rpc_api.SOFTWARE_DEPLOYMENT_STATUS] != self.IN_PROGRESS:
            return
        config = rpc.show_software_config(self.context, row[rpc_api.SOFTWARE_DEPLOYMENT_CONFIG_ID])
        if config.get("group") == "component":
            config = groups.component(config, row[rpc_api.SOFTWARE_DEPLOYMENT_ACTION])
        outputs = config.get("outputs") or []
        answer, words = results.details(result, config.get("group"), outputs, self._mark(record))
        rpc.signal_software_deployment(self.context, self.resource_id, answer, timeutils.utcnow().isoformat())
        if results.failed(answer, outputs):
            rpc.update_software_deployment(self.context, self.resource_id, status_reason=words)

    def _show_output(self, state):
        """Show what the configuration prints while it runs as events of the resource, a bounded number of them."""
        limit = cfg.CONF.brine.event_limit
        if not limit or self._events > limit:
            return
        live, jid = follower(self._master()), state["jid"]
        if state["done"]:
            live.forget(jid)
            return
        live.watch(jid)
        lines = [line for text in live.take(jid) for line in text.splitlines() if line.strip() and not line.startswith("heat-outputs-")]
        # A column of Heat's database holds 255 characters of an event.
        while lines:
            text, lines = _event(lines)
            self._events += 1
            if self._events > limit:
                text = "more output is not shown until the deployment has ended"
                lines = []
            self._add_event(self.action, self.status, text)

    # The rest of its life.

    def _handle_cancel(self):
        self._cancel()
        super()._handle_cancel()

    def _cancel(self):
        record = self._record()
        if record is None or record.get("done") or self._taken_over(record):
            return
        try:
            self._master().cancel(record["id"])
        except master.NotFound:
            pass
        except master.Error as e:
            # Heat goes on without it; the order ends with its time to live.
            LOG.warning("The order %s cannot be cancelled: %s", record["id"], e)

    def _taken_over(self, record):
        """Report whether the resource that replaces this one has the same order."""
        after = getattr(self, "replaced_by", None)
        if after is None:
            return False
        try:
            res = resource_objects.Resource.get_obj(self.context, after)
        except exception.NotFound:
            return False
        return any(d.key == orders.KEY and json.loads(d.value)["id"] == record["id"] for d in res.data or ())

    def _delete_resource(self):
        self._cancel()
        super()._delete_resource()

    def _server_exists(self, deployment):
        """Report whether a minion may still take the config of a DELETE: it is announced, or the order got somewhere."""
        minion = minions.minion_id(self, deployment["server_id"])
        try:
            self._master().minion(minion)
            return True
        except master.NotFound:
            pass
        except master.Error as e:
            LOG.warning("%s: %s", self.name, e)
            return True
        # A minion whose key was accepted by hand is not announced.
        record = self._record()
        state = orders.find(self._master(), record["id"]) if record else None
        result = next(iter(state["minions"].values())) if state else {}
        return result.get("status") not in (None, master.UNDELIVERABLE, master.CANCELLED, master.REFUSED)


def _event(lines):
    """Return the text of the next event, as many whole lines as it holds, and the lines that are left."""
    text = lines[0][:250]
    n = 1
    while n < len(lines) and len(text) + 1 + len(lines[n]) <= 250:
        text += "\n" + lines[n]
        n += 1
    return text, lines[n:]


class SoftwareDeployment(SaltDeployment, sd.SoftwareDeployment):
    """OS::Heat::SoftwareDeployment whose config a Salt master brings to the server.

    Properties, attributes, outputs and actions are Heat's. The property server is the id of an OS::Salt::Minion, of a server whose
    guest is a minion, or of any minion.
    """


class StructuredDeployment(SaltDeployment, sc.StructuredDeployment):
    """OS::Heat::StructuredDeployment whose config a Salt master brings to the server."""


class _Group:
    MEMBER = None

    def build_resource_definition(self, res_name, res_defn):
        definition = super().build_resource_definition(res_name, res_defn)
        return rsrc_defn.ResourceDefinition(res_name, self.MEMBER, definition._properties, None)


class SoftwareDeploymentGroup(_Group, sd.SoftwareDeploymentGroup):
    """OS::Heat::SoftwareDeploymentGroup of OS::Salt::SoftwareDeployment."""

    MEMBER = "OS::Salt::SoftwareDeployment"


class StructuredDeploymentGroup(_Group, sc.StructuredDeploymentGroup):
    """OS::Heat::StructuredDeploymentGroup of OS::Salt::StructuredDeployment."""

    MEMBER = "OS::Salt::StructuredDeployment"


def resource_mapping():
    """Return the resource types of this module and their classes."""
    return {
        "OS::Salt::SoftwareDeployment": SoftwareDeployment,
        "OS::Salt::SoftwareDeploymentGroup": SoftwareDeploymentGroup,
        "OS::Salt::StructuredDeployment": StructuredDeployment,
        "OS::Salt::StructuredDeploymentGroup": StructuredDeploymentGroup,
    }
