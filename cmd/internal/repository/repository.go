// Package repository creates and signs repositories of updates in the format of The Update Framework, for
// "brine-release". docs/update.md describes the roles. Any static web server, or a master's file server, can serve
// the directory.
//
//	metadata/1.root.json … timestamp.json, 1.snapshot.json, 1.targets.json, 1.stable.json, 1.stable-linux-amd64.json
//	targets/stable/linux-amd64/1.2.3/<sha256>.brine-minion
//
// Each command writes new files first and timestamp.json last, so that a client sees either the old or the new state.
// While Rotate writes, a client may refuse the old timestamp under the new root; it retries later.
package repository

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/brine-salt/brine/cmd/internal/update/layout"
	"github.com/brine-salt/brine/internal/atomicfile"
)

// The delegated roles: one per channel and, below it, one per platform of the channel.
var (
	channels  = layout.Channels
	platforms = []string{"linux-amd64", "linux-arm64", "linux-arm", "linux-riscv64", "freebsd-amd64",
		"darwin-arm64", "windows-amd64"}
)

// Lifetimes are how long signed metadata is valid.
type Lifetimes struct{ Root, Targets, Snapshot, Timestamp time.Duration }

const day = 24 * time.Hour

// DefaultLifetimes are a year for keys and programs, and a week for the snapshot and the timestamp, which must be
// renewed within it.
var DefaultLifetimes = Lifetimes{Root: 365 * day, Targets: 365 * day, Snapshot: 7 * day, Timestamp: 7 * day}

// A Repository is a directory. Keys is a directory of private keys in PEM (PKCS #8, ed25519), named after the roles
// that they sign for: root.1.pem, root.2.pem, targets.pem, snapshot.pem, timestamp.pem, stable.pem, edge.pem.
type Repository struct {
	Dir, Keys string
	Threshold int // of the root, for Init and Rotate
	Life      Lifetimes
	Now       func() time.Time
}

// NewKey writes a new private key to a file. The file must not exist. A missing directory is created with mode 0700.
func NewKey(path string) error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot make the directory of a key: %w", err)
	}
	return atomicfile.Create(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

// signers returns the keys of a role, sorted by file name.
func (r *Repository) signers(role string) ([]signature.Signer, error) {
	names, err := filepath.Glob(filepath.Join(r.Keys, role+".*pem"))
	if err != nil {
		return nil, err
	}
	var list []signature.Signer
	for _, name := range names {
		if rest := strings.TrimPrefix(filepath.Base(name), role+"."); rest != "pem" && strings.Count(rest, ".") != 1 {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read the key of %s: %w", role, err)
		}
		s, err := parseKey(text)
		if err != nil {
			return nil, fmt.Errorf("cannot read the key %s: %w", name, err)
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("cannot sign as %s: there is no %s", role, filepath.Join(r.Keys, role+".pem"))
	}
	return list, nil
}

func parseKey(text []byte) (signature.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("it is not a PEM file with a PRIVATE KEY")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("it is not an ed25519 key")
	}
	return signature.LoadSigner(private, crypto.Hash(0))
}

// Init creates a repository without programs. It returns an error if the directory contains a repository.
func (r *Repository) Init() error {
	if _, err := os.Stat(r.metadata("timestamp.json")); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot create a repository: %s contains one", r.Dir)
	}
	for _, dir := range []string{"metadata", "targets"} {
		if err := os.MkdirAll(filepath.Join(r.Dir, dir), 0o755); err != nil {
			return fmt.Errorf("cannot make a repository: %w", err)
		}
	}
	root, err := r.newRoot(1)
	if err != nil {
		return err
	}
	signers, err := r.signers(metadata.ROOT)
	if err != nil {
		return err
	}
	if err := r.writeRoot(root, signers); err != nil {
		return err
	}
	snapshot := metadata.Snapshot()
	snapshot.Signed.Version, snapshot.Signed.Meta = 0, map[string]*metadata.MetaFiles{}
	if err := r.signTargets(snapshot); err != nil {
		return err
	}
	return r.publish(snapshot, 1)
}

// signTargets writes all targets roles with the current keys. It does not change the programs.
func (r *Repository) signTargets(snapshot *metadata.Metadata[metadata.SnapshotType]) error {
	targets := metadata.Targets(r.until(r.Life.Targets))
	if err := r.delegate(targets, channels, func(c string) (role, keyRole, paths string) {
		return c, c, c + "/*/*/*"
	}); err != nil {
		return err
	}
	if err := writeRole(r, metadata.TARGETS, metadata.TARGETS, targets, snapshot); err != nil {
		return err
	}
	for _, c := range channels {
		channel := metadata.Targets(r.until(r.Life.Targets))
		if err := r.delegate(channel, platforms, func(p string) (role, keyRole, paths string) {
			return c + "-" + p, c, c + "/" + p + "/*/*"
		}); err != nil {
			return err
		}
		if err := writeRole(r, c, c, channel, snapshot); err != nil {
			return err
		}
		for _, p := range platforms {
			role := c + "-" + p
			t := metadata.Targets()
			if snapshot.Signed.Meta[role+".json"] != nil {
				var err error
				if t, err = r.readRole(role, snapshot); err != nil {
					return err
				}
			}
			t.Signed.Expires = r.until(r.Life.Targets)
			if err := writeRole(r, role, c, t, snapshot); err != nil {
				return err
			}
		}
	}
	return nil
}

// newRoot returns root metadata with the current keys.
func (r *Repository) newRoot(version int64) (*metadata.Metadata[metadata.RootType], error) {
	root := metadata.Root(r.until(r.Life.Root))
	root.Signed.Version = version
	for _, role := range []string{metadata.ROOT, metadata.TARGETS, metadata.SNAPSHOT, metadata.TIMESTAMP} {
		keys, err := r.publicKeys(role)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if err := root.Signed.AddKey(key, role); err != nil {
				return nil, err
			}
		}
	}
	if n := len(root.Signed.Roles[metadata.ROOT].KeyIDs); r.Threshold < 1 || r.Threshold > n {
		return nil, fmt.Errorf("cannot make a root: the threshold is %d, and there are %d keys root.*.pem in %s", r.Threshold, n, r.Keys)
	}
	root.Signed.Roles[metadata.ROOT].Threshold = r.Threshold
	return root, nil
}

func (r *Repository) publicKeys(role string) ([]*metadata.Key, error) {
	signers, err := r.signers(role)
	if err != nil {
		return nil, err
	}
	var keys []*metadata.Key
	for _, s := range signers {
		public, err := s.PublicKey()
		if err != nil {
			return nil, err
		}
		key, err := metadata.KeyFromPublicKey(public)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// delegate adds a delegated role for each part, with the keys of keyRole.
func (r *Repository) delegate(t *metadata.Metadata[metadata.TargetsType], parts []string,
	name func(part string) (role, keyRole, paths string)) error {
	t.Signed.Delegations = &metadata.Delegations{Keys: map[string]*metadata.Key{}}
	for _, part := range parts {
		role, keyRole, paths := name(part)
		keys, err := r.publicKeys(keyRole)
		if err != nil {
			return err
		}
		d := metadata.DelegatedRole{Name: role, Threshold: 1, Terminating: true, Paths: []string{paths}}
		for _, key := range keys {
			id, err := key.ID()
			if err != nil {
				return err
			}
			t.Signed.Delegations.Keys[id] = key
			d.KeyIDs = append(d.KeyIDs, id)
		}
		t.Signed.Delegations.Roles = append(t.Signed.Delegations.Roles, d)
	}
	return nil
}

// writeRoot signs and writes root metadata. It returns an error if too few of the root's own keys have signed.
func (r *Repository) writeRoot(root *metadata.Metadata[metadata.RootType], signers []signature.Signer) error {
	if err := signWith(root, signers); err != nil {
		return err
	}
	if err := root.VerifyDelegate(metadata.ROOT, root); err != nil {
		return fmt.Errorf("cannot sign the root: %w", err)
	}
	text, err := root.ToBytes(true)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(r.metadata(strconv.FormatInt(root.Signed.Version, 10)+".root.json"), text, 0o644)
}

// signed is the metadata of any role.
type signed interface {
	Sign(signature.Signer) (*metadata.Signature, error)
	ToBytes(bool) ([]byte, error)
}

// signWith signs with each key once, even if a key is listed twice.
func signWith(m signed, signers []signature.Signer) error {
	var done []crypto.PublicKey
	for _, s := range signers {
		public, err := s.PublicKey()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(done, func(k crypto.PublicKey) bool { return k.(ed25519.PublicKey).Equal(public) }) {
			continue
		}
		done = append(done, public)
		if _, err := m.Sign(s); err != nil {
			return fmt.Errorf("cannot sign: %w", err)
		}
	}
	return nil
}

// writeRole signs and writes the next version of a targets role, and records it in the snapshot.
func writeRole(r *Repository, role, keyRole string, t *metadata.Metadata[metadata.TargetsType],
	snapshot *metadata.Metadata[metadata.SnapshotType]) error {
	file := role + ".json"
	version := int64(1)
	if had := snapshot.Signed.Meta[file]; had != nil {
		version = had.Version + 1
	}
	t.Signed.Version = version
	t.ClearSignatures()
	signers, err := r.signers(keyRole)
	if err != nil {
		return err
	}
	if err := signWith(t, signers); err != nil {
		return err
	}
	text, err := t.ToBytes(true)
	if err != nil {
		return err
	}
	snapshot.Signed.Meta[file] = metaFile(version, text)
	return atomicfile.WriteFile(r.metadata(strconv.FormatInt(version, 10)+"."+file), text, 0o644)
}

func metaFile(version int64, text []byte) *metadata.MetaFiles {
	sum := sha256.Sum256(text)
	return &metadata.MetaFiles{Version: version, Length: int64(len(text)), Hashes: metadata.Hashes{"sha256": sum[:]}}
}

// publish signs the next version of the snapshot, and the timestamp.
func (r *Repository) publish(snapshot *metadata.Metadata[metadata.SnapshotType], timestampVersion int64) error {
	snapshot.Signed.Version++
	snapshot.Signed.Expires = r.until(r.Life.Snapshot)
	snapshot.ClearSignatures()
	signers, err := r.signers(metadata.SNAPSHOT)
	if err != nil {
		return err
	}
	if err := signWith(snapshot, signers); err != nil {
		return err
	}
	text, err := snapshot.ToBytes(true)
	if err != nil {
		return err
	}
	name := strconv.FormatInt(snapshot.Signed.Version, 10) + ".snapshot.json"
	if err := atomicfile.WriteFile(r.metadata(name), text, 0o644); err != nil {
		return err
	}
	t := metadata.Timestamp(r.until(r.Life.Timestamp))
	t.Signed.Version = timestampVersion
	t.Signed.Meta["snapshot.json"] = metaFile(snapshot.Signed.Version, text)
	if signers, err = r.signers(metadata.TIMESTAMP); err != nil {
		return err
	}
	if err := signWith(t, signers); err != nil {
		return err
	}
	if text, err = t.ToBytes(true); err != nil {
		return err
	}
	return atomicfile.WriteFile(r.metadata("timestamp.json"), text, 0o644)
}

// current reads the current snapshot, and returns it with the timestamp's version.
func (r *Repository) current() (*metadata.Metadata[metadata.SnapshotType], int64, error) {
	t, err := metadata.Timestamp().FromFile(r.metadata("timestamp.json"))
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read the repository: %w", err)
	}
	s, err := metadata.Snapshot().FromFile(r.metadata(strconv.FormatInt(t.Signed.Meta["snapshot.json"].Version, 10) + ".snapshot.json"))
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read the repository: %w", err)
	}
	return s, t.Signed.Version, nil
}

// readRole reads the current metadata of a targets role.
func (r *Repository) readRole(role string, s *metadata.Metadata[metadata.SnapshotType]) (*metadata.Metadata[metadata.TargetsType], error) {
	m := s.Signed.Meta[role+".json"]
	if m == nil {
		return nil, fmt.Errorf("cannot read the repository: it has no role %s", role)
	}
	t, err := metadata.Targets().FromFile(r.metadata(strconv.FormatInt(m.Version, 10) + "." + role + ".json"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the repository: %w", err)
	}
	return t, nil
}

// Add adds the programs of a version to a channel. programs has the file for each platform. It needs the keys of the
// channel, of the snapshot and of the timestamp.
func (r *Repository) Add(channel, version string, programs map[string]string) error {
	switch {
	case !slices.Contains(channels, channel):
		return fmt.Errorf("cannot add to channel %q: there are %s", channel, strings.Join(channels, ", "))
	case !layout.ValidVersion(version):
		return fmt.Errorf("cannot add version %q: it must be like 1.2.3 or 1.2.3-rc.1", version)
	case len(programs) == 0:
		return errors.New("cannot add a version without programs")
	}
	names := slices.Sorted(maps.Keys(programs))
	for _, platform := range names { // check before writing
		if !slices.Contains(platforms, platform) {
			return fmt.Errorf("cannot add programs for %q: platforms are %s", platform, strings.Join(platforms, ", "))
		}
		info, err := os.Stat(programs[platform])
		if err != nil {
			return fmt.Errorf("cannot add the program for %s: %w", platform, err)
		}
		if info.Size() > layout.MaxProgram {
			return fmt.Errorf("cannot add the program for %s: it has %d bytes, and hosts take %d at most", platform, info.Size(), layout.MaxProgram)
		}
	}
	snapshot, stamp, err := r.current()
	if err != nil {
		return err
	}
	for _, platform := range names {
		role := channel + "-" + platform
		t, err := r.readRole(role, snapshot)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(programs[platform])
		if err != nil {
			return fmt.Errorf("cannot add the program for %s: %w", platform, err)
		}
		sum := sha256.Sum256(data)
		name := channel + "/" + platform + "/" + version + "/" + layout.Program
		if had := t.Signed.Targets[name]; had != nil && !slices.Equal(had.Hashes["sha256"], sum[:]) {
			return fmt.Errorf("cannot add %s: the channel has that version with other bytes", name)
		}
		t.Signed.Targets[name] = &metadata.TargetFiles{Length: int64(len(data)), Hashes: metadata.Hashes{"sha256": sum[:]}, Path: name}
		path := filepath.Join(r.Dir, "targets", filepath.FromSlash(name))
		path = filepath.Join(filepath.Dir(path), hex.EncodeToString(sum[:])+"."+filepath.Base(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := atomicfile.WriteFile(path, data, 0o644); err != nil {
			return err
		}
		t.Signed.Expires = r.until(r.Life.Targets)
		if err := writeRole(r, role, channel, t, snapshot); err != nil {
			return err
		}
	}
	return r.publish(snapshot, stamp+1)
}

// Remove removes a version from a channel, for all platforms. Hosts that have the version keep it; no other host
// installs it.
func (r *Repository) Remove(channel, version string) error {
	snapshot, stamp, err := r.current()
	if err != nil {
		return err
	}
	found := false
	for _, platform := range platforms {
		role := channel + "-" + platform
		t, err := r.readRole(role, snapshot)
		if err != nil {
			return err
		}
		name := channel + "/" + platform + "/" + version + "/" + layout.Program
		if t.Signed.Targets[name] == nil {
			continue
		}
		found = true
		delete(t.Signed.Targets, name)
		if err := writeRole(r, role, channel, t, snapshot); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("cannot remove version %s: the channel %s does not have it", version, channel)
	}
	return r.publish(snapshot, stamp+1)
}

// Refresh signs the snapshot and the timestamp again, before they expire. It does not change the programs.
func (r *Repository) Refresh() error {
	snapshot, stamp, err := r.current()
	if err != nil {
		return err
	}
	return r.publish(snapshot, stamp+1)
}

// Rotate creates the next root from the current Keys: keys that are no longer in Keys are revoked. old is a directory
// with enough keys of the previous root. All roles are signed again.
func (r *Repository) Rotate(old string) error {
	last := int64(1)
	for {
		if _, err := os.Stat(r.metadata(strconv.FormatInt(last+1, 10) + ".root.json")); err != nil {
			break
		}
		last++
	}
	before, err := metadata.Root().FromFile(r.metadata(strconv.FormatInt(last, 10) + ".root.json"))
	if err != nil {
		return fmt.Errorf("cannot read the repository: %w", err)
	}
	snapshot, stamp, err := r.current()
	if err != nil {
		return err
	}
	root, err := r.newRoot(last + 1)
	if err != nil {
		return err
	}
	signers, err := (&Repository{Keys: old}).signers(metadata.ROOT)
	if err != nil {
		return err
	}
	own, err := r.signers(metadata.ROOT)
	if err != nil {
		return err
	}
	signers = append(signers, own...)
	if err := signWith(root, signers); err != nil {
		return err
	}
	if err := before.VerifyDelegate(metadata.ROOT, root); err != nil {
		return fmt.Errorf("cannot sign the new root with the keys in %s: %w", old, err)
	}
	root.ClearSignatures()
	if err := r.signTargets(snapshot); err != nil {
		return err
	}
	if err := r.writeRoot(root, signers); err != nil {
		return err
	}
	return r.publish(snapshot, stamp+1)
}

func (r *Repository) metadata(name string) string { return filepath.Join(r.Dir, "metadata", name) }

func (r *Repository) until(d time.Duration) time.Time {
	return r.Now().UTC().Add(d).Truncate(time.Second)
}
