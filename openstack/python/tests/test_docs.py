"""Two pages of docs/openstack name every property and attribute that there is, and quote the templates that the tests run."""

import pathlib
import re

from tests import heat_case  # first: it skips without Heat

from brine_openstack.heat import deployment
from brine_openstack.heat import job
from brine_openstack.heat import minion
from brine_openstack.heat import server
from brine_openstack.heat import state
from brine_openstack.heat import waitcondition
from heat.common import environment_format

ROOT = pathlib.Path(__file__).resolve().parents[3]


class DocsTest(heat_case.HeatCase):

    def setUp(self):
        super().setUp()
        docs = ROOT / "docs" / "openstack"
        self.page = "".join((docs / name).read_text() for name in ("servers.md", "resources.md"))

    def test_tables(self):
        sections = dict(re.findall(r"^## (OS::Salt::\w+)\n(.*?)(?=^## |\Z)", self.page, re.M | re.S))
        for name, cls in {k: v for m in (minion, state, job, waitcondition) for k, v in m.resource_mapping().items()}.items():
            tables = re.findall(r"^\| (property|attribute) \|.*\n\|[-|]+\n((?:\|.*\n)+)", sections[name], re.M)
            found = {"property": {}, "attribute": {}}
            for kind, rows in tables:
                for row in rows.splitlines():
                    cells = [c.strip() for c in row.strip("|").split("|")]
                    found[kind].update({n: cells for n in re.findall(r"`(\w+)`", cells[0])})
            self.assertEqual(set(cls.properties_schema), set(found["property"]), name)
            self.assertEqual(set(cls.attributes_schema) - {"show"}, set(found["attribute"]), name)  # show is what Heat adds to a class in use
            for prop, schema in cls.properties_schema.items():
                cells = found["property"][prop]
                self.assertEqual(schema.required, cells[2] == "required", (name, prop))
                self.assertEqual(not schema.update_allowed, cells[3] == "replaces", (name, prop))

    def test_templates(self):
        quoted = re.findall(r"From `(openstack/interop/templates/[^`]+)`, which the tests run:\n\n```yaml\n(.*?)```", self.page, re.S)
        self.assertEqual(5, len(quoted))
        for path, text in quoted:
            self.assertEqual((ROOT / path).read_text(), text, path)

    def test_mapping(self):
        text, = re.findall(r"```yaml mapping\n(.*?)```", self.page, re.S)
        mapping = environment_format.parse(text)["resource_registry"]
        types = {k: v for m in (deployment, server) for k, v in m.resource_mapping().items()}
        self.assertEqual({"OS::Nova::Server", "OS::Heat::SoftwareDeployment"}, set(mapping))
        for name in mapping.values():
            self.assertIn(name, types)
