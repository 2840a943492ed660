// Package signed verifies files against signatures beside them, in the format of minisign
// (https://jedisct1.github.io/minisign/), with the public keys that the owner of a host has pinned. It makes no
// connection.
package signed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"aead.dev/minisign"
)

// Suffix is what the name of a signature has after that of its file.
const Suffix = ".minisig"

// The limits of what is read whole: a file of keys, and a signature.
const (
	maxKeys      = 64 << 10
	maxSignature = 8 << 10
)

// A Key is a public key of a list.
type Key struct{ key minisign.PublicKey }

// ID returns the key's number as minisign prints it.
func (k Key) ID() string { return fmt.Sprintf("%016X", k.key.ID()) }

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
		var k Key
		if err := k.key.UnmarshalText([]byte(line)); err != nil {
			return nil, fmt.Errorf("cannot read the keys of releases: %s:%d: it is no public key of minisign", name, n)
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("cannot use the keys of releases in %s: there is none", name)
	}
	return keys, nil
}

// Verify checks a file against the signature in another one, which one of the keys must have made. It returns that key
// and the comment that is signed. The signature must be of the whole file by its hash, as minisign makes it, and, where
// the comment names the file, of one of this name: an older file under a newer one's name is refused.
func Verify(name, signature string, keys []Key) (Key, string, error) {
	fail := func(format string, args ...any) (Key, string, error) {
		return Key{}, "", fmt.Errorf("cannot verify %s: "+format, append([]any{name}, args...)...)
	}
	text, _, err := readAll(signature, maxSignature)
	if err != nil {
		return fail("%w", err)
	}
	var sig minisign.Signature
	if err := sig.UnmarshalText(bytes.TrimRight(text, "\r\n")); err != nil {
		return fail("%s is no signature of minisign", signature)
	}
	if sig.Algorithm != minisign.HashEdDSA {
		return fail("%s is a signature in minisign's older form, without a hash of the file", signature)
	}
	var key *Key
	for i := range keys {
		if keys[i].key.ID() == sig.KeyID {
			key = &keys[i]
		}
	}
	if key == nil {
		return fail("it is signed with the key %016X, which is not one of the pinned ones", sig.KeyID)
	}
	f, err := os.Open(name)
	if err != nil {
		return fail("%w", err)
	}
	defer f.Close()
	r := minisign.NewReader(f)
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fail("%w", err)
	}
	if !r.Verify(key.key, text) {
		return fail("it is not the file that %s was made for", signature)
	}
	for field := range strings.FieldsSeq(sig.TrustedComment) {
		if of, ok := strings.CutPrefix(field, "file:"); ok && of != filepath.Base(name) {
			return fail("the signature is that of %s", of)
		}
	}
	return *key, sig.TrustedComment, nil
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
