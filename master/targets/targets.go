// Package targets finds the accepted minions that a target matches, by the master's data. The result is whom to
// wait for; each minion decides for itself whether it runs a job. Salt's source is salt/utils/minions.py.
package targets

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// Finder matches targets. All fields are required.
type Finder struct {
	Keys *keys.Store
	// Cache holds the grains and pillars last seen of minions.
	Cache      *cache.Cache
	Nodegroups map[string]any
}

// Expected returns the accepted minions that a target matches, as far as the master can tell, and the unknown
// ids of a list. The result is whom to wait for; each minion decides for itself whether it runs the job. As in
// Salt (salt/utils/minions.py), a minion with unknown grains or pillar does not match targets on them, but does
// match ipcidr.
func (t *Finder) Expected(tgtType string, tgt any,
	delimiter string) (ids, missing []string, err error) {
	accepted, err := t.Keys.List(keys.Accepted)
	if err != nil {
		return nil, nil, err
	}
	if tgtType == target.TypeList {
		return Listed(tgt, accepted)
	}
	e, err := target.Compile(tgtType, tgt, delimiter, t.Nodegroups)
	if err != nil {
		return nil, nil, err
	}
	known := t.Cache.Parts(accepted, e.Needs())
	for _, id := range accepted {
		ok, err := e.Match(t.subjectOf(id, known.Data))
		if err != nil {
			return nil, nil, err
		}
		if !ok && tgtType == target.TypeIPCIDR {
			_, has := known.Data(id)
			ok = !has
		}
		if ok {
			ids = append(ids, id)
		}
	}
	// If the database fails, the result is unknown: that is an error, not an empty list.
	return ids, nil, known.Err()
}

// ByID returns the target for a caller who may reach only some minions. Minions match grains, pillar and
// addresses themselves, and the master's data about them may be out of date. So such a target becomes the list
// of ids that it matches here.
func (t *Finder) ByID(tgtType string, tgt any, delimiter string) (string, any, error) {
	if target.OfIDs(tgtType) {
		return tgtType, tgt, nil
	}
	tgtType, tgt, err := t.OnWire(tgtType, tgt)
	if err != nil {
		return "", nil, err
	}
	ids, _, err := t.Expected(tgtType, tgt, delimiter)
	return target.TypeList, nested.Anys(ids), err
}

// Subject returns the master's data about a minion. Cached data is read once, and only if the expression needs
// it.
func (t *Finder) Subject(id string) target.Subject { return t.subjectOf(id, t.Cache.Data) }

func (t *Finder) subjectOf(id string, data func(id string) (cache.Data, bool)) target.Subject {
	var grains, pillar map[string]any
	read := false
	load := func() {
		if !read {
			d, _ := data(id)
			grains, pillar, read = d.Grains, d.Pillar, true
		}
	}
	return target.Subject{ID: id, Nodegroups: t.Nodegroups,
		Grains: func() map[string]any { load(); return grains },
		Pillar: func() map[string]any { load(); return pillar },
	}
}

// Means reports whether a target matches one minion.
func (t *Finder) Means(tgtType string, tgt any, id string) bool {
	ok, err := target.Match(tgtType, tgt, "", t.Subject(id))
	return ok && err == nil
}

// Listed splits a list target into known and unknown ids.
func Listed(tgt any, accepted []string) (ids, missing []string, err error) {
	var names []string
	switch list := tgt.(type) {
	case string:
		names = strings.Split(list, ",")
	case []any:
		for _, x := range list {
			s, ok := payload.Text(x)
			if !ok {
				return nil, nil, fmt.Errorf("list target has a member of type %T", x)
			}
			names = append(names, s)
		}
	default:
		return nil, nil, fmt.Errorf("list target is %T", tgt)
	}
	seen := make(map[string]bool, len(names))
	for _, n := range names {
		if n = strings.TrimSpace(n); n == "" || seen[n] {
			continue
		}
		seen[n] = true
		if _, ok := slices.BinarySearch(accepted, n); ok {
			ids = append(ids, n)
		} else {
			missing = append(missing, n)
		}
	}
	return ids, missing, nil
}

// OnWire returns the target in the form that is published. Node groups are expanded, because only the master
// knows them (salt/client/__init__.py, _prep_pub).
func (t *Finder) OnWire(tgtType string, tgt any) (string, any, error) {
	tgtType = KindOf(tgtType, tgt)
	switch tgtType {
	case target.TypeNodegroup:
		name, ok := payload.Text(tgt)
		if !ok {
			return "", nil, fmt.Errorf("node group is %T", tgt)
		}
		words, err := target.NodegroupWords(name, t.Nodegroups)
		if err != nil {
			return "", nil, err
		}
		return target.TypeCompound, strings.Join(words, " "), nil
	case target.TypeCompound:
		if expr, ok := payload.Text(tgt); ok && strings.Contains(expr, "N@") {
			expanded, err := target.ExpandNodegroups(expr, t.Nodegroups)
			return tgtType, expanded, err
		}
	case target.TypeList:
		switch list := tgt.(type) {
		case []string:
			return tgtType, nested.Anys(list), nil
		case string:
			var names []any
			for _, n := range strings.Split(list, ",") {
				if n = strings.TrimSpace(n); n != "" {
					names = append(names, n)
				}
			}
			return tgtType, names, nil
		}
	}
	return tgtType, tgt, nil
}

// KindOf returns the kind of a target: tgtType if set, else "list" for a list and "glob" for a string.
func KindOf(tgtType string, tgt any) string {
	if tgtType != "" {
		return tgtType
	}
	switch tgt.(type) {
	case []string, []any:
		return target.TypeList
	}
	return target.TypeGlob
}

// Find returns the accepted minions that a target matches, including node groups and lists in any form.
func (t *Finder) Find(tgtType string, tgt any) ([]string, error) {
	tgtType, tgt, err := t.OnWire(tgtType, tgt)
	if err != nil {
		return nil, err
	}
	return t.Match(tgtType, tgt)
}

// Match returns the accepted minions that a target in wire form matches.
func (t *Finder) Match(tgtType string, tgt any) ([]string, error) {
	ids, _, err := t.Expected(tgtType, tgt, "")
	return ids, err
}

// NoMinionsError is the error for a target that matches no minion known to the master.
type NoMinionsError struct {
	Tgt any
	// Missing are the ids of a list target.
	Missing []string
}

func (e *NoMinionsError) Error() string {
	return fmt.Sprintf("Master could not resolve minions for target %v", e.Tgt)
}

// IsNoMinions reports whether an error is or wraps a *NoMinionsError.
func IsNoMinions(err error) bool {
	var e *NoMinionsError
	return errors.As(err, &e)
}
