package update

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// These changes to a repository are possible for a thief of some keys, or for the operator of a web server.

// signWith signs metadata with the keys in files.
func (l *lab) signWith(m interface {
	Sign(signature.Signer) (*metadata.Signature, error)
	ToBytes(bool) ([]byte, error)
}, to string, keys ...string) []byte {
	l.t.Helper()
	for _, name := range keys {
		text, err := os.ReadFile(filepath.Join(l.keys, name+".pem"))
		l.must(err)
		block, _ := pem.Decode(text)
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		l.must(err)
		s, err := signature.LoadSigner(key.(ed25519.PrivateKey), crypto.Hash(0))
		l.must(err)
		_, err = m.Sign(s)
		l.must(err)
	}
	text, err := m.ToBytes(false)
	l.must(err)
	l.must(os.WriteFile(filepath.Join(l.repo.Dir, "metadata", to), text, 0o600))
	return text
}

func (l *lab) path(name string) string { return filepath.Join(l.repo.Dir, "metadata", name) }

// snapshot returns the current snapshot.
func (l *lab) snapshot() *metadata.Metadata[metadata.SnapshotType] {
	l.t.Helper()
	stamp, err := metadata.Timestamp().FromFile(l.path("timestamp.json"))
	l.must(err)
	s, err := metadata.Snapshot().FromFile(l.path(fmt.Sprintf("%d.snapshot.json", stamp.Signed.Meta["snapshot.json"].Version)))
	l.must(err)
	return s
}

func file(version int64, text []byte) *metadata.MetaFiles {
	sum := sha256.Sum256(text)
	return &metadata.MetaFiles{Version: version, Length: int64(len(text)), Hashes: metadata.Hashes{"sha256": sum[:]}}
}

// stamp signs a timestamp for a snapshot.
func (l *lab) stamp(version, snapshot int64, text []byte) {
	l.t.Helper()
	t := metadata.Timestamp(l.now.Add(24 * time.Hour))
	t.Signed.Version = version
	t.Signed.Meta["snapshot.json"] = file(snapshot, text)
	l.signWith(t, "timestamp.json", "timestamp")
}

// publish signs a changed snapshot as the next version, and a timestamp of the same version.
func (l *lab) publish(s *metadata.Metadata[metadata.SnapshotType]) {
	l.t.Helper()
	s.Signed.Version++
	s.ClearSignatures()
	l.stamp(s.Signed.Version, s.Signed.Version, l.signWith(s, fmt.Sprintf("%d.snapshot.json", s.Signed.Version), "snapshot"))
}

// change changes a role and signs it with a key.
func (l *lab) change(role, key string, change func(*metadata.TargetsType)) {
	l.t.Helper()
	s := l.snapshot()
	had := s.Signed.Meta[role+".json"].Version
	t, err := metadata.Targets().FromFile(l.path(fmt.Sprintf("%d.%s.json", had, role)))
	l.must(err)
	change(&t.Signed)
	t.Signed.Version = had + 1
	t.ClearSignatures()
	s.Signed.Meta[role+".json"] = file(had+1, l.signWith(t, fmt.Sprintf("%d.%s.json", had+1, role), key))
	l.publish(s)
}

// rollBack signs a snapshot with the previous version of a role.
func (l *lab) rollBack(role string) {
	l.t.Helper()
	s := l.snapshot()
	had := s.Signed.Meta[role+".json"].Version
	s.Signed.Meta[role+".json"] = file(had-1, l.read(fmt.Sprintf("metadata/%d.%s.json", had-1, role)))
	l.publish(s)
}

// unhashed signs a snapshot without lengths and hashes, which the format permits.
func (l *lab) unhashed() {
	l.t.Helper()
	s := l.snapshot()
	for _, m := range s.Signed.Meta {
		m.Length, m.Hashes = 0, nil
	}
	l.publish(s)
}

// forgeRoot writes the next root with one of the two required keys.
func (l *lab) forgeRoot() {
	l.t.Helper()
	root, err := metadata.Root().FromFile(l.path("1.root.json"))
	l.must(err)
	root.Signed.Version = 2
	root.ClearSignatures()
	l.signWith(root, "2.root.json", "root.1")
}
