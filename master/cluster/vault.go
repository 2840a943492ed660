package cluster

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// Names of secrets in the database.
const (
	secretIdentity = "identity" // the master's key pair and the signing pair
	secretAES      = "aes"      // the shared key, which seals publishes
	secretSession  = "session"  // the roots of the minions' session keys
)

// KeyHolder uses the shared key, which seals publishes.
type KeyHolder interface {
	// UseKey replaces the key. It returns once the former key is no longer used.
	UseKey(key *crypt.Key)
}

// Vault holds the secrets of a cluster. They are stored in the database, sealed and in versions. If several
// masters add a version at once, one wins, and the others use the winner's.
type Vault struct {
	db   store.Shared
	name string // of this master
	seal Sealing
	keys KeyHolder

	mu      sync.Mutex // guards the fields below
	session []root     // oldest first; the last two are valid
	aes     int64      // version of the shared key
}

// root is a version of the secret from which session keys are derived.
type root struct {
	version int64
	made    time.Time
	secret  []byte
}

// NewVault returns the vault of a database for the master of this name. Each shared key that is read or created
// is passed to holder.
func NewVault(db store.Shared, name string, seal Sealing, holder KeyHolder) *Vault {
	return &Vault{db: db, name: name, seal: seal, keys: holder}
}

// current returns the newest version of a secret, and creates it if it is missing. If several masters create it
// at once, one wins.
func (v *Vault) current(ctx context.Context, name string,
	create func() ([]byte, error)) ([]byte, error) {
	for range 2 {
		list, err := v.db.Secrets(ctx, name)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			newest := list[len(list)-1]
			clear, former, err := v.seal.openSecret(newest)
			if former {
				if _, err = v.add(ctx, name, newest.Version+1, clear); err == nil {
					err = v.db.DropSecrets(ctx, name, newest.Version+1)
				}
			}
			return clear, err
		}
		clear, err := create()
		if err == nil {
			_, err = v.add(ctx, name, 1, clear)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("secret %q was stored, but cannot be read back", name)
}

// add stores a version of a secret and notifies the peers. It reports whether this master was the first.
func (v *Vault) add(ctx context.Context, name string, version int64, clear []byte) (bool, error) {
	body, err := v.seal.sealSecret(name, version, clear)
	if err != nil {
		return false, err
	}
	note, err := payload.MarshalBin(map[string]any{"name": name, "version": version})
	if err != nil {
		return false, err
	}
	return v.db.AddSecret(ctx, store.Secret{Name: name, Version: version, Created: time.Now(),
		Body: body},
		store.Message{From: v.name, Kind: tellSecret, Body: note})
}

// Identity returns the key pairs of the masters. The first master takes them from its PKI directory, or creates them.
func (v *Vault) Identity(o keys.IdentityOptions) (keys.Identity, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	b, err := v.current(ctx, secretIdentity, func() ([]byte, error) {
		own, err := keys.LoadIdentity(o)
		if err != nil {
			return nil, err
		}
		if o.SignPubkey && own.Sign == nil && own.PubkeySignature == "" {
			if own.Sign, err = crypt.GenerateKey(max(o.Bits, 2048)); err != nil {
				return nil, err
			}
		}
		pairs := map[string]any{"key": own.Key.PEM(), "signature": own.PubkeySignature}
		if own.Sign != nil {
			pairs["sign"] = own.Sign.PEM()
		}
		return payload.MarshalBin(pairs)
	})
	if err != nil {
		return keys.Identity{}, err
	}
	x, err := payload.UnmarshalDisk(b, payload.Limits{})
	m, ok := payload.Map(x)
	if err != nil || !ok {
		return keys.Identity{}, fmt.Errorf("cannot read identity of the masters: %w",
			errors.Join(err, errors.New("it is not a map")))
	}
	id := keys.Identity{}
	key, _ := payload.Bytes(m["key"])
	if id.Key, err = crypt.ParsePrivateKey(key); err != nil {
		return keys.Identity{}, fmt.Errorf("cannot use identity of the masters: %w", err)
	}
	if !o.SignPubkey {
		return id, nil
	}
	id.PubkeySignature = fields.Text(m, "signature")
	if sign, ok := payload.Bytes(m["sign"]); ok {
		if id.Sign, err = crypt.ParsePrivateKey(sign); err != nil {
			return keys.Identity{}, fmt.Errorf("cannot use signing key of the masters: %w", err)
		}
	}
	if id.Sign == nil && id.PubkeySignature == "" {
		return keys.Identity{},
			errors.New("SignPubkey: the masters' identity was created without a signing key")
	}
	return id, nil
}

// Load reads the newest secrets, and creates missing ones.
func (v *Vault) Load(ctx context.Context) error {
	random := func(n int) func() ([]byte, error) {
		return func() ([]byte, error) {
			b := make([]byte, n)
			_, err := rand.Read(b)
			return b, err
		}
	}
	if _, err := v.current(ctx, secretSession, random(32)); err != nil {
		return err
	}
	if _, err := v.current(ctx, secretAES, newKeyText); err != nil {
		return err
	}
	roots, err := v.db.Secrets(ctx, secretSession)
	if err != nil {
		return err
	}
	var session []root
	for _, x := range roots[max(0, len(roots)-2):] {
		b, _, err := v.seal.openSecret(x)
		if err != nil {
			return err
		}
		session = append(session, root{x.Version, x.Created, b})
	}
	list, err := v.db.Secrets(ctx, secretAES)
	if err != nil || len(list) == 0 {
		return errors.Join(err, errNoSecret(len(list)))
	}
	newest := list[len(list)-1]
	b, _, err := v.seal.openSecret(newest)
	if err != nil {
		return err
	}
	key, err := crypt.ParseKey(string(b))
	if err != nil {
		return err
	}
	v.mu.Lock()
	v.session, v.aes = session, newest.Version
	v.mu.Unlock()
	v.keys.UseKey(key)
	return nil
}

func errNoSecret(n int) error {
	if n == 0 {
		return errors.New("the masters' secret was deleted from the database")
	}
	return nil
}

func newKeyText() ([]byte, error) {
	key, err := crypt.NewKey()
	if err != nil {
		return nil, err
	}
	return []byte(key.Text()), nil
}

// Rotate replaces the shared key. If a peer does so at the same time, a single new key results.
func (v *Vault) Rotate(ctx context.Context) error {
	v.mu.Lock()
	version := v.aes
	v.mu.Unlock()
	clear, err := newKeyText()
	if err != nil {
		return err
	}
	if _, err := v.add(ctx, secretAES, version+1, clear); err != nil {
		return err
	}
	if err := v.Load(ctx); err != nil {
		return err
	}
	return v.db.DropSecrets(ctx, secretAES, version+1)
}

// RenewSessions adds a root of session keys, twice per lifetime of a session. The previous root remains valid,
// so that minions do not all sign in at once.
func (v *Vault) RenewSessions(ctx context.Context, now time.Time, life time.Duration) error {
	v.mu.Lock()
	newest := v.session[len(v.session)-1]
	v.mu.Unlock()
	if now.Sub(newest.made) < life/2 {
		return nil
	}
	clear := make([]byte, 32)
	_, _ = rand.Read(clear) // never fails
	if _, err := v.add(ctx, secretSession, newest.version+1, clear); err != nil {
		return err
	}
	if err := v.Load(ctx); err != nil {
		return err
	}
	return v.db.DropSecrets(ctx, secretSession, newest.version)
}

// SessionKeys returns the keys with which a minion may seal requests, newest first. They are derived from the
// roots, the minion's id and public key, and the generation of its record, so any master can serve a minion it
// has not seen before.
func (v *Vault) SessionKeys(id string, pub *crypt.PublicKey,
	generation int64) ([]*crypt.Key, error) {
	v.mu.Lock()
	roots := slices.Clone(v.session)
	v.mu.Unlock()
	owner := sessions.OwnerOf(pub)
	info := binary.BigEndian.AppendUint64(append([]byte("brine session "+id+"\x00"), owner[:]...),
		uint64(generation))
	var out []*crypt.Key
	for _, r := range slices.Backward(roots) {
		raw, err := hkdf.Key(sha256.New, r.secret, nil, string(info), 56)
		if err != nil {
			return nil, err
		}
		key, err := crypt.ParseKey(base64.StdEncoding.EncodeToString(raw))
		if err != nil {
			return nil, err
		}
		out = append(out, key)
	}
	return out, nil
}
