package subscribers

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/tenants"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
	"github.com/brine-salt/brine/protocol/transport"
)

// storeTime bounds one use of the database where no request bounds it.
const storeTime = 2 * time.Minute

// Connected are the minions that are connected.
type Connected interface {
	// Present lists the accepted minions that are connected to this master or to one that shares its database.
	Present() []string
}

// SenderOptions are what a Sender needs. Fields that may be nil say so.
type SenderOptions struct {
	Keyring *Keyring
	Tenants *tenants.Registry
	// Minions has the records of minions, which say who fetches jobs; nil if the store keeps none.
	Minions   store.Minions
	Keys      *keys.Store
	Names     *Identifier
	Connected Connected
	// Key signs publishes with Algorithm.
	Key       *crypt.PrivateKey
	Algorithm string
	// Name tells this master from others of a cluster, "" for a master alone.
	Name string
	// Isolate has nobody see jobs that are not for him, also without tenants.
	Isolate bool
	// Clock makes the ids of jobs for nobody.
	Clock *protocol.JIDClock
	Log   *slog.Logger
}

// Sender hands jobs to the connections of this master. Each tenant's publishes are sealed under a key of their own,
// made from the master's, so that equal masters have the same ones and they change when it does. A minion knows that of
// its tenant alone: what it records of others' publishes it cannot read.
type Sender struct {
	SenderOptions
	servers []transport.Server
}

// NewSender returns a Sender without connections.
func NewSender(o SenderOptions) *Sender { return &Sender{SenderOptions: o} }

// Use tells the transports. It is called once, before anything is sent.
func (s *Sender) Use(servers []transport.Server) { s.servers = servers }

// Isolated reports whether nobody may see jobs that are not for him: with Isolate, and as soon as there are tenants.
func (s *Sender) Isolated() bool { return s.Isolate || s.Tenants.Any() }

// Audience is for whom a job is.
type Audience struct {
	// IDs may fetch the job, which is stored; nil for what is always sent whole.
	IDs []string
	// Topics are whose connections get it; nil is all.
	Topics []string
}

// Topics are the ids to send a publish to, where a transport can choose: for targets by id only, as Salt does
// (salt/channel/server.py, wrap_payload), unless it is for all of them. nil is everybody.
func (s *Sender) Topics(tgtType string, ids, missing []string) []string {
	if s.Isolated() {
		return slices.Concat(ids, missing)
	}
	if all := slices.Concat(ids, missing); target.OfIDs(tgtType) && len(all) > 0 {
		return all
	}
	return nil
}

// announces is who of a job's minions gets an announcement in place of the job itself: those that fetch, when the job
// has arguments, and others than its minions would get it too.
func (s *Sender) announces(job map[string]any, to Audience) []string {
	if len(to.IDs) == 0 || s.Minions == nil || s.Isolated() || !hasArguments(job) ||
		!s.overheard(to) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	ids, err := s.fetchers(ctx, to.IDs)
	if err != nil {
		s.Log.Error("Cannot find out which minions fetch their jobs", "jid", job["jid"], "err", err)
		return nil
	}
	return ids
}

// hasArguments reports whether a job has something to hide.
func hasArguments(job map[string]any) bool {
	args, _ := payload.List(job["arg"])
	if _, compound := payload.List(job["fun"]); compound {
		return slices.ContainsFunc(args, func(a any) bool { return len(fields.List(a)) > 0 })
	}
	return len(args) > 0 || job["ret_kwargs"] != nil
}

// overheard reports whether somebody else than those a job is for would get it: it goes to all connections, or to some
// that nobody knows.
func (s *Sender) overheard(to Audience) bool {
	accepted, err := s.Keys.List(keys.Accepted)
	if err == nil && len(to.IDs) >= len(accepted) {
		return false // it is for everybody who can read it
	}
	if to.Topics == nil || s.Names.HasUnknown() {
		return true
	}
	// where subscribers choose, those that are known count as well
	for _, server := range s.servers {
		if _, nameless := server.Reach(); nameless > 0 {
			return true
		}
	}
	return false
}

// fetchers is which of some minions said at their start that they fetch jobs.
func (s *Sender) fetchers(ctx context.Context, ids []string) ([]string, error) {
	list, err := s.Minions.Minions(ctx, store.MinionFilter{IDs: ids})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, x := range list {
		if x.Spec["fetch"] == true {
			out = append(out, x.ID)
		}
	}
	return out, nil
}

// Send hands a job to the connections of this master: whole, or to minions that fetch it as an announcement where
// others would read it.
func (s *Sender) Send(job map[string]any, to Audience) error {
	if !s.reaches(to.Topics) {
		return nil
	}
	ours := s.announces(job, to)
	if len(ours) == 0 {
		return s.transmit(job, to.Topics)
	}
	if len(ours) == len(to.IDs) {
		return s.transmit(protocol.Announce(job, nil), to.Topics)
	}
	if err := s.transmit(protocol.Announce(job, nested.Anys(ours)), ours); err != nil {
		return err
	}
	fetch := make(map[string]struct{}, len(ours))
	for _, id := range ours {
		fetch[id] = struct{}{}
	}
	rest := slices.DeleteFunc(slices.Clone(to.IDs),
		func(id string) bool { _, ok := fetch[id]; return ok })
	return s.transmit(job, rest)
}

// reaches reports whether a subscriber of this master may be one of some minions, or anybody is there if topics is nil.
// Signing what nobody gets would be most of the work of several masters.
func (s *Sender) reaches(topics []string) bool {
	for _, server := range s.servers {
		if topics == nil && server.Subscribers() > 0 {
			return true
		}
		if named, nameless := server.Reach(topics...); named+nameless > 0 {
			return true
		}
	}
	return false
}

// Here reports whether one of this master's subscribers is known to be a minion.
func (s *Sender) Here(id string) bool {
	for _, server := range s.servers {
		if named, _ := server.Reach(id); named > 0 {
			return true
		}
	}
	return false
}

// transmit seals a job map and hands it to every transport: where there are tenants, to each one's minions apart.
// topics are ids, nil for everybody.
func (s *Sender) transmit(job map[string]any, topics []string) error {
	if !s.Tenants.Any() {
		return s.transmitTo("", job, topics)
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	parts, err := s.parts(ctx, job, topics)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := s.transmitTo(p.tenant, p.job, p.ids); err != nil {
			return err
		}
	}
	return nil
}

// transmitTo seals a job map under the key of a tenant and hands it to every transport.
func (s *Sender) transmitTo(tenant string, job map[string]any, topics []string) error {
	s.Keyring.mu.Lock()
	defer s.Keyring.mu.Unlock()
	msg, err := s.sealJob(tenant, job)
	if err != nil {
		return err
	}
	for _, server := range s.servers {
		if err := server.Publish(msg, topics); err != nil {
			return err
		}
	}
	return nil
}

// sealJob makes the message of a job map under a tenant's key; callers hold the lock of the keyring. Equal masters send
// no serial, as those of Salt's cluster: minions would drop what one of them sends after another one counted further.
func (s *Sender) sealJob(tenant string, job map[string]any) ([]byte, error) {
	key, err := s.Keyring.of(tenant)
	if err != nil {
		return nil, err
	}
	if name := s.Name; name == "" {
		job["serial"] = s.Keyring.next(time.Now())
	} else if probe.IsQuestion(job) {
		job = probe.SentBy(job, name)
	}
	return protocol.SealPublish(job, key, s.Key, s.Algorithm)
}

// part is what one tenant's minions get of a job.
type part struct {
	tenant string
	job    map[string]any
	ids    []string
}

// parts divides a job by tenants. A target that could name others becomes the list of those whom it means.
func (s *Sender) parts(ctx context.Context, job map[string]any, topics []string) ([]part, error) {
	of, err := s.Tenants.All(ctx)
	if err != nil {
		return nil, err
	}
	if topics == nil {
		topics = s.Connected.Present()
	}
	ids := make(map[string][]string)
	for _, id := range topics {
		ids[of[id]] = append(ids[of[id]], id)
	}
	tgt, _ := payload.Text(job["tgt"])
	everybody := tgt == "*" && fields.Text(job, "tgt_type") == target.TypeGlob
	var out []part
	for _, tenant := range slices.Sorted(maps.Keys(ids)) {
		p := part{tenant, job, ids[tenant]}
		if !everybody {
			p.job = maps.Clone(job)
			p.job["tgt"], p.job["tgt_type"] = nested.Anys(p.ids), target.TypeList
		}
		if s.reaches(p.ids) {
			out = append(out, p)
		}
	}
	return out, nil
}

// Dismiss has minions that are connected, but whose key was deleted or rejected, notice that: they get a job for
// nobody, which they cannot read. Jobs do not go to their connections.
func (s *Sender) Dismiss() {
	accepted, err := s.Keys.List(keys.Accepted)
	if err != nil {
		s.Log.Error("Cannot tell minions that their keys are gone", "err", err)
		return
	}
	var gone []string
	for _, server := range s.servers {
		for _, id := range server.Present() {
			if _, ok := slices.BinarySearch(accepted, id); !ok && !slices.Contains(gone, id) {
				gone = append(gone, id)
			}
		}
	}
	if len(gone) == 0 {
		return
	}
	job := map[string]any{"fun": "test.ping", "arg": []any{}, "tgt": []any{},
		"tgt_type": target.TypeList, "ret": "", "jid": string(s.Clock.Next(time.Now()))}
	if err := s.transmit(job, gone); err != nil {
		s.Log.Debug("Cannot tell minions that their keys are gone", "err", err)
	}
}

// SealProbe seals a probe with a mark under a tenant's key and hands it to send, in the order of publishes.
func (s *Sender) SealProbe(tenant, mark string, send func(msg []byte) bool) (bool, error) {
	job := map[string]any{"fun": "test.ping", "arg": []any{}, "tgt": "*",
		"tgt_type": target.TypeGlob, "ret": "", "jid": string(s.Clock.Next(time.Now())),
		"metadata": probe.LinkMetadata(mark)}
	s.Keyring.mu.Lock()
	defer s.Keyring.mu.Unlock()
	msg, err := s.sealJob(tenant, job)
	if err != nil {
		return false, err
	}
	return send(msg), nil
}
