package master

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/brine-salt/brine/master/bootstrap"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/requests"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// DefaultTokenTTL is how long a token to join is good where nothing else is said.
const DefaultTokenTTL = 24 * time.Hour

// ErrNoMinionRecords is returned by everything about announced minions when Options.Store cannot keep them.
var ErrNoMinionRecords = store.ErrNoMinions

// ErrOtherTenant is returned by EnsureMinion for an id that was announced for another tenant, or that a tenant
// announces and the operator accepted before.
var ErrOtherTenant = errors.New("it is of another tenant")

// MinionSpec announces a minion that does not exist yet. The zero value of every field but ID is usable: then the minion joins with a
// token, which brine's minion understands. Stock minions need KeyPair or PublicKey.
type MinionSpec struct {
	ID string
	// Tenant is whose the minion is. It cannot be changed while the minion is announced.
	Tenant string
	// Grains are written to the minion, and are what targets mean until it came and told its own.
	Grains map[string]any
	// PublicKey is the minion's, made elsewhere: it is accepted before it ever called.
	PublicKey string
	// KeyPair has the master make the minion's keys. Whoever reads the bootstrap owns that identity.
	KeyPair bool
	// TokenTTL is how long the token is good; 0 means DefaultTokenTTL.
	TokenTTL time.Duration
	// Masters are the addresses that the minion is told; empty means Options.Advertise.
	Masters []string
	// Config are further options of the minion.
	Config map[string]any
	// Events are tags that no other minion may fire: see Master.GrantEvents. nil leaves those that were granted before, an empty list
	// takes them back.
	Events []string

	byTenant bool // the tags are granted by the tenant
}

// EnsureMinion announces a minion and says what its machine must be told. It may be called again with the same spec, by any master of
// the same store: until the minion came, the same token or keys are given again, the token with a new term; afterwards, none.
func (m *Master) EnsureMinion(ctx context.Context, s MinionSpec) (bootstrap.Bootstrap, error) {
	b, err := m.ensure(ctx, s)
	if err != nil {
		return bootstrap.Bootstrap{}, fmt.Errorf("cannot announce minion %.80q: %w", s.ID, err)
	}
	return b, nil
}

func (m *Master) ensure(ctx context.Context, s MinionSpec) (bootstrap.Bootstrap, error) {
	b := bootstrap.Bootstrap{ID: s.ID, Masters: s.Masters, Transport: m.opts.AdvertiseTransport, MasterKey: m.PublicKey(), Tenant: s.Tenant,
		Grains: s.Grains, Config: s.Config, RetPort: m.opts.RetPort, PublishPort: m.opts.PublishPort}
	if m.minions == nil {
		return b, ErrNoMinionRecords
	}
	if err := protocol.ValidID(s.ID); err != nil {
		return b, err
	}
	if s.KeyPair && s.PublicKey != "" {
		return b, errors.New("both KeyPair and PublicKey are set")
	}
	if len(b.Masters) == 0 {
		b.Masters = m.opts.Advertise
	}
	if len(b.Masters) == 0 {
		return b, errors.New("neither Masters nor Options.Advertise says where the master is")
	}
	if m.serving.Load() {
		b.RetPort, b.PublishPort = portOf(m.RequestAddr()), portOf(m.PublishAddr())
	}
	var err error
	if b.Fingerprint, err = m.Fingerprint(); err != nil {
		return b, err
	}
	if s.PublicKey != "" {
		if _, err := crypt.ParsePublicKey([]byte(s.PublicKey)); err != nil {
			return b, err
		}
	}
	ttl := s.TokenTTL
	setDefault(&ttl, DefaultTokenTTL)
	grains, err := plain(s.Grains)
	if err != nil {
		return b, err
	}
	if s.Tenant != "" {
		m.tenants.Add()
	}
	var failure error
	var record store.Minion
	err = store.ChangeMinion(ctx, m.minions, s.ID, func(x *store.Minion) bool {
		if failure = nil; x.Version > 0 && x.Tenant != s.Tenant {
			failure = ErrOtherTenant
			return false
		}
		x.Tenant = s.Tenant
		x.Spec["grains"] = grains
		if s.Events != nil {
			if failure = requests.SetGrants(x, s.byTenant, s.Events); failure != nil {
				return false
			}
		}
		record = *x
		switch {
		case x.Joined || m.accepted(s.ID) && x.Spec["private"] == nil:
			return true
		case s.PublicKey != "":
			x.Spec["public"] = crypt.CleanKey(s.PublicKey)
		case s.KeyPair:
			b.PublicKey, b.PrivateKey, failure = m.pairFor(x)
		default:
			if fields.Text(x.Spec, "token_salt") == "" {
				x.Spec["token_salt"] = rand.Text()
			}
			x.Spec["token_expires"] = time.Now().Add(ttl).UnixMicro()
			b.Token = m.joinToken(*x)
		}
		return failure == nil
	})
	m.tenants.Forget()
	if err == nil {
		err = failure
	}
	if err == nil {
		m.requests.Events.TakeGrants(record)
	}
	if public := s.PublicKey + b.PublicKey; err == nil && public != "" {
		err = m.preseed(s.ID, public)
	}
	return b, err
}

// plain makes plain values of what a caller gave, as the store needs them.
func plain(v map[string]any) (map[string]any, error) {
	if v == nil {
		v = map[string]any{}
	}
	b, err := payload.Marshal(v)
	if err != nil {
		return nil, err
	}
	out, err := payload.Unmarshal(b)
	p, _ := payload.Map(out)
	return p, err
}

// preseed accepts a key, unless the id has another one already.
func (m *Master) preseed(id, public string) error {
	if k, err := m.keys.Get(id, keys.Accepted); err == nil {
		if k.Text == crypt.CleanKey(public) {
			return nil
		}
		return errors.New("another key of this id is accepted")
	}
	return m.keys.Preseed(id, public)
}

// secret derives what only the masters with this identity know.
func (m *Master) secret(parts ...string) []byte {
	root := sha256.Sum256(append([]byte("brine master secret\x00"), m.identity.Key.PEM()...))
	h := hmac.New(sha256.New, root[:])
	for _, p := range parts {
		sum := sha256.Sum256([]byte(p))
		h.Write(sum[:])
	}
	return h.Sum(nil)
}

// joinToken is the token of an announced minion. It is not stored: who reads the database learns none.
func (m *Master) joinToken(x store.Minion) string {
	return base64.RawURLEncoding.EncodeToString(m.secret("join", x.ID, fields.Text(x.Spec, "token_salt")))
}

// pairFor gives the key pair made for a minion, making it if there is none. Until the minion came it is in the store, sealed.
func (m *Master) pairFor(x *store.Minion) (public, private string, err error) {
	seal, err := crypt.ParseKey(base64.StdEncoding.EncodeToString(append(m.secret("pair", x.ID), m.secret("pair mac", x.ID)[:24]...)))
	if err != nil {
		return "", "", err
	}
	if sealed, ok := payload.Bytes(x.Spec["private"]); ok && len(sealed) > 0 {
		pem, err := seal.Open(sealed, "")
		if err != nil {
			return "", "", err
		}
		key, err := crypt.ParsePrivateKey(pem)
		if err != nil {
			return "", "", err
		}
		return key.Public().Text() + "\n", string(pem), nil
	}
	key, err := crypt.GenerateKey(2048)
	if err != nil {
		return "", "", err
	}
	sealed, err := seal.Seal(key.PEM(), "")
	if err != nil {
		return "", "", err
	}
	x.Spec["private"] = sealed
	return key.Public().Text() + "\n", string(key.PEM()), nil
}

// JudgeToken implements signin.Records. A token is good for one key: the first that shows it, at any of the masters that
// share the store.
func (h signInHost) JudgeToken(ctx context.Context, r protocol.AuthRequest) (Verdict, error) {
	m := h.m
	if m.minions == nil || len(r.JoinMAC) == 0 {
		return Verdict{}, nil
	}
	sum := sha256.Sum256([]byte(r.PubText))
	owner := hex.EncodeToString(sum[:])
	refused := "it was not announced"
	err := store.ChangeMinion(ctx, m.minions, r.ID, func(x *store.Minion) bool {
		expires, ok := payload.Int(x.Spec["token_expires"])
		used := fields.Text(x.Spec, "token_used")
		switch {
		case !ok || fields.Text(x.Spec, "token_salt") == "":
			refused = "it was not announced with a token"
		case !hmac.Equal(r.JoinMAC, protocol.JoinMAC(m.joinToken(*x), r.ID, r.PubText, r.Nonce)):
			refused = "the token is wrong"
		case used != "" && used != owner:
			refused = "the token was used by another key"
		case time.Now().UnixMicro() > expires:
			refused = "the token has expired"
		default:
			refused = ""
			x.Spec["token_used"], x.Joined = owner, true
			return used == ""
		}
		return false
	})
	switch {
	case err != nil:
		return Verdict{}, err
	case refused != "":
		return Verdict{Decision: Reject, Reason: refused}, nil
	}
	return Verdict{Decision: Accept, Reason: "it was announced with this token"}, nil
}

// Joined implements signin.Records: it forgets the private key that was made for a minion, once it came with it.
func (h signInHost) Joined(ctx context.Context, id string) {
	m := h.m
	if m.minions == nil {
		return
	}
	if x, err := m.minions.Minion(ctx, id); err != nil || x.Joined && x.Spec["private"] == nil {
		return // not announced, or known
	}
	err := store.ChangeMinion(ctx, m.minions, id, func(x *store.Minion) bool {
		x.Joined = true
		delete(x.Spec, "private")
		return true
	})
	if err != nil && ctx.Err() == nil {
		m.log.Error("cannot remember that minion joined", "minion", id, "err", err)
	}
}

// RevokeMinion ends a minion's membership: its key is deleted, what waits for it is cancelled, and its announcement forgotten. It is no
// error that some of it is not there.
func (m *Master) RevokeMinion(ctx context.Context, id string) error {
	if m.minions == nil || m.orders == nil {
		return ErrNoMinionRecords
	}
	err := m.minions.DeleteMinion(ctx, id)
	m.tenants.Forget()
	m.requests.Events.TakeGrants(store.Minion{ID: id})
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	if e := m.keys.Delete(id); err == nil && !errors.Is(e, keys.ErrNotFound) {
		err = e
	}
	e := m.orders.Revoke(ctx, id)
	if err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("cannot revoke minion %.80q: %w", id, err)
	}
	return nil
}

// Announced is a minion that was announced.
type Announced struct {
	ID, Tenant string
	// Joined says that it has been here.
	Joined bool
	Grains map[string]any
	// Events are the tags that are granted to it.
	Events []string
}

// Announced lists the minions that were announced, of one tenant or, with "", of all; sorted by id.
func (m *Master) Announced(ctx context.Context, tenant string) ([]Announced, error) {
	if m.minions == nil {
		return nil, ErrNoMinionRecords
	}
	list, err := m.minions.Minions(ctx, store.MinionFilter{Tenant: tenant})
	var out []Announced
	for _, x := range list {
		grains, _ := payload.Map(x.Spec["grains"])
		out = append(out, Announced{ID: x.ID, Tenant: x.Tenant, Joined: x.Joined, Grains: maps.Clone(grains),
			Events: requests.Granted(x)})
	}
	return out, err
}
