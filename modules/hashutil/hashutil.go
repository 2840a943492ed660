// Package hashutil is Salt's execution module "hashutil": digests and encodings. Salt's sources: salt/modules/hashutil.py,
// salt/utils/hashutils.py.
package hashutil

import (
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/internal/modkit/nss"
	"github.com/brine-salt/brine/internal/python/pybase64"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// hashutil.github_signature differs: it knows md5 and the SHA families, as GitHub uses.

// input returns an argument as bytes. Its error is that of Salt's to_bytes.
func input(c *modules.Call, name string) ([]byte, error) {
	switch v := c.Value(name).(type) {
	case string:
		return []byte(v), nil
	case []byte:
		return v, nil
	default:
		return nil, &modules.TypeError{Msg: "expected str, bytes, or bytearray not <class '" + modules.TypeName(v) + "'>"}
	}
}

// text returns bytes as text if they are UTF-8, and unchanged otherwise.
func text(b []byte) any {
	if utf8.Valid(b) {
		return string(b)
	}
	return b
}

func sum(c *modules.Call, h hash.Hash) (any, error) {
	b, err := input(c, "instr")
	if err != nil {
		return nil, err
	}
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil)), nil
}

func md5Digest(_ context.Context, c *modules.Call) (any, error)    { return sum(c, md5.New()) }
func sha256Digest(_ context.Context, c *modules.Call) (any, error) { return sum(c, sha256.New()) }
func sha512Digest(_ context.Context, c *modules.Call) (any, error) { return sum(c, sha512.New()) }

// chosen returns the hash that the argument checksum names.
func chosen(c *modules.Call) (hash.Hash, error) {
	switch name := c.Str("checksum"); name {
	case "md5":
		return md5.New(), nil
	case "sha256":
		return sha256.New(), nil
	case "sha512":
		return sha512.New(), nil
	default:
		return nil, modules.Errorf("Hash func '%s' is not supported.", name)
	}
}

func digest(_ context.Context, c *modules.Call) (any, error) {
	h, err := chosen(c)
	if err != nil {
		return nil, err
	}
	return sum(c, h)
}

func digestFile(ctx context.Context, c *modules.Call) (any, error) {
	name := nss.ExpandUser(ctx, c, c.Str("infile"))
	if info, err := os.Stat(c.Path(name)); err != nil || !info.Mode().IsRegular() || strings.IndexByte(name, 0) >= 0 {
		return nil, modules.Errorf("File path '%s' not found.", c.Str("infile"))
	}
	h, err := chosen(c)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(c.Path(name))
	if err != nil {
		return nil, modules.OSError(err)
	}
	defer f.Close()
	digits, err := hashname.Digest(h, stoppable{ctx, f})
	if err != nil {
		return nil, modules.OSError(err)
	}
	return digits, nil
}

// stoppable is a reader that ends with its context.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(b []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.r.Read(b)
}

func base64B64encode(_ context.Context, c *modules.Call) (any, error) {
	b, err := input(c, "instr")
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.EncodeToString(b), nil
}

func base64Encodestring(_ context.Context, c *modules.Call) (any, error) {
	b, err := input(c, "instr")
	if err != nil {
		return nil, err
	}
	return pybase64.Encode(b), nil
}

// base64Decode serves both decoders: they do the same.
func base64Decode(_ context.Context, c *modules.Call) (any, error) {
	b, err := input(c, "instr")
	if err != nil {
		return nil, err
	}
	out, err := pybase64.Decode(string(b))
	if err != nil {
		return nil, &modules.PythonError{Type: "Error", Msg: err.Error()}
	}
	return text(out), nil
}

// maxFile bounds the files whose content is an answer.
const maxFile = 64 << 20

func base64Encodefile(_ context.Context, c *modules.Call) (any, error) {
	name := c.Path(c.Str("fname"))
	if info, err := os.Stat(name); err == nil && info.Size() > maxFile {
		return nil, modules.Errorf("cannot return the content of %s: it has more than %d bytes", c.Str("fname"), maxFile)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, modules.OSError(err)
	}
	return pybase64.Encode(b), nil
}

func base64Decodefile(_ context.Context, c *modules.Call) (any, error) {
	in, ok := c.Value("instr").(string)
	if !ok && c.Value("instr") != nil {
		return nil, &modules.TypeError{Msg: "initial_value must be str or None, not " + modules.TypeName(c.Value("instr"))}
	}
	f, err := os.OpenFile(c.Path(c.Str("outfile")), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, modules.OSError(err)
	}
	defer f.Close()
	for line := range strings.Lines(in) { // each line stands for itself, as in Python
		b, err := pybase64.Decode(line)
		if err != nil {
			return nil, &modules.PythonError{Type: "Error", Msg: err.Error()}
		}
		if _, err := f.Write(b); err != nil {
			return nil, modules.OSError(err)
		}
	}
	if err := f.Close(); err != nil {
		return nil, modules.OSError(err)
	}
	return true, nil
}

// mac returns the HMAC of the argument string.
func mac(c *modules.Call, newHash func() hash.Hash) ([]byte, error) {
	msg, err := input(c, "string")
	if err != nil {
		return nil, err
	}
	key, err := input(c, "shared_secret")
	if err != nil {
		return nil, err
	}
	h := hmac.New(newHash, key)
	h.Write(msg)
	return h.Sum(nil), nil
}

func hmacSignature(_ context.Context, c *modules.Call) (any, error) {
	m, err := mac(c, sha256.New)
	if err != nil {
		return nil, err
	}
	challenge, err := input(c, "challenge_hmac")
	if err != nil {
		return nil, err
	}
	return subtle.ConstantTimeCompare([]byte(base64.StdEncoding.EncodeToString(m)), challenge) == 1, nil
}

func hmacCompute(_ context.Context, c *modules.Call) (any, error) {
	m, err := mac(c, sha256.New)
	if err != nil {
		return nil, err
	}
	return hex.EncodeToString(m), nil
}

func githubSignature(_ context.Context, c *modules.Call) (any, error) {
	parts := strings.Split(c.Str("challenge_hmac"), "=")
	switch {
	case len(parts) < 2:
		return nil, &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 2, got 1)"}
	case len(parts) > 2:
		return nil, &modules.PythonError{Type: "ValueError", Msg: "too many values to unpack (expected 2)"}
	}
	newHash := hashname.Func(parts[0])
	if newHash == nil {
		return nil, &modules.PythonError{Type: "AttributeError", Msg: fmt.Sprintf("module 'hashlib' has no attribute %s", pytext.Repr(parts[0]))}
	}
	m, err := mac(c, newHash)
	if err != nil {
		return nil, err
	}
	return subtle.ConstantTimeCompare([]byte(hex.EncodeToString(m)), []byte(parts[1])) == 1, nil
}
