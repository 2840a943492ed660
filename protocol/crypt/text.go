package crypt

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
	"unicode"
)

// CleanKey returns PEM text in the form that Salt compares and sends: without white space around it, with "\n" as
// line ending and without a final newline (salt/crypt.py:clean_key).
func CleanKey(text string) string {
	text = strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f })
	if strings.IndexFunc(text, isLineEnd) < 0 {
		return text
	}
	// Python's splitlines knows more line ends than occur in PEM. The result must equal Salt's, so all of them are
	// replaced.
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if isLineEnd(r) {
			return '\n'
		}
		return r
	}, text)
}

func isLineEnd(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// NewHash returns the hash that Salt's option hash_type names: md5, sha1, sha224, sha256, sha384 or sha512.
func NewHash(hashType string) (hash.Hash, error) {
	switch hashType {
	case "md5":
		return md5.New(), nil
	case "sha1":
		return sha1.New(), nil
	case "sha224":
		return sha256.New224(), nil
	case "sha256":
		return sha256.New(), nil
	case "sha384":
		return sha512.New384(), nil
	case "sha512":
		return sha512.New(), nil
	}
	return nil, fmt.Errorf("cannot hash: hash_type %.40q is unknown", hashType)
}

// FingerprintPEM returns Salt's fingerprint of a key: the hash of the lines between header and footer, newlines
// included, as hex with colons (salt/utils/crypt.py:pem_finger). It hashes the base64 text, not the bytes that it
// encodes. Empty lines are skipped, and CRLF counts as LF. Text that is not PEM is hashed as it is.
func FingerprintPEM(text []byte, hashType string) (string, error) {
	h, err := NewHash(hashType)
	if err != nil {
		return "", err
	}
	h.Write(pemBody(text))
	sum := hex.EncodeToString(h.Sum(nil))
	var b strings.Builder
	for i := 0; i < len(sum); i += 2 {
		if i > 0 {
			b.WriteByte(':')
		}
		b.WriteString(sum[i : i+2])
	}
	return b.String(), nil
}

// pemBody returns the lines between header and footer, each with a newline, or the text itself if it has neither.
func pemBody(text []byte) []byte {
	var lines [][]byte
	for _, line := range bytes.Split(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\n")) {
		if len(bytes.TrimSpace(line)) > 0 {
			lines = append(lines, line)
		}
	}
	n := len(lines)
	if n < 2 || !bytes.HasPrefix(bytes.TrimSpace(lines[0]), []byte("-----BEGIN")) ||
		!bytes.HasPrefix(bytes.TrimSpace(lines[n-1]), []byte("-----END")) {
		return text
	}
	var body []byte
	for _, line := range lines[1 : n-1] {
		body = append(append(body, line...), '\n')
	}
	return body
}
