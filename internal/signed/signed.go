// Package signed verifies files against signature files in the format of minisign
// (https://jedisct1.github.io/minisign/), with public keys that the host's administrator has pinned. It makes no
// connections.
package signed

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Suffix is the extension of signature files. It is appended to the name of the signed file.
const Suffix = ".minisig"

// Size limits of a file of keys and of a signature.
const (
	maxKeys      = 64 << 10
	maxSignature = 8 << 10
)

// A Key is one public key in a file of keys.
type Key struct {
	id     uint64
	public ed25519.PublicKey
}

// ID returns the key's number in minisign's notation.
func (k Key) ID() string { return fmt.Sprintf("%016X", k.id) }

// The first letters of encoded data: whole for keys and for signatures over a file's content, hashed for signatures
// over a file's hash.
const whole, hashed = "Ed", "ED"

const untrusted = "untrusted comment: "

// ReadKeys returns the public keys in a file, in minisign's format. The file may contain several; lines with "#" and
// untrusted comments are skipped. It refuses a file without keys, one that is not a regular file, and one that others
// than its owner may write to. Errors about a line name it.
func ReadKeys(name string) ([]Key, error) {
	text, err := readAll(name, maxKeys)
	if err != nil {
		return nil, errors.New("cannot read the keys of releases: " + err.Error())
	}
	if info, err := os.Stat(name); err != nil || info.Mode()&0o022 != 0 && runtime.GOOS != "windows" {
		return nil, errors.New("cannot use the keys of releases in " + name + ": others than its owner may write it")
	}
	var keys []Key
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || strings.HasPrefix(line, untrusted) {
			continue
		}
		letters, id, public := decode(line)
		if letters != whole || len(public) != ed25519.PublicKeySize {
			return nil, errors.New("cannot read the keys of releases: " + name + ":" + strconv.Itoa(i+1) +
				": it is no public key of minisign")
		}
		keys = append(keys, Key{id, public})
	}
	if keys == nil {
		return nil, errors.New("cannot use the keys of releases in " + name + ": there is none")
	}
	return keys, nil
}

// Verify checks a file against a signature file, which must be made with one of the keys. It returns that key and the
// signed comment. As in minisign, the signature must be over the hash of the whole file. If the comment names a file,
// the name must match, so that an older file under the name of a newer one is refused.
func Verify(name, signature string, keys []Key) (Key, string, error) {
	key, comment, err := verify(name, signature, keys)
	if err != nil {
		err = errors.New("cannot verify " + name + ": " + err.Error())
	}
	return key, comment, err
}

func verify(name, signature string, keys []Key) (Key, string, error) {
	text, err := readAll(signature, maxSignature)
	if err != nil {
		return Key{}, "", err
	}
	// Four lines: a comment, the signature of the file's hash, a comment, the signature of the first signature and the
	// comment.
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	for len(lines) < 4 {
		lines = append(lines, "")
	}
	letters, id, first := decode(strings.TrimRight(lines[1], "\r"))
	comment, found := strings.CutPrefix(strings.TrimRight(lines[2], "\r"), "trusted comment: ")
	second, err := base64.StdEncoding.Strict().DecodeString(lines[3])
	switch {
	case len(lines) != 4 || !strings.HasPrefix(lines[0], untrusted) || len(first) != ed25519.SignatureSize || !found || err != nil:
		return Key{}, "", errors.New(signature + " is no signature of minisign")
	case letters != hashed:
		return Key{}, "", errors.New(signature + " is a signature in minisign's older form, without a hash of the file")
	}
	key := Key{id: id}
	for _, k := range keys {
		if k.id == id {
			key = k
		}
	}
	if key.public == nil {
		return Key{}, "", errors.New("it is signed with the key " + key.ID() + ", which is not one of the pinned ones")
	}
	f, err := os.Open(name)
	if err != nil {
		return Key{}, "", err
	}
	defer f.Close()
	sum, err := blake2b(f)
	if err != nil {
		return Key{}, "", err
	}
	if !ed25519.Verify(key.public, sum, first) || !ed25519.Verify(key.public, append(first, comment...), second) {
		return Key{}, "", errors.New("it is not the file that " + signature + " was made for")
	}
	for _, field := range strings.Fields(comment) {
		if of, ok := strings.CutPrefix(field, "file:"); ok && of != filepath.Base(name) {
			return Key{}, "", errors.New("the signature is that of " + of)
		}
	}
	return key, comment, nil
}

// decode decodes a line of base64: two letters, a key's number, and the rest. letters is "" for an invalid line.
func decode(line string) (letters string, id uint64, rest []byte) {
	b, err := base64.StdEncoding.Strict().DecodeString(line)
	if err != nil || len(b) < 10 {
		return "", 0, nil
	}
	return string(b[:2]), binary.LittleEndian.Uint64(b[2:]), b[10:]
}

// readAll returns the content of a regular file of at most limit bytes.
func readAll(name string, limit int64) (string, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New(name + " is not a regular file")
	case info.Size() > limit:
		return "", errors.New(name + " has more than " + strconv.FormatInt(limit, 10) + " bytes")
	}
	b, err := os.ReadFile(name)
	return string(b), err
}
