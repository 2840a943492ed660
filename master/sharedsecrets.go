package master

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// Names of secrets in the database.
const (
	secretIdentity = "identity" // the master's key pair and the signing pair
	secretAES      = "aes"      // the key that publishes are sealed with
	secretSession  = "session"  // what the minions' session keys are made from
)

// saltLen is of the random number that each sealing has a key of its own by.
const saltLen = 32

// sealing are the keys that seal what lies in the database, the newest first.
type sealing [][]byte

// cipherFor is AES-256-GCM under a key made for one sealing.
func cipherFor(key, salt []byte, name string, version int64) (cipher.AEAD, error) {
	k, err := hkdf.Key(sha256.New, key, salt, "brine secret "+name+" "+strconv.FormatInt(version, 10), 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(k)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (s sealing) seal(name string, version int64, clear []byte) ([]byte, error) {
	salt := make([]byte, saltLen)
	_, _ = rand.Read(salt) // does not fail
	c, err := cipherFor(s[0], salt, name, version)
	if err != nil {
		return nil, fmt.Errorf("cannot seal secret %q: %w", name, err)
	}
	// The key is used once: its nonce may be anything.
	return c.Seal(salt, make([]byte, c.NonceSize()), clear, []byte(name)), nil
}

// open opens a secret and says whether a key of before sealed it.
func (s sealing) open(x store.Secret) (clear []byte, former bool, err error) {
	if len(x.Body) > saltLen {
		for i, key := range s {
			c, err := cipherFor(key, x.Body[:saltLen], x.Name, x.Version)
			if err != nil {
				return nil, false, fmt.Errorf("cannot open secret %q: %w", x.Name, err)
			}
			if clear, err := c.Open(nil, make([]byte, c.NonceSize()), x.Body[saltLen:], []byte(x.Name)); err == nil {
				return clear, i > 0, nil
			}
		}
	}
	return nil, false, fmt.Errorf("cannot open secret %q of the masters: it was sealed with another key", x.Name)
}

// Seal implements orders.Sealer.
func (s sealing) Seal(place string, clear []byte) ([]byte, error) { return s.seal(place, 0, clear) }

// Open implements orders.Sealer.
func (s sealing) Open(place string, sealed []byte) ([]byte, error) {
	clear, _, err := s.open(store.Secret{Name: place, Body: sealed})
	return clear, err
}

// Digests implements orders.Sealer.
func (s sealing) Digests(clear []byte) []string {
	out := make([]string, 0, len(s))
	for _, key := range s {
		k, err := hkdf.Key(sha256.New, key, nil, "brine order digest", 32)
		if err != nil {
			continue // in FIPS mode, for a key that is too short: it cannot have made one
		}
		mac := hmac.New(sha256.New, k)
		mac.Write(clear)
		out = append(out, hex.EncodeToString(mac.Sum(nil)))
	}
	return out
}

// ring holds the secrets that session keys are made from.
type ring struct {
	mu      sync.Mutex // guards the fields below
	session []root     // oldest first; the last two count
	aes     int64      // version of the key of publishes
}

type root struct {
	version int64
	made    time.Time
	secret  []byte
}

// current returns the newest version of a secret, which is made if there is none. When several masters make it at once, one wins.
func (s *shared) current(ctx context.Context, name string, make func() ([]byte, error)) ([]byte, error) {
	for range 2 {
		list, err := s.db.Secrets(ctx, name)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			newest := list[len(list)-1]
			clear, former, err := s.seal.open(newest)
			if former {
				if _, err = s.add(ctx, name, newest.Version+1, clear); err == nil {
					err = s.db.DropSecrets(ctx, name, newest.Version+1)
				}
			}
			return clear, err
		}
		clear, err := make()
		if err == nil {
			_, err = s.add(ctx, name, 1, clear)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("secret %q was stored and is not there", name)
}

// add stores a version of a secret and says whether this master was the first.
func (s *shared) add(ctx context.Context, name string, version int64, clear []byte) (bool, error) {
	body, err := s.seal.seal(name, version, clear)
	if err != nil {
		return false, err
	}
	note, err := payload.MarshalBin(map[string]any{"name": name, "version": version})
	if err != nil {
		return false, err
	}
	return s.db.AddSecret(ctx, store.Secret{Name: name, Version: version, Created: time.Now(), Body: body}, store.Message{From: s.name, Kind: tellSecret, Body: note})
}

// identity returns the key pairs of the masters. The first one takes them from its pki directory, or makes them.
func (s *shared) identity(o keys.IdentityOptions) (keys.Identity, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	b, err := s.current(ctx, secretIdentity, func() ([]byte, error) {
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
	v, err := payload.UnmarshalDisk(b, payload.Limits{})
	m, ok := payload.Map(v)
	if err != nil || !ok {
		return keys.Identity{}, fmt.Errorf("cannot read identity of the masters: %w", errors.Join(err, errors.New("it is no map")))
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
		return keys.Identity{}, errors.New("SignPubkey: the masters' identity was made without a signing key")
	}
	return id, nil
}

// loadSecrets takes over the newest secrets.
func (s *shared) loadSecrets(ctx context.Context) error {
	random := func(n int) func() ([]byte, error) {
		return func() ([]byte, error) {
			b := make([]byte, n)
			_, err := rand.Read(b)
			return b, err
		}
	}
	if _, err := s.current(ctx, secretSession, random(32)); err != nil {
		return err
	}
	if _, err := s.current(ctx, secretAES, newKeyText); err != nil {
		return err
	}
	roots, err := s.db.Secrets(ctx, secretSession)
	if err != nil {
		return err
	}
	var session []root
	for _, x := range roots[max(0, len(roots)-2):] {
		b, _, err := s.seal.open(x)
		if err != nil {
			return err
		}
		session = append(session, root{x.Version, x.Created, b})
	}
	list, err := s.db.Secrets(ctx, secretAES)
	if err != nil || len(list) == 0 {
		return errors.Join(err, errNoSecret(len(list)))
	}
	newest := list[len(list)-1]
	b, _, err := s.seal.open(newest)
	if err != nil {
		return err
	}
	key, err := crypt.ParseKey(string(b))
	if err != nil {
		return err
	}
	s.secrets.mu.Lock()
	s.secrets.session, s.secrets.aes = session, newest.Version
	s.secrets.mu.Unlock()
	s.m.secrets.mu.Lock()
	s.m.secrets.aes = key
	s.m.secrets.mu.Unlock()
	return nil
}

func errNoSecret(n int) error {
	if n == 0 {
		return errors.New("secret of the masters is gone")
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

// rotate replaces the key of publishes. When another master does so at the same time, one new key is enough.
func (s *shared) rotate(ctx context.Context) error {
	s.secrets.mu.Lock()
	version := s.secrets.aes
	s.secrets.mu.Unlock()
	clear, err := newKeyText()
	if err != nil {
		return err
	}
	if _, err := s.add(ctx, secretAES, version+1, clear); err != nil {
		return err
	}
	if err := s.loadSecrets(ctx); err != nil {
		return err
	}
	return s.db.DropSecrets(ctx, secretAES, version+1)
}

// renewSession makes a new version of what session keys are made from, twice in the life of one. The version before counts on, so that
// minions come one after the other for a new key.
func (s *shared) renewSession(ctx context.Context, now time.Time) error {
	s.secrets.mu.Lock()
	newest := s.secrets.session[len(s.secrets.session)-1]
	s.secrets.mu.Unlock()
	if now.Sub(newest.made) < s.m.opts.PublishSession/2 {
		return nil
	}
	clear := make([]byte, 32)
	_, _ = rand.Read(clear) // does not fail
	if _, err := s.add(ctx, secretSession, newest.version+1, clear); err != nil {
		return err
	}
	if err := s.loadSecrets(ctx); err != nil {
		return err
	}
	return s.db.DropSecrets(ctx, secretSession, newest.version)
}

// sessionKeys returns the keys that a minion's requests may be sealed with, the newest first. No master needs to have seen the minion
// before. A deletion of its key, or Renew, makes other ones.
func (s *shared) sessionKeys(id string, pub *crypt.PublicKey) ([]*crypt.Key, int64, error) {
	generation, err := s.m.keys.Generation(id)
	if err != nil {
		return nil, 0, err
	}
	s.secrets.mu.Lock()
	roots := slices.Clone(s.secrets.session)
	s.secrets.mu.Unlock()
	owner := sessions.OwnerOf(pub)
	info := binary.BigEndian.AppendUint64(append([]byte("brine session "+id+"\x00"), owner[:]...), uint64(generation))
	var out []*crypt.Key
	for _, r := range slices.Backward(roots) {
		raw, err := hkdf.Key(sha256.New, r.secret, nil, string(info), 56)
		if err != nil {
			return nil, 0, err
		}
		key, err := crypt.ParseKey(base64.StdEncoding.EncodeToString(raw))
		if err != nil {
			return nil, 0, err
		}
		out = append(out, key)
	}
	return out, generation, nil
}

// openRequest opens a minion's request. Where masters share their secrets, the session may have begun at another one.
func (m *Master) openRequest(e protocol.Envelope, s *sessions.Session, pub *crypt.PublicKey) (protocol.Verified, error) {
	if m.shared == nil {
		return protocol.OpenRequest(e, s.Current(m.opts.PublishSession, pub), pub)
	}
	all, generation, err := m.shared.sessionKeys(e.ID, pub)
	if err != nil {
		return protocol.Verified{}, err
	}
	s.Enter(generation)
	var v protocol.Verified
	for _, key := range all {
		if v, err = protocol.OpenRequest(e, key, pub); err == nil {
			break
		}
	}
	return v, err
}

// issueSession gives a minion that signed in its session key.
func (m *Master) issueSession(id string, pub *crypt.PublicKey) (*crypt.Key, error) {
	if m.shared == nil {
		return m.sessions.Issue(id, pub)
	}
	all, _, err := m.shared.sessionKeys(id, pub)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// session returns what is known of a minion's session, nil if there is none.
func (m *Master) session(id string) *sessions.Session {
	if m.shared == nil {
		return m.sessions.Get(id)
	}
	return m.sessions.Join(id)
}

// outdated follows a request of a time that cannot be judged: the minion gets another session key, under which recordings are worthless.
func (m *Master) outdated(id string, s *sessions.Session) {
	if m.shared == nil {
		return // the next sign-in makes one
	}
	if err := m.keys.Renew(id, s.Generation()); err != nil {
		m.log.Warn("cannot renew session of minion", "minion", id, "err", err)
	}
}
