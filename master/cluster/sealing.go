package cluster

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/store"
)

const (
	// minSealingKey is the minimum length in bytes of a sealing key.
	minSealingKey = 16
	// sealFile is the file of a single master's sealing key, in its PKI directory.
	sealFile = "order_seal.key"
	// saltLen is the length of the random salt. Salt and sealing key together yield a new key for each sealing.
	saltLen = 32
)

// Sealing are the keys that seal secrets in a store, newest first. The newest one seals; each one opens.
type Sealing [][]byte

var _ content.Sealer = Sealing(nil)

// ReadSealing returns the sealing keys of a cluster. file, if set, replaces key; white space around its content
// is ignored.
func ReadSealing(key []byte, file string, former [][]byte) (Sealing, error) {
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read sealing key: %w", err)
		}
		key = []byte(strings.TrimSpace(string(b)))
	}
	all := append(Sealing{key}, former...)
	for _, k := range all {
		if len(k) < minSealingKey {
			return nil, fmt.Errorf("sealing key has %d bytes, less than %d", len(k), minSealingKey)
		}
	}
	return all, nil
}

// OwnSealing returns a single master's key from a file in dir, which is created if it is missing. Without a
// directory the key lives as long as the process, like everything else of such a master.
func OwnSealing(dir string) (Sealing, error) {
	key := []byte(rand.Text() + rand.Text())
	if dir == "" {
		return Sealing{key}, nil
	}
	path := filepath.Join(dir, sealFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = atomicfile.Create(path, append(key, '\n'), 0o600)
		if err == nil {
			return Sealing{key}, nil
		}
		if errors.Is(err, fs.ErrExist) { // another process was first
			b, err = os.ReadFile(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read sealing key of orders: %w", err)
	}
	if b = bytes.TrimSpace(b); len(b) < minSealingKey {
		return nil, fmt.Errorf("sealing key of orders %q has %d bytes, less than %d: restore it; "+
			"without it what open orders carry is lost", path, len(b), minSealingKey)
	}
	return Sealing{b}, nil
}

// cipherFor returns AES-256-GCM with the key for one sealing.
func cipherFor(key, salt []byte, name string, version int64) (cipher.AEAD, error) {
	k, err := hkdf.Key(sha256.New, key, salt,
		"brine secret "+name+" "+strconv.FormatInt(version, 10), 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(k)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (s Sealing) sealSecret(name string, version int64, clear []byte) ([]byte, error) {
	salt := make([]byte, saltLen)
	_, _ = rand.Read(salt) // never fails
	c, err := cipherFor(s[0], salt, name, version)
	if err != nil {
		return nil, fmt.Errorf("cannot seal secret %q: %w", name, err)
	}
	// A fixed nonce is safe, because each key is used once.
	return c.Seal(salt, make([]byte, c.NonceSize()), clear, []byte(name)), nil
}

// openSecret opens a secret and reports whether a former key had sealed it.
func (s Sealing) openSecret(x store.Secret) (clear []byte, former bool, err error) {
	if len(x.Body) > saltLen {
		for i, key := range s {
			c, err := cipherFor(key, x.Body[:saltLen], x.Name, x.Version)
			if err != nil {
				return nil, false, fmt.Errorf("cannot open secret %q: %w", x.Name, err)
			}
			if clear, err := c.Open(nil, make([]byte, c.NonceSize()), x.Body[saltLen:],
				[]byte(x.Name)); err == nil {
				return clear, i > 0, nil
			}
		}
	}
	return nil, false,
		fmt.Errorf("cannot open secret %q of the masters: it was sealed with another key", x.Name)
}

// Seal implements content.Sealer.
func (s Sealing) Seal(place string, clear []byte) ([]byte, error) {
	return s.sealSecret(place, 0, clear)
}

// Open implements content.Sealer.
func (s Sealing) Open(place string, sealed []byte) ([]byte, error) {
	clear, _, err := s.openSecret(store.Secret{Name: place, Body: sealed})
	return clear, err
}

// Digests implements content.Sealer.
func (s Sealing) Digests(clear []byte) []string {
	out := make([]string, 0, len(s))
	for _, key := range s {
		k, err := hkdf.Key(sha256.New, key, nil, "brine order digest", 32)
		if err != nil {
			continue // the key is too short for FIPS mode, so it made no digest
		}
		mac := hmac.New(sha256.New, k)
		mac.Write(clear)
		out = append(out, hex.EncodeToString(mac.Sum(nil)))
	}
	return out
}
