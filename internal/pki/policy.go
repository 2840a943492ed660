package pki

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

func policies(v any) (Extension, error) {
	var out []byte
	switch v := v.(type) {
	case string:
		for x := range strings.SplitSeq(v, ",") {
			if x = strings.TrimSpace(x); x == "critical" {
				continue
			}
			id, err := oid(x)
			if err != nil {
				return Extension{}, usage("certificatePolicies defined as string must be a comma-separated list of OID.")
			}
			out = append(out, der(tagSequence, id)...)
		}
		return Extension{"", strings.HasPrefix(v, "critical"), der(tagSequence, out)}, nil
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			if k == "critical" {
				continue
			}
			id, err := oid(k)
			if err != nil {
				return Extension{}, err
			}
			qualifiers, err := policyQualifiers(v[k])
			if err != nil {
				return Extension{}, err
			}
			out = append(out, der(tagSequence, id, qualifiers)...)
		}
		return Extension{"", pytext.Truth(v["critical"]), der(tagSequence, out)}, nil
	}
	return Extension{}, &Error{"AttributeError", "'list' object has no attribute 'get'"}
}

func policyQualifiers(v any) ([]byte, error) {
	list, _ := v.([]any)
	var out []byte
	for _, x := range list {
		if s, ok := x.(string); ok {
			out = append(out, der(tagSequence, mustOID("1.3.6.1.5.5.7.2.1"), der(tagIA5, []byte(s)))...)
			continue
		}
		m, _ := x.(map[string]any)
		numbers, _ := m["noticeNumbers"].([]any)
		if len(numbers) == 0 {
			continue
		}
		var list []byte
		for _, n := range numbers {
			i, ok := n.(int64)
			if !ok {
				return nil, failed("notice_numbers must be a list of integers")
			}
			list = append(list, derInt(big.NewInt(i))...)
		}
		parts := [][]byte{der(tagSequence, der(tagUTF8, []byte(pytext.Str(m["organization"]))), der(tagSequence, list))}
		if m["text"] != nil {
			parts = append(parts, der(tagUTF8, []byte(pytext.Str(m["text"]))))
		}
		out = append(out, der(tagSequence, mustOID("1.3.6.1.5.5.7.2.2"), der(tagSequence, parts...))...)
	}
	if out == nil {
		return nil, nil
	}
	return der(tagSequence, out), nil
}

func policyConstraints(v any) (Extension, error) {
	critical := has(v, "critical")
	m, _ := v.(map[string]any)
	if s, ok := v.(string); ok {
		var list []pair
		list, critical = conf(s)
		m = asMap(list)
	}
	var parts [][]byte
	for i, key := range [...]string{"requireExplicitPolicy", "inhibitPolicyMapping"} {
		x, ok := m[key]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(pytext.Str(x))
		if err != nil {
			return Extension{}, value("invalid literal for int() with base 10: %s", pytext.Repr(x))
		}
		b := derInt(big.NewInt(int64(n)))
		parts = append(parts, der(contextTag|byte(i), b[2:]))
	}
	if parts == nil {
		return Extension{}, usage("At least one of require_explicit_policy and inhibit_policy_mapping must not be None")
	}
	return Extension{"", critical, der(tagSequence, parts...)}, nil
}

func inhibitAnyPolicy(v any) (Extension, error) {
	critical := has(v, "critical")
	switch x := v.(type) {
	case string:
		list, c := conf(x)
		n, err := strconv.Atoi(list[0].key)
		if err != nil {
			return Extension{}, value("invalid literal for int() with base 10: %s", pytext.Repr(list[0].key))
		}
		critical, v = c, int64(n)
	case map[string]any:
		n, ok := x["value"]
		if !ok {
			return Extension{}, usage("Undefined required key for inhibitAnyPolicy: 'value'")
		}
		v = n
	}
	n, ok := v.(int64)
	if !ok || n < 0 {
		return Extension{}, usage("skip_certs must be a non-negative integer")
	}
	return Extension{"", critical, derInt(big.NewInt(n))}, nil
}

func nameConstraints(v any) (Extension, error) {
	var parts [][]byte
	empty := ""
	for i, scope := range [...]string{"permitted", "excluded"} {
		var list []namedValue
		said := false
		switch v := v.(type) {
		case map[string]any:
			var items []any
			items, said = v[scope].([]any)
			for _, x := range items {
				if s, ok := x.(string); ok && strings.Contains(s, ":") {
					k, y, _ := strings.Cut(s, ":")
					list = append(list, namedValue{strings.TrimSpace(k), strings.TrimSpace(y)})
				}
			}
		case string:
			said = true
			for x := range strings.SplitSeq(v, ",") {
				if s, ok := strings.CutPrefix(strings.TrimSpace(x), scope+";"); ok {
					k, y, _ := strings.Cut(s, ":")
					list = append(list, namedValue{k, y})
				}
			}
		}
		var trees []byte
		for _, p := range list {
			name, err := generalNames([]namedValue{p}, true)
			if err != nil {
				return Extension{}, err
			}
			trees = append(trees, der(tagSequence, name)...)
		}
		if said && trees == nil && empty == "" {
			empty = scope
		}
		if trees != nil {
			parts = append(parts, der(contextTag|constructed|byte(i), trees))
		}
	}
	if parts == nil {
		return Extension{}, usage("nameConstraints needs at least one definition")
	}
	if empty != "" {
		return Extension{}, value("%s_subtrees must be a non-empty list or None", empty)
	}
	return Extension{"", has(v, "critical"), der(tagSequence, parts...)}, nil
}
