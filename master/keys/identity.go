package keys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Identity is the master's own key pair, and the signing pair if one is used.
type Identity struct {
	Key *crypt.PrivateKey
	// Sign signs the public key for minions that verify it (master_sign_pubkey); nil if it is not used.
	Sign *crypt.PrivateKey
	// PubkeySignature is the content of a prepared signature file (master_use_pubkey_signature), or empty.
	PubkeySignature string
}

// IdentityOptions configure where the master's keys are.
type IdentityOptions struct {
	// Dir is the pki directory. Empty makes a key pair that lives as long as the process.
	Dir string
	// Bits is the size of a new key; 0 means 2048.
	Bits int
	// SignPubkey uses the signing pair named SignKeyName (default "master_sign"), and creates it if it is missing.
	SignPubkey  bool
	SignKeyName string
	// UsePubkeySignature reads the prepared signature from the file PubkeySignature (default
	// "master_pubkey_signature").
	UsePubkeySignature bool
	PubkeySignature    string
	// Log receives what was repaired; nil means no log.
	Log *slog.Logger
}

// LoadIdentity reads master.pem, or creates it: a new pair is written as Salt does, master.pem 0400 and master.pub
// 0644. A Salt 3008 master leaves master.pem as a link to <id>.pem in the same directory, which is followed.
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
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
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
	if id.Key, err = loadPair(dir, "master", o); err != nil {
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
	id.Sign, err = loadPair(dir, o.SignKeyName, o)
	return id, err
}

func loadPair(dir *confined.Dir, name string, o IdentityOptions) (*crypt.PrivateKey, error) {
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
			return nil, fmt.Errorf("cannot use key %q: %w; restore it from a backup: with a new one all minions would have to trust this master again", dir.Path()+"/"+name+".pem", err)
		}
		return key, writePub(dir, name, key, o.Log)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read key %q: %w", dir.Path()+"/"+name+".pem", err)
	}
	key, err := crypt.GenerateKey(o.Bits)
	if err != nil {
		return nil, err
	}
	if err := dir.Write(name+".pem", key.PEM(), 0o400, true); err != nil {
		return nil, fmt.Errorf("cannot write key %q: %w", name+".pem", err)
	}
	return key, writePub(dir, name, key, o.Log)
}

// writePub writes the public half if it is missing or damaged. A sound key that does not belong to the private one
// is an error: minions and operators would pin the wrong key, and which of the two files is right cannot be
// determined.
func writePub(dir *confined.Dir, name string, key *crypt.PrivateKey, log *slog.Logger) error {
	path := dir.Path() + "/" + name + ".pub"
	f, _, err := dir.OpenFile(name + ".pub")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read key %q: %w", path, err)
	}
	if err == nil {
		b, err := io.ReadAll(io.LimitReader(f, maxKeyBytes))
		f.Close()
		if err != nil {
			return fmt.Errorf("cannot read key %q: %w", path, err)
		}
		have, want := crypt.CleanKey(string(b)), strings.TrimSpace(key.Public().Text())
		if have == want {
			return nil
		}
		// guard: damaged-key-files master:TestDamagedKeyFiles
		if _, err := crypt.ParsePublicKey(b); err == nil && !nearlyEqual(have, want) {
			return fmt.Errorf("cannot use key %q: %s belongs to another key; if the private key is the right one, remove the public one", dir.Path()+"/"+name+".pem", path)
		}
		log.Warn("A damaged public key was written again from its private key", "file", path)
	}
	if err := dir.Write(name+".pub", key.Public().PEM(), 0o644, true); err != nil {
		return fmt.Errorf("cannot write key %q: %w", path, err)
	}
	return nil
}

// nearlyEqual reports whether two texts of equal length differ in so few places that one is the other, damaged. Two
// different keys differ everywhere.
func nearlyEqual(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	differ := 0
	for i := range len(a) {
		if a[i] != b[i] {
			differ++
		}
	}
	return differ <= 16
}
