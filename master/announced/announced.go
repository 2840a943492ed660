// Package announced manages minions that are announced before they exist. At its first sign-in each proves its
// identity by a token that it was given, or by a key that is accepted already.
package announced

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/brine-salt/brine/master/bootstrap"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/requests"
	"github.com/brine-salt/brine/master/requests/signin"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/tenants"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// DefaultTokenTTL is the default lifetime of a join token.
const DefaultTokenTTL = 24 * time.Hour

// ErrOtherTenant is returned for an id that was announced for another tenant.
var ErrOtherTenant = errors.New("it belongs to another tenant")

// Spec describes a minion that does not exist yet. Every field but ID may be zero; then the minion joins with a
// token, which brine's minion supports. Stock minions need KeyPair or PublicKey.
type Spec struct {
	ID string
	// Tenant is the minion's tenant. It cannot be changed while the minion is announced.
	Tenant string
	// Grains are written to the minion. Targets match them until the minion has sent its own.
	Grains map[string]any
	// PublicKey is the minion's key, if it was created elsewhere. It is accepted before the minion first signs
	// in.
	PublicKey string
	// KeyPair makes the master create the minion's keys. Anyone who can read the bootstrap can act as the
	// minion.
	KeyPair bool
	// TokenTTL is the lifetime of the token; 0 means DefaultTokenTTL.
	TokenTTL time.Duration
	// Masters are the master addresses for the minion; empty means those of the bootstrap.
	Masters []string
	// Config holds additional options of the minion.
	Config map[string]any
	// Events are tags that no other minion may fire: see requests.Events. nil leaves earlier grants unchanged,
	// an empty list revokes them.
	Events []string
}

// Grants holds the event tags granted to minions.
type Grants interface {
	// TakeGrants updates the grants of a minion from its record.
	TakeGrants(x store.Minion)
}

// Options configure a Book. Fields that may be nil say so.
type Options struct {
	// Minions stores the announcements; nil if the store cannot keep them.
	Minions store.Minions
	Keys    *keys.Store
	Tenants *tenants.Registry
	Grants  Grants
	// MaxTenant limits the minions that are announced for one tenant and have not joined; 0 means DefaultMaxTenant,
	// below 0 no limit.
	MaxTenant int
	// Key is the masters' private key, from which all tokens can be derived.
	Key *crypt.PrivateKey
	Log *slog.Logger
}

// Book holds the announcements. Its methods are safe for concurrent use.
type Book struct {
	Options

	mu     sync.Mutex             // guards the fields below
	counts map[string]counted     // by tenant
	turns  map[turn]chan struct{} // full while a request has its turn
}

var _ signin.Records = (*Book)(nil)

// New returns a Book.
func New(o Options) *Book {
	o.MaxTenant = cmp.Or(o.MaxTenant, DefaultMaxTenant)
	return &Book{Options: o, counts: make(map[string]counted), turns: make(map[turn]chan struct{})}
}

// isAccepted reports whether a key of an id is accepted.
func (b *Book) isAccepted(id string) bool { return b.Keys.State(id) == keys.Accepted }

// CheckTenant returns an error if a tenant cannot have that name. A slash separates it from the ids of its orders.
func CheckTenant(name string) error {
	if name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("%.80q is not a valid tenant name: it is empty or contains a slash", name)
	}
	return nil
}

// Ensure announces a minion. It returns the bootstrap b with the minion's own data. It may be repeated with the
// same spec, on any master of the same store. Until the minion has joined, it returns the same token (with a
// new expiry) or keys; after that it returns neither. byTenant means that the tenant grants the spec's events.
func (b *Book) Ensure(ctx context.Context, s Spec, byTenant bool,
	out bootstrap.Bootstrap) (bootstrap.Bootstrap, error) {
	if b.Minions == nil {
		return out, store.ErrNoMinions
	}
	if err := protocol.ValidID(s.ID); err != nil {
		return out, err
	}
	if s.Tenant != "" {
		if err := CheckTenant(s.Tenant); err != nil {
			return out, err
		}
	}
	if s.KeyPair && s.PublicKey != "" {
		return out, errors.New("both KeyPair and PublicKey are set")
	}
	if s.TokenTTL < 0 {
		return out, fmt.Errorf("TokenTTL %v is negative", s.TokenTTL)
	}
	if len(out.Masters) == 0 {
		return out, errors.New("neither Masters nor Network.Advertise says where the master is")
	}
	for _, address := range out.Masters {
		if address == "" || strings.ContainsFunc(address, unicode.IsSpace) {
			return out, fmt.Errorf("%.80q is not the address of a master", address)
		}
	}
	for _, key := range []string{"master_port", "publish_port"} {
		if port, _ := out.Conf()[key].(int); port < 0 {
			return out, errors.New("the master's ports are unknown until it listens: " +
				"call AwaitReady first")
		}
	}
	if s.PublicKey != "" {
		if _, err := crypt.ParsePublicKey([]byte(s.PublicKey)); err != nil {
			return out, err
		}
	}
	ttl := cmp.Or(s.TokenTTL, DefaultTokenTTL)
	grains, size, err := plain(s.Grains)
	if err != nil {
		return out, err
	}
	if s.Tenant != "" {
		b.Tenants.Add()
	}
	// guard: announcements-of-one-tenant TestKeyPairsTakeTurns
	if s.KeyPair {
		done, err := b.takeTurn(ctx, turn{"key pair", s.Tenant})
		if err != nil {
			return out, err
		}
		defer done()
	}
	var failure error
	var record store.Minion
	reserved := false
	err = store.ChangeMinion(ctx, b.Minions, s.ID, func(x *store.Minion) bool {
		if failure = nil; x.Version > 0 && x.Tenant != s.Tenant {
			failure = ErrOtherTenant
			return false
		}
		if !x.Joined && !reserved {
			more := 0
			if x.Version == 0 {
				more = 1
			}
			if failure = b.reserve(ctx, s.Tenant, more, size-sizeOf(*x)); failure != nil {
				return false
			}
			reserved = true
		}
		x.Tenant = s.Tenant
		if !x.Joined {
			x.Spec["grains"] = grains
		}
		if s.Events != nil {
			if failure = requests.SetGrants(x, byTenant, s.Events); failure != nil {
				return false
			}
		}
		record = *x
		switch {
		case x.Joined || b.isAccepted(s.ID) && x.Spec["private"] == nil:
			return true
		case s.PublicKey != "":
			x.Spec["public"] = crypt.CleanKey(s.PublicKey)
		case s.KeyPair:
			out.PublicKey, out.PrivateKey, failure = b.pairFor(x)
		default:
			if fields.Text(x.Spec, "token_salt") == "" {
				x.Spec["token_salt"] = rand.Text()
			}
			x.Spec["token_expires"] = time.Now().Add(ttl).UnixMicro()
			out.Token = b.joinToken(*x)
		}
		return failure == nil
	})
	b.Tenants.Forget()
	if err == nil {
		err = failure
	}
	if err == nil {
		b.Grants.TakeGrants(record)
	}
	if public := s.PublicKey + out.PublicKey; err == nil && public != "" {
		err = b.preseed(s.ID, public)
	}
	return out, err
}

// preseed accepts a key, unless the id has another one already.
func (b *Book) preseed(id, public string) error {
	if k, err := b.Keys.Get(id, keys.Accepted); err == nil {
		if k.Text == crypt.CleanKey(public) {
			return nil
		}
		return errors.New("another key of this id is accepted")
	}
	return b.Keys.Preseed(id, public)
}

// secret derives a secret that only masters with this identity know.
func (b *Book) secret(parts ...string) []byte {
	root := sha256.Sum256(append([]byte("brine master secret\x00"), b.Key.PEM()...))
	h := hmac.New(sha256.New, root[:])
	for _, p := range parts {
		sum := sha256.Sum256([]byte(p))
		h.Write(sum[:])
	}
	return h.Sum(nil)
}

// joinToken returns the token of an announced minion. It is not stored, so reading the database does not reveal
// it.
func (b *Book) joinToken(x store.Minion) string {
	return base64.RawURLEncoding.EncodeToString(b.secret("join", x.ID,
		fields.Text(x.Spec, "token_salt")))
}

// pairFor returns a minion's key pair, and creates it if it is missing. Until the minion connects, the pair is
// stored, sealed.
func (b *Book) pairFor(x *store.Minion) (public, private string, err error) {
	seal, err := crypt.ParseKey(base64.StdEncoding.EncodeToString(append(b.secret("pair", x.ID),
		b.secret("pair mac", x.ID)[:24]...)))
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

// JudgeToken implements signin.Records. A token is valid for one key: the first that uses it, at any master of
// the same store.
func (b *Book) JudgeToken(ctx context.Context, r protocol.AuthRequest) (signin.Verdict, error) {
	if b.Minions == nil || len(r.JoinMAC) == 0 {
		return signin.Verdict{}, nil
	}
	sum := sha256.Sum256([]byte(r.PubText))
	owner := hex.EncodeToString(sum[:])
	refused := "it was not announced"
	err := store.ChangeMinion(ctx, b.Minions, r.ID, func(x *store.Minion) bool {
		expires, ok := payload.Int(x.Spec["token_expires"])
		used := fields.Text(x.Spec, "token_used")
		switch {
		case !ok || fields.Text(x.Spec, "token_salt") == "":
			refused = "it was not announced with a token"
		case !hmac.Equal(r.JoinMAC, protocol.JoinMAC(b.joinToken(*x), r.ID, r.PubText, r.Nonce)):
			refused = "the token is wrong"
		case used != "" && used != owner:
			refused = "the token was used by another key"
		case time.Now().UnixMicro() > expires:
			refused = "the token has expired"
		default:
			refused = ""
			x.Spec["token_used"], x.Joined = owner, true
			delete(x.Spec, "grains") // the minion sends its own
			return used == ""
		}
		return false
	})
	switch {
	case err != nil:
		return signin.Verdict{}, err
	case refused != "":
		return signin.Verdict{Decision: signin.Reject, Reason: refused}, nil
	}
	return signin.Verdict{Decision: signin.Accept, Reason: "it was announced with this token"}, nil
}

// Joined implements signin.Records. It deletes the private key that was created for a minion, once the minion
// has used it.
func (b *Book) Joined(ctx context.Context, id string) {
	if b.Minions == nil {
		return
	}
	if x, err := b.Minions.Minion(ctx, id); err != nil || x.Joined && x.Spec["private"] == nil {
		return // not announced, or it has joined before
	}
	err := store.ChangeMinion(ctx, b.Minions, id, func(x *store.Minion) bool {
		x.Joined = true
		delete(x.Spec, "private")
		delete(x.Spec, "grains") // the minion sends its own
		return true
	})
	if err != nil && ctx.Err() == nil {
		b.Log.Error("Cannot remember that minion joined", "minion", id, "err", err)
	}
}

// Announced implements signin.Records.
func (b *Book) Announced(ctx context.Context,
	id string) (tenant string, announced bool, err error) {
	return b.Tenants.Of(ctx, id)
}

// Forget ends an announcement. An unknown id is not an error.
func (b *Book) Forget(ctx context.Context, id string) error {
	if b.Minions == nil {
		return store.ErrNoMinions
	}
	x, err := b.Minions.Minion(ctx, id)
	if err == nil {
		err = b.Minions.DeleteMinion(ctx, id)
	}
	if err == nil && !x.Joined {
		b.uncount(x)
	}
	b.Tenants.Forget()
	b.Grants.TakeGrants(store.Minion{ID: id})
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return err
}

// Minion describes an announced minion.
type Minion struct {
	ID, Tenant string
	// Joined reports whether the minion has signed in.
	Joined bool
	// Grains are those of its announcement, until it has joined.
	Grains map[string]any
	// Events are the event tags granted to it.
	Events []string
}

// List returns the announced minions of a tenant, or all if tenant is empty, sorted by id.
func (b *Book) List(ctx context.Context, tenant string) ([]Minion, error) {
	if b.Minions == nil {
		return nil, store.ErrNoMinions
	}
	list, err := b.Minions.Minions(ctx, store.MinionFilter{Tenant: tenant})
	var out []Minion
	for _, x := range list {
		grains, _ := payload.Map(x.Spec["grains"])
		out = append(out, Minion{ID: x.ID, Tenant: x.Tenant, Joined: x.Joined,
			Grains: maps.Clone(grains),
			Events: requests.Granted(x)})
	}
	return out, err
}

// Absent returns the announced minions that have not joined, of a tenant or all. Their grains contain the id,
// like those of joined minions. It returns nil if the store keeps no announcements.
func (b *Book) Absent(ctx context.Context, tenant string) ([]Minion, error) {
	if b.Minions == nil {
		return nil, nil
	}
	list, err := b.Minions.Minions(ctx, store.MinionFilter{Absent: true, Tenant: tenant})
	var out []Minion
	for _, x := range list {
		grains := make(map[string]any)
		if told, ok := payload.Map(x.Spec["grains"]); ok {
			maps.Copy(grains, told)
		}
		grains["id"] = x.ID
		out = append(out,
			Minion{ID: x.ID, Tenant: x.Tenant, Grains: grains, Events: requests.Granted(x)})
	}
	return out, err
}
