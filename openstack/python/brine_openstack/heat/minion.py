"""OS::Salt::Minion: a minion that the master expects, and what its machine must be told."""

from heat.common import exception
from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import properties
from heat.engine import resource

from brine_openstack import master
from brine_openstack.heat import engine


class Minion(resource.Resource):
    """A minion that the embedded master expects.

    The attribute user_data makes a machine that minion: give it to a server, or to cloud-init by any other way. The resource's id is
    the minion's id, which deployments take as their server. Deleting the resource revokes the minion.
    """

    PROPERTIES = (GRAINS, WAIT, STOCK) = ("grains", "wait", "stock")

    ATTRIBUTES = (USER_DATA, ENV, JSON) = ("user_data", "env", "json")

    properties_schema = {
        GRAINS: properties.Schema(
            properties.Schema.MAP,
            _("Grains that the minion is given, beside heat_stack and heat_resource."),
            default={}),
        WAIT: properties.Schema(
            properties.Schema.BOOLEAN,
            _("Whether the resource is complete only when the minion is connected."),
            default=False),
        STOCK: properties.Schema(
            properties.Schema.BOOLEAN,
            _("Whether a key pair is part of user_data, which a stock Salt minion needs. Other minions join with a token that is of "
              "use once."),
            default=False),
    }

    attributes_schema = {
        USER_DATA: attributes.Schema(
            _("Cloud-config for cloud-init, with a secret that is of use once."),
            type=attributes.Schema.STRING, cache_mode=attributes.Schema.CACHE_NONE),
        ENV: attributes.Schema(
            _("The same as lines of an environment file."),
            type=attributes.Schema.STRING, cache_mode=attributes.Schema.CACHE_NONE),
        JSON: attributes.Schema(
            _("The same as JSON."),
            type=attributes.Schema.STRING, cache_mode=attributes.Schema.CACHE_NONE),
    }

    _FORMS = {USER_DATA: "cloud_config", ENV: "env", JSON: "json"}

    def _master(self):
        return engine.client()

    def handle_create(self):
        self.resource_id_set(self.uuid)
        try:
            forms = engine.announce(self.stack, self.name, self.uuid, grains=self.properties[self.GRAINS],
                                    key_pair=self.properties[self.STOCK])
        except master.Error as e:
            raise exception.Error(_("The minion cannot be announced: %s") % e) from e
        for form in self._FORMS.values():
            self.data_set(form, forms[form], redact=True)

    def check_create_complete(self, token=None):
        if not self.properties[self.WAIT]:
            return True
        try:
            return bool(self._master().minion(self.resource_id)["present"])
        except master.Unavailable:
            return False
        except master.Error as e:
            raise exception.Error(_("The minion did not come: %s") % e) from e

    def handle_delete(self):
        if self.resource_id is None:
            return
        try:
            self._master().revoke(self.resource_id)
        except master.Error as e:
            raise exception.Error(_("The minion cannot be revoked: %s") % e) from e

    def handle_check(self):
        try:
            self._master().minion(self.resource_id)
        except master.Error as e:
            raise exception.Error(_("The minion cannot be checked: %s") % e) from e

    def _resolve_attribute(self, name):
        return self.data().get(self._FORMS[name])


def resource_mapping():
    """Return the resource types of this module and their classes."""
    return {"OS::Salt::Minion": Minion}
