"""OS::Salt::Server against Heat's own engine code, a fake Nova and a fake master."""

import email
from unittest import mock

from tests import heat_case  # first: it skips without Heat
from oslo_config import cfg

from brine_openstack import userdata
from brine_openstack.heat import minions
from brine_openstack.heat import server
from heat.engine.clients.os import glance
from heat.engine.clients.os import neutron
from heat.engine.clients.os import nova

TEMPLATE = """
heat_template_version: 2018-08-31
resources:
  s:
    type: %s
    properties:
      image: img
      flavor: small
      networks: [{network: net}]
      user_data_format: %s
"""

BOOT = {"cloud_config": '#cloud-config\n{"salt_minion": {}}\n', "powershell": "#ps1_sysnative\r\n"}


def parts(text):
    """Return the kind, file name and content of each part of user data."""
    return [(p.get_content_type(), p.get_filename(), p.get_payload(decode=True).decode()) for p in email.message_from_string(text).get_payload()]


class ServerTest(heat_case.HeatCase):

    def setUp(self):
        super().setUp()
        self.nova = mock.MagicMock()
        self.nova.servers.create.return_value.id = "nova-id"
        for plugin in (nova.NovaClientPlugin, neutron.NeutronClientPlugin, glance.GlanceClientPlugin):
            self.patch(plugin, "client", return_value=self.nova)
        self.patch(nova.NovaClientPlugin, "_check_active", return_value=True)
        self.patch(nova.NovaClientPlugin, "find_flavor_by_name_or_id", return_value="small")
        self.patch(glance.GlanceClientPlugin, "find_image_by_name_or_id", return_value="img")
        self.patch(neutron.NeutronClientPlugin, "find_resourceid_by_name_or_id", return_value="net")
        self.patch(server.SaltServer, "_build_nics", return_value=[])
        self.patch(server.SaltServer, "store_external_ports")
        self.keystone = self.patch(server.SaltServer, "keystone")

    def server(self, kind="OS::Salt::Server", form="SOFTWARE_CONFIG", more="", environ=None):
        return self.stack(TEMPLATE % (kind, form) + more, environ)["s"]

    def created(self, **kwargs):
        rsrc = self.server(**kwargs)
        self.run_action(rsrc, "create")
        return rsrc, self.nova.servers.create.call_args.kwargs["userdata"]

    def test_software_config(self):
        rsrc, text = self.created(more="      user_data: |\n        #!/bin/sh\n        echo mine\n")
        self.assertEqual({rsrc.uuid: {"tenant": "test_tenant_id", "token_ttl": 86400,
                                      "grains": {"heat_stack": "s0", "heat_resource": "s"}}}, self.master.minions)
        found = parts(text)
        self.assertIn("#!/bin/sh\necho mine\n", [p[2] for p in found])
        self.assertEqual(("text/cloud-config", "salt-minion.cfg", '#cloud-config\n{"salt_minion": {"conf": {"id": "%s"}}}\n' % rsrc.uuid), found[-1])
        self.assertEqual({}, rsrc.FnGetAtt("os_collect_config"))
        self.assertEqual([], self.keystone.mock_calls)  # no user, no key pair
        self.assertNotIn("os-collect-config", text)

    def test_tls(self):
        for ssl, guest, want in (({"certfile": "/c"}, {}, True), ({"certfile": "/c"}, {"ca_certs": "/ca.pem"}, {"ca_certs": "/ca.pem"})):
            cfg.CONF.set_override("ssl", ssl, "brine")
            cfg.CONF.set_override("guest_ssl", guest, "brine")
            rsrc, _text = self.created()
            self.assertEqual({"ssl": want}, self.master.minions[rsrc.uuid]["config"])

    def test_unmodified_template(self):
        rsrc, text = self.created(kind="OS::Nova::Server", environ={"resource_registry": {"OS::Nova::Server": "OS::Salt::Server"}})
        self.assertIn(rsrc.uuid, self.master.minions)
        # Other formats and transports of such templates are Heat's.
        rsrc, text = self.created(kind="OS::Nova::Server", form="HEAT_CFNTOOLS", environ={"resource_registry": {"OS::Nova::Server": "OS::Salt::Server"}})
        self.assertNotIn(rsrc.uuid, self.master.minions)
        self.assertIsNone(minions.own_id(rsrc))

    def test_deployments_find_the_minion(self):
        rsrc, _ = self.created()
        self.assertEqual("nova-id", rsrc.FnGetRefId())
        other = self.stack(TEMPLATE % ("OS::Salt::Server", "RAW"))["s"]  # a resource of another stack, as a nested one
        self.assertEqual((rsrc.uuid, "unknown"), (minions.minion_id(other, "nova-id"), minions.minion_id(other, "unknown")))
        self.assertEqual(rsrc.uuid, minions.minion_id(rsrc, "nova-id"))

    def test_delete_revokes(self):
        rsrc, _ = self.created()
        self.patch(nova.NovaClientPlugin, "check_delete_server_complete", return_value=True)
        self.run_action(rsrc, "delete")
        self.assertEqual({}, self.master.minions)
        self.nova.servers.delete.assert_called_once_with("nova-id")

    def test_raw(self):
        _, text = self.created(form="RAW")
        self.assertTrue(text.startswith("#cloud-config\n"))
        kinds = {"#!/bin/sh\n": "text/x-shellscript", "#cloud-config\n{}": "text/cloud-config", "#include\nhttp://x": "text/x-include-url"}
        for own, kind in kinds.items():
            self.assertEqual([(kind, "user-data", own), ("text/cloud-config", "salt-minion.cfg", BOOT["cloud_config"])], parts(userdata.with_bootstrap(own, BOOT)))
        mine = userdata.with_bootstrap("#!/bin/sh\n", BOOT)
        self.assertEqual(3, len(parts(userdata.with_bootstrap(mine, BOOT))))
        self.assertEqual(["#ps1\nx", BOOT["powershell"].replace("\r", "")], [p[2] for p in parts(userdata.with_bootstrap("#ps1\r\nx", BOOT))])
        self.assertEqual("grüß", parts(userdata.with_bootstrap("#!/bin/sh\n# grüß", BOOT))[0][2][-4:])
        with self.assertRaisesRegex(Exception, "user_data begins with 'FORMAT"):
            userdata.with_bootstrap("FORMAT C:", BOOT)

    def test_too_large(self):
        rsrc = self.server(form="RAW", more="      user_data: '#!%s'\n" % ("x" * 50000))
        self.assertIn("in Base64, Nova takes 65535", self.failure(rsrc))

    def test_replacement(self):
        rsrc, _ = self.created()
        before = rsrc.properties
        for change, policy, want in (("image", {"image_update_policy": "REBUILD"}, True), ("user_data", {"user_data_update_policy": "REBUILD"}, True),
                                     ("user_data", {"user_data_update_policy": "IGNORE"}, False),
                                     ("software_config_transport", {"software_config_transport": "POLL_SERVER_CFN"}, True), ("name", {}, False)):
            after = dict(before, **policy)
            self.assertEqual(want, bool(rsrc.needs_replace_with_prop_diff({change}, after, dict(before, **policy) if change != "software_config_transport" else before)), change)

    def test_bad_input(self):
        for form, more, text in (
                ("HEAT_CFNTOOLS", "", "user_data_format must be SOFTWARE_CONFIG or RAW for the transport SALT"),
                ("RAW", "      user_data: '{\"ignition\": {\"version\": \"2.2.0\"}}'\n", "user_data is of Ignition"),
                ("RAW", "      software_config_transport: PIGEON\n", "PIGEON")):
            rsrc = self.server(form=form, more=more)
            with mock.patch.object(server.nova_server.Server, "_validate_image_flavor"), self.assertRaises(Exception) as caught:
                rsrc.validate()
            self.assertIn(text, str(caught.exception))
