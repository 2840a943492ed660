"""OS::Salt::Server: Nova's server as a minion of the embedded master.

It is Heat's OS::Nova::Server with one more software_config_transport, SALT, which is the default. The machine's user data brings what it
needs to join; deployments to it are orders of the master. Heat makes no user, no key pair, no queue and no object for such a server.
"""

from heat.common import exception
from heat.common.i18n import _
from heat.engine import constraints
from heat.engine import properties
from heat.engine.clients.os import nova as nova_plugin
from heat.engine.resources.openstack.nova import server as nova_server

from brine_openstack import userdata as _userdata
from brine_openstack.heat import engine
from brine_openstack.heat import minions


class SaltServer(nova_server.Server):
    """A server of Nova that runs a minion: Salt's own, or brine's."""

    SALT = "SALT"

    properties_schema = dict(nova_server.Server.properties_schema)
    properties_schema[nova_server.Server.SOFTWARE_CONFIG_TRANSPORT] = properties.Schema(
        properties.Schema.STRING,
        _("How the server should receive its software configuration. SALT makes it a minion of the embedded master; "
          "the others are those of OS::Nova::Server."),
        default=SALT, update_allowed=True,
        constraints=[constraints.AllowedValues((SALT,) + tuple(nova_server.Server._SOFTWARE_CONFIG_TRANSPORTS))])

    def speaks_salt(self, props=None):
        """Report whether this server is a minion: with the transport SALT and a format of user data that it can be told in."""
        props = self.properties if props is None else props
        return props[self.SOFTWARE_CONFIG_TRANSPORT] == self.SALT and props[self.USER_DATA_FORMAT] in (self.SOFTWARE_CONFIG, self.RAW)

    def client_plugin(self, name=None):
        plugin = super().client_plugin(name)
        if isinstance(plugin, nova_plugin.NovaClientPlugin) and self.speaks_salt():
            return _Nova(plugin, self)
        return plugin

    def bootstrap(self):
        """Announce the server's minion and return what its machine must be told."""
        self.data_set(minions.DATA_KEY, self.uuid)
        return engine.announce(self.stack, self.name, self.uuid)

    def validate(self):
        super().validate()
        asked = self.t.resource_type == "OS::Salt::Server" or self.properties.data.get(self.SOFTWARE_CONFIG_TRANSPORT) == self.SALT
        if asked and self.properties[self.SOFTWARE_CONFIG_TRANSPORT] == self.SALT and not self.speaks_salt():
            raise exception.StackValidationFailed(message=_(
                "Property error: %s: user_data_format must be SOFTWARE_CONFIG or RAW for the transport SALT") % self.name)
        user_data = self.properties[self.USER_DATA]
        if self.speaks_salt() and nova_plugin.NovaClientPlugin.is_ignition_format(user_data):
            raise exception.StackValidationFailed(message=_(
                "Property error: %s: user_data is of Ignition, which has no place for the transport SALT: "
                "choose another software_config_transport") % self.name)

    # What Heat would do for its own transports.

    def _create_transport_credentials(self, props):
        if not self.speaks_salt(props):
            super()._create_transport_credentials(props)

    def _populate_deployments_metadata(self, meta, props):
        if not self.speaks_salt(props):
            super()._populate_deployments_metadata(meta, props)

    def _resolve_attribute(self, name):
        if name == self.OS_COLLECT_CONFIG and self.speaks_salt():
            return {}
        return super()._resolve_attribute(name)

    # A machine that is built again has lost its key, and its user data holds a token that is used up: it needs a new server.

    def needs_replace_with_prop_diff(self, changed, after_props, before_props):
        if self.SALT in (before_props.get(self.SOFTWARE_CONFIG_TRANSPORT), after_props.get(self.SOFTWARE_CONFIG_TRANSPORT)):
            if self.SOFTWARE_CONFIG_TRANSPORT in changed:
                return True
            policies = {self.IMAGE: self.IMAGE_UPDATE_POLICY, self.USER_DATA: self.USER_DATA_UPDATE_POLICY}
            for key, policy in policies.items():
                if key in changed and (after_props.get(policy) or "").startswith("REBUILD") and minions.own_id(self):
                    return True
        return super().needs_replace_with_prop_diff(changed, after_props, before_props)

    def _delete(self):
        minion = minions.own_id(self)
        if minion:
            engine.client().revoke(minion)
        return super()._delete()


class _Nova:
    """Heat's plugin of Nova, whose user data has the bootstrap in it."""

    def __init__(self, plugin, server):
        self._plugin, self._server = plugin, server

    def __getattr__(self, name):
        return getattr(self._plugin, name)

    def build_userdata(self, metadata, userdata=None, instance_user=None, user_data_format="HEAT_CFNTOOLS"):
        boot = self._server.bootstrap()
        try:
            if user_data_format == "RAW":
                out = _userdata.with_bootstrap(userdata, boot)
            else:
                whole = self._plugin.build_userdata(metadata, userdata, instance_user=instance_user, user_data_format=user_data_format)
                out = _userdata.append(whole, boot["cloud_config"])
            _userdata.check_size(out)
        except _userdata.UserDataError as e:
            raise exception.Error(_("%s: choose another software_config_transport than SALT, or other user_data") % e) from e
        return out


def resource_mapping():
    """Return the resource types of this module, for Heat."""
    return {"OS::Salt::Server": SaltServer}
