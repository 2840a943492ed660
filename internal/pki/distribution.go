package pki

import (
	"encoding/asn1"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

func accesses() []pair {
	return []pair{{"OCSP", "1.3.6.1.5.5.7.48.1"}, {"caIssuers", "1.3.6.1.5.5.7.48.2"}, {"caRepository", "1.3.6.1.5.5.7.48.5"}}
}

func infoAccess(v any) (Extension, error) {
	var list []namedValue
	switch v := v.(type) {
	case string:
		for x := range strings.SplitSeq(v, ",") {
			if x = strings.TrimSpace(x); x != "critical" {
				k, s, _ := strings.Cut(x, ";")
				list = append(list, namedValue{k, s})
			}
		}
	case map[string]any:
		for _, a := range accesses() {
			if x, ok := v[a.key]; ok {
				list = append(list, namedValue{a.key, x})
			}
		}
		for k, x := range v {
			if k != "critical" && !slices.ContainsFunc(accesses(), func(a pair) bool { return a.key == k }) {
				list = append(list, namedValue{k, x})
			}
		}
	case []any:
		for _, x := range v {
			if m, ok := x.(map[string]any); ok {
				for k, s := range m {
					list = append(list, namedValue{k, s})
				}
			}
		}
	}
	var out []byte
	for _, p := range list {
		id, err := named(accesses(), p.kind)
		if err != nil {
			return Extension{}, failed("Unknown access OID: %s", p.kind)
		}
		k, s, _ := strings.Cut(pytext.Str(p.value), ":")
		name, err := generalNames([]namedValue{{k, s}}, false)
		if err != nil {
			return Extension{}, err
		}
		out = append(out, der(tagSequence, id, name)...)
	}
	return Extension{"", false, der(tagSequence, out)}, nil
}

// reasons returns the reasons for a revocation, indexed by their numbers; a reserved number has "".
func reasons() []string {
	return []string{"unspecified", "keyCompromise", "cACompromise", "affiliationChanged", "superseded", "cessationOfOperation", "certificateHold", "",
		"removeFromCRL", "privilegeWithdrawn", "aACompromise"}
}

// flagged returns the reasons by their bit in the flags of a distribution point. These numbers differ from those of
// reasons.
func flagged() []string {
	return []string{"", "keyCompromise", "cACompromise", "affiliationChanged", "superseded", "cessationOfOperation", "certificateHold", "privilegeWithdrawn", "aACompromise"}
}

func reasonFlags(v any) ([]byte, error) {
	list, _ := v.([]any)
	set := make([]bool, len(flagged()))
	for _, x := range list {
		at := slices.Index(flagged(), pytext.Str(x))
		if at < 1 {
			return nil, usage("%s is not a valid ReasonFlags", pytext.Repr(x))
		}
		set[at] = true
	}
	return bits(set)[2:], nil // without the tag, which is a different one there
}

func textList(v any) []namedValue {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []namedValue
	for _, x := range list {
		k, s, _ := strings.Cut(pytext.Str(x), ":")
		out = append(out, namedValue{k, s})
	}
	return out
}

// pointName encodes the name of a distribution point from fullname or relativename.
func pointName(m map[string]any) ([]byte, error) {
	switch {
	case pytext.Truth(m["fullname"]):
		names, err := generalNames(textList(m["fullname"]), false)
		return der(contextTag|constructed, der(contextTag|constructed, names)), err
	case pytext.Truth(m["relativename"]):
		r, err := RDN(pytext.Str(m["relativename"]))
		if err != nil {
			return nil, err
		}
		var set asn1.RawValue
		if _, err := asn1.Unmarshal(r, &set); err != nil {
			return nil, err
		}
		return der(contextTag|constructed, der(contextTag|constructed|1, set.Bytes)), nil
	}
	return nil, nil
}

func distributionPoints(v any) (Extension, error) {
	critical := has(v, "critical")
	var points []any
	switch v := v.(type) {
	case string:
		var list []pair
		list, critical = conf(v)
		for _, p := range list {
			points = append(points, map[string]any{"fullname": p.key + ":" + p.value})
		}
	case []any:
		for _, x := range v {
			if s, ok := x.(string); ok && strings.Contains(s, ":") {
				k, y, _ := strings.Cut(s, ":")
				points = append(points, map[string]any{"fullname": strings.TrimSpace(k) + ":" + strings.TrimSpace(y)})
			} else if x != "critical" {
				points = append(points, x)
			}
		}
	}
	var out []byte
	for _, x := range points {
		m, _ := x.(map[string]any)
		name, err := pointName(m)
		if err != nil {
			return Extension{}, err
		}
		parts := [][]byte{name}
		if pytext.Truth(m["reasons"]) {
			flags, err := reasonFlags(m["reasons"])
			if err != nil {
				return Extension{}, err
			}
			parts = append(parts, der(contextTag|1, flags))
		}
		if pytext.Truth(m["crlissuer"]) {
			names, err := generalNames(textList(m["crlissuer"]), false)
			if err != nil {
				return Extension{}, err
			}
			parts = append(parts, der(contextTag|constructed|2, names))
		}
		if name == nil && !pytext.Truth(m["crlissuer"]) {
			return Extension{}, usage("Either full_name, relative_name or crl_issuer must be provided.")
		}
		out = append(out, der(tagSequence, parts...)...)
	}
	return Extension{"", critical, der(tagSequence, out)}, nil
}

func issuingPoint(v any) (Extension, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return Extension{}, usage("issuingDistributionPoint must be a dictionary")
	}
	name, err := pointName(m)
	if err != nil {
		return Extension{}, err
	}
	parts := [][]byte{name}
	yes := func(tag byte, key string) {
		if pytext.Truth(m[key]) {
			parts = append(parts, der(contextTag|tag, []byte{0xff}))
		}
	}
	yes(1, "onlyuser")
	yes(2, "onlyCA")
	if pytext.Truth(m["onlysomereasons"]) {
		flags, err := reasonFlags(m["onlysomereasons"])
		if err != nil {
			return Extension{}, err
		}
		parts = append(parts, der(contextTag|3, flags))
	}
	yes(4, "indirectCRL")
	yes(5, "onlyAA")
	return Extension{"", pytext.Truth(m["critical"]), der(tagSequence, parts...)}, nil
}
