"""A drained restart of heat-engine that loses no requests.

On TERM an engine stops reading requests and ends what it works on, for up to a minute. oslo.messaging leaves it a consumer of its queues
for that time: the broker goes on to give it its share. When the connection is closed, these requests are read, acknowledged and dropped.
Heat then waits for a resource that no engine works on. Versions 14 (Debian 12) and 17 do so.

A listener that has stopped must therefore leave the queue at once, and give back what arrives nevertheless. Another engine takes it.
"""

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


def install():
    """Make the listeners of this process do so. An oslo.messaging that is built in another way stays as it is, with a warning."""
    try:
        from oslo_messaging._drivers import amqpdriver
        kind = amqpdriver.RpcAMQPListener
        take, stop = kind.__call__, kind.stop
    except (ImportError, AttributeError) as e:
        LOG.warning("A drained restart of this engine may lose requests: %s", e)
        return
    if getattr(kind, "brine_drains", False):
        return

    def take_or_give_back(self, message):
        if self._shutdown.is_set():
            message.requeue()
        else:
            take(self, message)

    def stop_and_leave(self):
        stop(self)
        try:
            for consumer, tag in list(self.conn._consumers.items()):
                consumer.cancel(tag)
        except Exception as e:  # the engine ends all the same
            LOG.warning("The engine cannot leave its queues, so that requests wait for its end: %s", e)

    kind.__call__, kind.stop, kind.brine_drains = take_or_give_back, stop_and_leave, True
