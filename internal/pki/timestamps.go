package pki

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// timestampTexts returns signed certificate timestamps (RFC 6962) in OpenSSL's notation. b is the content of the
// extension's outer OCTET STRING. ok is false if it cannot be read.
func timestampTexts(b []byte) (text string, ok bool) {
	list, rest, ok := vector(b)
	if !ok || len(rest) > 0 {
		return "", false
	}
	var out []string
	for len(list) > 0 {
		var one []byte
		if one, list, ok = vector(list); !ok {
			return "", false
		}
		s, ok := timestampText(one)
		if !ok {
			return "", false
		}
		out = append(out, s)
	}
	return strings.Join(out, "\n"), true
}

// vector splits off the bytes after a length of two bytes.
func vector(b []byte) (value, rest []byte, ok bool) {
	if len(b) < 2 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	if len(b)-2 < n {
		return nil, nil, false
	}
	return b[2 : 2+n], b[2+n:], true
}

func timestampText(b []byte) (string, bool) {
	if len(b) < 41 || b[0] != 0 {
		return "", false
	}
	extensions, rest, ok := vector(b[41:])
	if !ok || len(rest) < 2 {
		return "", false
	}
	signature, after, ok := vector(rest[2:])
	if !ok || len(after) > 0 {
		return "", false
	}
	algorithm := fmt.Sprintf("%02X%02X", rest[0], rest[1])
	switch algorithm {
	case "0403":
		algorithm = "ecdsa-with-SHA256"
	case "0401":
		algorithm = "sha256WithRSAEncryption"
	}
	at := time.UnixMilli(int64(binary.BigEndian.Uint64(b[33:]))).UTC()
	also := "none"
	if len(extensions) > 0 {
		also = hexLines(extensions)
	}
	return "Signed Certificate Timestamp:\n    Version   : v1 (0x0)\n    Log ID    : " + hexLines(b[1:33]) +
		"\n    Timestamp : " + at.Format("Jan _2 15:04:05.000 2006") + " GMT\n    Extensions: " + also +
		"\n    Signature : " + algorithm + "\n                " + hexLines(signature), true
}

// hexLines formats bytes in hex, sixteen per line.
func hexLines(b []byte) string {
	var out []string
	for len(b) > 0 {
		n := min(16, len(b))
		out = append(out, Hex(b[:n]))
		b = b[n:]
	}
	return strings.Join(out, ":\n                ")
}
