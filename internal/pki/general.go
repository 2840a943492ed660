package pki

import (
	"encoding/asn1"
	"encoding/hex"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pyip"
	"github.com/brine-salt/brine/internal/python/pytext"
)

// namedValue is a general name in an argument: its kind and its value.
type namedValue struct {
	kind  string
	value any
}

// generalNames encodes general names. constraint selects the form of name constraints, whose names are subtrees.
func generalNames(list []namedValue, constraint bool) ([]byte, error) {
	var out []byte
	for _, p := range list {
		b, err := generalName(strings.ToLower(p.kind), p.value, constraint)
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

func generalName(kind string, v any, constraint bool) ([]byte, error) {
	s, isText := v.(string)
	text := func() error {
		if !isText {
			return failed("Expected string value, got %s: `%s`", typeName(v), pytext.Repr(v))
		}
		return nil
	}
	switch kind {
	case "dirname":
		name, err := Name(v)
		return der(contextTag|constructed|4, name), err
	case "rid":
		id, err := oid(pytext.Str(v))
		if err != nil {
			return nil, err
		}
		return der(contextTag|8, id[2:]), nil
	case "ip":
		b, err := address(pytext.Str(v), constraint)
		return der(contextTag|7, b), err
	case "email":
		if err := text(); err != nil {
			return nil, err
		}
		user, host, ok := cutLast(s, '@')
		switch {
		case !ok && !constraint:
			return nil, failed("Not a valid email in this context: %s", s)
		case ok && !ascii(user):
			return nil, failed("Email address username must not contain non-ASCII chars, use SmtpUTF8Mailbox otherName instead")
		case !ok:
			host = s
		}
		if err := domain(host, false, constraint && !ok, false); err != nil {
			return nil, err
		}
		return der(contextTag|1, []byte(s)), nil
	case "uri":
		if err := text(); err != nil {
			return nil, err
		}
		return der(contextTag|6, []byte(s)), uri(s, constraint)
	case "dns":
		if err := text(); err != nil {
			return nil, err
		}
		return der(contextTag|2, []byte(s)), domain(s, !constraint, constraint, false)
	case "othername":
		return otherName(v)
	}
	return nil, failed("GeneralName type %s is invalid", kind)
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case []any:
		return "list"
	case map[string]any:
		return "dict"
	}
	return "bytes"
}

func cutLast(s string, at byte) (before, after string, ok bool) {
	if i := strings.LastIndexByte(s, at); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return "", s, false
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// address encodes an IP address, or a network with its mask.
func address(s string, network bool) ([]byte, error) {
	if !network {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return nil, failed("Provided value %s does not seem to be an IPv4/IPv6 address.", pytext.Repr(s))
		}
		return a.AsSlice(), nil
	}
	bad := failed("Provided value %s does not seem to be an IPv4/IPv6 network range.", pytext.Repr(s))
	p, err := pyip.Network(s, true)
	if err != nil {
		return nil, bad
	}
	b := p.Addr().AsSlice()
	mask := make([]byte, len(b))
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return append(b, mask...), nil
}

// domain returns an error if s is not a valid host or domain name.
func domain(s string, wildcards, leadingDot, trailingDot bool) error {
	if s == "" {
		return failed("Empty domain")
	}
	if !ascii(s) {
		return failed("Names with letters outside of ASCII must be in their encoded form (xn--…) here: %s", s)
	}
	stars := strings.Contains(s, "*")
	if !stars || !wildcards {
		if strings.HasSuffix(s, ".") && !trailingDot {
			return failed("Trailing dots are not allowed in this context")
		}
		if rest, ok := strings.CutPrefix(s, "."); ok {
			if !leadingDot {
				return failed("Leading dots are not allowed in this context")
			}
			s = rest
		}
		if stars {
			return failed("Wildcards are not allowed in this context")
		}
	}
	labels := strings.Split(s, ".")
	if labels[len(labels)-1] == "" {
		if !trailingDot {
			return failed("Trailing dots are not allowed in this context")
		}
		labels = labels[:len(labels)-1]
	}
	if len(labels) > 0 && labels[0] == "" && stars {
		return failed("Leading dots are not allowed in this context")
	}
	for _, l := range labels {
		if err := label(l); err != nil {
			return err
		}
	}
	if len(s) > 253 {
		return failed("Domain too long")
	}
	return nil
}

func label(l string) error {
	if l == "" {
		return failed("Empty Label")
	}
	star := strings.Contains(l, "*")
	for i := range len(l) {
		c := l[i]
		if c != '-' && c != '*' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			shown := pytext.Repr(strings.ToLower(l))
			return failed("Codepoint U+%04X at position %d of %s not allowed", c, i+1, shown)
		}
	}
	if l[0] == '-' || l[len(l)-1] == '-' {
		return failed("Label must not start or end with a hyphen")
	}
	if n := len(l); n > 63 && (!star || n-strings.Count(l, "*") > 63) {
		return failed("Label too long")
	}
	return nil
}

func uri(s string, constraint bool) error {
	if constraint {
		err := domain(s, false, true, false)
		if err != nil && strings.Contains(s, ":") {
			return failed("NameConstraints URI should be the same format as DNS, not a full URI. Got: %s", s)
		}
		return err
	}
	u, err := url.Parse(s)
	switch {
	case err != nil && strings.Contains(err.Error(), "invalid URL escape"):
		return failed("Invalid percent-encoding in URI: %s", s)
	case err != nil:
		return failed("%s is no URI", s)
	case u.Scheme == "" && strings.HasPrefix(s, "."):
		return failed("Leading dots are not allowed in this context")
	case u.Scheme == "":
		return failed("URI must contain a scheme")
	}
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); host == "" || err == nil {
		return nil
	}
	return domain(host, true, false, true)
}

func otherName(v any) ([]byte, error) {
	var id, encoded []byte
	var err error
	switch v := v.(type) {
	case string:
		name, expr, ok := strings.Cut(v, ";")
		if !ok {
			return nil, usage("`othername` string definition needs semicolon (;) between OID and value: othername:1.2.3.4;UTF8:value")
		}
		kind, text, ok := strings.Cut(strings.TrimPrefix(expr, "FORMAT:UTF8,"), ":")
		if !ok {
			return nil, usage("`othername` string definition needs colon (:) between value type and value: othername:1.2.3.4;UTF8:value")
		}
		if up := strings.ToUpper(kind); up != "UTF8" && up != "UTF8STRING" {
			return nil, usage("Unsupported otherName ASN.1 type %s; only UTF8STRING is supported", pytext.Repr(kind))
		}
		if id, err = oid(name); err != nil {
			return nil, err
		}
		encoded = der(tagUTF8, []byte(text))
	case map[string]any:
		if _, ok := v["oid"]; !ok {
			return nil, usage("Invalid otherName definition, missing `oid` key")
		}
		if id, err = oid(pytext.Str(v["oid"])); err != nil {
			return nil, err
		}
		if encoded, err = otherValue(v); err != nil {
			return nil, err
		}
	default:
		return nil, usage("Invalid otherName definition, dict or string required, got %s", pytext.Repr(v))
	}
	return der(contextTag|constructed, id, der(contextTag|constructed, encoded)), nil
}

func otherValue(m map[string]any) ([]byte, error) {
	if v, ok := m["der"]; ok {
		switch v := v.(type) {
		case []byte:
			return v, nil
		case string:
			if rest, ok := strings.CutPrefix(v, "hex:"); ok {
				b, err := hex.DecodeString(rest)
				if err != nil {
					return nil, usage("Failed to parse otherName `der` input as hex")
				}
				return b, nil
			}
			if strings.HasPrefix(v, "b64:") {
				b, err := Bytes(v)
				if err != nil {
					return nil, usage("Failed to parse otherName `der` input as base64")
				}
				return b, nil
			}
		}
		return nil, usage("Failed to parse otherName `der` input, needs `hex:` or `b64:` prefix")
	}
	v, ok := m["value"]
	if !ok {
		return nil, usage("Invalid otherName definition, missing `value` or `der` key")
	}
	switch v := v.(type) {
	case nil:
		return der(tagNull), nil
	case string:
		return der(tagUTF8, []byte(v)), nil
	case bool:
		return derBool(v), nil
	case []byte:
		return der(tagOctets, v), nil
	case int64:
		b, err := asn1.Marshal(v)
		return b, err
	}
	return nil, usage("Failed to encode otherName value %s to ASN1", pytext.Repr(v))
}
