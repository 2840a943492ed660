"""brine_openstack.trove_client in Trove's own code, with a master that is a few dictionaries."""

import email
import json
import time
from unittest import mock

from trove_tests import trove_case  # first: it skips without Trove
from novaclient.v2 import servers
from trove.common import clients
from trove.common import exception
from trove.common import notification
from trove.guestagent import api

from brine_openstack import master as brine
from brine_openstack import trove_client


class Guest(trove_case.TroveCase):
    """Calls and casts through Trove's class."""

    def setUp(self):
        super().setUp()
        self.id = self.instance()
        self.master.announce(self.id)
        trove_case.CONF.set_override("remote_guest_client", "brine_openstack.trove_client.guest_client")
        self.addCleanup(trove_case.CONF.clear_override, "remote_guest_client")
        self.guest = clients.create_guest_client(self.context, self.id)

    def test_call(self):
        self.master.answer = lambda o: trove_case.returned([[{"_name": "a"}], "a"])
        before = time.time()
        self.assertEqual(self.guest.list_databases(limit=1), [[{"_name": "a"}], "a"])
        order, = self.master.placed
        self.assertEqual((order["tgt"], order["fun"], order["kwarg"]),
                         (self.id, "trove.list_databases", {"limit": 1, "marker": None, "include_marker": False}))
        self.assertEqual((order["ttl"], order["parallel"], order["secret"]), (15, True, True))
        self.assertAlmostEqual(order["deadline"], before + 15, delta=5)
        self.assertEqual(order["metadata"], {"trove_method": "list_databases"})

    def test_cast(self):
        self.master.answer = lambda o: {"status": "queued"}
        self.assertIsNone(self.guest.create_user([{"_name": "u", "_password": "p"}]))
        order, = self.master.placed
        self.assertEqual((order["fun"], order["kwarg"]), ("trove.create_user", {"users": [{"_name": "u", "_password": "p"}]}))
        self.assertEqual((order["ttl"], order["parallel"], order["secret"], order.get("deadline")), (1800, False, True, None))

    def test_what_takes_long_stops_nothing_else(self):
        self.guest.create_backup({"id": "b"})
        self.guest.upgrade({})
        self.guest.delete_user({"_name": "u"})
        self.assertEqual([(o["fun"], o["parallel"]) for o in self.master.placed],
                         [("trove.create_backup", True), ("trove.upgrade", True), ("trove.delete_user", False)])

    def test_prepare_waits_for_its_guest(self):
        args = dict(memory_mb=512, packages="mariadb", databases=[], users=[], ds_version="10.11")
        self.guest.prepare(**args)
        self.guest.prepare(**args, backup_info={"id": "b"})
        self.assertEqual([o["ttl"] for o in self.master.placed], [1800, 3600])
        self.assertEqual(self.master.placed[0]["kwarg"]["packages"], ["mariadb"])
        self.assertEqual(self.master.placed[0]["kwarg"]["ds_version"], "10.11")

    def test_old_guest(self):
        self.master.announced[self.id] = {"grains": {"trove_api": "1.0"}}
        self.guest.prepare(512, "p", [], [], ds_version="1")
        self.assertNotIn("ds_version", self.master.placed[0]["kwarg"])
        self.master.announced[self.id] = {"grains": {"trove_api": "1.10"}}
        self.assertTrue(self.guest.client.can_send_version("1.2"))

    def test_errors_in_the_guests_words(self):
        self.master.answer = lambda o: trove_case.returned("no such user", 1)
        with self.assertRaisesRegex(exception.GuestError, "no such user"):
            self.guest.get_user("u", "%")
        self.master.answer = lambda o: {"status": "lost"}
        with self.assertRaisesRegex(exception.GuestError, "lost: the minion took the job"):
            self.guest.get_user("u", "%")

    def test_what_timed_out_is_cancelled(self):
        self.guest.agent_low_timeout = 0.2
        for status in ("queued", "underway"):
            self.master.answer = lambda o, status=status: {"status": status}
            with self.assertRaises(exception.GuestTimeout):
                self.guest.rpc_ping()
        self.assertEqual(self.master.cancelled, [o["id"] for o in self.master.placed])
        for status in ("undeliverable", "timed out"):
            self.master.answer = lambda o, status=status: {"status": status}
            with self.assertRaises(exception.GuestTimeout):
                self.guest.rpc_ping()
        self.assertEqual(len(self.master.cancelled), 2)

    def test_an_answer_in_the_last_moment_counts(self):
        self.guest.agent_low_timeout = 0.2
        self.master.answer = lambda o: {"status": "underway"}
        self.master.cancel = lambda order, retry=None: {"minions": {self.id: trove_case.returned(True)}}
        self.assertIs(self.guest.rpc_ping(), True)

    def test_no_master(self):
        self.master.answer = lambda o: {"status": "queued"}
        order = self.master.order

        def away(*args, **kwargs):
            self.master.order = order
            raise brine.Unavailable("gone")
        self.master.down = "cannot reach the master"
        for call in (self.guest.rpc_ping, lambda: self.guest.create_user([])):
            with self.assertRaisesRegex(exception.GuestError, "cannot reach the master"):
                call()
        self.master.down = None
        place = self.master.place
        self.master.place = lambda *a, **k: (place(*a, **k), setattr(self.master, "order", away))
        with self.assertRaises(exception.GuestTimeout):
            self.guest.rpc_ping()

    def test_notification(self):
        self.context.notification = notification.DBaaSInstanceRestart(self.context, request_id="r1", server_type="api", instance_id=self.id)
        self.guest.create_user([])
        metadata = self.master.placed[0]["metadata"]
        told = json.loads(metadata["trove_notification"])
        self.assertEqual(metadata["trove_cast"], self.id)
        self.assertEqual(told["notification"]["notification_classname"], "trove.common.notification.DBaaSInstanceRestart")
        self.assertEqual(told["context"]["project_id"], "p1")
        # The end is told once: by the conductor, when the order has ended.
        self.assertFalse(self.context.notification.needs_end_notification)
        self.guest.create_user([])
        self.assertNotIn("trove_notification", self.master.placed[1]["metadata"])

    def test_password_in_no_log(self):
        with self.assertLogs(level="DEBUG") as logs:
            self.guest.create_user([{"_name": "u", "_password": "k4n4rie"}])
            self.master.answer = lambda o: {"status": "timed out"}
            with self.assertRaises(exception.GuestTimeout):
                self.guest.enable_root_with_password("k4n4rie")
        # What Trove's own class logs is left out.
        ours = [r.getMessage() for r in logs.records if r.name.startswith("brine")]
        self.assertTrue(ours)
        self.assertNotIn("k4n4rie", "".join(ours))


class Fleet(trove_case.TroveCase):
    """Which guests go over the master, and which over the broker."""

    def setUp(self):
        super().setUp()
        self.broker = mock.Mock()
        self.get_client = self.patch(api.API, "get_client", return_value=self.broker)
        self.queues = self.patch(api.API, "_create_guest_queue")

    def sent(self):
        """Return how many calls and casts went over the broker, and how many over the master."""
        prepared = self.broker.prepare.return_value
        return prepared.call.call_count + prepared.cast.call_count, len(self.master.placed)

    def over_broker(self, guest):
        before = self.sent()
        guest.stop_db()
        after = self.sent()
        self.assertEqual(sum(after), sum(before) + 1)
        return after[0] > before[0]

    def test_each_instance(self):
        old, new = self.instance(), self.instance()
        self.master.announce(new)
        guests = [trove_client.guest_client(self.context, id) for id in (old, new)]
        self.assertEqual([self.over_broker(g) for g in guests], [True, False])
        for g in guests:
            g.rebuild("10.11")
        self.assertEqual((self.sent(), self.queues.call_count), ((2, 2), 1))
        # A rebuild with the other agent moves it, both ways, and the client that Trove has of it.
        self.master.announce(old)
        self.master.revoke(new)
        self.assertEqual([self.over_broker(g) for g in guests], [False, True])
        for g in guests:
            g.rebuild("10.11")
        self.assertEqual((self.sent(), self.queues.call_count), ((4, 4), 2))

    def test_a_call_asks_the_master_once(self):
        old, new = self.instance(), self.instance()
        self.master.announce(new)
        for id in (old, new):
            guest = trove_client.guest_client(self.context, id)
            for send in (lambda: guest._call("stop_db", 1, "1.0"), lambda: guest._cast("restart", "1.0"),
                         lambda: guest.client.can_send_version("1.1")):
                del self.master.asked[:]
                send()
                self.assertEqual(self.master.asked, [id])

    def test_versions_of_a_guest_on_the_broker(self):
        guest = trove_client.guest_client(self.context, self.instance())
        self.broker.can_send_version.return_value = False
        guest.prepare(512, "p", [], [], ds_version="1")
        self.assertNotIn("ds_version", self.broker.prepare.return_value.cast.call_args.kwargs)
        self.assertEqual(self.broker.prepare.call_args.kwargs["version"], "1.0")

    def test_an_upgraded_guest_has_another_key(self):
        guest = trove_client.guest_client(self.context, self.instance())
        guest.pre_upgrade()
        guest.pre_upgrade()
        self.assertEqual(self.get_client.call_count, 1)
        guest.post_upgrade({})
        self.assertEqual(self.get_client.call_count, 2)

    def test_an_absent_master_does_not_stop_the_broker(self):
        old, new, unknown = (self.instance() for _ in range(3))
        self.master.announce(new)
        for id in (old, new):
            trove_client.guest_client(self.context, id)
        self.master.down = "cannot reach the master"
        guests = [trove_client.guest_client(self.context, id) for id in (old, new)]
        self.assertTrue(self.over_broker(guests[0]))
        self.assertTrue(guests[1].client.can_send_version("1.1"))
        with self.assertRaisesRegex(exception.GuestError, "cannot reach the master"):
            guests[1].stop_db()
        self.assertEqual(self.sent(), (1, 0))
        with self.assertRaisesRegex(exception.GuestError, "cannot tell which agent the guest %s has: cannot reach" % unknown):
            trove_client.guest_client(self.context, unknown)

    def test_cluster_strategy(self):
        id = self.instance()
        self.master.announce(id)
        guest = trove_client.guest_client(self.context, id, "pxc")
        theirs = clients.strategy.load_guestagent_strategy("pxc").guest_client_class
        self.assertIsInstance(guest, theirs)
        guest.write_cluster_configuration_overrides("x")
        self.assertEqual(self.master.placed[0]["fun"], "trove.write_cluster_configuration_overrides")

    def test_wanted(self):
        mysql, postgres = self.instance("mysql", "8.0"), self.instance("postgresql", "15")
        for guests, want in {
            ("*",): [True, True], (): [False, False], ("mysql",): [True, False], ("postgresql/15", "mysql/5.*"): [False, True],
            ("*", "!mysql/8.0"): [False, True], (mysql,): [True, False], ("mysql", "!" + mysql): [False, False],
            ("*", "!mysql/8.0", mysql): [True, True], ("!mysql", "*"): [True, True],
        }.items():
            trove_case.CONF.set_override("guests", list(guests), "brine")
            self.assertEqual([trove_client.wanted(mysql), trove_client.wanted(postgres)], want, guests)


class Manager:
    """Stands for novaclient's ServerManager."""

    def __init__(self, api):
        self.api, self.done = api, []

    def create(self, *args, **kwargs):
        if self.api.fails:
            raise RuntimeError("quota")
        self.done.append(("create", args, kwargs))
        return "server"

    def rebuild(self, server, image, *args, **kwargs):
        self.done.append(("rebuild", image, kwargs))

    def delete(self, server):
        self.done.append(("delete", server))


class Machines(trove_case.TroveCase):
    def setUp(self):
        super().setUp()
        self.nova = mock.Mock(fails=False)
        self.nova.servers = Manager(self.nova)
        self.patch(trove_client.importutils, "import_class", return_value=lambda *args: self.nova)
        self.servers = trove_client.nova_client(self.context).servers
        self.id = self.instance()
        self.meta = {"trove_instance_id": self.id, "trove_project_id": "p1"}
        self.server = mock.Mock(metadata=self.meta)

    def create(self, **kwargs):
        return self.servers.create("db", "image", "flavor", meta=self.meta, userdata="#cloud-config\nwrite_files: []\n", **kwargs)

    def test_one_client_is_changed_once(self):
        self.assertIs(trove_client.nova_client(self.context, "RegionOne").servers, self.servers)

    def test_create(self):
        self.assertEqual(self.create(nics=[]), "server")
        spec = self.master.announced[self.id]
        self.assertEqual((spec["tenant"], spec["grains"], spec["token_ttl"]), ("p1", {"trove_instance": self.id}, 86400))
        (_, args, kwargs), = self.servers.done
        self.assertEqual((args, kwargs["meta"], kwargs["nics"]), (("db", "image", "flavor"), self.meta, []))
        parts = email.message_from_string(kwargs["userdata"]).get_payload()
        self.assertEqual([p.get_content_type() for p in parts], ["text/cloud-config"] * 2)
        self.assertIn("/etc/salt/join_token", parts[1].get_payload())
        self.assertEqual(parts[1]["Merge-Type"], "dict(replace)+list(append)+str()")

    def test_not_wanted(self):
        trove_case.CONF.set_override("guests", ["postgresql"], "brine")
        self.create()
        self.assertEqual(self.servers.done[0][2]["userdata"], "#cloud-config\nwrite_files: []\n")
        self.assertEqual(self.master.announced, {})

    def test_a_machine_that_is_not_built_leaves_nothing(self):
        self.nova.fails = True
        with self.assertRaisesRegex(RuntimeError, "quota"):
            self.create()
        self.assertEqual((self.master.announced, self.master.revoked), ({}, [self.id]))

    def test_too_large(self):
        with self.assertRaisesRegex(exception.GuestError, "Nova takes 65535"):
            self.servers.create("db", "i", "f", meta=self.meta, userdata="#cloud-config\n" + "#" * 60000)

    def test_rebuild_to_and_fro(self):
        trove_case.CONF.set_override("guests", [], "brine")
        self.create()
        trove_case.CONF.set_override("guests", [self.id], "brine")
        self.servers.rebuild(self.server, "new", files={"/etc/trove/conf.d/guest_info.conf": "x"})
        files = self.servers.done[-1][2]["files"]
        self.assertEqual(list(files), ["/etc/trove/conf.d/guest_info.conf", "/etc/salt/minion.d/brine-trove.conf"])
        self.assertEqual(json.loads(files["/etc/salt/minion.d/brine-trove.conf"])["id"], self.id)
        self.assertTrue(trove_client.is_minion(self.id))
        # Again: the old key is gone with the old disk, and the token is another.
        self.servers.rebuild(self.server, "newer", userdata="#cloud-config\n{}\n")
        self.assertEqual(self.master.revoked, [self.id, self.id])
        self.assertIn("join_token", self.servers.done[-1][2]["userdata"])
        trove_case.CONF.set_override("guests", ["*", "!" + self.id], "brine")
        self.servers.rebuild(self.server, "old", files={})
        self.assertEqual(self.servers.done[-1], ("rebuild", "old", {"files": {}}))
        self.assertFalse(trove_client.is_minion(self.id))

    def test_delete(self):
        self.create()
        self.servers.delete(self.server)
        self.assertEqual((self.servers.done[-1][0], self.master.announced), ("delete", {}))
        self.master.down = "gone"
        with self.assertLogs("brine_openstack.trove_client", "ERROR") as logs:
            self.servers.delete(self.server)
        self.assertIn("cannot be revoked: gone", logs.output[0])

    def test_real_class(self):
        for name in ("create", "rebuild", "delete"):
            self.assertTrue(callable(getattr(servers.ServerManager, name)))


class Settings(trove_case.TroveCase):
    def test_sealing_key(self):
        with self.assertRaisesRegex(brine.Error, "set taskmanager_rpc_encr_key of \\[DEFAULT\\] or sealing_key_file of \\[brine\\]"):
            trove_client._sealing_key()
        trove_case.CONF.set_override("taskmanager_rpc_encr_key", "ours")
        self.addCleanup(trove_case.CONF.clear_override, "taskmanager_rpc_encr_key")
        self.assertEqual(len(trove_client._sealing_key()), 64)
