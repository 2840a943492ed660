// Package pki reads and creates certificates, requests, revocation lists and keys for Salt's module x509. Errors have
// Salt's texts. Salt's source: salt/utils/x509.py.
//
// It does not support Ed448 keys.
//
// encoding/asn1 parses DER. golang.org/x/crypto/cryptobyte would replace only the function der, which does all the
// writing. software.sslmate.com/src/go-pkcs12 (60 KiB) is not used: it refuses bundles without a key or without a
// certificate, assumes that the first certificate is that of the key, and does not return friendly names. Stock reads
// all of these, and compares them in x509.certificate_managed.
package pki

import (
	"encoding/asn1"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Error is an error in the caller's input.
type Error struct {
	// Kind is the name of an exception: SaltInvocationError, CommandExecutionError, or one of Python's.
	Kind, Text string
}

func (e *Error) Error() string { return e.Text }

func usage(format string, args ...any) error {
	return &Error{"SaltInvocationError", fmt.Sprintf(format, args...)}
}

func failed(format string, args ...any) error {
	return &Error{"CommandExecutionError", fmt.Sprintf(format, args...)}
}

func value(format string, args ...any) error {
	return &Error{"ValueError", fmt.Sprintf(format, args...)}
}

// Tags of ASN.1.
const (
	tagBool, tagInt, tagBits, tagOctets, tagNull, tagOID, tagEnum = 1, 2, 3, 4, 5, 6, 10
	tagUTF8, tagPrintable, tagIA5, tagUTCTime, tagTime, tagBMP    = 12, 19, 22, 23, 24, 30
	tagSequence, tagSet                                           = 0x30, 0x31
	contextTag                                                    = 0x80 // the tag's number is added
	constructed                                                   = 0x20
)

// der encodes an element from its tag and the parts of its content.
func der(tag byte, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	out := []byte{tag}
	switch {
	case n < 0x80:
		out = append(out, byte(n))
	default:
		size := big.NewInt(int64(n)).Bytes()
		out = append(append(out, 0x80|byte(len(size))), size...)
	}
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func derBool(v bool) []byte {
	if v {
		return der(tagBool, []byte{0xff})
	}
	return der(tagBool, []byte{0})
}

func derInt(n *big.Int) []byte {
	b, err := asn1.Marshal(n)
	if err != nil {
		return nil
	}
	return b
}

// oid encodes an object identifier.
func oid(text string) ([]byte, error) {
	bad := failed("Invalid oid: %s", text)
	var id asn1.ObjectIdentifier
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, bad
		}
		id = append(id, n)
	}
	b, err := asn1.Marshal(id)
	if err != nil {
		return nil, bad
	}
	return b, nil
}

// bits encodes flags as a BIT STRING.
func bits(set []bool) []byte {
	last := -1
	for i, v := range set {
		if v {
			last = i
		}
	}
	b := make([]byte, last/8+2)
	for i := range last + 1 {
		if set[i] {
			b[1+i/8] |= 0x80 >> (i % 8)
		}
	}
	if last < 0 {
		return der(tagBits, []byte{0})
	}
	b[0] = byte(7 - last%8)
	return der(tagBits, b)
}

// children returns the consecutive elements in b.
func children(b []byte) ([]asn1.RawValue, error) {
	var out []asn1.RawValue
	for len(b) > 0 {
		var v asn1.RawValue
		rest, err := asn1.Unmarshal(b, &v)
		if err != nil {
			return nil, err
		}
		out, b = append(out, v), rest
	}
	return out, nil
}

// inside returns the elements within the first element of b.
func inside(b []byte) ([]asn1.RawValue, error) {
	var v asn1.RawValue
	if _, err := asn1.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	return children(v.Bytes)
}

func idText(raw []byte) string {
	var id asn1.ObjectIdentifier
	if _, err := asn1.Unmarshal(raw, &id); err != nil {
		return ""
	}
	return id.String()
}

// Hex formats bytes as 0A:1B.
func Hex(b []byte) string {
	var out strings.Builder
	for i, x := range b {
		if i > 0 {
			out.WriteByte(':')
		}
		fmt.Fprintf(&out, "%02X", x)
	}
	return out.String()
}

// HexInt formats a number as 0A:1B.
func HexInt(n *big.Int) string {
	if n.Sign() == 0 {
		return "00"
	}
	return Hex(n.Bytes())
}
