package x509_v2

import (
	"bytes"
	"crypto/x509/pkix"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// encodingOf returns the encoding of bytes: pem or der.
func encodingOf(b []byte) any {
	if pki.IsPEM(b) {
		return "pem"
	}
	return "der"
}

// signatureHash returns the digest that a signature uses, or "" if the type of key implies it or it is unknown.
func signatureHash(raw []byte) string {
	name := strings.ToLower(pki.SignatureName(raw))
	if h, ok := strings.CutPrefix(name, "ecdsa-with-"); ok {
		return h
	}
	if h, ok := strings.CutSuffix(name, "withrsaencryption"); ok {
		return h
	}
	return ""
}

// compareDigest compares the digest of a signature with the one that is wanted, which the state's argument may not know.
func (j *job) compareDigest(raw []byte, want, arg any) error {
	have := signatureHash(raw)
	if have == "" {
		return nil
	}
	name, ok := want.(string)
	name = strings.ToLower(name)
	if !ok || name != "md5" && !slices.Contains(strings.Split(pki.Digests, ", "), name) {
		return modules.Errorf("The selected hashing algorithm does not exist in the cryptography python library")
	}
	if name != have {
		j.changes["digest"] = arg
	}
	return nil
}

// compareName compares two names.
func (j *job) compareName(change string, want, have []byte) {
	if text := pki.NameText(want); text != pki.NameText(have) {
		j.changes[change] = text
	}
}

func find(list []pkix.Extension, id string) (pkix.Extension, bool) {
	at := slices.IndexFunc(list, func(e pkix.Extension) bool { return e.Id.String() == id })
	if at < 0 {
		return pkix.Extension{}, false
	}
	return list[at], true
}

func same(a pki.Extension, b pkix.Extension) bool {
	return a.Critical == b.Critical && bytes.Equal(a.Value, b.Value)
}

// compareExtensions compares the extensions that shall be with those that are.
func (j *job) compareExtensions(want []pki.Extension, have []pkix.Extension) {
	added, changed, removed := []any{}, []any{}, []any{}
	for _, e := range want {
		switch old, there := find(have, e.ID); {
		case !there:
			added = append(added, pki.ExtensionName(e.ID))
		case !same(e, old):
			changed = append(changed, pki.ExtensionName(e.ID))
		}
	}
	for _, e := range have {
		id := e.Id.String()
		if !slices.ContainsFunc(want, func(w pki.Extension) bool { return w.ID == id }) {
			removed = append(removed, pki.ExtensionName(id))
		}
	}
	if len(added)+len(changed)+len(removed) > 0 {
		j.changes["extensions"] = map[string]any{"added": added, "changed": changed, "removed": removed}
	}
}

// expires notes what ends in less than some days.
func (j *job) expires(end func(days int) bool, days any) error {
	n, err := modules.ToInt(days)
	if f, ok := days.(float64); ok {
		n, err = int64(f), nil
	}
	if err != nil {
		return &modules.TypeError{Msg: "unsupported type for timedelta days component: " + modules.TypeName(days)}
	}
	if n > 1<<21 || n < -(1<<21) || j.Now().AddDate(0, 0, int(n)).Year() > 9999 {
		return &modules.PythonError{Type: "OverflowError", Msg: "date value out of range"}
	}
	if end(int(n)) {
		j.changes["expiration"] = true
	}
	return nil
}

// texts returns the sorted keys of a set.
func texts(set map[string]bool) []any {
	list := make([]any, 0, len(set))
	for s := range set {
		list = append(list, s)
	}
	sorting.Stable(list, func(a, b any) int { return strings.Compare(pytext.Str(a), pytext.Str(b)) })
	return list
}
