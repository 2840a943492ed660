"""A listener of oslo.messaging that has stopped loses no requests, in the version of this Heat."""

import threading
import unittest

from tests import heat_case  # noqa: F401  skips without Heat
from oslo_messaging._drivers import amqpdriver

from brine_openstack.heat import drain


class Message(dict):
    def __init__(self):
        super().__init__()
        self.did = []

    def acknowledge(self):
        self.did.append("acknowledge")
        raise RuntimeError("stop here: what follows is oslo.messaging's")

    def requeue(self):
        self.did.append("requeue")


class Consumer:
    def __init__(self):
        self.cancelled = []

    def cancel(self, tag):
        self.cancelled.append(tag)


class Connection:
    def __init__(self):
        self.consumer = Consumer()
        self._consumers = {self.consumer: 7}

    def stop_consuming(self):
        pass


class DrainTest(unittest.TestCase):
    def setUp(self):
        kind = amqpdriver.RpcAMQPListener
        before = kind.__call__, kind.stop
        self.addCleanup(lambda: (setattr(kind, "__call__", before[0]), setattr(kind, "stop", before[1]), delattr(kind, "brine_drains")))
        drain.install()
        drain.install()  # once is enough
        self.listener = kind.__new__(kind)
        self.listener.conn = Connection()
        self.listener._shutdown, self.listener._shutoff = threading.Event(), threading.Event()
        self.listener._shutoff.set()

        class Handler:
            def process_in_background(self):
                pass
        self.listener._message_operations_handler = Handler()

    def test_serves(self):
        message = Message()
        with self.assertLogs("oslo_messaging"):
            self.listener(message)
        self.assertEqual(message.did, ["acknowledge"])

    def test_drains(self):
        self.listener.stop()
        self.assertEqual(self.listener.conn.consumer.cancelled, [7])
        message = Message()
        self.listener(message)
        self.assertEqual(message.did, ["requeue"])

    def test_broken_connection(self):
        self.listener.conn._consumers = None
        with self.assertLogs("brine_openstack.heat.drain", "WARNING"):
            self.listener.stop()


if __name__ == "__main__":
    unittest.main()
