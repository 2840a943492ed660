// Package signed verifies files against signatures beside them, in the format of minisign
// (https://jedisct1.github.io/minisign/), with the public keys that the owner of a host has pinned. It makes no
// connection.
package signed

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Suffix is what the name of a signature has after that of its file.
const Suffix = ".minisig"

// The limits of what is read whole: a file of keys, and a signature.
const (
	maxKeys      = 64 << 10
	maxSignature = 8 << 10
)

// A Key is a public key of a list.
type Key struct {
	id     uint64
	public ed25519.PublicKey
}

// ID returns the key's number as minisign prints it.
func (k Key) ID() string { return fmt.Sprintf("%016X", k.id) }

// The letters before a key's number: of a key and of a signature over a whole file, and of a signature over a hash.
const whole, hashed = "Ed", "ED"

// decode reads a line of base64: two letters, a key's number, and n bytes.
func decode(line string, n int) (letters string, id uint64, rest []byte, ok bool) {
	b, err := base64.StdEncoding.Strict().DecodeString(line)
	if err != nil || len(b) != 10+n {
		return "", 0, nil, false
	}
	return string(b[:2]), binary.LittleEndian.Uint64(b[2:]), b[10:], true
}

// ReadKeys reads a file with public keys as minisign writes them, one after the other; lines with "#" and untrusted
// comments are skipped. It refuses a file without keys, one that is not a regular file, and one that others than its
// owner may write. The error names the line.
func ReadKeys(name string) ([]Key, error) {
	text, info, err := readAll(name, maxKeys)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the keys of releases: %w", err)
	case info.Mode().Perm()&0o022 != 0 && runtime.GOOS != "windows":
		return nil, fmt.Errorf("cannot use the keys of releases in %s: others than its owner may write it (mode %04o)",
			name, info.Mode().Perm())
	}
	var keys []Key
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "untrusted comment:") {
			continue
		}
		letters, id, public, ok := decode(line, ed25519.PublicKeySize)
		if !ok || letters != whole {
			return nil, fmt.Errorf("cannot read the keys of releases: %s:%d: it is no public key of minisign", name, n)
		}
		keys = append(keys, Key{id, public})
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("cannot use the keys of releases in %s: there is none", name)
	}
	return keys, nil
}

// Verify checks a file against the signature in another one, which one of the keys must have made. It returns that key
// and the comment that is signed. The signature must be of the whole file by its hash, as minisign makes it, and, where
// the comment names the file, of one of this name: an older file under a newer one's name is refused.
func Verify(name, signatureFile string, keys []Key) (Key, string, error) {
	fail := func(format string, args ...any) (Key, string, error) {
		return Key{}, "", fmt.Errorf("cannot verify %s: "+format, append([]any{name}, args...)...)
	}
	text, _, err := readAll(signatureFile, maxSignature)
	if err != nil {
		return fail("%w", err)
	}
	sig, ok := parseSignature(string(text))
	if !ok {
		return fail("%s is no signature of minisign", signatureFile)
	}
	if sig.letters == whole {
		return fail("%s is a signature in minisign's older form, without a hash of the file", signatureFile)
	}
	var key *Key
	for i := range keys {
		if keys[i].id == sig.id {
			key = &keys[i]
		}
	}
	if key == nil {
		return fail("it is signed with the key %016X, which is not one of the pinned ones", sig.id)
	}
	f, err := os.Open(name)
	if err != nil {
		return fail("%w", err)
	}
	defer f.Close()
	sum, err := blake2b(f)
	if err != nil {
		return fail("%w", err)
	}
	if !ed25519.Verify(key.public, sum, sig.file) ||
		!ed25519.Verify(key.public, append(sig.file, sig.comment...), sig.whole) {
		return fail("it is not the file that %s was made for", signatureFile)
	}
	for field := range strings.FieldsSeq(sig.comment) {
		if of, ok := strings.CutPrefix(field, "file:"); ok && of != filepath.Base(name) {
			return fail("the signature is that of %s", of)
		}
	}
	return *key, sig.comment, nil
}

// A signature is what a file of minisign has: of the file's hash, and of that signature with the comment.
type signature struct {
	letters     string
	id          uint64
	file, whole []byte
	comment     string
}

// parseSignature reads the four lines of a signature.
func parseSignature(text string) (s signature, ok bool) {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "untrusted comment: ") {
		return s, false
	}
	var good bool
	if s.letters, s.id, s.file, good = decode(lines[1], ed25519.SignatureSize); !good || s.letters != whole && s.letters != hashed {
		return s, false
	}
	if s.comment, good = strings.CutPrefix(lines[2], "trusted comment: "); !good {
		return s, false
	}
	b, err := base64.StdEncoding.Strict().DecodeString(lines[3])
	s.whole = b
	return s, err == nil && len(b) == ed25519.SignatureSize
}

// readAll reads a regular file of at most limit bytes.
func readAll(name string, limit int64) ([]byte, os.FileInfo, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, errors.New(name + " is not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return text, info, err
}
