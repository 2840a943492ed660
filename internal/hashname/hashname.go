// Package hashname returns hashes by the names that Salt's option hash_type and Python's module hashlib use.
//
// It is for modules and for the minion's files. Package protocol/crypt has its own functions, since protocol imports
// nothing from here.
package hashname

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"io"
	"sync"
)

// Func returns the constructor of a hash by name: md5, sha1, sha224, sha256, sha384 or sha512. It returns nil for any
// other name; callers have different error texts.
func Func(name string) func() hash.Hash {
	switch name {
	case "md5":
		return md5.New
	case "sha1":
		return sha1.New
	case "sha224":
		return sha256.New224
	case "sha256":
		return sha256.New
	case "sha384":
		return sha512.New384
	case "sha512":
		return sha512.New
	}
	return nil
}

// New returns a hash by name, or nil; see [Func].
func New(name string) hash.Hash {
	if f := Func(name); f != nil {
		return f()
	}
	return nil
}

// buffers pools the read buffers of [Digest], since a state run hashes thousands of small files.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// Digest reads r to its end and returns the hash in hex digits.
func Digest(h hash.Hash, r io.Reader) (string, error) {
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	if _, err := io.CopyBuffer(h, struct{ io.Reader }{r}, buf[:]); err != nil { // the file's WriteTo method would allocate a buffer
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
