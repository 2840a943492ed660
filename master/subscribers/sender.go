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

// storeTime limits a use of the database outside of any request.
const storeTime = 2 * time.Minute

// Connected provides the connected minions.
type Connected interface {
	// Present returns the accepted minions that are connected to this master or to a peer.
	Present() []string
}

// SenderOptions configure a Sender. Fields that may be nil say so.
type SenderOptions struct {
	Keyring *Keyring
	Tenants *tenants.Registry
	// Minions holds the records of minions, which show who fetches jobs; nil if the store keeps none.
	Minions   store.Minions
	Keys      *keys.Store
	Names     *Identifier
	Connected Connected
	// Key signs publishes with Algorithm.
	Key       *crypt.PrivateKey
	Algorithm string
	// Name is this master's name in a cluster, or "" for a single master.
	Name string
	// Isolate sends each job only to its minions, even without tenants.
	Isolate bool
	// Clock creates ids for jobs without a target.
	Clock *protocol.JIDClock
	Log   *slog.Logger
}

// Sender sends jobs to this master's connections. Each tenant's publishes are sealed under a key of their own,
// derived from the shared key, so that all masters of a cluster have the same keys and they change with it. A
// minion only knows its tenant's key, so it cannot read recordings of other tenants' publishes.
type Sender struct {
	SenderOptions
	servers []transport.Server
}

// NewSender returns a Sender without connections.
func NewSender(o SenderOptions) *Sender { return &Sender{SenderOptions: o} }

// Use sets the transports. Call it once, before anything is sent.
func (s *Sender) Use(servers []transport.Server) { s.servers = servers }

// Isolated reports whether jobs go only to their minions: with Isolate, and once there are tenants.
func (s *Sender) Isolated() bool { return s.Isolate || s.Tenants.Any() }

// Audience describes the recipients of a job.
type Audience struct {
	// IDs are the minions that may fetch the stored job; nil for a job that is always sent whole.
	IDs []string
	// Topics are the minions whose connections receive it; nil means all.
	Topics []string
}

// Topics returns the ids to which a transport that can choose sends a publish: only for targets by id, as in
// Salt (salt/channel/server.py, wrap_payload). nil means all connections.
func (s *Sender) Topics(tgtType string, ids, missing []string) []string {
	if s.Isolated() {
		return slices.Concat(ids, missing)
	}
	if all := slices.Concat(ids, missing); target.OfIDs(tgtType) && len(all) > 0 {
		return all
	}
	return nil
}

// announces returns the minions that receive an announcement instead of the job: those that fetch jobs, if the
// job has arguments and other minions would also receive it.
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

// hasArguments reports whether a job has arguments, which others should not see.
func hasArguments(job map[string]any) bool {
	args, _ := payload.List(job["arg"])
	if _, compound := payload.List(job["fun"]); compound {
		return slices.ContainsFunc(args, func(a any) bool { return len(fields.List(a)) > 0 })
	}
	return len(args) > 0 || job["ret_kwargs"] != nil
}

// overheard reports whether minions outside the audience would receive a job: it goes to all connections, or
// some connections are unidentified.
func (s *Sender) overheard(to Audience) bool {
	accepted, err := s.Keys.List(keys.Accepted)
	if err == nil && len(to.IDs) >= len(accepted) {
		return false // it is for all minions that can read it
	}
	if to.Topics == nil || s.Names.HasUnknown() {
		return true
	}
	// Where subscribers choose, identified ones receive it too.
	for _, server := range s.servers {
		if _, nameless := server.Reach(); nameless > 0 {
			return true
		}
	}
	return false
}

// fetchers returns those minions that announced at their start that they fetch jobs.
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

// Send sends a job to this master's connections: whole, or as an announcement to minions that fetch, if others
// would read it.
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

// reaches reports whether a subscriber of this master may be one of some minions or, if topics is nil, whether
// there is any. In a cluster, signing publishes that reach no subscriber would be most of the work.
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

// Here reports whether a minion's subscriber is connected to this master.
func (s *Sender) Here(id string) bool {
	for _, server := range s.servers {
		if named, _ := server.Reach(id); named > 0 {
			return true
		}
	}
	return false
}

// transmit seals a job and sends it on every transport. With tenants it does so once per tenant. topics are
// ids; nil means all.
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

// transmitTo seals a job under a tenant's key and sends it on every transport.
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

// sealJob returns the sealed message of a job under a tenant's key. The caller holds the keyring's mu. Masters
// of a cluster send no serial, as in Salt's cluster: minions would drop one master's messages after another
// one's higher serial.
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

// part is a job for one tenant's minions.
type part struct {
	tenant string
	job    map[string]any
	ids    []string
}

// parts divides a job by tenants. A target that could contain other tenants' ids becomes the list of matching
// minions.
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

// Dismiss makes connected minions whose key was deleted or rejected notice that. It sends them a job without a
// target, which they cannot read. Their connections receive no other jobs.
func (s *Sender) Dismiss() {
	accepted, err := s.Keys.List(keys.Accepted)
	if err != nil {
		s.Log.Error("Cannot notify minions whose keys were deleted", "err", err)
		return
	}
	var gone []string
	for _, server := range s.servers {
		for _, id := range server.Present() {
			if _, ok := slices.BinarySearch(accepted, id); !ok {
				gone = append(gone, id)
			}
		}
	}
	slices.Sort(gone)
	gone = slices.Compact(gone)
	if len(gone) == 0 {
		return
	}
	job := map[string]any{"fun": "test.ping", "arg": []any{}, "tgt": []any{},
		"tgt_type": target.TypeList, "ret": "", "jid": string(s.Clock.Next(time.Now()))}
	if err := s.transmit(job, gone); err != nil {
		s.Log.Debug("Cannot notify minions whose keys were deleted", "err", err)
	}
}

// SealProbe seals a probe with a mark under a tenant's key and passes it to send, in the order of publishes.
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
