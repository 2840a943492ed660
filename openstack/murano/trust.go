package murano

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/runlock"
	"github.com/brine-salt/brine/modules"
)

// settings is the option murano of the minion's configuration.
type settings struct {
	key     *rsa.PublicKey
	queue   string // the prefix of signed plans
	storage string
}

// readSettings parses the option. A minion without a key runs no plans.
func readSettings(c *modules.Call) (*settings, error) {
	conf, _ := c.Opt("murano").(map[string]any)
	s := &settings{}
	var key string
	for name, v := range conf {
		text := pytext.Str(v)
		switch name {
		case "engine_key":
			key = text
		case "queue":
			s.queue = text
		case "storage":
			s.storage = text
		default:
			return nil, fmt.Errorf("cannot use the option murano: it has no key %q", name)
		}
	}
	if key == "" {
		return nil, errors.New("cannot run plans: the option murano has no engine_key, whose signatures are trusted")
	}
	if !strings.HasPrefix(strings.TrimSpace(key), "-----BEGIN") {
		b, err := os.ReadFile(c.Path(key))
		if err != nil {
			return nil, fmt.Errorf("cannot read murano's engine_key: %w", err)
		}
		key = string(b)
	}
	var err error
	if s.key, err = publicKey(key); err != nil {
		return nil, fmt.Errorf("cannot use murano's engine_key: %w", err)
	}
	if s.queue == "" {
		s.queue, _ = c.Opt("id").(string)
	}
	if s.queue == "" {
		return nil, errors.New("cannot run plans: this minion has no id, and the option murano no queue")
	}
	if s.storage == "" {
		dir, _ := c.Opt("cachedir").(string)
		s.storage = filepath.Join(dir, "murano")
	}
	s.storage = c.Path(s.storage)
	return s, nil
}

// minKey is the minimum size of an RSA key in bits.
const minKey = 2048

// publicKey parses a public key in PEM: in PKCS #1, as Murano's engine writes it, or in PKIX.
func publicKey(text string) (*rsa.PublicKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("it is not PEM")
	}
	key, err := x509.ParsePKCS1PublicKey(block.Bytes)
	if err != nil {
		any, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		var ok bool
		if key, ok = any.(*rsa.PublicKey); !ok {
			return nil, errors.New("it is not an RSA key")
		}
	}
	if key.N.BitLen() < minKey {
		return nil, fmt.Errorf("it has %d bits, fewer than %d", key.N.BitLen(), minKey)
	}
	return key, nil
}

// verify verifies the signature of the queue's name followed by the plan (murano/engine/system/agent.py, _sign). So a
// plan for another minion, whose queue has another name, is not accepted.
func (s *settings) verify(plan []byte, signature string) error {
	sig, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(signature), ""))
	if err != nil {
		return fmt.Errorf("cannot take the plan: its signature is not Base64: %w", err)
	}
	sum := sha256.Sum256(append([]byte(s.queue), plan...))
	if err := rsa.VerifyPKCS1v15(s.key, crypto.SHA256, sum[:], sig); err != nil {
		return fmt.Errorf("cannot take the plan: it is not signed for %s by the key of the option murano", s.queue)
	}
	return nil
}

var stampMu sync.Mutex // compare one plan at a time with the last one

// stamp stores a plan's stamp if it is greater than the last one. Otherwise it returns an error: an accepted plan is
// not accepted again, even if its run was interrupted.
func (s *settings) stamp(n int64) error {
	if n <= 0 {
		return errors.New("cannot take the plan: it has no Stamp, so it could be sent again")
	}
	stampMu.Lock()
	defer stampMu.Unlock()
	if err := os.MkdirAll(s.storage, 0o700); err != nil {
		return err
	}
	release, err := runlock.Take(filepath.Join(s.storage, "lock"))
	if err != nil {
		return fmt.Errorf("cannot take the plan: %w", err)
	}
	defer release()
	path := filepath.Join(s.storage, "stamp")
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	last := int64(0)
	if err == nil {
		if last, err = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err != nil {
			return fmt.Errorf("cannot take the plan: %s has no stamp in it", path)
		}
	}
	if n <= last {
		return fmt.Errorf("cannot take the plan: its Stamp %d is not greater than %d, that of the last plan: it is old, or was sent again", n, last)
	}
	return atomicfile.WriteFile(path, strconv.AppendInt(nil, n, 10), 0o600)
}
