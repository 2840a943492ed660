"""What resources have in common whose work is an order of the master: its name, its time to live, its end in words."""

import hashlib
import json

from heat.common import exception
from heat.engine import resource
from heat.objects import resource as resource_objects
from oslo_log import log as logging
from oslo_utils import timeutils

from brine_openstack import master as brine
from brine_openstack.heat import engine
from brine_openstack.heat import orders

LOG = logging.getLogger(__name__)

# What a resource keeps of its results. Resource data is a TEXT column, encrypted, of 64 KiB.
MAX_STORED = 36000


def clip(text, limit):
    """Return text with its middle left out, if it is longer than limit."""
    if len(text) <= limit:
        return text
    half = (limit - 20) // 2
    return "%s … %d left out … %s" % (text[:half], len(text) - 2 * half, text[-half:])


class OrderResource(resource.Resource):
    """A resource whose actions place orders. Subclasses say what the work of an action is and read its outcome."""

    default_client_name = None

    # What subclasses fill in.

    def _work(self, props, action):
        """Return the order of an action as a map of fun, tgt and the rest of the order, or None for nothing to do."""
        raise NotImplementedError

    def _finish(self, outcome, props, action):
        """Take the outcome of a finished order. Raise exception.Error if it is a failure."""
        raise NotImplementedError

    # The work.

    def _master(self):
        return engine.client()

    def _seconds_left(self):
        return engine.time_left(self.stack)

    def _record(self):
        """Return {id, digest, attempt, done, good} of the last order of this resource, or None."""
        text = self.data().get(orders.KEY)
        return json.loads(text) if text else None

    def _left_record(self):
        """Return the record of an order whose end nobody saw: this resource's, or that of one whose place it takes."""
        record, before = self._record(), self.replaces
        for _n in range(16):
            if record is not None or before is None:
                break
            try:
                old = resource_objects.Resource.get_obj(self.context, before)
            except exception.NotFound:
                break
            record = next((json.loads(d.value) for d in old.data or () if d.key == orders.KEY), None)
            before = old.replaces
        return None if record is None or record.get("done") else record

    def _start(self, action):
        """Place the order of an action and return its id, or None if there is nothing to do.

        An order for the same work that an earlier try placed, and that did not fail, is taken over.
        """
        work = self._work(self.properties, action)
        if work is None:
            return None
        kind = orders.CLASSES.get(action, action)
        digest = hashlib.sha256(json.dumps([kind, work], sort_keys=True, default=repr).encode()).hexdigest()
        try:
            return self._choose(work, digest, self._left_record())
        except brine.Error as e:
            raise exception.Error("%s" % e) from e

    def _choose(self, work, digest, record):
        master, attempt = self._master(), 0
        if record is not None and record["digest"] == digest:
            found = orders.find(master, record["id"])
            if found is None or not found["done"] or self._succeeded(found):
                if found is None:
                    self._place(record["id"], work)
                self.data_set(orders.KEY, json.dumps(record))
                return record["id"]
            attempt = record["attempt"] + 1
        while attempt < orders.MAX_ATTEMPTS:
            name = orders.name(self.stack.id, self.name, digest, attempt)
            if orders.find(master, name) is None:
                self.data_set(orders.KEY, json.dumps({"id": name, "digest": digest, "attempt": attempt}))
                self._place(name, work)
                return name
            attempt += 1
        raise exception.Error("the same work of %s was asked for %d times" % (self.name, attempt))

    def _succeeded(self, outcome):
        return outcome["success"]

    def _place(self, name, work):
        left = self._seconds_left()
        order = {k: v(name) if callable(v) else v for k, v in work.items() if v is not None}
        self._master().place(name, order.pop("tgt"), order.pop("fun"), ttl=left, deadline=timeutils.utcnow_ts() + left,
                             tenant=engine.tenant(self.stack) or None, secret=True,
                             metadata={"heat_stack": self.stack.id, "heat_resource": self.name}, **order)

    def _check(self, name, action):
        if name is None:
            return True
        try:
            outcome = orders.find(self._master(), name)
        except brine.Unavailable as e:
            LOG.warning("%s: %s", self.name, e)
            return False
        if outcome is None:
            raise exception.Error("the master does not know the order %s any more" % name)
        if not outcome["done"]:
            return False
        record = dict(self._record() or {"id": name, "digest": "", "attempt": 0}, done=True, good=False)
        self.data_set(orders.KEY, json.dumps(record))
        self._finish(outcome, self.properties, action)
        self.data_set(orders.KEY, json.dumps(dict(record, good=True)))
        return True

    def _cancel(self, name):
        if name is None:
            return
        try:
            self._master().cancel(name)
        except brine.NotFound:
            pass
        except brine.Error as e:
            # Heat goes on without it; the order ends with its time to live.
            LOG.warning("The order %s cannot be cancelled: %s", name, e)

    def _store(self, key, value, shrink):
        """Store a result as resource data. shrink(value, n) returns a smaller form; n grows until the result fits."""
        for n in range(6):
            text = json.dumps(value)
            if len(text) <= MAX_STORED:
                break
            value = shrink(value, n)
        else:
            text = json.dumps({"left out": "the result is larger than %d bytes" % MAX_STORED})
        self.data_set(key, text, redact=True)

    def _stored(self, key):
        text = self.data().get(key)
        return json.loads(text) if text else None

    # Heat's actions. The cookie is the order's id.

    def handle_create(self):
        self.resource_id_set(self.uuid)
        return self._start(self.CREATE)

    def check_create_complete(self, name):
        return self._check(name, self.CREATE)

    def handle_update(self, json_snippet, tmpl_diff, prop_diff):
        before = self._work(self.properties, self.UPDATE)
        self.properties = json_snippet.properties(self.properties_schema, self.context)
        if (self._record() or {}).get("good") and before == self._work(self.properties, self.UPDATE):
            return None
        return self._start(self.UPDATE)

    def check_update_complete(self, name):
        return self._check(name, self.UPDATE)

    def handle_delete(self):
        if self.resource_id is None or not self._minions_left():
            return None
        if self.replaced_by is not None and not (self._record() or {}).get("good"):
            return None  # its replacement did the work again on the same machine: there is nothing to undo
        return self._start(self.DELETE)

    def check_delete_complete(self, name):
        return self._check(name, self.DELETE)

    def handle_suspend(self):
        return self._start(self.SUSPEND)

    def check_suspend_complete(self, name):
        return self._check(name, self.SUSPEND)

    def handle_resume(self):
        return self._start(self.RESUME)

    def check_resume_complete(self, name):
        return self._check(name, self.RESUME)

    def handle_create_cancel(self, name):
        self._cancel(name)

    handle_update_cancel = handle_delete_cancel = handle_suspend_cancel = handle_resume_cancel = handle_create_cancel

    def _minions_left(self):
        """Report whether a minion of this resource is still announced: work at a stack's end waits for no machine that is gone."""
        return True
