"""brine_openstack.trove_conductor with Trove's own handlers and database, and a master that is a few dictionaries."""

import json
import os
import tempfile
from unittest import mock

from trove_tests import trove_case  # first: it skips without Trove
from oslo_db import exception as db_exception
from trove import rpc
from trove.backup import models as backup_models
from trove.common import notification
from trove.instance import models as instance_models

from brine_openstack import master as brine
from brine_openstack import trove_client
from brine_openstack import trove_conductor


class Conductor(trove_case.TroveCase):
    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.manager = trove_conductor.Manager()
        self.follower = trove_conductor.Follower(self.manager, directory.name)
        self.id = self.instance()
        self.master.announce(self.id)

    def status(self):
        return instance_models.InstanceServiceStatus.find_by(instance_id=self.id).get_status().description

    def heartbeat(self, word, sent, minion=None, n=None):
        id = minion or self.id
        return {"id": n, "tag": "salt/beacon/%s/trove/heartbeat" % id, "data": {"id": id, "_stamp": "x", "payload": {"service_status": word}, "sent": sent}}

    def fired(self, method, data, minion=None, n=None):
        return {"id": n, "tag": "trove/conductor/" + method,
                "data": {"id": minion or self.id, "cmd": "_minion_event", "tag": "x", "data": dict(data, __pub_jid="1")}}

    def follow(self, *events):
        self.master.queue = list(events)
        with self.assertRaises(brine.Unavailable):
            self.follower.follow()

    def backup(self):
        return backup_models.DBBackup.create(name="b", description=None, tenant_id="p1", state="NEW", instance_id=self.id, deleted=False,
                                             parent_id=None, datastore_version_id=None).id

    def test_heartbeat(self):
        self.follow(self.heartbeat("healthy", 100.0, n="c1"))
        self.assertEqual(self.status(), "healthy")
        self.follow(self.heartbeat("shutdown", 95.0, n="c2"))
        self.assertEqual(self.status(), "healthy")  # an older message
        self.follow(self.heartbeat("running", 101.0, n="c3"))
        self.assertEqual(self.status(), "running")
        self.assertEqual(self.master.followed, (trove_conductor.TAGS, "c2"))
        # One that a function of the guest fires.
        self.follow({"id": "c4", "tag": "salt/beacon/%s/trove/heartbeat" % self.id,
                     "data": {"id": self.id, "data": {"payload": {"service_status": "shutdown"}, "sent": 102.0}}})
        self.assertEqual(self.status(), "shutdown")

    def test_backup(self):
        id = self.backup()
        self.follow(self.fired("update_backup", {"instance_id": self.id, "backup_id": id, "sent": 1.5, "state": "COMPLETED", "size": 0.25,
                                                 "checksum": "abc", "location": "http://x/y"}, n="c1"))
        row = backup_models.DBBackup.find_by(id=id)
        self.assertEqual((row.state, float(row.size), row.checksum, row.location), ("COMPLETED", 0.25, "abc", "http://x/y"))

    def test_root(self):
        from trove.extensions.common import models as common_models
        self.follow(self.fired("report_root", {"instance_id": self.id, "sent": 1.0}))
        self.assertIsNotNone(common_models.RootHistory.load(self.context, self.id))

    def test_a_guest_speaks_for_itself_alone(self):
        other = self.instance()
        id = self.backup()
        with self.assertLogs("brine_openstack.trove_conductor", "WARNING") as logs:
            self.follow(self.fired("update_backup", {"instance_id": self.id, "backup_id": id, "sent": 1.0, "state": "FAILED"}, minion=other),
                        self.fired("heartbeat", {"instance_id": self.id, "payload": {"service_status": "crashed"}, "sent": 9.0}, minion=other))
        self.assertIn("The guest %s reports update_backup for the instance %s, which is not its own" % (other, self.id), logs.output[0])
        self.assertEqual((backup_models.DBBackup.find_by(id=id).state, self.status()), ("NEW", "new"))

    def test_what_is_not_understood(self):
        with self.assertLogs("brine_openstack.trove_conductor", "WARNING") as logs:
            self.follow(self.fired("notify_end", {"serialized_notification": {"notification_classname": "os.system"}}),
                        self.fired("__init__", {}), {"id": None, "tag": "trove/conductor/heartbeat", "data": "text"},
                        self.heartbeat("no such word", 1.0), self.fired("update_backup", {"backup_id": "none", "sent": 1.0}),
                        self.fired("heartbeat", {"odd": 1}), self.heartbeat("healthy", 2.0))
        self.assertEqual(self.status(), "healthy")
        self.assertEqual(len(logs.output), 6)

    def test_cursor(self):
        # After a restart it goes on behind what was handled last; what the master lost is in its store.
        self.follow(self.heartbeat("healthy", 1.0, n="c1"))
        path = os.path.join(self.follower._directory, "conductor.cursor")
        with open(path) as f:
            self.assertEqual(f.read(), "c1\n")
        self.follow(self.heartbeat("running", 2.0, n="c2"))
        with open(path) as f:
            self.assertEqual(f.read(), "c1\n")  # heartbeats are stored once a second
        self.follow(self.fired("report_root", {}, n="c3"))
        with open(path) as f:
            self.assertEqual(f.read(), "c3\n")

    def test_a_failing_database_stops_it_before_the_event(self):
        self.follow(self.heartbeat("healthy", 1.0, n="c1"))
        self.patch(self.manager, "heartbeat", side_effect=db_exception.DBConnectionError())
        self.master.queue = [self.heartbeat("running", 2.0, n="c2")]
        with self.assertRaises(db_exception.DBConnectionError):
            self.follower.follow()
        self.assertEqual(self.follower.cursor, "c1")

    def test_kept_messages(self):
        id = self.backup()
        message = {"instance_id": self.id, "backup_id": id, "sent": 5.0, "state": "COMPLETED"}
        kept = [{"tag": "trove/conductor/update_backup", "data": dict(message, sent=4.0, state="BUILDING"), "time": "1"},
                {"tag": "trove/conductor/update_backup", "data": message, "time": "2"}, {"tag": "other", "data": {}, "time": "3"}]
        self.master.kept[self.id] = kept
        self.follower.cursor = "c0"
        self.follow({"id": "c1", "tag": None, "data": None})
        self.assertEqual(backup_models.DBBackup.find_by(id=id).state, "NEW")
        self.follow({"id": None, "tag": None, "data": None, "lost": True})
        self.assertEqual(backup_models.DBBackup.find_by(id=id).state, "COMPLETED")
        self.assertEqual([e["tag"] for e in self.master.kept[self.id]], ["other"])
        # One that comes twice changes nothing.
        self.follow(self.fired("update_backup", dict(message, state="FAILED", sent=4.5)))
        self.assertEqual(backup_models.DBBackup.find_by(id=id).state, "COMPLETED")

    def test_handled_messages_are_forgotten(self):
        self.master.kept[self.id] = [{"tag": "trove/conductor/report_root", "data": {}, "time": "1"}]
        self.follower.cursor = "c0"
        self.follow(self.fired("report_root", {}))
        self.assertEqual(self.master.kept[self.id], [])

    def test_the_first_start_reads_what_is_kept(self):
        id = self.backup()
        self.master.kept[self.id] = [{"tag": "trove/conductor/update_backup", "time": "1",
                                      "data": {"instance_id": self.id, "backup_id": id, "sent": 4.0, "state": "BUILDING"}}]
        self.follow({"id": "c1", "tag": None, "data": None})
        self.assertEqual(backup_models.DBBackup.find_by(id=id).state, "BUILDING")

    def cast(self, result):
        self.context.notification = notification.DBaaSInstanceRestart(
            self.context, request_id="r1", server_type="api", instance_id=self.id, tenant_id="p1", client_ip="192.0.2.1",
            server_ip="192.0.2.2")
        self.master.answer = lambda o: result
        trove_client.guest_client(self.context, self.id).create_user([])
        return "jid-" + self.master.placed[-1]["id"]

    def returned(self, jid):
        return {"id": None, "tag": "salt/job/%s/ret/%s" % (jid, self.id),
                "data": {"id": self.id, "fun": "trove.create_user", "jid": jid, "metadata": {"trove_notification": "{}"}}}

    def test_end_of_casts(self):
        notifier = self.patch(rpc, "get_notifier").return_value

        def told():
            """Return what the notification bus was told last."""
            context, kind, payload = notifier.info.call_args[0]
            return context.project_id, kind, payload["instance_id"], payload.get("message"), payload.get("exception")
        self.follow(self.returned(self.cast(trove_case.returned(None))))
        self.assertEqual(told(), ("p1", "dbaas.instance_restart.end", self.id, None, None))
        self.follow(self.returned(self.cast(trove_case.returned("no such database", 1))))
        self.assertEqual(told(), ("p1", "dbaas.instance_restart.error", self.id, "no such database", "no such database"))
        jid = self.cast({"status": "undeliverable"})
        self.follow({"id": None, "tag": "brine/order/%s/%s" % (jid, self.id), "data": {"id": self.id, "jid": jid, "state": "undeliverable"}})
        self.assertIn("undeliverable: the minion did not take the job", told()[3])
        self.assertEqual(notifier.info.call_count, 3)

    def test_a_forged_return_ends_nothing(self):
        self.cast({"status": "underway"})
        with mock.patch.object(self.follower, "_call") as call:
            self.follow(self.returned("jid-of-another"), self.returned("jid-" + self.master.placed[-1]["id"]))
        call.assert_not_called()

    def test_one_process_follows(self):
        other = trove_conductor.Follower(self.manager, self.follower._directory)
        with mock.patch.object(trove_conductor.Follower, "_run"):
            self.follower.keep()
            other.keep()
        self.assertIsNotNone(self.follower._thread)
        self.assertIsNone(other._thread)
        self.follower._lock.close()

    def test_workers_keep_it(self):
        with mock.patch.object(self.manager.brine, "keep") as keep:
            self.manager.run_periodic_tasks(None)
        keep.assert_called_once_with()


class Packed(trove_case.TroveCase):
    def test_what_the_master_is_told_to_keep(self):
        from brine_openstack import Sidecar
        conf = Sidecar(directory="/tmp/brine-none", interface="127.0.0.1").configuration()
        self.assertIn("trove/conductor/*", conf["keep_events"])
        json.dumps(conf)
