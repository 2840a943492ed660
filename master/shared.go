package master

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/master/cluster"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/payload"
)

// Shared makes a master one of several equal ones over the database of Options.Store. They have one identity, one set of keys and one
// set of jobs: any of them serves any minion's request, a job that one publishes reaches the minions of all, and any of them may die.
// Nothing but the database connects them.
type Shared struct {
	// Key seals the private parts that the masters keep in the database; all must have the same, of at least 16 bytes. KeyFile names a
	// file with it instead; white space around it does not count.
	Key     []byte
	KeyFile string
	// Former are sealing keys of before. What they sealed is read, and sealed anew with Key.
	Former [][]byte
	// Name tells this master from the others; empty makes one up.
	Name string
}

const (
	maxMasterName = 200
	// heartbeat is how often a master says that it is there; beatLife how long the others believe it. Listeners to events are looked for
	// more often.
	heartbeat  = 2 * time.Second
	listenTick = 200 * time.Millisecond
	beatLife   = 15 * time.Second
	// keepMessages is how long what masters tell each other is kept, maxMessages how many.
	keepMessages = 10 * time.Minute
	maxMessages  = 200_000
	// followPause is before the database is followed again after a failure.
	followPause = time.Second
	// inlineReturn is the size up to which a return travels in the message that tells of it.
	inlineReturn = 4 << 10
	// tellBatch is how many events are told at once.
	tellBatch = 200
)

// Kinds of messages between masters, beside keys.MessageKind.
const (
	tellPublish = "publish" // a job for the minions of every master
	tellReturn  = "return"  // a minion returned
	tellEvent   = "event"   // something happened
	tellListen  = "listen"  // somebody listens to events, or no more
	tellExpect  = "expect"  // an order waits for minions
	tellPresent = "present" // minions came and went, or, if it is full, these are there
	tellWho     = "who"     // which minions are there?
)

// Prefixes of the names of leases.
const (
	leaseMaster   = "master/"
	leaseListens  = "listens/"
	leaseMaintain = "maintain"
)

// shared is what a master knows of the others.
type shared struct {
	m     *Master
	db    store.Shared
	name  string
	seal  cluster.Sealing
	vault *cluster.Vault

	heard     atomic.Int64 // when others listened last, in nanoseconds
	listening bool         // of beat only

	asked   atomic.Bool         // another master wants to know which minions are here
	present map[string]struct{} // the minions that the others were told of; of beat only
}

// openShared prepares the master to be one of several, if it is to be.
func (m *Master) openShared() error {
	o := m.opts.Shared
	if o == nil {
		return nil
	}
	db, ok := m.store.(store.Shared)
	if !ok {
		return errors.New("Shared needs a Store in a database")
	}
	s := &shared{m: m, db: db, name: o.Name}
	if s.name == "" {
		s.name = m.opts.ID + "/" + strings.ToLower(rand.Text()[:8])
	}
	if len(s.name) > maxMasterName {
		return fmt.Errorf("Shared.Name has %d bytes, more than %d", len(s.name), maxMasterName)
	}
	var err error
	if s.seal, err = cluster.ReadSealing(o.Key, o.KeyFile, o.Former); err != nil {
		return err
	}
	s.vault = cluster.NewVault(db, s.name, s.seal, s)
	m.shared = s
	return nil
}

// tell tells the other masters.
func (s *shared) tell(ctx context.Context, kind string, body map[string]any) error {
	b, err := payload.MarshalBin(body)
	if err != nil {
		return err
	}
	return s.db.Tell(ctx, store.Message{From: s.name, Kind: kind, Body: b})
}

// run follows the others until ctx ends, and gives up the lease then.
func (s *shared) run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.relayEvents(ctx)
	}()
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		s.beat(ctx)
	}()
	for ctx.Err() == nil {
		if err := s.db.Follow(ctx, s.name, func(list []store.Message) { s.told(ctx, list) }); err != nil && ctx.Err() == nil {
			s.m.log.Error("cannot hear other masters", "err", err)
		}
		select {
		case <-time.After(followPause):
		case <-ctx.Done():
		}
		if ctx.Err() == nil {
			s.told(ctx, nil)
		}
	}
	<-done
	<-beats
}

// beat says that this master is there, and finds out whether others listen to events.
func (s *shared) beat(ctx context.Context) {
	ticker := time.NewTicker(listenTick)
	defer ticker.Stop()
	var last time.Time
	for {
		if s.listens() != s.listening || time.Since(last) >= heartbeat {
			last = time.Now()
			if err := s.beatOnce(ctx); err != nil && ctx.Err() == nil {
				s.m.log.Warn("cannot tell other masters of this one", "err", err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
			defer cancel()
			for _, prefix := range []string{leaseMaster, leaseListens} {
				if err := s.db.Release(ctx, prefix+s.name, s.name); err != nil {
					s.m.log.Warn("cannot take leave of other masters", "err", err)
				}
			}
			return
		}
	}
}

// listens says whether anybody listens to events here, beside relayEvents.
func (s *shared) listens() bool { return s.m.events.Subscribers() > 1 }

func (s *shared) beatOnce(ctx context.Context) error {
	if _, err := s.db.Lease(ctx, leaseMaster+s.name, s.name, beatLife); err != nil {
		return err
	}
	listens := s.listens()
	if listens {
		if _, err := s.db.Lease(ctx, leaseListens+s.name, s.name, beatLife); err != nil {
			return err
		}
	}
	if listens && !s.listening {
		if err := s.tell(ctx, tellListen, map[string]any{}); err != nil {
			return err
		}
	}
	s.listening = listens
	others, err := s.db.Leases(ctx, leaseListens)
	if err != nil {
		return err
	}
	delete(others, leaseListens+s.name)
	if len(others) > 0 {
		s.heard.Store(time.Now().UnixNano())
	}
	return s.beatPresence(ctx)
}

// othersListen says whether another master has somebody who listens to events.
func (s *shared) othersListen() bool {
	return time.Since(time.Unix(0, s.heard.Load())) < beatLife
}

// Masters lists the names of the masters that share the database and are there, sorted; of a master alone, none.
func (m *Master) Masters(ctx context.Context) ([]string, error) {
	if m.shared == nil {
		return nil, nil
	}
	leases, err := m.shared.db.Leases(ctx, leaseMaster)
	var out []string
	for _, name := range leases {
		out = append(out, name)
	}
	slices.Sort(out)
	return out, err
}

// relayEvents tells the others what happens here, while one of them listens. Returns they are told of by reqReturn.
func (s *shared) relayEvents(ctx context.Context) {
	sub := s.m.events.Subscribe(events.SubscribeOptions{Own: true, Match: func(tag string) bool { return s.othersListen() && forOthers(tag) }})
	defer sub.Close()
	missed := 0 // events that the others were not told of, and do not know that
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return
		}
		var list []store.Message
		for {
			if e.Missed > 0 {
				missed += e.Missed
			} else if b, err := payload.MarshalBin(map[string]any{"tag": e.Tag, "data": e.Data}); err != nil {
				s.m.log.Warn("event cannot be told to other masters", "tag", e.Tag, "err", err)
				missed++
			} else {
				list = append(list, store.Message{From: s.name, Kind: tellEvent, Body: b})
			}
			if len(list) == tellBatch || sub.Waiting() == 0 {
				break
			}
			if e, err = sub.Next(ctx); err != nil {
				return
			}
		}
		if missed > 0 {
			s.m.log.Warn("events were not told to other masters", "events", missed)
			if b, err := payload.MarshalBin(map[string]any{"missed": int64(missed)}); err == nil {
				list = append(list, store.Message{From: s.name, Kind: tellEvent, Body: b})
			}
		}
		if err := s.db.Tell(ctx, list...); err != nil && ctx.Err() == nil {
			s.m.log.Warn("events were not told to other masters", "events", len(list), "err", err)
			missed += len(list)
			continue
		}
		missed = 0
	}
}

// forOthers says whether an event is told to other masters: not what each of them finds out itself, and returns are told as such.
func forOthers(tag string) bool {
	parts := strings.SplitN(tag, "/", 5)
	switch {
	case strings.HasPrefix(tag, "salt/presence/"), strings.HasPrefix(tag, "minion/refresh/"), tag == "salt/auth":
		return false
	case len(parts) == 5 && parts[0] == "salt" && parts[1] == "job" && parts[3] == "ret":
		return false
	}
	return true
}

// told takes what other masters tell; nil says that something was missed.
func (s *shared) told(ctx context.Context, list []store.Message) {
	if list == nil {
		s.m.log.Warn("messages of other masters were missed")
		s.m.keys.Told(nil)
		s.m.presence.ForgetOthers()
		s.m.events.RelayGap(1)
		s.reload(ctx)
		s.m.catchUpAll(ctx)
		return
	}
	for _, msg := range list {
		if msg.Kind == keys.MessageKind {
			if c, ok := s.m.keys.Told(msg.Body); ok {
				s.m.keyChangedElsewhere(c)
			}
			continue
		}
		v, err := payload.UnmarshalDiskOrdered(msg.Body, payload.Limits{})
		body, ok := payload.Map(v)
		if err != nil || !ok {
			s.m.log.Error("message of another master cannot be read", "from", msg.From, "kind", msg.Kind, "err", err)
			continue
		}
		switch msg.Kind {
		case tellPublish:
			s.publishHere(body)
		case tellReturn:
			s.returnedElsewhere(ctx, body)
		case tellEvent:
			if n, ok := payload.Int(body["missed"]); ok {
				s.m.events.RelayGap(int(n))
				continue
			}
			data, _ := payload.Map(body["data"])
			s.m.events.Relay(fields.Text(body, "tag"), data)
		case tellExpect:
			s.m.orders.ExpectElsewhere(fields.Texts(body["ids"]), fields.Texts(body["here"]))
		case cluster.TellSecret:
			s.reload(ctx)
		case tellListen:
			s.heard.Store(time.Now().UnixNano())
		case tellPresent:
			s.hearPresence(msg.From, body)
		case tellWho:
			s.asked.Store(true)
		}
	}
}

func (s *shared) reload(ctx context.Context) {
	if err := s.vault.Load(ctx); err != nil && ctx.Err() == nil {
		s.m.log.Error("cannot read secrets of the masters", "err", err)
	}
	s.m.dismiss()
}

// publishOthers hands a job to the minions of the other masters.
func (s *shared) publishOthers(job map[string]any, to audience) error {
	msg, err := s.publishMessage("", job, to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	return s.db.Tell(ctx, msg)
}

// publishMessage is what hands a job to the minions of another master, or of all others if it has no name.
func (s *shared) publishMessage(name string, job map[string]any, to audience) (store.Message, error) {
	body := map[string]any{"job": job}
	if content.IsSecret(job) {
		sealed, err := content.SealJob(s.seal, job)
		if err != nil {
			return store.Message{}, err
		}
		body = sealed
	}
	if to.topics != nil {
		body["topics"] = to.topics
	}
	switch {
	case to.ids == nil:
	case slices.Equal(to.ids, to.topics):
		body["ids"] = true
	default:
		body["ids"] = to.ids
	}
	if s.m.noCache(fields.Text(job, "jid")) {
		body["nocache"] = true
	}
	b, err := payload.MarshalBin(body)
	return store.Message{From: s.name, To: name, Kind: tellPublish, Body: b}, err
}

// publishHere sends a job of another master.
func (s *shared) publishHere(body map[string]any) {
	job, ok := payload.Map(body["job"])
	if !ok {
		return
	}
	if sealed, ok := payload.Bytes(body["sealed"]); ok {
		if err := content.OpenJob(s.seal, job, sealed); err != nil {
			s.m.log.Error("job of another master cannot be sent", "jid", job["jid"], "err", err)
			return
		}
	}
	if body["nocache"] == true {
		s.m.skipCache(fields.Text(job, "jid"))
	}
	var to audience
	if list, ok := payload.List(body["topics"]); ok {
		to.topics = fields.Texts(list)
	}
	if list, ok := payload.List(body["ids"]); ok {
		to.ids = fields.Texts(list)
	} else if body["ids"] == true {
		to.ids = to.topics
	}
	if probe.IsProbe(job) {
		s.m.orders.AskedElsewhere(to.ids)
	}
	if err := s.m.send(job, to); err != nil {
		s.m.log.Error("job of another master cannot be sent", "jid", job["jid"], "err", err)
	}
}

// saveOrder stores an order and tells the others that it waits: whoever dies now, one of them delivers it.
func (m *Master) saveOrder(ctx context.Context, rec store.Order, list []store.Delivery, ids []string) error {
	if m.shared == nil {
		return m.orders.Queue().SaveOrder(ctx, rec, list)
	}
	here := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !m.here(id) })
	b, err := payload.MarshalBin(map[string]any{"ids": ids, "here": here})
	if err != nil {
		return err
	}
	return m.shared.db.SaveOrderTell(ctx, rec, list, store.Message{From: m.shared.name, Kind: tellExpect, Body: b})
}

// returnMessage tells that a minion returned; a large return is left in the store.
func (s *shared) returnMessage(jid, id string, load map[string]any, stored bool) (store.Message, error) {
	body := map[string]any{"jid": jid, "id": id, "load": load}
	b, err := payload.MarshalBin(body)
	if err == nil && stored && len(b) > inlineReturn {
		delete(body, "load")
		b, err = payload.MarshalBin(body)
	}
	return store.Message{From: s.name, Kind: tellReturn, Body: b}, err
}

// saveReturn stores a return and tells the others of it.
func (m *Master) saveReturn(ctx context.Context, r store.Return) (bool, error) {
	if m.shared == nil {
		return m.store.SaveReturn(ctx, r)
	}
	msg, err := m.shared.returnMessage(r.JID, r.ID, r.Load, true)
	if err != nil {
		return false, err
	}
	return m.shared.db.SaveReturnTell(ctx, r, msg)
}

// tellReturned tells the others of a return that is not stored.
func (s *shared) tellReturned(ctx context.Context, jid, id string, load map[string]any) error {
	msg, err := s.returnMessage(jid, id, load, false)
	if err != nil {
		return err
	}
	return s.db.Tell(ctx, msg)
}

// returnedElsewhere takes a return that another master got. It is read from the store only if somebody here wants it.
func (s *shared) returnedElsewhere(ctx context.Context, body map[string]any) {
	jid, id := fields.Text(body, "jid"), fields.Text(body, "id")
	s.m.orders.HeardElsewhere(id)
	load, ok := payload.Map(body["load"])
	if ok && probe.IsProbe(load) && (s.m.names.Answered(id, load) || probe.Sender(load) == s.name) {
		s.m.orders.Heard(id, load)
		return
	}
	if !ok {
		if s.m.runOf(jid) == nil && !s.m.events.Wanted("salt/job/"+jid+"/ret/"+id) {
			return
		}
		r, err := s.db.Return(ctx, jid, id)
		if err != nil {
			s.m.log.Warn("return of another master's minion cannot be read", "minion", id, "jid", jid, "err", err)
			s.m.events.RelayGap(1)
			return
		}
		load = r.Load
	}
	s.m.events.Relay("salt/job/"+jid+"/ret/"+id, load)
	if r := s.m.runOf(jid); r != nil {
		r.deliver(resultOf(id, load))
	}
}

// storeTime bounds one use of the database where no request bounds it.
const storeTime = 2 * time.Minute

// onceMark is what the masters remember of a request that must not be taken twice.
func onceMark(v protocol.Verified) []byte {
	sum := sha256.Sum256([]byte(v.Nonce()))
	return sum[:16]
}

// firstTime says whether a request was not taken by any master before. Only those that change something are remembered: others may be
// repeated by whoever recorded them, but only the minion can read the answer. A return of a job is stored once anyway.
func (s *shared) firstTime(ctx context.Context, v protocol.Verified) (bool, error) {
	switch v.Cmd() {
	case "_return":
		if jid := fields.Text(v.Load(), "jid"); jid != string(protocol.JIDRequest) && jid != string(protocol.JIDNoCache) {
			return true, nil
		}
	case "_minion_event", "_mine", "_mine_delete", "_mine_flush", "_file_recv", "minion_pub", "minion_publish", "minion_runner", "revoke_auth":
	default:
		return true, nil
	}
	return s.db.Once(ctx, v.ID(), onceMark(v))
}

// maintain forgets what is old; one of the masters does it.
func (s *shared) maintain(ctx context.Context, now time.Time) (mine bool) {
	mine, err := s.db.Lease(ctx, leaseMaintain, s.name, 2*s.m.opts.LoopInterval)
	if err == nil && mine {
		marks := now.Add(-2*s.m.opts.PublishSession - time.Hour)
		err = s.db.PurgeShared(ctx, now.Add(-keepMessages), marks, maxMessages)
	}
	if err == nil {
		err = s.vault.RenewSessions(ctx, now, s.m.opts.PublishSession)
	}
	if err != nil && ctx.Err() == nil {
		s.m.log.Warn("cannot look after what masters share", "err", err)
	}
	return mine
}

// keyChangedElsewhere follows a change of keys that another master made; that one fired the event and replaced the shared key.
func (m *Master) keyChangedElsewhere(c keys.Change) {
	if c.From == keys.Accepted && c.To != keys.Accepted && c.Act != "denied" {
		m.sessions.Forget(c.ID)
		m.presence.Forget(c.ID)
	}
}
