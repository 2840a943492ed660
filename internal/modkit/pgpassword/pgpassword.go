// Package pgpassword hashes and verifies passwords in the forms that PostgreSQL stores: MD5 and SCRAM-SHA-256. Salt's
// source: salt/modules/postgres.py (_maybe_encrypt_password, _verify_password).
//
// github.com/xdg-go/scram (308 KiB, most of it tables of stringprep) is not used: it would replace only the eight
// lines of hashSCRAM. The stored form, MD5 and the limit for iterations would remain here.
package pgpassword

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// Default is the method of passwords if none is set.
const Default = "md5"

const scram = "SCRAM-SHA-256"

// Encrypt returns a password in the form that the server stores; one that has that form already is unchanged. method
// is "md5" or true, "scram-sha-256", or false for a plain password. Errors have the texts of Python's ValueError.
func Encrypt(role, password string, method any) (string, error) {
	switch {
	case method == true || method == "md5":
		if strings.HasPrefix(password, "md5") {
			return password, nil
		}
		return hashMD5(role, password), nil
	case method == "scram-sha-256":
		if strings.HasPrefix(password, scram) {
			return password, nil
		}
		salt := make([]byte, 16)
		rand.Read(salt)
		return hashSCRAM(password, salt, 4096)
	case method == false || method == int64(0):
		return password, nil
	}
	return "", errors.New("Unknown password algorithm: " + pytext.Str(method))
}

// Verify reports whether kept, which the server stores, is the hash of password. The password may be hashed already.
func Verify(role, password, kept string, method any) bool {
	switch {
	case method == true || method == "md5":
		if !strings.HasPrefix(password, "md5") {
			password = hashMD5(role, password)
		}
	case method == "scram-sha-256":
		if strings.HasPrefix(password, scram) {
			break
		}
		salt, iterations, ok := parse(kept)
		if !ok {
			return false
		}
		var err error
		if password, err = hashSCRAM(password, salt, iterations); err != nil {
			return false
		}
	case method != false && method != int64(0):
		return false
	}
	return hmac.Equal([]byte(kept), []byte(password))
}

// maxIterations limits the work that a verifier from a server can cause.
const maxIterations = 10_000_000

// parse returns the salt and the iterations of a verifier SCRAM-SHA-256$<iterations>:<salt>$<keys>.
func parse(kept string) (salt []byte, iterations int, ok bool) {
	rest, ok1 := strings.CutPrefix(kept, scram+"$")
	count, rest, ok2 := strings.Cut(rest, ":")
	text, _, ok3 := strings.Cut(rest, "$")
	iterations, err1 := strconv.Atoi(count)
	salt, err2 := base64.StdEncoding.DecodeString(text)
	return salt, iterations, ok1 && ok2 && ok3 && err1 == nil && err2 == nil && iterations > 0 && iterations <= maxIterations
}

func hashMD5(role, password string) string {
	sum := md5.Sum([]byte(password + role))
	return "md5" + hex.EncodeToString(sum[:])
}

func hashSCRAM(password string, salt []byte, iterations int) (string, error) {
	password, err := prepare(password)
	if err != nil {
		return "", err
	}
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return "", err
	}
	mac := func(text string) []byte {
		h := hmac.New(sha256.New, salted)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	stored := sha256.Sum256(mac("Client Key"))
	b64 := base64.StdEncoding.EncodeToString
	return scram + "$" + strconv.Itoa(iterations) + ":" + b64(salt) + "$" + b64(stored[:]) + ":" + b64(mac("Server Key")), nil
}

// prepare applies SASLprep (RFC 4013) to a password: all spaces become U+0020, invisible characters are removed,
// and the rest is normalized. Control characters are refused.
func prepare(s string) (string, error) {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] >= ' ' && s[i] < 0x7f
	}
	if ascii {
		return s, nil
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == 0xad || r == 0x34f || r == 0x1806 || r >= 0x180b && r <= 0x180d || r >= 0x200b && r <= 0x200d || r == 0x2060 || r >= 0xfe00 && r <= 0xfe0f || r == 0xfeff:
			return -1
		case r != ' ' && unicode.Is(unicode.Zs, r):
			return ' '
		}
		return r
	}, s)
	s = norm.NFKC.String(s)
	for _, r := range s {
		if unicode.IsControl(r) {
			return "", errors.New("SASLprep: failed prohibited character check")
		}
	}
	return s, nil
}
