package orders

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

const (
	// PollInterval is the interval at which the store is checked for changes that were not announced here.
	PollInterval = 2 * time.Second
	// orderResume is the interval at which all pending deliveries are checked.
	orderResume = 30 * time.Second
	// sendWorkers is how many store operations run in parallel, readTogether how many minions' deliveries one of them
	// reads.
	sendWorkers, readTogether = 32, 100
	// maxRead limits the deliveries that one read returns.
	maxRead = 10 * store.DefaultLimit
	// MaxDeliveries limits the minions of one order.
	MaxDeliveries = 1 << 20
)

// inParallel calls f for 0 to n-1, at most slots calls at a time.
func inParallel(n, slots int, f func(i int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, slots)
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			f(i)
		})
	}
	wg.Wait()
}

// storeTime limits a use of the database outside of any request.
const storeTime = 2 * time.Minute

// Deliverer delivers orders. Its methods are safe for concurrent use. Those that report what a minion did do
// nothing on a nil Deliverer, which a master has whose store cannot keep orders.
type Deliverer struct {
	opts    Options
	q       store.Queue
	minions store.Minions // nil if the store keeps no minions
	owner   string        // this master's name in the store
	wake    chan struct{}
	jobs    sync.WaitGroup // status queries in progress

	backlog  backlog
	outcomes outcomes
	pace     pace // of the goroutine in Run

	epoch time.Time // moment 0

	mu       sync.Mutex                 // guards the fields below
	tenants  map[string]*backlog        // by tenant with orders
	peers    peers                      // state of minions
	watchers map[string][]chan struct{} // by job id
	broken   moment                     // end of the last subscription
	inquired int                        // status queries of all peers
	woken    moment                     // when probes were last brought forward
	look     time.Time                  // latest time of the next scan for due deliveries
	draining bool
}

// moment converts a time.
func (d *Deliverer) moment(t time.Time) moment { return t.Sub(d.epoch) }

// now returns the current moment.
func (d *Deliverer) now() moment { return d.moment(time.Now()) }

func (d *Deliverer) wakeRun() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *Deliverer) IsDraining() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.draining
}

// Watch returns a channel that is closed at the next change of a job's deliveries.
func (d *Deliverer) Watch(jid string) <-chan struct{} {
	c := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watchers[jid] = append(d.watchers[jid], c)
	return c
}

func (d *Deliverer) notifyWatchers(jid string) {
	d.mu.Lock()
	list := d.watchers[jid]
	delete(d.watchers, jid)
	d.mu.Unlock()
	for _, c := range list {
		close(c)
	}
}

// LookBy schedules a scan of the store at a time, when a delivery is due.
func (d *Deliverer) LookBy(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at.Before(d.look) {
		d.look = at
		d.wakeRun()
	}
}

// Run delivers until ctx ends.
func (d *Deliverer) Run(ctx context.Context) {
	defer d.jobs.Wait()
	d.logFailure(ctx, "Cannot read orders", d.resumeWaiting(ctx))
	again := time.NewTicker(orderResume)
	defer again.Stop()
	for {
		next := d.runTurn(ctx, time.Now())
		if wait := d.pace.wait(time.Now()); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
		}
		timer := time.NewTimer(next)
		select {
		case <-d.wake:
		case <-timer.C:
		case <-again.C:
			d.mu.Lock()
			d.peers.sweep(d.now(), false)
			d.mu.Unlock()
			d.logFailure(ctx, "Cannot read orders", d.resumeWaiting(ctx))
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// resumeWaiting finds pending deliveries that this master does not know: those from before its start, and those
// of a master that died.
func (d *Deliverer) resumeWaiting(ctx context.Context) error {
	list, err := d.q.Deliveries(ctx, store.DeliveryFilter{Open: true, Limit: MaxDeliveries})
	d.mu.Lock()
	defer d.mu.Unlock()
	busy := make(map[string]struct{})
	for _, x := range list {
		if x.State == store.Sent && !x.Parallel {
			busy[x.Minion] = struct{}{}
		}
	}
	for _, x := range list {
		if x.State != store.Waiting || fields.Has(busy, x.Minion) && !x.Parallel {
			continue
		}
		if p := d.peers.of(x.Minion); p.state == idle {
			d.expectOne(p, d.now(), false)
		}
	}
	return err
}

// runTurn handles the marks of peers: it reads the store, sends to minions that answered, and probes those that
// are due. It returns how long it has nothing to do.
func (d *Deliverer) runTurn(ctx context.Context, now time.Time) time.Duration {
	d.mu.Lock()
	lookUps := d.peers.takeLookUps()
	look := !now.Before(d.look)
	if look {
		d.look = now.Add(PollInterval)
	}
	d.mu.Unlock()
	if look {
		d.scanDue(ctx)
	}
	parts := slices.Collect(slices.Chunk(lookUps, readTogether))
	inParallel(len(parts), sendWorkers, func(i int) { d.lookUpMarked(ctx, parts[i], now) })
	d.mu.Lock()
	ready := d.peers.takeAnswers()
	draining := d.draining
	d.mu.Unlock()
	if draining {
		return PollInterval
	}
	d.sendReady(ctx, ready)
	next := d.sendProbes(ctx, now)
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(0, min(next, d.look.Sub(now)))
}

// lookUpMarked reads the deliveries of minions that had a mark: the pending ones, those sent before they signed
// in, and those with unknown outcome since they became silent.
func (d *Deliverer) lookUpMarked(ctx context.Context, ms []marked, now time.Time) {
	ids := make([]string, len(ms))
	for i, m := range ms {
		ids[i] = m.id
	}
	open, err := d.openDeliveries(ctx, ids)
	d.logFailure(ctx, "Cannot read orders", err)
	var review []store.Delivery
	d.mu.Lock()
	for _, m := range ms {
		review = append(review, d.lookUpOne(m, open[m.id], now)...)
	}
	d.mu.Unlock()
	d.reviewDue(ctx, review)
}

// lookUpOne is lookUpMarked for one minion with its open deliveries, of which it returns those to be reviewed.
// Callers hold mu.
func (d *Deliverer) lookUpOne(m marked, list []store.Delivery, now time.Time) []store.Delivery {
	p := d.peers.of(m.id)
	if slices.ContainsFunc(list, func(x store.Delivery) bool { return x.State == store.Waiting }) {
		d.expectOne(p, d.now(), true)
		d.wakeRun()
	}
	wasSilent := p.silent
	if p.queries == 0 { // otherwise its next sign of life triggers the query
		p.silent = false
	}
	sent := slices.ContainsFunc(list, func(x store.Delivery) bool { return x.State == store.Sent })
	if m.signedIn && sent {
		// It left its master. Its next answer triggers a status query for what it was sent.
		p.silent = true
		d.peers.probe(p, d.moment(now)+probeFirst, probeFirst)
	}
	if m.signedIn && p.state != idle {
		p.near, p.wait = true, PollInterval // it will subscribe to the master that it signed in to
	}
	for i := range list {
		if wasSilent && list[i].State == store.Sent {
			list[i].Due = now // it may answer now
		}
	}
	return list
}

// openDeliveries reads the open deliveries of some minions, each one's in the order of sending.
func (d *Deliverer) openDeliveries(ctx context.Context,
	ids []string) (map[string][]store.Delivery, error) {
	list, err := d.q.Deliveries(ctx, store.DeliveryFilter{Minions: ids, Open: true, Limit: maxRead})
	out := make(map[string][]store.Delivery, len(ids))
	for _, x := range list {
		out[x.Minion] = append(out[x.Minion], x)
	}
	if err != nil || len(list) < maxRead {
		return out, err
	}
	// Of the last minion some may be missing, and all of those that follow. Which these are is up to the collation of
	// the database.
	last := list[maxRead-1].Minion
	for _, id := range ids {
		if id != last && len(out[id]) > 0 {
			continue
		}
		out[id], err = d.q.Deliveries(ctx, store.DeliveryFilter{Minion: id, Open: true})
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

func (d *Deliverer) logFailure(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		d.opts.Log.Error(what, "err", err)
	}
}

// sendReady claims the pending deliveries of minions that listen, and publishes each job once for all of them.
func (d *Deliverer) sendReady(ctx context.Context, ids []string) {
	if len(ids) == 0 {
		return
	}
	var mu sync.Mutex
	byJob := make(map[string][]store.Delivery)
	reads := orderReads{q: d.q, byJob: make(map[string]func() (store.Order, error))}
	parts := slices.Collect(slices.Chunk(ids, readTogether))
	inParallel(len(parts), sendWorkers, func(i int) {
		for _, x := range d.claimTogether(ctx, parts[i], &reads) {
			mu.Lock()
			byJob[x.JID] = append(byJob[x.JID], x)
			mu.Unlock()
		}
	})
	var others []Parcel
	for _, jid := range slices.Sorted(maps.Keys(byJob)) { // in the order of placement
		d.pace.published()
		rec, err := reads.order(ctx, jid)
		var more []Parcel
		if err == nil {
			more, err = d.publishJob(ctx, rec, byJob[jid], nil)
		}
		others = append(others, more...)
		d.logFailure(ctx, "Cannot send order", err)
		d.notifyWatchers(jid)
	}
	d.logFailure(ctx, "Cannot send orders", d.sendAll(ctx, others))
}

// orderReads reads each order once.
type orderReads struct {
	q  store.Queue
	mu sync.Mutex // guards byJob
	// byJob reads the order of a job, or returns what was read.
	byJob map[string]func() (store.Order, error)
}

func (r *orderReads) order(ctx context.Context, jid string) (store.Order, error) {
	r.mu.Lock()
	read := r.byJob[jid]
	if read == nil {
		read = sync.OnceValues(func() (store.Order, error) { return r.q.OrderOf(ctx, jid) })
		r.byJob[jid] = read
	}
	r.mu.Unlock()
	return read()
}

// sendAll sends what publishJob returned, which is often nothing.
func (d *Deliverer) sendAll(ctx context.Context, list []Parcel) error {
	if len(list) == 0 {
		return nil
	}
	return d.opts.Wire.Send(ctx, list...)
}

// claimTogether claims what may be sent to some minions now. In a cluster only one master's claim succeeds. The others
// read the queue of that minion again, because it has changed. An order is read before its delivery is claimed: what is
// claimed and not sent counts as lost if the minion may have forgotten it.
func (d *Deliverer) claimTogether(ctx context.Context, ids []string,
	reads *orderReads) []store.Delivery {
	open, err := d.openDeliveries(ctx, ids)
	if err != nil {
		d.logFailure(ctx, "Cannot read orders", err)
		return nil
	}
	now := time.Now().UTC()
	var claims []*store.Delivery
	for _, id := range ids {
		claims = append(claims, d.chooseClaims(ctx, open[id], now)...)
	}
	errs := make([]error, len(claims))
	inParallel(len(claims), sendWorkers, func(i int) {
		_, errs[i] = reads.order(ctx, claims[i].JID)
	})
	readable := claims[:0:0]
	for i, err := range errs {
		if err != nil {
			d.logFailure(ctx, "Cannot send order", err)
			d.retryLater(claims[i].Minion)
			continue
		}
		readable = append(readable, claims[i])
	}
	claims = readable
	var out []store.Delivery
	changed := make(map[string]struct{})
	for i, err := range d.q.SwapDeliveries(ctx, claims) {
		switch {
		case err == nil:
			out = append(out, *claims[i])
		case errors.Is(err, store.ErrChanged):
			changed[claims[i].Minion] = struct{}{}
		default:
			d.logFailure(ctx, "Cannot take order", err)
			d.retryLater(claims[i].Minion)
		}
	}
	again := slices.Sorted(maps.Keys(changed))
	if len(again) == 0 {
		return out
	}
	return append(out, d.claimTogether(ctx, again, reads)...)
}

// chooseClaims returns the deliveries that may be sent to one minion now, changed as a claim changes them: all parallel
// ones and, unless one is in progress, the first of the rest. list has its open deliveries; overdue ones are ended.
func (d *Deliverer) chooseClaims(ctx context.Context, list []store.Delivery,
	now time.Time) (claims []*store.Delivery) {
	busy := slices.ContainsFunc(list, func(x store.Delivery) bool {
		return x.State == store.Sent && !x.Parallel
	})
	for _, x := range list {
		if x.State != store.Waiting || busy && !x.Parallel {
			continue
		}
		if !now.Before(Overdue(x)) {
			d.giveUp(ctx, x, now)
			continue
		}
		x.State, x.Owner, x.Sent, x.Tries = store.Sent, d.owner, now, 1
		x.Due = d.nextCheck(x, now, now)
		busy = busy || !x.Parallel
		claims = append(claims, &x)
	}
	return claims
}

// retryLater probes a minion again after an error of the store.
func (d *Deliverer) retryLater(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peers.probe(d.peers.of(id), d.now()+PollInterval, PollInterval)
}

// nextCheck returns when to query the status of a sent delivery: soon, then at growing intervals.
func (d *Deliverer) nextCheck(x store.Delivery, sent, now time.Time) time.Time {
	next := now.Add(min(max(now.Sub(sent)/2, d.opts.Timeout), time.Minute))
	if !x.Deadline.IsZero() && x.Deadline.Before(next) && now.Before(x.Deadline) {
		next = x.Deadline
	}
	d.LookBy(next)
	return next
}

// JobMap returns an order's job for some of its minions, in public form: the arguments of a secret order are in
// its content.
func (d *Deliverer) JobMap(rec store.Order, ids []string) map[string]any {
	job := map[string]any{"jid": rec.JID, "fun": rec.Spec["fun"], "arg": rec.Spec["arg"],
		"tgt": nested.Anys(ids), "tgt_type": target.TypeList, "ret": fields.Text(rec.Spec, "ret")}
	if extra, ok := payload.Map(rec.Spec["extra"]); ok {
		maps.Copy(job, extra)
	}
	if user := fields.Text(rec.Spec, "user"); user != "" {
		job["user"] = user
	}
	if rec.Spec["secret"] == true {
		job[protocol.SecretField] = true
	}
	if c := content.Carried(rec); c != (protocol.Carried{}) {
		job[protocol.OrderField] = c.Field()
	}
	return job
}

// publishJob publishes a job for claimed deliveries. In a cluster one master sends it to each minion, over one
// connection, if that is known. via is nil when the job is sent for the first time. When it is sent again, via
// names the master over whose connection each minion has just reported that it does not know the job. It
// returns the parcels that peers must send, so that the caller can combine those of several jobs in one
// Wire.Send.
func (d *Deliverer) publishJob(ctx context.Context, rec store.Order, ds []store.Delivery,
	via map[string]string) (others []Parcel, err error) {
	jid := rec.JID
	ids := make([]string, len(ds))
	for i, x := range ds {
		ids[i] = x.Minion
	}
	slices.Sort(ids)
	job := d.JobMap(rec, ids)
	d.opts.Events.Publish("salt/job/"+jid+"/publish", maps.Clone(job))
	d.opts.Log.Debug("Order sent", "jid", jid, "minions", len(ids))
	arg, err := d.secretArgs(rec)
	if err != nil {
		return nil, d.lostContent(ds, err, via == nil)
	}
	if arg != nil {
		job["arg"] = arg
	}
	if !d.several() {
		return nil, d.opts.Wire.Send(ctx, Parcel{Job: job, IDs: ids, Here: true})
	}
	by := make(map[string][]string)
	for _, id := range ids {
		name := d.pathTo(id, via)
		by[name] = append(by[name], id)
	}
	var errs []error
	for name, ids := range by {
		job := d.JobMap(rec, ids)
		if arg != nil {
			job["arg"] = arg
		}
		if name != d.opts.Name {
			others = append(others, Parcel{Job: job, IDs: ids, Via: name})
		}
		if name == d.opts.Name || name == "" {
			errs = append(errs, d.opts.Wire.Send(ctx, Parcel{Job: job, IDs: ids, Here: true}))
		}
	}
	return others, errors.Join(errs...)
}

// secretArgs opens the arguments of a secret order. It returns nil for other orders.
func (d *Deliverer) secretArgs(rec store.Order) ([]any, error) {
	if !content.IsSealed(rec) {
		return nil, nil
	}
	if d.opts.Content == nil {
		return nil, ErrNoContent
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	return d.opts.Content.Args(ctx, rec)
}

// ErrNoContent is returned for orders with files, pillar or secret arguments if the store cannot keep those.
var ErrNoContent = errors.New("the store cannot keep the files and pillar of orders")

// lostContent ends the deliveries of an order whose sealed content is missing or cannot be opened, because
// retrying would not help. It returns other errors, after which deliveries that are sent for the first time are pending
// again.
func (d *Deliverer) lostContent(ds []store.Delivery, err error, first bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if !errors.Is(err, content.ErrUnreadable) && !errors.Is(err, store.ErrNotFound) {
		for _, x := range ds {
			if first && !errors.Is(err, ErrNoContent) {
				d.finishDelivery(ctx, x, releaseUnsent)
				d.retryLater(x.Minion)
			}
		}
		return err
	}
	d.opts.Log.Error("Cannot send order", "jid", ds[0].JID, "err", err)
	for _, x := range ds {
		d.settleDelivery(ctx, x, store.Lost, false,
			"it was never sent: its content is sealed with a key that the master does not have")
	}
	return nil
}

// releaseUnsent makes a claimed delivery pending again, unless it is being cancelled.
func releaseUnsent(x *store.Delivery) bool {
	if x.State != store.Sent || x.Reason != "" {
		return false
	}
	x.State, x.Owner, x.Sent, x.Tries = store.Waiting, "", time.Time{}, 0
	x.Due = Overdue(*x)
	return true
}

// pathTo returns the master of the cluster to which a minion listens, or "" if it is unknown.
func (d *Deliverer) pathTo(id string, via map[string]string) string {
	self := d.opts.Name
	name := via[id]
	switch {
	case name != "" && (name == self || d.opts.Wire.KnowsPeer(name)):
		return name
	case d.here(id) || via == nil && d.hears([]string{id}):
		return self
	}
	return ""
}

// giveUp ends a delivery that was pending for too long.
func (d *Deliverer) giveUp(ctx context.Context, x store.Delivery, now time.Time) {
	reason := "its time to live ended before the minion connected"
	if !x.Deadline.IsZero() && !now.Before(x.Deadline) {
		reason = "its deadline passed before the minion connected"
	}
	d.finishDelivery(ctx, x, func(x *store.Delivery) bool {
		x.Reason = reason
		return endAs(x, store.Undeliverable, x.State == store.Waiting)
	})
}

// endAs makes a delivery final if still is true. It returns still.
func endAs(x *store.Delivery, s store.State, still bool) bool {
	if still {
		x.State = s
	}
	return still
}

// endNow fills in what a delivery that has become final has.
func endNow(x *store.Delivery, now time.Time) {
	x.Due, x.Owner, x.Ended = time.Time{}, "", now
}

// finishDelivery applies a change to a delivery, retrying until the store accepts it, and notifies the
// watchers. change gets the current delivery and returns false if there is nothing left to do.
func (d *Deliverer) finishDelivery(ctx context.Context, x store.Delivery,
	change func(x *store.Delivery) bool) {
	for {
		if !x.State.Open() || !change(&x) {
			return
		}
		if !x.State.Open() {
			endNow(&x, time.Now().UTC())
		}
		err := d.q.SwapDelivery(ctx, &x)
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrChanged) {
			d.logFailure(ctx, "Cannot change order", err)
			return
		}
		list, err := d.q.Deliveries(ctx, store.DeliveryFilter{JID: x.JID, Minion: x.Minion})
		if err != nil || len(list) == 0 {
			d.logFailure(ctx, "Cannot change order", err)
			return
		}
		x = list[0]
	}
	if !x.State.Open() {
		d.tellEnd(x)
	}
}

// tellEnd notifies those who wait for the end of a delivery.
func (d *Deliverer) tellEnd(x store.Delivery) {
	d.opts.Events.Publish("brine/order/"+x.JID+"/"+x.Minion, map[string]any{"jid": x.JID,
		"id": x.Minion, "state": string(x.State), "reason": x.Reason, "running": x.Running})
	d.notifyWatchers(x.JID)
	d.lookForNext(x.Minion)
}

// lookForNext triggers a look-up of further deliveries for a minion.
func (d *Deliverer) lookForNext(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.peers.of(id); d.holds(p, p.heard, d.now()) {
		d.peers.markAnswered(p)
	} else {
		d.peers.markLookUp(p)
	}
	d.wakeRun()
}

// refusalText returns the text of a return if the minion's own policy refused the job, else "".
func refusalText(load map[string]any) string {
	said, ok := payload.Text(load["return"])
	if !ok || fields.FirstCode(load["retcode"]) == 0 {
		return ""
	}
	for _, mark := range []string{"the policy of this minion does not allow ",
		"Minion in blackout mode. "} {
		if strings.Contains(said, mark) {
			return said
		}
	}
	return ""
}

// never is the latest time, for deliveries without an end. The store needs a time to sort by.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Overdue returns when a pending delivery must be given up.
func Overdue(d store.Delivery) time.Time {
	due := never
	for _, at := range []time.Time{d.Expires, d.Deadline} {
		if !at.IsZero() && at.Before(due) {
			due = at
		}
	}
	return due
}

// Revoke cancels all open deliveries of a minion.
func (d *Deliverer) Revoke(ctx context.Context, id string) error {
	list, err := d.q.Deliveries(ctx, store.DeliveryFilter{Minion: id, Open: true,
		Limit: MaxDeliveries})
	waiting, sent := list[:0:0], list[:0:0]
	for _, x := range list {
		if x.State == store.Waiting {
			waiting = append(waiting, x)
		} else {
			sent = append(sent, x)
		}
	}
	// Pending deliveries are cancelled first. Otherwise the end of a sent one would send the next.
	for _, part := range [][]store.Delivery{waiting, sent} {
		inParallel(len(part), sendWorkers, func(i int) {
			d.settleDelivery(ctx, part[i], store.Cancelled, part[i].State == store.Sent,
				"the minion was revoked")
		})
	}
	return err
}
