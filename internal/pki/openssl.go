package pki

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// OpenSSLText returns the short name of an extension and its value as OpenSSL prints them. Values that OpenSSL does
// not decode are in hex.
func OpenSSLText(e pkix.Extension) (name, text string) {
	id := e.Id.String()
	name = openSSLName(id)
	var v asn1.RawValue
	if _, err := asn1.Unmarshal(e.Value, &v); err != nil {
		return name, hex.EncodeToString(e.Value)
	}
	text, ok := openSSLValue(name, v, e.Value)
	if !ok {
		text = hex.EncodeToString(e.Value)
	}
	return name, strings.TrimSpace(text)
}

func openSSLName(id string) string {
	switch id {
	case "2.16.840.1.113730.1.1":
		return "nsCertType"
	case "2.16.840.1.113730.1.13":
		return "nsComment"
	case "1.3.6.1.5.5.7.1.11":
		return "subjectInfoAccess"
	case "1.3.6.1.4.1.11129.2.4.2":
		return "ct_precert_scts"
	}
	for _, k := range kinds() {
		if k.id == id {
			return k.name
		}
	}
	return "UNDEF"
}

func openSSLValue(name string, v asn1.RawValue, raw []byte) (text string, ok bool) {
	list, err := children(v.Bytes)
	switch name {
	case "basicConstraints":
		m := render(name, raw)
		text = "CA:FALSE"
		if m["ca"] == true {
			text = "CA:TRUE"
		}
		if n, ok := m["pathlen"].(int64); ok {
			text += ", pathlen:" + strconv.FormatInt(n, 10)
		}
		return text, err == nil
	case "keyUsage":
		return flagTexts(v, "Digital Signature", "Non Repudiation", "Key Encipherment", "Data Encipherment", "Key Agreement", "Certificate Sign", "CRL Sign", "Encipher Only", "Decipher Only"), true
	case "nsCertType":
		return flagTexts(v, "SSL Client", "SSL Server", "S/MIME", "Object Signing", "Unused", "SSL CA", "S/MIME CA", "Object Signing CA"), true
	case "extendedKeyUsage":
		var out []string
		for _, x := range list {
			out = append(out, longName(idText(x.FullBytes)))
		}
		return strings.Join(out, ", "), err == nil
	case "subjectKeyIdentifier":
		return Hex(v.Bytes), true
	case "authorityKeyIdentifier":
		return authorityText(list), err == nil
	case "subjectAltName":
		return strings.Join(generalTexts(list, printedName), ", "), err == nil
	case "issuerAltName":
		return strings.Join(generalTexts(list, listedName), ", "), err == nil
	case "authorityInfoAccess", "subjectInfoAccess":
		var out []string
		for _, x := range list {
			if d, err := children(x.Bytes); err == nil && len(d) == 2 {
				out = append(out, longName(idText(d[0].FullBytes))+" - "+listedName(d[1]))
			}
		}
		return strings.Join(out, "\n"), err == nil
	case "crlDistributionPoints", "freshestCRL":
		return pointTexts(list), err == nil
	case "certificatePolicies":
		return policyTexts(list), err == nil
	case "policyConstraints":
		var out []string
		for i, title := range [...]string{"Require Explicit Policy", "Inhibit Policy Mapping"} {
			if x, ok := find(list, i); ok {
				out = append(out, title+":"+new(big.Int).SetBytes(x.Bytes).String())
			}
		}
		return strings.Join(out, ", "), err == nil
	case "inhibitAnyPolicy":
		return new(big.Int).SetBytes(v.Bytes).String(), true
	case "nameConstraints":
		return constraintTexts(list), err == nil
	case "noCheck":
		return "", true
	case "tlsfeature":
		var out []string
		for _, x := range list {
			switch n := integer(x.Bytes); n {
			case 5:
				out = append(out, "status_request")
			case 17:
				out = append(out, "status_request_v2")
			default:
				out = append(out, strconv.FormatInt(n, 10))
			}
		}
		return strings.Join(out, ", "), err == nil
	case "nsComment":
		return string(v.Bytes), true
	case "ct_precert_scts":
		return timestampTexts(v.Bytes)
	}
	return "", false
}

// flagTexts returns the names of the bits that are set in v.
func flagTexts(v asn1.RawValue, names ...string) string {
	var out []string
	for i, name := range names {
		if flag(v.Bytes, i) {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

// longName returns OpenSSL's name for an object identifier, or the identifier if it has no name.
func longName(id string) string {
	switch id {
	case "1.3.6.1.5.5.7.3.1":
		return "TLS Web Server Authentication"
	case "1.3.6.1.5.5.7.3.2":
		return "TLS Web Client Authentication"
	case "1.3.6.1.5.5.7.3.3":
		return "Code Signing"
	case "1.3.6.1.5.5.7.3.4":
		return "E-mail Protection"
	case "1.3.6.1.5.5.7.3.8":
		return "Time Stamping"
	case "1.3.6.1.5.5.7.3.9":
		return "OCSP Signing"
	case "1.3.6.1.5.5.7.3.17":
		return "ipsec Internet Key Exchange"
	case "1.3.6.1.5.2.3.5":
		return "Signing KDC Response"
	case "1.3.6.1.4.1.311.20.2.2":
		return "Microsoft Smartcard Login"
	case "1.3.6.1.4.1.311.2.1.21":
		return "Microsoft Individual Code Signing"
	case "1.3.6.1.4.1.311.2.1.22":
		return "Microsoft Commercial Code Signing"
	case "1.3.6.1.4.1.311.10.3.1":
		return "Microsoft Trust List Signing"
	case "1.3.6.1.4.1.311.10.3.4":
		return "Microsoft Encrypted File System"
	case "2.5.29.37.0":
		return "Any Extended Key Usage"
	case "2.5.29.32.0":
		return "X509v3 Any Policy"
	case "1.3.6.1.5.5.7.48.1":
		return "OCSP"
	case "1.3.6.1.5.5.7.48.2":
		return "CA Issuers"
	}
	return id
}

// generalTexts returns the texts of general names.
func generalTexts(list []asn1.RawValue, show func(asn1.RawValue) string) []string {
	var out []string
	for _, v := range list {
		out = append(out, show(v))
	}
	return out
}

// printedName returns a general name as OpenSSL prints it on its own line. listedName is for lists: it differs for
// directory names.
func printedName(v asn1.RawValue) string {
	if v.Tag == 4 {
		return "DirName:" + spacedName(v.Bytes)
	}
	return listedName(v)
}

func listedName(v asn1.RawValue) string {
	switch v.Tag {
	case 0:
		return otherNameText(v)
	case 1:
		return "email:" + string(v.Bytes)
	case 2:
		return "DNS:" + string(v.Bytes)
	case 3:
		return "X400Name:<unsupported>"
	case 4:
		return "DirName:" + slashedName(v.Bytes)
	case 5:
		return "EdiPartyName:<unsupported>"
	case 6:
		return "URI:" + string(v.Bytes)
	case 7:
		return "IP Address:" + plainAddress(v.Bytes)
	case 8:
		return "Registered ID:" + longName(idText(der(tagOID, v.Bytes)))
	}
	return hex.EncodeToString(v.FullBytes)
}

func otherNameText(v asn1.RawValue) string {
	list, err := children(v.Bytes)
	if err != nil || len(list) != 2 {
		return "othername:<unsupported>"
	}
	kind := ""
	switch idText(list[0].FullBytes) {
	case "1.3.6.1.4.1.311.20.2.3":
		kind = "UPN"
	case "1.3.6.1.5.5.7.8.9":
		kind = "SmtpUTF8Mailbox"
	case "1.3.6.1.5.5.7.8.5":
		kind = "XmppAddr"
	case "1.3.6.1.5.5.7.8.7":
		kind = "SRVName"
	}
	inner, err := children(list[1].Bytes)
	if kind == "" || err != nil || len(inner) != 1 {
		return "othername:<unsupported>"
	}
	return "othername:" + kind + ":" + string(inner[0].Bytes)
}

// plainAddress returns an address in OpenSSL's notation, which does not shorten IPv6.
func plainAddress(b []byte) string {
	if a, ok := netip.AddrFromSlice(b); ok && a.Is4() {
		return a.String()
	}
	if len(b) != 16 {
		return "<invalid>"
	}
	groups := make([]string, 8)
	for i := range groups {
		groups[i] = fmt.Sprintf("%X", int(b[2*i])<<8|int(b[2*i+1]))
	}
	return strings.Join(groups, ":")
}

// NameComponents returns the attributes of a name in order, each with OpenSSL's name for it.
func NameComponents(raw []byte) [][2]string {
	groups, _ := parts(raw)
	var out [][2]string
	for _, group := range groups {
		for _, p := range group {
			out = append(out, [2]string{shortName(p.id), p.value})
		}
	}
	return out
}

func shortName(id string) string {
	switch id {
	case "1.2.840.113549.1.9.1":
		return "emailAddress"
	case "2.5.4.5":
		return "serialNumber"
	case "2.5.4.9":
		return "street"
	case "2.5.4.12":
		return "title"
	case "2.5.4.13":
		return "description"
	case "2.5.4.15":
		return "businessCategory"
	case "2.5.4.17":
		return "postalCode"
	case "2.5.4.41":
		return "name"
	case "2.5.4.43":
		return "initials"
	case "2.5.4.46":
		return "dnQualifier"
	case "2.5.4.65":
		return "pseudonym"
	case "2.5.4.97":
		return "organizationIdentifier"
	case "0.9.2342.19200300.100.1.25":
		return "DC"
	case "1.2.840.113549.1.9.2":
		return "unstructuredName"
	case "1.3.6.1.4.1.311.60.2.1.1":
		return "jurisdictionL"
	case "1.3.6.1.4.1.311.60.2.1.2":
		return "jurisdictionST"
	case "1.3.6.1.4.1.311.60.2.1.3":
		return "jurisdictionC"
	}
	for _, a := range attributes() {
		if a.oid == id {
			return a.name
		}
	}
	return "UNDEF"
}

// slashedName returns a name in the notation /C=DE/CN=x.
func slashedName(raw []byte) string {
	var b strings.Builder
	groups, _ := parts(raw)
	for _, group := range groups {
		for _, p := range group {
			b.WriteString("/" + numbered(p.id) + "=")
			for i := range len(p.value) {
				switch c := p.value[i]; {
				case c < ' ' || c > '~':
					fmt.Fprintf(&b, `\x%02X`, c)
				case c == '/' || c == '+':
					b.WriteString(`\` + string(rune(c)))
				default:
					b.WriteByte(c)
				}
			}
		}
	}
	return b.String()
}

// numbered returns the short name of an attribute, or its object identifier if it has no short name.
func numbered(id string) string {
	if name := shortName(id); name != "UNDEF" {
		return name
	}
	return id
}

// spacedName returns a name in the notation "C = DE, CN = x".
func spacedName(raw []byte) string {
	var out []string
	groups, _ := parts(raw)
	for _, group := range groups {
		var list []string
		for _, p := range group {
			list = append(list, numbered(p.id)+" = "+quoted(p.value))
		}
		out = append(out, strings.Join(list, " + "))
	}
	return strings.Join(out, ", ")
}

// quoted returns a value, in quotes if it contains a special character of names.
func quoted(s string) string {
	var b strings.Builder
	quote := strings.ContainsAny(s, `,+<>;`) || strings.HasPrefix(s, " ") || strings.HasPrefix(s, "#") || strings.HasSuffix(s, " ")
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%02X`, c)
		default:
			b.WriteByte(c)
		}
	}
	if quote {
		return `"` + b.String() + `"`
	}
	return b.String()
}

func authorityText(list []asn1.RawValue) string {
	issuer, hasIssuer := find(list, 1)
	serial, hasSerial := find(list, 2)
	var out []string
	if x, ok := find(list, 0); ok {
		text := Hex(x.Bytes)
		if hasIssuer || hasSerial {
			text = "keyid:" + text
		}
		out = append(out, text)
	}
	if hasIssuer {
		names, _ := children(issuer.Bytes)
		out = append(out, generalTexts(names, listedName)...)
	}
	if hasSerial {
		out = append(out, "serial:"+Hex(serial.Bytes))
	}
	return strings.Join(out, "\n")
}

// indented returns general names, one per line.
func indented(b []byte) string {
	list, _ := children(b)
	names := generalTexts(list, printedName)
	return "  " + strings.Join(names, "\n  ")
}

func pointTexts(points []asn1.RawValue) string {
	var b strings.Builder
	for i, p := range points {
		if i > 0 {
			b.WriteByte('\n')
		}
		list, _ := children(p.Bytes)
		if x, ok := find(list, 0); ok {
			name, _ := children(x.Bytes)
			if y, ok := find(name, 0); ok {
				b.WriteString("Full Name:\n" + indented(y.Bytes))
			}
			if y, ok := find(name, 1); ok {
				b.WriteString("Relative Name:\n  " + spacedName(der(tagSequence, der(tagSet, y.Bytes))))
			}
		}
		if x, ok := find(list, 1); ok {
			b.WriteString("Reasons:\n  " + flagTexts(x, "Unused", "Key Compromise", "CA Compromise", "Affiliation Changed", "Superseded", "Cessation Of Operation", "Certificate Hold", "Privilege Withdrawn", "AA Compromise") + "\n")
		}
		if x, ok := find(list, 2); ok {
			b.WriteString("CRL Issuer:\n" + indented(x.Bytes))
		}
	}
	return b.String()
}

func policyTexts(list []asn1.RawValue) string {
	var out []string
	for _, p := range list {
		info, err := children(p.Bytes)
		if err != nil || len(info) == 0 {
			continue
		}
		out = append(out, "Policy: "+longName(idText(info[0].FullBytes)))
		if len(info) < 2 {
			continue
		}
		all, _ := children(info[1].Bytes)
		for _, q := range all {
			two, err := children(q.Bytes)
			if err != nil || len(two) != 2 {
				continue
			}
			switch id := idText(two[0].FullBytes); id {
			case "1.3.6.1.5.5.7.2.1":
				out = append(out, "  CPS: "+string(two[1].Bytes))
			case "1.3.6.1.5.5.7.2.2":
				out = append(append(out, "  User Notice:"), noticeTexts(two[1])...)
			default:
				out = append(out, "  Unknown Qualifier: "+id)
			}
		}
	}
	return strings.Join(out, "\n")
}

func noticeTexts(v asn1.RawValue) []string {
	var out []string
	m := renderQualifier(v)
	if s, ok := m["organization"].(string); ok {
		numbers, _ := m["notice_numbers"].([]any)
		texts := make([]string, len(numbers))
		for i, n := range numbers {
			texts[i] = fmt.Sprint(n)
		}
		title := "Number"
		if len(texts) > 1 {
			title = "Numbers"
		}
		out = append(out, "    Organization: "+s, "    "+title+": "+strings.Join(texts, ", "))
	}
	if s, ok := m["explicit_text"].(string); ok {
		out = append(out, "    Explicit Text: "+s)
	}
	return out
}

func constraintTexts(list []asn1.RawValue) string {
	var out []string
	for i, title := range [...]string{"Permitted", "Excluded"} {
		x, ok := find(list, i)
		if !ok {
			continue
		}
		out = append(out, title+":")
		trees, _ := children(x.Bytes)
		for _, tree := range trees {
			n, err := children(tree.Bytes)
			if err != nil || len(n) == 0 {
				continue
			}
			text := printedName(n[0])
			if b := n[0].Bytes; n[0].Tag == 7 && (len(b) == 8 || len(b) == 32) {
				half := len(b) / 2
				text = "IP:" + plainAddress(b[:half]) + "/" + plainAddress(b[half:])
			}
			out = append(out, "  "+text)
		}
	}
	return strings.Join(out, "\n")
}

// Version returns the version number in a certificate, or 0 if it cannot be parsed.
func Version(raw []byte) int64 {
	fields, err := tbsFields(raw)
	if err != nil {
		return 0
	}
	x, ok := find(fields[:1], 0)
	if !ok {
		return 1
	}
	n, err := children(x.Bytes)
	if err != nil || len(n) != 1 {
		return 0
	}
	return integer(n[0].Bytes) + 1
}

// SubjectOf returns the subject of a certificate, even of one that crypto/x509 rejects.
func SubjectOf(raw []byte) ([]byte, error) {
	fields, err := tbsFields(raw)
	if err != nil {
		return nil, err
	}
	at := 4
	if _, ok := find(fields[:1], 0); ok {
		at = 5
	}
	if len(fields) <= at {
		return nil, usage("a certificate cannot be read")
	}
	return fields[at].FullBytes, nil
}

// tbsFields returns the elements of the signed part of a certificate.
func tbsFields(raw []byte) ([]asn1.RawValue, error) {
	list, err := inside(raw)
	if err != nil || len(list) != 3 {
		return nil, usage("a certificate cannot be read")
	}
	fields, err := children(list[0].Bytes)
	if err != nil || len(fields) == 0 {
		return nil, usage("a certificate cannot be read")
	}
	return fields, nil
}

// Attribute is an attribute of a name, with OpenSSL's name for it.
type Attribute struct{ Name, Value string }

// OpenSSLName encodes a distinguished name as OpenSSL does. problem is OpenSSL's message about an invalid value.
func OpenSSLName(list []Attribute) (name []byte, problem string) {
	var out []byte
	for _, p := range list {
		id, tag, least, most := "1.2.840.113549.1.9.1", byte(tagIA5), 1, 128
		for _, a := range attributes() {
			if a.name == p.Name {
				id, tag = a.oid, a.tag
			}
		}
		switch p.Name {
		case "C":
			least, most = 2, 2
		case "O", "OU", "CN":
			most = 64
		}
		bad := func(r rune) bool { return r >= utf8.RuneSelf && tag != tagUTF8 || tag == tagPrintable && !printable(r) }
		switch n := utf8.RuneCountInString(p.Value); {
		case n < least:
			return nil, "string too short"
		case n > most:
			return nil, "string too long"
		case !utf8.ValidString(p.Value):
			return nil, "invalid utf8string"
		case strings.ContainsFunc(p.Value, bad):
			return nil, "illegal characters"
		}
		out = append(out, der(tagSet, der(tagSequence, mustOID(id), der(tag, []byte(p.Value))))...)
	}
	return der(tagSequence, out), ""
}

// printable reports whether a PrintableString may contain a character.
func printable(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(" '()+,-./:=?", r)
}

// IsExtension reports whether [Build] can create an extension with that name for a certificate.
func IsExtension(name string) bool {
	return slices.ContainsFunc(kinds(), func(k kind) bool { return k.name == name && strings.Contains(k.where, "c") })
}
