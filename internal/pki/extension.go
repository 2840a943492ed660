package pki

import (
	"crypto/sha1"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
)

// Extension is an extension of a certificate, a request, a revocation list or one of its entries.
type Extension struct {
	ID       string
	Critical bool
	Value    []byte
}

// kind is a kind of extension, with Salt's name for it.
type kind struct {
	name, id string
	// where has a letter for each place where the extension is allowed: c for certificates, l for revocation lists, e
	// for their entries. An f means that requests cannot have it.
	where string
}

func kinds() []kind {
	return []kind{
		{"basicConstraints", "2.5.29.19", "c"}, {"keyUsage", "2.5.29.15", "c"}, {"extendedKeyUsage", "2.5.29.37", "c"}, {"subjectKeyIdentifier", "2.5.29.14", "c"},
		{"authorityKeyIdentifier", "2.5.29.35", "cfl"}, {"issuerAltName", "2.5.29.18", "cfl"}, {"authorityInfoAccess", "1.3.6.1.5.5.7.1.1", "cfl"},
		{"subjectAltName", "2.5.29.17", "c"}, {"crlDistributionPoints", "2.5.29.31", "cf"}, {"issuingDistributionPoint", "2.5.29.28", "l"},
		{"certificatePolicies", "2.5.29.32", "c"}, {"policyConstraints", "2.5.29.36", "c"}, {"inhibitAnyPolicy", "2.5.29.54", "c"},
		{"nameConstraints", "2.5.29.30", "c"}, {"noCheck", "1.3.6.1.5.5.7.48.1.5", "c"}, {"tlsfeature", "1.3.6.1.5.5.7.1.24", "c"}, {"nsComment", "", "c"},
		{"nsCertType", "", "c"}, {"cRLNumber", "2.5.29.20", "l"}, {"deltaCRLIndicator", "2.5.29.27", "l"}, {"freshestCRL", "2.5.29.46", "l"},
		{"certificateIssuer", "2.5.29.29", "e"}, {"CRLReason", "2.5.29.21", "e"}, {"invalidityDate", "2.5.29.24", "e"},
	}
}

// Issuer holds the data of the signing certificate that extensions may need.
type Issuer struct {
	// Cert is nil for a self-signed certificate. Public is the signing certificate's key.
	Cert   *x509.Certificate
	Public any
	// Subject is the public key of the new certificate.
	Subject any
}

// Build creates the extensions for the arguments. where is "c" for a certificate, "r" for a request, "l" for a
// revocation list and "e" for an entry of one.
func Build(args map[string]any, where string, ca Issuer) ([]Extension, error) {
	var out []Extension
	all := kinds()
	if where == "l" || where == "e" {
		// Stock keeps the caller's order; plain maps have no order.
		sorting.Stable(all, func(a, b kind) int { return strings.Compare(a.name, b.name) })
	}
	for _, k := range all {
		v, ok := args[k.name]
		switch {
		case !ok || v == nil && where == "c":
			continue
		case where == "r" && (!strings.Contains(k.where, "c") || strings.Contains(k.where, "f")), where != "r" && !strings.Contains(k.where, where):
			continue
		}
		e, err := ca.build(k.name, v)
		if err != nil {
			return nil, err
		}
		e.ID = k.id
		out = append(out, e)
	}
	return out, nil
}

// FromRequest returns the extensions of a request that a certificate copies if the arguments do not set them.
func FromRequest(csr *x509.CertificateRequest, args map[string]any) []Extension {
	var out []Extension
	for _, k := range kinds() {
		if args[k.name] != nil || k.id == "" || !strings.Contains(k.where, "c") || strings.Contains(k.where, "f") {
			continue
		}
		for _, e := range csr.Extensions {
			if e.Id.String() == k.id {
				out = append(out, Extension{k.id, e.Critical, e.Value})
			}
		}
	}
	return out
}

// has implements Python's "in" for maps, lists and texts.
func has(v any, word string) bool {
	switch v := v.(type) {
	case map[string]any:
		_, ok := v[word]
		return ok
	case []any:
		return slices.Contains(v, any(word))
	case string:
		return strings.Contains(v, word)
	}
	return false
}

type pair struct{ key, value string }

// conf parses OpenSSL's notation for an extension: "critical, key:value, word".
func conf(s string) (list []pair, critical bool) {
	if rest, ok := strings.CutPrefix(s, "critical"); ok {
		critical, s = true, strings.TrimSpace(strings.Trim(rest, ","))
	}
	for item := range strings.SplitSeq(s, ",") {
		k, v, ok := strings.Cut(strings.TrimSpace(item), ":")
		if !ok {
			v = "__present__"
		}
		list = append(list, pair{strings.TrimSpace(k), strings.TrimSpace(v)})
	}
	return list, critical
}

func asMap(list []pair) map[string]any {
	m := map[string]any{}
	for _, p := range list {
		m[p.key] = p.value
	}
	return m
}

func (ca Issuer) build(name string, v any) (Extension, error) {
	switch name {
	case "basicConstraints":
		return ca.basicConstraints(v)
	case "keyUsage":
		return keyUsage(v)
	case "extendedKeyUsage":
		return extendedKeyUsage(v)
	case "subjectKeyIdentifier":
		return ca.subjectKey(v)
	case "authorityKeyIdentifier":
		return ca.authorityKey(v)
	case "issuerAltName", "certificateIssuer":
		return ca.issuerNames(v)
	case "subjectAltName":
		list, critical, err := namePairs(v)
		if err != nil {
			return Extension{}, err
		}
		names, err := generalNames(list, false)
		return Extension{"", critical, der(tagSequence, names)}, err
	case "authorityInfoAccess":
		return infoAccess(v)
	case "crlDistributionPoints", "freshestCRL":
		e, err := distributionPoints(v)
		e.Critical = e.Critical && name != "freshestCRL"
		return e, err
	case "issuingDistributionPoint":
		return issuingPoint(v)
	case "certificatePolicies":
		return policies(v)
	case "policyConstraints":
		return policyConstraints(v)
	case "inhibitAnyPolicy":
		return inhibitAnyPolicy(v)
	case "nameConstraints":
		return nameConstraints(v)
	case "noCheck":
		return Extension{"", strings.Contains(pytext.Str(v), "critical"), der(tagNull)}, nil
	case "tlsfeature":
		return tlsFeature(v)
	case "cRLNumber":
		n, ok := new(big.Int).SetString(strings.TrimSpace(pytext.Str(v)), 10)
		if !ok {
			return Extension{}, usage("cRLNumber must be an integer and must be marked as non-critical")
		}
		return Extension{"", false, derInt(n)}, nil
	case "deltaCRLIndicator":
		digits := strings.FieldsFunc(pytext.Str(v), func(r rune) bool { return r < '0' || r > '9' })
		if len(digits) != 1 {
			return Extension{}, usage("deltaCRLIndicator must contain a single integer pointing to a cRLNumber")
		}
		n, _ := new(big.Int).SetString(digits[0], 10)
		return Extension{"", strings.Contains(pytext.Str(v), "critical"), derInt(n)}, nil
	case "CRLReason":
		return reason(v)
	case "invalidityDate":
		return invalidityDate(v)
	}
	return Extension{}, usage("%s is currently not implemented.", name)
}

func (ca Issuer) basicConstraints(v any) (Extension, error) {
	m, ok := v.(map[string]any)
	critical := false
	if ok {
		critical = pytext.Truth(m["critical"])
	}
	if s, isText := v.(string); isText {
		var list []pair
		list, critical = conf(strings.ToLower(s))
		m, ok = asMap(list), true
		if _, in := m["ca"]; !in {
			return Extension{}, usage("Invalid configuration for basicContraints: 'ca'")
		}
		m["ca"] = m["ca"] == "true"
		if p, in := m["pathlen"]; in {
			n, err := strconv.Atoi(p.(string))
			if err != nil {
				return Extension{}, usage("Invalid configuration for basicContraints: invalid literal for int() with base 10: %s", pytext.Repr(p))
			}
			m["pathlen"] = int64(n)
		}
	}
	if !ok {
		return Extension{}, &Error{"AttributeError", "'list' object has no attribute 'get'"}
	}
	path := m["pathlen"]
	if pytext.Truth(m["ca"]) && ca.Cert != nil && ca.Cert.BasicConstraintsValid && (ca.Cert.MaxPathLen > 0 || ca.Cert.MaxPathLenZero) {
		limit := int64(ca.Cert.MaxPathLen)
		if n, isInt := path.(int64); isInt && limit <= n {
			return Extension{}, failed("Issuing CA certificate has pathlen %d, which is less than or equal to requested pathlen of %d", limit, n)
		}
		if path == nil {
			path = limit - 1
		}
	}
	isCA, in := m["ca"]
	if !in {
		return Extension{}, usage("Undefined required key for basicConstraints: 'ca'")
	}
	b, isBool := isCA.(bool)
	n, isInt := path.(int64)
	switch {
	case !isBool:
		return Extension{}, usage("ca must be a boolean value")
	case path != nil && !b:
		return Extension{}, usage("path_length must be None when ca is False")
	case path != nil && (!isInt || n < 0):
		return Extension{}, usage("path_length must be a non-negative integer or None")
	}
	var parts [][]byte
	if b {
		parts = append(parts, derBool(true))
	}
	if path != nil {
		parts = append(parts, derInt(big.NewInt(n)))
	}
	return Extension{"", critical, der(tagSequence, parts...)}, nil
}

// usages returns the names of key usages, indexed by their bits.
func usages() []string {
	return []string{"digitalSignature", "nonRepudiation", "keyEncipherment", "dataEncipherment", "keyAgreement", "keyCertSign", "cRLSign", "encipherOnly", "decipherOnly"}
}

func keyUsage(v any) (Extension, error) {
	var set []bool
	for _, name := range usages() {
		set = append(set, has(v, name))
	}
	if (set[7] || set[8]) && !set[4] {
		return Extension{}, usage("encipher_only and decipher_only can only be true when key_agreement is true")
	}
	return Extension{"", has(v, "critical"), bits(set)}, nil
}

// purposes returns the names of extended key usages with their object identifiers.
func purposes() []pair {
	return []pair{
		{"serverAuth", "1.3.6.1.5.5.7.3.1"}, {"clientAuth", "1.3.6.1.5.5.7.3.2"}, {"codeSigning", "1.3.6.1.5.5.7.3.3"}, {"emailProtection", "1.3.6.1.5.5.7.3.4"},
		{"timeStamping", "1.3.6.1.5.5.7.3.8"}, {"OCSPSigning", "1.3.6.1.5.5.7.3.9"}, {"msSmartcardLogin", "1.3.6.1.4.1.311.20.2.2"},
		{"pkInitKDC", "1.3.6.1.5.2.3.5"}, {"ipsecIKE", "1.3.6.1.5.5.7.3.17"}, {"msCodeInd", "1.3.6.1.4.1.311.2.1.21"}, {"msCodeCom", "1.3.6.1.4.1.311.2.1.22"},
		{"msCTLSign", "1.3.6.1.4.1.311.10.3.1"}, {"msEFS", "1.3.6.1.4.1.311.10.3.4"},
	}
}

func named(list []pair, name string) ([]byte, error) {
	for _, p := range list {
		if p.key == name {
			return oid(p.value)
		}
	}
	return oid(name)
}

func extendedKeyUsage(v any) (Extension, error) {
	critical := has(v, "critical")
	list, ok := v.([]any)
	if s, isText := v.(string); isText {
		var pairs []pair
		pairs, critical = conf(s)
		list, ok = nil, true
		for _, p := range pairs {
			list = append(list, p.key)
		}
	}
	if !ok {
		list = []any{v}
	}
	var out []byte
	for _, x := range list {
		if x == "critical" {
			continue
		}
		id, err := named(purposes(), pytext.Str(x))
		if err != nil {
			return Extension{}, err
		}
		out = append(out, id...)
	}
	return Extension{"", critical, der(tagSequence, out)}, nil
}

// KeyID returns the identifier of a public key: the SHA-1 of its bit string.
func KeyID(pub any) ([]byte, error) {
	b, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, usage("Did not recognize key type")
	}
	list, err := inside(b)
	if err != nil || len(list) != 2 || len(list[1].Bytes) == 0 {
		return nil, usage("Did not recognize key type")
	}
	sum := sha1.Sum(list[1].Bytes[1:])
	return sum[:], nil
}

func (ca Issuer) subjectKey(v any) (Extension, error) {
	if has(v, "critical") {
		return Extension{}, usage("subjectKeyIdentifier must be marked as non-critical")
	}
	b, ok := v.([]byte)
	if s, isText := v.(string); isText {
		var err error
		if s == "hash" {
			b, err = KeyID(ca.Subject)
		} else if b, err = hex.DecodeString(strings.ReplaceAll(s, ":", "")); err != nil {
			err = usage("Value must be precomputed hash")
		}
		if err != nil {
			return Extension{}, err
		}
		ok = true
	}
	if !ok {
		return Extension{}, usage("Value must be a (hex-)digest or pubkey")
	}
	return Extension{"", false, der(tagOctets, b)}, nil
}

func (ca Issuer) authorityKey(v any) (Extension, error) {
	if has(v, "critical") {
		return Extension{}, usage("authorityKeyIdentifier must be marked as non-critical")
	}
	if ca.Cert == nil && ca.Public == nil {
		return Extension{}, &Error{"RuntimeError", "Need CA certificate or CA pubkey to calculate authorityKeyIdentifier"}
	}
	m, _ := v.(map[string]any)
	if s, ok := v.(string); ok {
		list, _ := conf(s)
		m = asMap(list)
	}
	var parts [][]byte
	var id []byte
	if keyid, ok := m["keyid"]; ok {
		var err error
		switch {
		case ca.Cert != nil && ca.Cert.SubjectKeyId != nil:
			id = ca.Cert.SubjectKeyId
		case ca.Cert != nil:
			id, err = KeyID(ca.Cert.PublicKey)
		default:
			id, err = KeyID(ca.Public)
		}
		if err != nil && keyid == "always" {
			return Extension{}, failed("Could not retrieve authorityKeyIdentifier keyid, but it was set to always")
		}
		if id != nil {
			parts = append(parts, der(contextTag, id))
		}
	}
	if issuer, ok := m["issuer"]; ok && (issuer == "always" || id == nil) {
		switch {
		case ca.Cert != nil:
			parts = append(parts, der(contextTag|constructed|1, der(contextTag|constructed|4, ca.Cert.RawIssuer)), der(contextTag|2, ca.Cert.SerialNumber.Bytes()))
			if b := ca.Cert.SerialNumber.Bytes(); len(b) > 0 && b[0]&0x80 != 0 {
				parts[len(parts)-1] = der(contextTag|2, []byte{0}, b)
			}
		case issuer == "always":
			return Extension{}, failed("Could not add authority_cert_issuer and authority_cert_serial_number, but was set to always.")
		}
	}
	return Extension{"", false, der(tagSequence, parts...)}, nil
}

// namePairs returns the general names in an argument as kinds and values.
func namePairs(v any) (list []namedValue, critical bool, err error) {
	critical = has(v, "critical")
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			switch x := x.(type) {
			case string:
				if k, s, ok := strings.Cut(x, ":"); ok {
					list = append(list, namedValue{strings.TrimSpace(k), strings.TrimSpace(s)})
				}
			case map[string]any:
				for k, s := range x {
					list = append(list, namedValue{k, s})
				}
			}
		}
	case string:
		var pairs []pair
		pairs, critical = conf(v)
		for _, p := range pairs {
			list = append(list, namedValue{p.key, p.value})
		}
	default:
		return nil, false, &Error{"TypeError", "general names must be a list or a text"}
	}
	return list, critical, nil
}

func (ca Issuer) issuerNames(v any) (Extension, error) {
	list, critical, err := namePairs(v)
	if err != nil {
		return Extension{}, err
	}
	var out []byte
	rest := list[:0]
	for _, p := range list {
		if p.kind != "issuer" || p.value != "copy" {
			rest = append(rest, p)
			continue
		}
		if ca.Cert == nil {
			return Extension{}, &Error{"RuntimeError", "Need CA certificate to copy to issuerAltName"}
		}
		found := false
		for _, e := range ca.Cert.Extensions {
			if e.Id.String() == "2.5.29.17" {
				var names asn1.RawValue
				if _, err := asn1.Unmarshal(e.Value, &names); err == nil {
					out, found = append(out, names.Bytes...), true
				}
			}
		}
		if !found {
			return Extension{}, failed("No <ObjectIdentifier(oid=2.5.29.17, name=subjectAltName)> extension was found")
		}
	}
	names, err := generalNames(rest, false)
	return Extension{"", critical, der(tagSequence, out, names)}, err
}

func tlsFeature(v any) (Extension, error) {
	list, _ := v.([]any)
	if s, ok := v.(string); ok {
		for x := range strings.SplitSeq(s, ",") {
			list = append(list, strings.TrimSpace(x))
		}
	}
	var out []byte
	for _, x := range list {
		switch x {
		case "critical":
		case "status_request":
			out = append(out, derInt(big.NewInt(5))...)
		case "status_request_v2":
			out = append(out, derInt(big.NewInt(17))...)
		default:
			return Extension{}, &Error{"AttributeError", "type object 'TLSFeatureType' has no attribute " + pytext.Repr(x)}
		}
	}
	return Extension{"", slices.Contains(list, any("critical")), der(tagSequence, out)}, nil
}

func reason(v any) (Extension, error) {
	critical := has(v, "critical")
	word := ""
	switch v := v.(type) {
	case string:
		var list []pair
		list, critical = conf(v)
		word = list[0].key
	case []any:
		for _, x := range v {
			if x != "critical" && word == "" {
				word = pytext.Str(x)
			}
		}
	}
	at := slices.Index(reasons(), word)
	if at < 0 || word == "" {
		return Extension{}, usage("%s is not a valid ReasonFlags", pytext.Repr(word))
	}
	return Extension{"", critical, der(tagEnum, []byte{byte(at)})}, nil
}

func invalidityDate(v any) (Extension, error) {
	s, ok := v.(string)
	if !ok {
		return Extension{}, usage("invalidityDate must be a string")
	}
	critical := strings.HasPrefix(s, "critical")
	if critical {
		_, s, _ = strings.Cut(s, " ")
	}
	t, err := time.Parse(time.DateTime, s)
	if err != nil {
		return Extension{}, usage("time data %s does not match format '%%Y-%%m-%%d %%H:%%M:%%S'", pytext.Repr(s))
	}
	return Extension{"", critical, der(tagTime, []byte(t.Format("20060102150405Z")))}, nil
}
