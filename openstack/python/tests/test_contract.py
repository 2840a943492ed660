"""The resources against Heat's own classes, whichever version is installed: what templates and engines rely on is the same."""

import inspect
import unittest

from tests import heat_case  # noqa: F401  skips without Heat

from heat.engine import properties
from heat.engine.resources.openstack.heat import software_deployment as sd
from heat.engine.resources.openstack.heat import structured_config as sc

import brine_openstack.heat
from brine_openstack.heat import deployment
from brine_openstack.heat import minion

PAIRS = [
    (deployment.SoftwareDeployment, sd.SoftwareDeployment), (deployment.SoftwareDeploymentGroup, sd.SoftwareDeploymentGroup),
    (deployment.StructuredDeployment, sc.StructuredDeployment), (deployment.StructuredDeploymentGroup, sc.StructuredDeploymentGroup),
]

# What our classes rely on, beside what they override.
USED = {
    sd.SoftwareDeployment: ["handle_create", "check_create_complete", "handle_update", "check_update_complete", "handle_delete",
                            "check_delete_complete", "handle_suspend", "handle_resume", "handle_create_cancel", "handle_update_cancel",
                            "handle_delete_cancel", "handle_suspend_cancel", "handle_resume_cancel", "rpc_client", "data", "data_set",
                            "_add_event", "get_attribute", "handle_signal"],
}


class Contract(unittest.TestCase):
    def test_schemas_are_heats(self):
        for ours, heats in PAIRS:
            with self.subTest(ours.__name__):
                for schema in ("properties_schema", "attributes_schema", "update_policy_schema", "base_attributes_schema"):
                    mine, theirs = getattr(ours, schema), getattr(heats, schema)
                    self.assertEqual(list(mine), list(theirs), schema)
                    for name in theirs:
                        self.assertEqual(dict(mine[name]), dict(theirs[name]), "%s: %s" % (schema, name))

    def test_overridden_methods_exist_with_the_same_signature(self):
        for ours, heats in PAIRS:
            for mixin in (c for c in ours.__mro__ if c.__module__.startswith("brine_openstack")):
                for name, f in vars(mixin).items():
                    if not inspect.isfunction(f) or name in ("_master", "_place", "_mark", "_failed", "_record", "_left_record", "_signal",
                                                             "_show_output", "_cancel", "_taken_over"):
                        continue
                    theirs = getattr(heats, name, None)
                    self.assertIsNotNone(theirs, "%s has no %s" % (heats.__name__, name))
                    mine = [p.kind for p in inspect.signature(f).parameters.values()]
                    want = [p.kind for p in inspect.signature(theirs).parameters.values()]
                    self.assertEqual(mine, want, "%s.%s" % (heats.__name__, name))
                    self.assertEqual([p.default for p in inspect.signature(f).parameters.values()],
                                     [p.default for p in inspect.signature(theirs).parameters.values()], name)

    def test_our_names_are_not_heats(self):
        for name in ("_master", "_place", "_mark", "_failed", "_record", "_left_record", "_signal", "_show_output", "_cancel", "_taken_over",
                     "_derived", "_checks", "_events"):
            self.assertFalse(hasattr(sd.SoftwareDeployment, name), name)

    def test_what_is_used_exists(self):
        for cls, names in USED.items():
            for name in names:
                self.assertTrue(callable(getattr(cls, name, None)), name)

    def test_mapping(self):
        types = brine_openstack.heat.resource_mapping()
        for name in ("OS::Salt::Minion", "OS::Salt::SoftwareDeployment", "OS::Salt::SoftwareDeploymentGroup", "OS::Salt::StructuredDeployment",
                     "OS::Salt::StructuredDeploymentGroup"):
            self.assertIn(name, types)

    def test_minion_schema(self):
        self.assertEqual(sorted(minion.Minion.properties_schema), ["grains", "stock", "wait"])
        self.assertEqual(sorted(set(minion.Minion.attributes_schema) - {"show"}), ["env", "json", "user_data"])
        for schema in minion.Minion.properties_schema.values():
            self.assertIsInstance(schema, properties.Schema)


if __name__ == "__main__":
    unittest.main()
