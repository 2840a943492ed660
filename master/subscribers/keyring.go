package subscribers

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"sync"
	"time"

	"github.com/brine-salt/brine/protocol/crypt"
)

// Keyring holds the shared key and the serial of publishes under it. Salt's serial starts at 1 with every
// process. Here it is the time in microseconds, so it also increases across restarts, on which peers that
// remember it can rely.
type Keyring struct {
	// mu guards the fields below. It is held while a publish is sealed and sent, to keep publishes in order.
	mu     sync.Mutex
	aes    *crypt.Key
	serial int64
	// tenants are the tenants' keys, derived from key.
	tenants map[string]*crypt.Key
	from    *crypt.Key
}

// next returns the next serial. The caller holds mu.
func (k *Keyring) next(now time.Time) int64 {
	k.serial = max(k.serial+1, now.UnixMicro())
	return k.serial
}

// of returns the key for a tenant's publishes, or for minions without a tenant if tenant is empty. The caller
// holds mu.
func (k *Keyring) of(tenant string) (*crypt.Key, error) {
	if tenant == "" {
		return k.aes, nil
	}
	if k.from != k.aes {
		k.from, k.tenants = k.aes, make(map[string]*crypt.Key)
	}
	if key := k.tenants[tenant]; key != nil {
		return key, nil
	}
	raw, err := hkdf.Key(sha256.New, []byte(k.aes.Text()), nil, "brine tenant "+tenant, 56)
	if err != nil {
		return nil, err
	}
	key, err := crypt.ParseKey(base64.StdEncoding.EncodeToString(raw))
	if err != nil {
		return nil, err
	}
	k.tenants[tenant] = key
	return key, nil
}

// KeyOf implements tenants.Keys. It is of for callers that do not hold mu.
func (k *Keyring) KeyOf(tenant string) (*crypt.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of(tenant)
}

// Use replaces the shared key.
func (k *Keyring) Use(key *crypt.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.aes = key
}
