package keys

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Identity is the master's own key pair, and the signing pair when one is used.
type Identity struct {
	Key *crypt.PrivateKey
	// Sign signs the public key for minions that verify it (master_sign_pubkey); nil when not used.
	Sign *crypt.PrivateKey
	// PubkeySignature is the content of a prepared signature file (master_use_pubkey_signature), or empty.
	PubkeySignature string
}

// IdentityOptions say where the master's keys are.
type IdentityOptions struct {
	// Dir is the pki directory. Empty makes a key pair that lives as long as the process.
	Dir string
	// Bits is the size of a new key; 0 means 2048.
	Bits int
	// SignPubkey uses, and makes when it is missing, the signing pair named SignKeyName (default "master_sign").
	SignPubkey  bool
	SignKeyName string
	// UsePubkeySignature reads the prepared signature from the file PubkeySignature (default "master_pubkey_signature").
	UsePubkeySignature bool
	PubkeySignature    string
}

// LoadIdentity reads master.pem, or makes it: a new pair is written as Salt does, master.pem 0400 and master.pub 0644. A
// Salt 3008 master leaves master.pem as a link to <id>.pem in the same directory; that is followed.
func LoadIdentity(o IdentityOptions) (Identity, error) {
	if o.Bits == 0 {
		o.Bits = 2048
	}
	if o.SignKeyName == "" {
		o.SignKeyName = "master_sign"
	}
	if o.PubkeySignature == "" {
		o.PubkeySignature = "master_pubkey_signature"
	}
	if o.Dir == "" {
		key, err := crypt.GenerateKey(o.Bits)
		return Identity{Key: key}, err
	}
	dir, err := confined.Open(o.Dir, 0o700)
	if err != nil {
		return Identity{}, err
	}
	defer dir.Close()
	id := Identity{}
	if id.Key, err = loadPair(dir, "master", o.Bits); err != nil {
		return Identity{}, err
	}
	if !o.SignPubkey {
		return id, nil
	}
	if o.UsePubkeySignature {
		b, _, err := dir.Read(o.PubkeySignature, maxKeyBytes)
		if err != nil {
			return Identity{}, fmt.Errorf("cannot read signature of the master key: %w", err)
		}
		id.PubkeySignature = string(b)
		return id, nil
	}
	id.Sign, err = loadPair(dir, o.SignKeyName, o.Bits)
	return id, err
}

func loadPair(dir *confined.Dir, name string, bits int) (*crypt.PrivateKey, error) {
	f, info, err := dir.OpenFile(name + ".pem")
	if err == nil {
		defer f.Close()
		if info.Size() > maxKeyBytes {
			return nil, fmt.Errorf("cannot read key %q: %d bytes are more than %d", name+".pem", info.Size(), maxKeyBytes)
		}
		b := make([]byte, info.Size())
		if _, err := f.ReadAt(b, 0); err != nil {
			return nil, fmt.Errorf("cannot read key %q: %w", name+".pem", err)
		}
		key, err := crypt.ParsePrivateKey(b)
		if err != nil {
			return nil, fmt.Errorf("cannot use key %q: %w", dir.Path()+"/"+name+".pem", err)
		}
		return key, writePub(dir, name, key)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read key %q: %w", dir.Path()+"/"+name+".pem", err)
	}
	key, err := crypt.GenerateKey(bits)
	if err != nil {
		return nil, err
	}
	if err := dir.Write(name+".pem", key.PEM(), 0o400, true); err != nil {
		return nil, fmt.Errorf("cannot write key %q: %w", name+".pem", err)
	}
	return key, writePub(dir, name, key)
}

// writePub writes the public half where it is missing; one that does not belong to the key is an error, because minions
// and operators would pin the wrong one.
func writePub(dir *confined.Dir, name string, key *crypt.PrivateKey) error {
	f, _, err := dir.OpenFile(name + ".pub")
	if errors.Is(err, fs.ErrNotExist) {
		if err := dir.Write(name+".pub", key.Public().PEM(), 0o644, true); err != nil {
			return fmt.Errorf("cannot write key %q: %w", name+".pub", err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read key %q: %w", name+".pub", err)
	}
	defer f.Close()
	b := make([]byte, maxKeyBytes)
	n, _ := f.Read(b)
	if crypt.CleanKey(string(b[:n])) != strings.TrimSpace(key.Public().Text()) {
		return fmt.Errorf("cannot use key %q: %s.pub belongs to another key", dir.Path()+"/"+name+".pem", name)
	}
	return nil
}
