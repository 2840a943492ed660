// Package keys manages the minion's pki_dir: its key pair, the master's cached key, and the key that signs masters'
// keys. It refuses files that another user could have planted or read, replaces files atomically, and never makes a
// private key readable by others.
//
// File names and modes are Salt's (salt/crypt.py: gen_keys, AsyncAuth; salt/utils/verify.py: verify_env).
package keys

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Names of the files in pki_dir.
const (
	PrivateFile = "minion.pem"
	PublicFile  = "minion.pub"
	MasterFile  = "minion_master.pub"
)

// maxFile limits what is read as a key file, in bytes.
const maxFile = 64 << 10

// ErrUnsafe is matched by errors about files and directories that another user could have written.
var ErrUnsafe = errors.New("keys: not safe to use")

// Options configure where and how keys are stored.
type Options struct {
	// Dir is pki_dir. It is created if it is missing.
	Dir string
	// Bits is keysize; 0 means 2048.
	Bits int
	// Permissive is permissive_pki_access: a group may read the directory, and files of other owners are accepted.
	Permissive bool
	// Owners are user ids that may own the files, besides root and the user of this process.
	Owners []int
	// ReadOnly leaves the disk unchanged, including directories and modes. A missing key is an error.
	ReadOnly bool
	// Log receives messages about corrected modes; nil means no log.
	Log *slog.Logger
}

// A Store is an opened pki_dir.
type Store struct{ o Options }

// Open creates the directory with mode 0700 if it is missing, corrects its mode, and checks that no other user could
// have put files there. Errors match [ErrUnsafe] or come from the system.
func Open(o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Bits == 0 {
		o.Bits = crypt.MinBits
	}
	if o.ReadOnly {
		return &Store{o}, nil
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create pki directory: %w", err)
	}
	s := &Store{o}
	mode := fs.FileMode(0o700)
	if o.Permissive {
		mode = 0o750
	}
	if err := s.checkFile(o.Dir, mode); err != nil {
		return nil, err
	}
	for _, name := range []string{PrivateFile, PublicFile, MasterFile} {
		if err := atomicfile.RemoveUnfinished(s.path(name)); err != nil {
			o.Log.Warn("Cannot remove unfinished keys", "path", s.path(name), "err", err)
		}
	}
	return s, nil
}

// checkFile refuses a file that other users own or may write. It removes permissions of others that are not in want.
func (s *Store) checkFile(path string, want fs.FileMode) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("cannot check %q: %w", path, err)
	}
	if err := s.checkOwner(path, info); err != nil {
		return err
	}
	have := modeOf(info)
	// guard: CVE-2021-22004 TestT18PlantedFiles
	if have&0o002 != 0 || have&0o020 != 0 && !s.o.Permissive {
		return fmt.Errorf("%w: %q can be written by others (mode %04o)", ErrUnsafe, path, have)
	}
	if have&^want&0o077 == 0 || s.o.ReadOnly {
		return nil
	}
	s.o.Log.Warn("Removing other users' access", "path", path, "mode", fmt.Sprintf("%04o", have))
	if err := os.Chmod(path, have&(want|0o700)); err != nil {
		return fmt.Errorf("cannot protect %q: %w", path, err)
	}
	return nil
}

// Identity loads the minion's key pair, or generates one. An existing key is not changed; a missing public file is
// written.
func (s *Store) Identity() (*crypt.PrivateKey, error) {
	path := s.path(PrivateFile)
	key, err := s.loadPrivate(path)
	if s.o.ReadOnly {
		return key, err
	}
	if errors.Is(err, fs.ErrNotExist) {
		key, err = s.generate(path)
	}
	if err != nil {
		return nil, err
	}
	return key, s.ensurePublic(key)
}

// loadPrivate loads the private key after checking that only trusted users could have written it.
func (s *Store) loadPrivate(path string) (*crypt.PrivateKey, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("cannot read minion key: %w", err)
	}
	if err := s.checkFile(path, 0o600); err != nil {
		return nil, err
	}
	text, err := readSmall(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read minion key: %w", err)
	}
	key, err := crypt.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use minion key %q: %w", path, err)
	}
	return key, nil
}

// generate creates a key. If another process creates one at the same moment, that one is used.
func (s *Store) generate(path string) (*crypt.PrivateKey, error) {
	key, err := crypt.GenerateKey(s.o.Bits)
	if err != nil {
		return nil, fmt.Errorf("cannot generate minion key: %w", err)
	}
	// guard: CVE-2020-17490 TestT8ModesOfNewKeys instead: err = atomicfile.Create(path, key.PEM(), 0o644)
	err = atomicfile.Create(path, key.PEM(), 0o400)
	if errors.Is(err, fs.ErrExist) {
		return s.loadPrivate(path)
	}
	return key, err
}

// ensurePublic checks that minion.pub belongs to minion.pem, since administrators compare and copy it, and writes it
// if it is missing.
func (s *Store) ensurePublic(key *crypt.PrivateKey) error {
	path := s.path(PublicFile)
	text, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return atomicfile.WriteFile(path, key.Public().PEM(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("cannot read minion public key: %w", err)
	}
	pub, err := crypt.ParsePublicKey(text)
	if err != nil {
		return fmt.Errorf("cannot use minion public key %q: %w", path, err)
	}
	if !pub.Equal(key.Public()) {
		return fmt.Errorf("cannot use key pair: %q does not belong to %q", path, s.path(PrivateFile))
	}
	return nil
}

// Master returns the cached key of the master, or nil.
func (s *Store) Master() (*crypt.PublicKey, error) { return s.loadOptional(MasterFile) }

// Signing returns the key that signs masters' keys, or nil. name is the option master_sign_key_name.
func (s *Store) Signing(name string) (*crypt.PublicKey, error) {
	if name == "" || filepath.Base(name) != name {
		return nil, fmt.Errorf("cannot use master_sign_key_name %q: not a file name", name)
	}
	return s.loadOptional(name + ".pub")
}

// loadOptional loads a public key, or returns nil if the file is missing.
func (s *Store) loadOptional(name string) (*crypt.PublicKey, error) {
	path := s.path(name)
	text, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = s.checkFile(path, 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read master key: %w", err)
	}
	key, err := crypt.ParsePublicKey(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use master key %q: %w", path, err)
	}
	return key, nil
}

// SaveMaster caches the master's key. Call it only after all checks of the sign-in have passed.
func (s *Store) SaveMaster(key *crypt.PublicKey) error {
	return atomicfile.WriteFile(s.path(MasterFile), []byte(key.Text()), 0o644)
}

// Dir returns pki_dir.
func (s *Store) Dir() string { return s.o.Dir }

// MasterPath returns the file of the master's cached key.
func (s *Store) MasterPath() string { return s.path(MasterFile) }

func (s *Store) path(name string) string { return filepath.Join(s.o.Dir, name) }

// readSmall reads a key file within the limit.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%q is not a key file", path)
	}
	return os.ReadFile(path)
}
