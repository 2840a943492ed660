package pki

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"math/big"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Render returns the known extensions by Salt's name: those of certificates, requests and revocation lists or, with
// entry, those of a list's entries.
func Render(list []pkix.Extension, entry bool) map[string]any {
	out := map[string]any{}
	for _, k := range kinds() {
		if (k.where == "e") != entry || k.id == "" {
			continue
		}
		for _, e := range list {
			if e.Id.String() != k.id {
				continue
			}
			m := render(k.name, e.Value)
			m["critical"] = e.Critical
			out[k.name] = m
		}
	}
	return out
}

// integer returns a number, or -1 if it does not fit into an int64.
func integer(b []byte) int64 {
	if n := new(big.Int).SetBytes(b); n.IsInt64() {
		return n.Int64()
	}
	return -1
}

// find returns the element of a list with a context-specific tag.
func find(list []asn1.RawValue, tag int) (asn1.RawValue, bool) {
	for _, v := range list {
		if v.Class == asn1.ClassContextSpecific && v.Tag == tag {
			return v, true
		}
	}
	return asn1.RawValue{}, false
}

func flag(b []byte, i int) bool { return len(b) > 1+i/8 && b[1+i/8]&(0x80>>(i%8)) != 0 }

// nameList returns the texts of general names.
func nameList(b []byte) []any {
	list, _ := children(b)
	out := []any{}
	for _, v := range list {
		out = append(out, showName(v))
	}
	return out
}

func showName(v asn1.RawValue) string {
	switch v.Tag {
	case 0:
		list, err := children(v.Bytes)
		if err != nil || len(list) != 2 {
			break
		}
		text := "<hex:" + hex.EncodeToString(list[1].Bytes) + ">"
		if inner, err := children(list[1].Bytes); err == nil && len(inner) == 1 && inner[0].Class == asn1.ClassUniversal && inner[0].Tag == tagUTF8 {
			text = "UTF8:" + string(inner[0].Bytes)
		}
		return "otherName:" + idText(list[0].FullBytes) + ";" + text
	case 1:
		return "email:" + string(v.Bytes)
	case 2:
		return "DNS:" + string(v.Bytes)
	case 4:
		return "dirName:" + NameText(v.Bytes)
	case 6:
		return "URI:" + string(v.Bytes)
	case 7:
		return "IP:" + showAddress(v.Bytes)
	case 8:
		return "RID:" + idText(der(tagOID, v.Bytes))
	}
	return hex.EncodeToString(v.FullBytes)
}

func showAddress(b []byte) string {
	bits := -1
	if len(b) == 8 || len(b) == 32 {
		bits = 0
		for _, x := range b[len(b)/2:] {
			for ; x != 0; x <<= 1 {
				bits++
			}
		}
		b = b[:len(b)/2]
	}
	a, _ := netip.AddrFromSlice(b)
	text := a.StringExpanded()
	if bits >= 0 {
		text += "/" + strconv.Itoa(bits)
	}
	return text
}

func names(list []pair, ids []asn1.RawValue) []any {
	out := []any{}
	for _, v := range ids {
		name := idText(v.FullBytes)
		for _, p := range list {
			if p.value == name {
				name = p.key
				break
			}
		}
		if name == "2.5.29.37.0" {
			name = "anyExtendedKeyUsage"
		}
		out = append(out, name)
	}
	return out
}

func render(name string, b []byte) map[string]any {
	var v asn1.RawValue
	if _, err := asn1.Unmarshal(b, &v); err != nil {
		return map[string]any{"value": hex.EncodeToString(b)}
	}
	list, _ := children(v.Bytes)
	switch name {
	case "basicConstraints":
		m := map[string]any{"ca": false, "pathlen": nil}
		for _, x := range list {
			if x.Tag == tagBool {
				m["ca"] = len(x.Bytes) == 1 && x.Bytes[0] != 0
			} else {
				m["pathlen"] = integer(x.Bytes)
			}
		}
		return m
	case "keyUsage":
		m := map[string]any{}
		for i, usage := range usages() {
			m[usage] = flag(v.Bytes, i)
		}
		return m
	case "extendedKeyUsage":
		return map[string]any{"value": names(purposes(), list)}
	case "subjectKeyIdentifier":
		return map[string]any{"value": Hex(v.Bytes)}
	case "authorityKeyIdentifier":
		return renderAuthority(list)
	case "issuerAltName", "subjectAltName", "certificateIssuer":
		return map[string]any{"value": nameList(v.Bytes)}
	case "authorityInfoAccess":
		out := []any{}
		for _, x := range list {
			if d, err := children(x.Bytes); err == nil && len(d) == 2 {
				text := showName(d[1])
				if tag := d[1].Tag; tag == 1 || tag == 2 || tag == 6 {
					text = string(d[1].Bytes)
				}
				out = append(out, map[string]any{names(accesses(), d[:1])[0].(string): text})
			}
		}
		return map[string]any{"value": out}
	case "crlDistributionPoints", "freshestCRL":
		return renderPoints(list)
	case "issuingDistributionPoint":
		return renderIssuing(list)
	case "certificatePolicies":
		return renderPolicies(list)
	case "policyConstraints":
		m := map[string]any{"requireExplicitPolicy": nil, "inhibitPolicyMapping": nil}
		if x, ok := find(list, 0); ok {
			m["requireExplicitPolicy"] = integer(x.Bytes)
		}
		if x, ok := find(list, 1); ok {
			m["inhibitPolicyMapping"] = integer(x.Bytes)
		}
		return m
	case "nameConstraints":
		m := map[string]any{"permitted": []any{}, "excluded": []any{}}
		for i, scope := range [...]string{"permitted", "excluded"} {
			if x, ok := find(list, i); ok {
				trees, _ := children(x.Bytes)
				out := []any{}
				for _, tree := range trees {
					if n, err := children(tree.Bytes); err == nil && len(n) > 0 {
						out = append(out, showName(n[0]))
					}
				}
				m[scope] = out
			}
		}
		return m
	case "noCheck":
		return map[string]any{"value": true}
	case "tlsfeature":
		out := []any{}
		for _, x := range list {
			switch integer(x.Bytes) {
			case 5:
				out = append(out, "status_request")
			case 17:
				out = append(out, "status_request_v2")
			}
		}
		return map[string]any{"value": out}
	case "inhibitAnyPolicy", "cRLNumber", "deltaCRLIndicator":
		return map[string]any{"value": integer(v.Bytes)}
	case "CRLReason":
		if n := integer(v.Bytes); n >= 0 && n < int64(len(reasons())) {
			return map[string]any{"value": reasons()[n]}
		}
	case "invalidityDate":
		if t, err := time.Parse("20060102150405Z", string(v.Bytes)); err == nil {
			return map[string]any{"value": t.Format(time.DateTime)}
		}
	}
	return map[string]any{"value": hex.EncodeToString(b)}
}

func renderAuthority(list []asn1.RawValue) map[string]any {
	m := map[string]any{"keyid": nil, "issuer": nil, "issuer_sn": nil}
	if x, ok := find(list, 0); ok {
		m["keyid"] = Hex(x.Bytes)
	}
	if x, ok := find(list, 1); ok {
		m["issuer"] = nameList(x.Bytes)
	}
	if x, ok := find(list, 2); ok {
		m["issuer_sn"] = HexInt(new(big.Int).SetBytes(x.Bytes))
	}
	return m
}

// pointNames returns the full names or the relative name of a distribution point.
func pointNames(list []asn1.RawValue) (full []any, relative any) {
	full = []any{}
	if x, ok := find(list, 0); ok {
		name, _ := children(x.Bytes)
		if y, ok := find(name, 0); ok {
			full = nameList(y.Bytes)
		}
		if y, ok := find(name, 1); ok {
			if groups, err := parts(der(tagSequence, der(tagSet, y.Bytes))); err == nil && len(groups) == 1 {
				relative = groupText(groups[0])
			}
		}
	}
	return full, relative
}

func flags(v asn1.RawValue) []any {
	out := []string{}
	for i, name := range flagged() {
		if name != "" && flag(v.Bytes, i) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	list := []any{}
	for _, s := range out {
		list = append(list, s)
	}
	return list
}

func renderPoints(points []asn1.RawValue) map[string]any {
	out := []any{}
	for _, p := range points {
		list, _ := children(p.Bytes)
		full, relative := pointNames(list)
		m := map[string]any{"fullname": full, "relativename": relative, "crlissuer": []any{}, "reasons": []any{}}
		if x, ok := find(list, 1); ok {
			m["reasons"] = flags(x)
		}
		if x, ok := find(list, 2); ok {
			m["crlissuer"] = nameList(x.Bytes)
		}
		out = append(out, m)
	}
	return map[string]any{"value": out}
}

func renderIssuing(list []asn1.RawValue) map[string]any {
	full, relative := pointNames(list)
	m := map[string]any{"fullname": full, "relativename": relative, "onlysomereasons": []any{}}
	if x, ok := find(list, 3); ok {
		m["onlysomereasons"] = flags(x)
	}
	for _, o := range [...]struct {
		name string
		tag  int
	}{{"onlyuser", 1}, {"onlyCA", 2}, {"indirectCRL", 4}, {"onlyAA", 5}} {
		x, ok := find(list, o.tag)
		m[o.name] = ok && len(x.Bytes) == 1 && x.Bytes[0] != 0
	}
	return m
}

func renderPolicies(list []asn1.RawValue) map[string]any {
	out := []any{}
	for _, p := range list {
		info, err := children(p.Bytes)
		if err != nil || len(info) == 0 {
			continue
		}
		name := idText(info[0].FullBytes)
		if name == "2.5.29.32.0" {
			name = "anyPolicy"
		}
		qualifiers := []any{}
		if len(info) > 1 {
			all, _ := children(info[1].Bytes)
			for _, q := range all {
				if two, err := children(q.Bytes); err == nil && len(two) == 2 {
					qualifiers = append(qualifiers, renderQualifier(two[1]))
				}
			}
		}
		out = append(out, map[string]any{name: qualifiers})
	}
	return map[string]any{"value": out}
}

func renderQualifier(v asn1.RawValue) map[string]any {
	if v.Tag == tagIA5 {
		return map[string]any{"practice_statement": string(v.Bytes)}
	}
	m := map[string]any{"organization": nil, "notice_numbers": nil, "explicit_text": nil}
	list, _ := children(v.Bytes)
	for _, x := range list {
		if !x.IsCompound {
			m["explicit_text"] = string(x.Bytes)
			continue
		}
		if ref, err := children(x.Bytes); err == nil && len(ref) == 2 {
			numbers := []any{}
			all, _ := children(ref[1].Bytes)
			for _, n := range all {
				numbers = append(numbers, integer(n.Bytes))
			}
			m["organization"], m["notice_numbers"] = string(ref[0].Bytes), numbers
		}
	}
	return m
}

// ExtensionName returns the name of an extension in Python's package cryptography.
func ExtensionName(id string) string {
	switch id {
	case "2.5.29.9":
		return "subjectDirectoryAttributes"
	case "2.5.29.16":
		return "privateKeyUsagePeriod"
	case "2.5.29.21":
		return "cRLReason"
	case "2.5.29.31":
		return "cRLDistributionPoints"
	case "2.5.29.33":
		return "policyMappings"
	case "1.3.6.1.5.5.7.1.11":
		return "subjectInfoAccess"
	case "1.3.6.1.5.5.7.1.24":
		return "TLSFeature"
	case "1.3.6.1.5.5.7.48.1.2":
		return "OCSPNonce"
	case "1.3.6.1.5.5.7.48.1.5":
		return "OCSPNoCheck"
	case "1.3.6.1.4.1.11129.2.4.2", "1.3.6.1.4.1.11129.2.4.5":
		return "signedCertificateTimestampList"
	case "1.3.6.1.4.1.11129.2.4.3":
		return "ctPoison"
	}
	for _, k := range kinds() {
		if k.id == id {
			return k.name
		}
	}
	return "Unknown OID"
}
