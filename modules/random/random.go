// Package random is Salt's execution module "random": hashes, random texts and random choices. Salt's sources:
// salt/modules/mod_random.py, salt/utils/pycrypto.py.
package random

import (
	"context"
	crand "crypto/rand"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"math/big"
	"strings"

	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/internal/python/pyrandom"
	"github.com/brine-salt/brine/internal/unixcrypt"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// random.hash differs: it knows md5, the SHA and the SHA-3 families; what else a host's OpenSSL may have is an error.
// random.shadow_hash differs: it knows sha512, sha256 and md5; blowfish and crypt are errors.

func hashFn(_ context.Context, c *modules.Call) (any, error) {
	h := newHash(c.Str("algorithm"))
	if h == nil {
		return nil, &modules.PythonError{Type: "SaltException", Msg: "You must specify a valid algorithm."}
	}
	switch v := c.Value("value").(type) {
	case string:
		h.Write([]byte(v))
	case []byte:
		h.Write(v)
	default:
		return nil, &modules.TypeError{Msg: "object supporting the buffer API required"}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func newHash(name string) hash.Hash {
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	switch name {
	case "sha512_224":
		return sha512.New512_224()
	case "sha512_256":
		return sha512.New512_256()
	case "sha3_224":
		return sha3.New224()
	case "sha3_256":
		return sha3.New256()
	case "sha3_384":
		return sha3.New384()
	case "sha3_512":
		return sha3.New512()
	}
	return hashname.New(name)
}

func strEncode(_ context.Context, c *modules.Call) (any, error) {
	var b []byte
	switch v := c.Value("value").(type) {
	case string:
		b = []byte(v)
	case []byte:
		b = v
	default:
		return nil, modules.Usagef("Value must be an encode-able string")
	}
	if c.Value("encoder") != any("base64") {
		// Stock makes bytes of the text, which then have no encoding.
		return nil, modules.Usagef("Value must be an encode-able string")
	}
	return base64.StdEncoding.EncodeToString(b), nil
}

// The character classes of get_str (Python's module string).
const (
	lower       = "abcdefghijklmnopqrstuvwxyz"
	upper       = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits      = "0123456789"
	punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
	whitespace  = " \t\n\r\x0b\x0c"
)

// maxLength bounds a random text.
const maxLength = 1 << 20

func getStr(_ context.Context, c *modules.Call) (any, error) {
	chars := c.Str("chars")
	if c.Bool("printable") {
		chars = digits + lower + upper + punctuation + whitespace
	}
	if chars == "" {
		for _, class := range [...]struct{ name, chars string }{{"lowercase", lower}, {"uppercase", upper}, {"digits", digits},
			{"punctuation", punctuation}, {"whitespace", whitespace}} {
			if c.Bool(class.name) {
				chars += class.chars
			}
		}
	}
	n, err := modules.ToInt(c.Value("length"))
	switch {
	case err != nil:
		if p, ok := err.(*modules.PythonError); ok {
			return nil, modules.Errorf("%s", p.Msg)
		}
		return nil, modules.Errorf("%v", err)
	case n > maxLength:
		return nil, modules.Errorf("cannot make a random text of more than %d characters", maxLength)
	case n <= 0:
		return "", nil
	case chars == "":
		return nil, modules.Errorf("unterminated character set at position 0")
	}
	return draw(chars, int(n))
}

// draw draws n characters; one that is given twice is not drawn more often.
func draw(chars string, n int) (string, error) {
	var set []rune
	seen := map[rune]bool{}
	for _, r := range chars {
		if !seen[r] {
			seen[r], set = true, append(set, r)
		}
	}
	var b strings.Builder
	size := big.NewInt(int64(len(set)))
	for range n {
		i, err := crand.Int(crand.Reader, size)
		if err != nil {
			return "", modules.Errorf("cannot get random numbers: %v", err)
		}
		b.WriteRune(set[i.Int64()])
	}
	return b.String(), nil
}

func shadowHash(_ context.Context, c *modules.Call) (any, error) {
	password := c.Str("password")
	if c.Value("password") == nil {
		var err error
		if password, err = draw(lower+upper+digits+punctuation, 20); err != nil {
			return nil, err
		}
	}
	algorithm := c.Str("algorithm")
	if c.Value("algorithm") == nil {
		algorithm = "sha512"
	}
	prefix, size := "", 16
	switch algorithm {
	case "sha512":
		prefix = "$6$"
	case "sha256":
		prefix = "$5$"
	case "md5":
		prefix, size = "$1$", 8
	default:
		return nil, modules.Usagef("Cannot hash using '%s' hash algorithm. Supported algorithms are: sha512, sha256, md5.", algorithm)
	}
	salt := c.Str("crypt_salt")
	if c.Value("crypt_salt") == nil {
		salt = unixcrypt.Salt(size)
	}
	out, err := unixcrypt.Crypt(password, prefix+salt)
	if err != nil {
		c.Logger().Error("Cannot hash the password", "err", err)
		return "*0", nil // as crypt(3) has it
	}
	return out, nil
}

// generator returns Python's random generator, seeded with v, or randomly if v is nil.
func generator(v any) (*pyrandom.Rand, error) {
	if v == nil {
		b := make([]byte, 32)
		_, _ = crand.Read(b) // never fails, by its documentation
		return pyrandom.New(b)
	}
	r, err := pyrandom.New(v)
	if err != nil {
		return nil, &modules.TypeError{Msg: err.Error()}
	}
	return r, nil
}

// integer returns an argument that Python's randrange requires to be an integer. Floats without a fraction are
// accepted.
func integer(c *modules.Call, name, called string) (int64, error) {
	n, err := modules.ToInt(c.Value(name))
	if err != nil {
		return 0, err
	}
	if f, ok := c.Value(name).(float64); ok && f == float64(n) {
		return n, nil
	}
	switch c.Value(name).(type) {
	case int64, bool:
		return n, nil
	}
	return 0, &modules.PythonError{Type: "ValueError", Msg: "non-integer " + called + " for randrange()"}
}

func randInt(_ context.Context, c *modules.Call) (any, error) {
	r, err := generator(c.Value("seed"))
	if err != nil {
		return nil, err
	}
	start, err := integer(c, "start", "arg 1")
	if err != nil {
		return nil, err
	}
	switch v := c.Value("end").(type) {
	case string:
		return nil, &modules.TypeError{Msg: `can only concatenate str (not "int") to str`}
	case nil, []any, map[string]any, map[any]any, []byte:
		return nil, &modules.TypeError{Msg: "unsupported operand type(s) for +: '" + modules.TypeName(v) + "' and 'int'"}
	}
	end, err := integer(c, "end", "stop")
	if err != nil {
		return nil, err
	}
	if start > end {
		return nil, &modules.PythonError{Type: "ValueError", Msg: emptyRange(start, end)}
	}
	width := uint64(end) - uint64(start) + 1
	if width == 0 {
		return nil, modules.Usagef("cannot draw from so wide a range")
	}
	return int64(uint64(start) + r.Below(width)), nil
}

// emptyRange returns the text of Python's error for randrange(start, end+1) if the range is empty.
func emptyRange(start, end int64) string {
	over := new(big.Int).Add(big.NewInt(end), big.NewInt(1))
	return fmt.Sprintf("empty range for randrange() (%d, %s, %s)", start, over, new(big.Int).Sub(over, big.NewInt(start)))
}

func seed(_ context.Context, c *modules.Call) (any, error) {
	from := c.Value("hash")
	if from == nil {
		if from = c.Grain("id"); from == nil {
			from = c.ID
		}
	}
	r, err := generator(from)
	if err != nil {
		return nil, err
	}
	n, err := integer(c, "range", "arg 1")
	if err != nil {
		return nil, err
	}
	if n <= 0 {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "empty range for randrange()"}
	}
	return int64(r.Below(uint64(n))), nil
}

// picked draws from the list value. Stock seeds with the SHA-512 of the seed, which must be a text.
func picked(c *modules.Call, list []any, n int64) (any, error) {
	from := c.Value("seed")
	switch v := from.(type) {
	case nil:
	case string:
		from = hexSum([]byte(v))
	case []byte:
		from = hexSum(v)
	default:
		return nil, &modules.TypeError{Msg: "object supporting the buffer API required"}
	}
	if n < 0 || n > int64(len(list)) {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "Sample larger than population or is negative"}
	}
	r, err := generator(from)
	if err != nil {
		return nil, err
	}
	out := make([]any, 0, n)
	for _, i := range r.Sample(len(list), int(n)) {
		out = append(out, list[i])
	}
	return out, nil
}

func hexSum(b []byte) string {
	sum := sha512.Sum512(b)
	return hex.EncodeToString(sum[:])
}

// population returns the list that samples are drawn from.
func population(c *modules.Call) ([]any, error) {
	switch v := c.Value("value").(type) {
	case []any:
		return v, nil
	case string:
		var list []any
		for _, r := range v {
			list = append(list, string(r))
		}
		return list, nil
	}
	return nil, &modules.TypeError{Msg: "Population must be a sequence.  For dicts or sets, use sorted(d)."}
}

func sample(_ context.Context, c *modules.Call) (any, error) {
	list, err := population(c)
	if err != nil {
		return nil, err
	}
	n, ok := c.Value("size").(int64)
	if !ok {
		return nil, &modules.TypeError{Msg: "'<=' not supported between instances of 'int' and '" + modules.TypeName(c.Value("size")) + "'"}
	}
	return picked(c, list, n)
}

func shuffle(_ context.Context, c *modules.Call) (any, error) {
	if !sized(c.Value("value")) {
		return nil, &modules.TypeError{Msg: "object of type '" + modules.TypeName(c.Value("value")) + "' has no len()"}
	}
	list, err := population(c)
	if err != nil {
		return nil, err
	}
	return picked(c, list, int64(len(list)))
}

func sized(v any) bool {
	switch v.(type) {
	case []any, string, []byte, map[string]any, map[any]any:
		return true
	}
	return false
}
