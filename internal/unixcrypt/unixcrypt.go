// Package unixcrypt hashes passwords as crypt(3) does, for /etc/shadow: with SHA-512 ("$6$"), SHA-256 ("$5$") and MD5
// ("$1$"). The specifications are U. Drepper's "Unix crypt using SHA-256 and SHA-512" and, for MD5, P.-H. Kamp's
// crypt of FreeBSD.
//
// github.com/go-crypt/crypt (68 KiB) is not used: it verifies hashes, but does not hash with a setting as crypt(3)
// does. Cutting the salt, limiting the rounds and refusing characters that would break a line of /etc/shadow would
// remain here. It would add bcrypt, but not yescrypt.
package unixcrypt

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
)

// ErrMethod means that a setting selects an unknown method.
var ErrMethod = errors.New("unknown method of password hashing")

// ErrSalt means that a salt contains characters that are not allowed.
var ErrSalt = errors.New("the salt may not hold colons, line ends and control characters")

// maxPassword limits the length of a password, since the work grows with it.
const maxPassword = 512

// Alphabet contains the characters of salts and hashes.
const Alphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Crypt returns the hash of a password with a setting such as "$6$salt" or "$5$rounds=5000$salt".
func Crypt(password, setting string) (string, error) {
	if len(password) > maxPassword {
		return "", fmt.Errorf("cannot hash a password of more than %d bytes", maxPassword)
	}
	if strings.IndexByte(password, 0) >= 0 {
		return "", errors.New("cannot hash a password with a NUL in it")
	}
	for i := range len(setting) {
		if c := setting[i]; c < ' ' || c == 0x7f || c == ':' {
			return "", ErrSalt
		}
	}
	switch {
	case strings.HasPrefix(setting, "$6$"):
		return sha(password, setting[3:], "$6$", sha512.New, order512[:])
	case strings.HasPrefix(setting, "$5$"):
		return sha(password, setting[3:], "$5$", sha256.New, order256[:])
	case strings.HasPrefix(setting, "$1$"):
		return md5Crypt(password, setting[3:]), nil
	}
	return "", ErrMethod
}

// Salt returns a random salt of n characters.
func Salt(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, by its documentation
	for i := range b {
		b[i] = Alphabet[b[i]&63]
	}
	return string(b)
}

// Rounds of the SHA methods.
const (
	defaultRounds = 5000
	minRounds     = 1000
	maxRounds     = 999999999
	// workRounds is the largest number of rounds that are computed: more would occupy a core for minutes.
	workRounds = 10000000
)

// sha implements SHA-crypt, with SHA-256 or SHA-512.
func sha(password, setting, prefix string, newHash func() hash.Hash, order []byte) (string, error) {
	rounds, given := defaultRounds, false
	if rest, ok := strings.CutPrefix(setting, "rounds="); ok {
		if digits, after, ok := strings.Cut(rest, "$"); ok {
			n, err := strconv.ParseUint(digits, 10, 63)
			if err != nil {
				return "", fmt.Errorf("cannot read the rounds %q", digits)
			}
			rounds, given, setting = int(min(max(n, minRounds), maxRounds)), true, after
		}
	}
	if rounds > workRounds {
		return "", fmt.Errorf("cannot hash with more than %d rounds", workRounds)
	}
	salt, _, _ := strings.Cut(setting, "$")
	salt = salt[:min(len(salt), 16)]
	sum := shaRounds([]byte(password), []byte(salt), rounds, newHash)
	var b strings.Builder
	b.WriteString(prefix)
	if given {
		fmt.Fprintf(&b, "rounds=%d$", rounds)
	}
	b.WriteString(salt + "$")
	shuffled := make([]byte, len(order))
	for i, at := range order {
		shuffled[i] = sum[at]
	}
	b.WriteString(encode(shuffled))
	return b.String(), nil
}

func shaRounds(password, salt []byte, rounds int, newHash func() hash.Hash) []byte {
	h := newHash()
	size := h.Size()
	sum := func(parts ...[]byte) []byte {
		h.Reset()
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	b := sum(password, salt, password)
	parts := [][]byte{password, salt, stretch(b, len(password))}
	for n := len(password); n > 0; n >>= 1 {
		if n&1 != 0 {
			parts = append(parts, b)
		} else {
			parts = append(parts, password)
		}
	}
	a := sum(parts...)
	parts = parts[:0]
	for range len(password) {
		parts = append(parts, password)
	}
	p := stretch(sum(parts...), len(password))
	parts = parts[:0]
	for range 16 + int(a[0]) {
		parts = append(parts, salt)
	}
	s := stretch(sum(parts...), len(salt))
	c := a[:size]
	for i := range rounds {
		h.Reset()
		if i&1 != 0 {
			h.Write(p)
		} else {
			h.Write(c)
		}
		if i%3 != 0 {
			h.Write(s)
		}
		if i%7 != 0 {
			h.Write(p)
		}
		if i&1 != 0 {
			h.Write(c)
		} else {
			h.Write(p)
		}
		c = h.Sum(c[:0])
	}
	return c
}

// stretch returns n bytes of a repeated block.
func stretch(block []byte, n int) []byte {
	out := make([]byte, 0, n+len(block))
	for len(out) < n {
		out = append(out, block...)
	}
	return out[:n]
}

// The order in which the bytes of a hash are encoded, in groups of three.
var (
	order512 = [...]byte{0, 21, 42, 22, 43, 1, 44, 2, 23, 3, 24, 45, 25, 46, 4, 47, 5, 26, 6, 27, 48, 28, 49, 7, 50, 8, 29, 9, 30, 51,
		31, 52, 10, 53, 11, 32, 12, 33, 54, 34, 55, 13, 56, 14, 35, 15, 36, 57, 37, 58, 16, 59, 17, 38, 18, 39, 60, 40, 61, 19, 62, 20, 41, 63}
	order256 = [...]byte{0, 10, 20, 21, 1, 11, 12, 22, 2, 3, 13, 23, 24, 4, 14, 15, 25, 5, 6, 16, 26, 27, 7, 17, 18, 28, 8, 9, 19, 29, 31, 30}
	orderMD5 = [...]byte{0, 6, 12, 1, 7, 13, 2, 8, 14, 3, 9, 15, 4, 10, 5, 11}
)

// encode encodes each three bytes as four characters. The first byte is the most significant; the six lowest bits
// come first.
func encode(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		n := min(3, len(b))
		var v uint32
		for i := range n {
			v = v<<8 | uint32(b[i])
		}
		for range n + 1 {
			out.WriteByte(Alphabet[v&63])
			v >>= 6
		}
		b = b[n:]
	}
	return out.String()
}

func md5Crypt(password, setting string) string {
	salt, _, _ := strings.Cut(setting, "$")
	salt = salt[:min(len(salt), 8)]
	inner := md5.Sum([]byte(password + salt + password))
	h := md5.New()
	h.Write([]byte(password + "$1$" + salt))
	h.Write(stretch(inner[:], len(password)))
	for n := len(password); n > 0; n >>= 1 {
		if n&1 != 0 {
			h.Write([]byte{0})
		} else {
			h.Write([]byte(password[:1]))
		}
	}
	c := h.Sum(nil)
	for i := range 1000 {
		h.Reset()
		if i&1 != 0 {
			h.Write([]byte(password))
		} else {
			h.Write(c)
		}
		if i%3 != 0 {
			h.Write([]byte(salt))
		}
		if i%7 != 0 {
			h.Write([]byte(password))
		}
		if i&1 != 0 {
			h.Write(c)
		} else {
			h.Write([]byte(password))
		}
		c = h.Sum(c[:0])
	}
	shuffled := make([]byte, len(orderMD5))
	for i, at := range orderMD5 {
		shuffled[i] = c[at]
	}
	return "$1$" + salt + "$" + encode(shuffled)
}
