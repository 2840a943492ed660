package pki

import (
	"crypto/sha1"
	"encoding/asn1"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// attribute is a kind of attribute of a distinguished name.
type attribute struct {
	name, oid string
	tag       byte
}

// attributes returns the attributes for which there is a keyword argument, in their order in a name.
func attributes() []attribute {
	return []attribute{
		{"C", "2.5.4.6", tagPrintable}, {"ST", "2.5.4.8", tagUTF8}, {"L", "2.5.4.7", tagUTF8}, {"STREET", "2.5.4.9", tagUTF8}, {"O", "2.5.4.10", tagUTF8},
		{"OU", "2.5.4.11", tagUTF8}, {"CN", "2.5.4.3", tagUTF8}, {"MAIL", "1.2.840.113549.1.9.1", tagIA5}, {"SN", "2.5.4.4", tagUTF8}, {"GN", "2.5.4.42", tagUTF8},
		{"UID", "0.9.2342.19200300.100.1.1", tagUTF8}, {"SERIALNUMBER", "2.5.4.5", tagPrintable},
	}
}

// LongNames renames arguments with old long names to the current short names.
func LongNames(args map[string]any) {
	const names = "commonName CN localityName L stateOrProvinceName ST organizationName O organizationUnitName OU givenName GN surname SN Email MAIL emailAddress MAIL " +
		"serialNumber SERIALNUMBER issuserAltName issuerAltName"
	list := strings.Fields(names)
	for i := 0; i < len(list); i += 2 {
		rename(args, list[i], list[i+1])
	}
	for _, p := range [...][2]string{
		{"X509v3 Basic Constraints", "basicConstraints"}, {"X509v3 Key Usage", "keyUsage"}, {"X509v3 Extended Key Usage", "extendedKeyUsage"},
		{"X509v3 Subject Key Identifier", "subjectKeyIdentifier"}, {"X509v3 Authority Key Identifier", "authorityKeyIdentifier"},
		{"X509v3 Issuer Alternative Name", "issuerAltName"}, {"Authority Information Access", "authorityInfoAccess"},
		{"X509v3 Subject Alternative Name", "subjectAltName"}, {"X509v3 CRL Distribution Points", "crlDistributionPoints"},
		{"X509v3 Issuing Distribution Point", "issuingDistributionPoint"}, {"X509v3 Certificate Policies", "certificatePolicies"},
		{"X509v3 Policy Constraints", "policyConstraints"}, {"X509v3 Inhibit Any Policy", "inhibitAnyPolicy"}, {"X509v3 Name Constraints", "nameConstraints"},
		{"OCSP No Check", "noCheck"}, {"TLS Feature", "tlsfeature"}, {"Netscape Comment", "nsComment"}, {"Netscape Certificate Type", "nsCertType"},
		{"X509v3 CRLNumber", "cRLNumber"}, {"X509v3 Delta CRL Indicator", "deltaCRLIndicator"}, {"x509v3 Freshest CRL", "freshestCRL"},
	} {
		rename(args, p[0], p[1])
	}
}

func rename(args map[string]any, long, short string) {
	if v, ok := args[long]; ok {
		args[short] = v
		delete(args, long)
	}
}

// IsName reports whether an argument is an attribute of a name.
func IsName(key string) bool {
	return slices.ContainsFunc(attributes(), func(a attribute) bool { return a.name == key })
}

func (a attribute) der(v string) ([]byte, error) {
	if n := len([]rune(v)); a.name == "C" && n != 2 {
		return nil, value("Attribute's length must be >= 2 and <= 2, but it was %d", n)
	}
	if v == "" {
		return nil, value("Value cannot be an empty string")
	}
	id, err := oid(a.oid)
	if err != nil {
		return nil, err
	}
	return der(tagSequence, id, der(a.tag, []byte(v))), nil
}

// Name encodes a distinguished name: a text as in RFC 4514, a list of its parts, or a map from the arguments' names
// to values.
func Name(v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		parts := split(v, ',')
		slices.Reverse(parts)
		var out []byte
		for _, p := range parts {
			r, ok := rdn(p)
			if !ok {
				return nil, failed("Failed parsing rfc4514 dirName string")
			}
			out = append(out, r...)
		}
		return der(tagSequence, out), nil
	case []any:
		var out []byte
		for _, x := range v {
			r, err := RDN(pytext.Str(x))
			if err != nil {
				return nil, err
			}
			out = append(out, r...)
		}
		return der(tagSequence, out), nil
	case map[string]any:
		var out []byte
		for _, a := range attributes() {
			x, ok := v[a.name]
			if !ok {
				continue
			}
			s, ok := x.(string)
			if !ok {
				return nil, &Error{"TypeError", "value argument must be a str"}
			}
			b, err := a.der(s)
			if err != nil {
				return nil, err
			}
			out = append(out, der(tagSet, b)...)
		}
		return der(tagSequence, out), nil
	}
	return nil, usage("Need string, list or dict to parse distinguished names")
}

// RDN encodes one part of a name from its text.
func RDN(text string) ([]byte, error) {
	if len(split(text, ',')) > 1 {
		return nil, usage("Specified string is not a Relative Distinguished Name, but a Distinguished Name.")
	}
	r, ok := rdn(text)
	if !ok {
		return nil, failed("Failed parsing rdn string: %s", text)
	}
	return r, nil
}

// split splits a text at a character that is not escaped with a backslash. An empty text has no parts.
func split(s string, at byte) []string {
	if s == "" {
		return nil
	}
	var out []string
	start := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case at:
			out, start = append(out, s[start:i]), i+1
		}
	}
	return append(out, s[start:])
}

func rdn(text string) ([]byte, bool) {
	var out []byte
	for _, part := range split(text, '+') {
		key, v, ok := strings.Cut(strings.TrimLeft(part, " "), "=")
		if !ok || v == "" {
			return nil, false
		}
		a := attribute{name: key, oid: key, tag: tagUTF8}
		switch key {
		case "DC":
			a.oid, a.tag = "0.9.2342.19200300.100.1.25", tagIA5
		case "C", "ST", "L", "STREET", "O", "OU", "CN", "UID":
			all := attributes()
			a = all[slices.IndexFunc(all, func(a attribute) bool { return a.name == key })]
		default:
			for _, known := range attributes() {
				if known.oid == key {
					a.tag = known.tag
				}
			}
		}
		v, ok = unescape(v)
		if !ok {
			return nil, false
		}
		b, err := a.der(v)
		if err != nil {
			return nil, false
		}
		out = append(out, b...)
	}
	return der(tagSet, out), len(out) > 0
}

func unescape(s string) (string, bool) {
	if rest, ok := strings.CutPrefix(s, "#"); ok {
		b, err := hex.DecodeString(rest)
		if err != nil {
			return "", false
		}
		var v asn1.RawValue
		if _, err := asn1.Unmarshal(b, &v); err != nil {
			return "", false
		}
		return string(v.Bytes), true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 < len(s) {
			if x, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b.Write(x)
				i += 2
				continue
			}
		}
		if i+1 == len(s) {
			return "", false
		}
		i++
		b.WriteByte(s[i])
	}
	return b.String(), true
}

type namePart struct{ id, value string }

// parts returns the attributes of a name, grouped by its RDNs.
func parts(raw []byte) ([][]namePart, error) {
	sets, err := inside(raw)
	if err != nil {
		return nil, err
	}
	var out [][]namePart
	for _, set := range sets {
		list, err := children(set.Bytes)
		if err != nil {
			return nil, err
		}
		var group []namePart
		for _, a := range list {
			pair, err := children(a.Bytes)
			if err != nil || len(pair) != 2 {
				return nil, usage("a name cannot be read")
			}
			group = append(group, namePart{idText(pair[0].FullBytes), string(pair[1].Bytes)})
		}
		out = append(out, group)
	}
	return out, nil
}

// NameMap returns the attributes of a name by short name. It leaves out attributes without a short name, and all but
// the first of each kind.
func NameMap(raw []byte) map[string]any {
	out := map[string]any{}
	groups, _ := parts(raw)
	for _, a := range attributes() {
		for _, group := range groups {
			for _, p := range group {
				if _, have := out[a.name]; p.id == a.oid && !have {
					out[a.name] = p.value
				}
			}
		}
	}
	return out
}

// NameText returns a name in the notation of RFC 4514.
func NameText(raw []byte) string {
	groups, _ := parts(raw)
	slices.Reverse(groups)
	var list []string
	for _, group := range groups {
		list = append(list, groupText(group))
	}
	return strings.Join(list, ",")
}

func groupText(group []namePart) string {
	var list []string
	for _, p := range group {
		name := p.id
		switch p.id {
		case "0.9.2342.19200300.100.1.25":
			name = "DC"
		case "1.2.840.113549.1.9.1", "2.5.4.4", "2.5.4.42", "2.5.4.5":
		default:
			for _, a := range attributes() {
				if a.oid == p.id {
					name = a.name
				}
			}
		}
		list = append(list, name+"="+escape(p.value))
	}
	return strings.Join(list, "+")
}

func escape(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "+", `\+`, ",", `\,`, ";", `\;`, "<", `\<`, ">", `\>`, "\x00", `\00`).Replace(s)
	if strings.HasPrefix(s, "#") || strings.HasPrefix(s, " ") {
		s = `\` + s
	}
	if strings.HasSuffix(s, " ") {
		s = s[:len(s)-1] + `\ `
	}
	return s
}

// NameHash returns the hash of a name that OpenSSL uses in certificate directories.
func NameHash(raw []byte) string {
	sum := sha1.Sum(raw)
	b := sum[:4]
	slices.Reverse(b)
	return Hex(b)
}
