package master

import (
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// expected lists the accepted minions that a target means, as far as the master can tell, and those of a list that it does
// not know. Every minion decides for itself whether it runs a job; this is whom to wait for. Salt's source is
// salt/utils/minions.py: a minion whose grains or pillar are not known does not count for targets on them, but does for
// ipcidr.
func (m *Master) expected(tgtType string, tgt any, delimiter string) (ids, missing []string, err error) {
	accepted, err := m.keys.List(keys.Accepted)
	if err != nil {
		return nil, nil, err
	}
	if tgtType == target.TypeList {
		return listed(tgt, accepted)
	}
	e, err := target.Compile(tgtType, tgt, delimiter, m.opts.Nodegroups)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range accepted {
		ok, err := e.Match(m.subject(id))
		if err != nil {
			return nil, nil, err
		}
		if ok || tgtType == target.TypeIPCIDR && !m.hasData(id) {
			ids = append(ids, id)
		}
	}
	return ids, nil, nil
}

// byID is the target of somebody who may reach some minions only. Minions judge grains, pillars and addresses by themselves, also those of
// which this master knows others, or none: such a target becomes the list of ids that it means here.
func (m *Master) byID(tgtType string, tgt any, delimiter string) (string, any, error) {
	if target.OfIDs(tgtType) {
		return tgtType, tgt, nil
	}
	tgtType, tgt, err := m.onWire(tgtType, tgt)
	if err != nil {
		return "", nil, err
	}
	ids, _, err := m.expected(tgtType, tgt, delimiter)
	return target.TypeList, nested.Anys(ids), err
}

func (m *Master) hasData(id string) bool {
	_, ok := m.cache.Data(id)
	return ok
}

// subject is what the master knows of a minion. Its cached data is read once, and only if the expression asks for it.
func (m *Master) subject(id string) target.Subject {
	var grains, pillar map[string]any
	read := false
	load := func() {
		if !read {
			d, _ := m.cache.Data(id)
			grains, pillar, read = d.Grains, d.Pillar, true
		}
	}
	return target.Subject{ID: id, Nodegroups: m.opts.Nodegroups,
		Grains: func() map[string]any { load(); return grains },
		Pillar: func() map[string]any { load(); return pillar },
	}
}

// means reports whether a target means one minion.
func (m *Master) means(tgtType string, tgt any, id string) bool {
	ok, err := target.Match(tgtType, tgt, "", m.subject(id))
	return ok && err == nil
}

// listed splits a list target in known and unknown ids.
func listed(tgt any, accepted []string) (ids, missing []string, err error) {
	var names []string
	switch t := tgt.(type) {
	case string:
		names = strings.Split(t, ",")
	case []any:
		for _, x := range t {
			s, ok := payload.Text(x)
			if !ok {
				return nil, nil, fmt.Errorf("list target has a member of type %T", x)
			}
			names = append(names, s)
		}
	default:
		return nil, nil, fmt.Errorf("list target is %T", tgt)
	}
	for _, n := range names {
		if n = strings.TrimSpace(n); n == "" || slices.Contains(ids, n) || slices.Contains(missing, n) {
			continue
		}
		if _, ok := slices.BinarySearch(accepted, n); ok {
			ids = append(ids, n)
		} else {
			missing = append(missing, n)
		}
	}
	return ids, missing, nil
}

// onWire turns a target into the one that is published: node groups are the master's, so they are written out
// (salt/client/__init__.py, _prep_pub).
func (m *Master) onWire(tgtType string, tgt any) (string, any, error) {
	tgtType = kindOf(tgtType, tgt)
	switch tgtType {
	case target.TypeNodegroup:
		name, ok := payload.Text(tgt)
		if !ok {
			return "", nil, fmt.Errorf("node group is %T", tgt)
		}
		words, err := target.NodegroupWords(name, m.opts.Nodegroups)
		if err != nil {
			return "", nil, err
		}
		return target.TypeCompound, strings.Join(words, " "), nil
	case target.TypeCompound:
		if expr, ok := payload.Text(tgt); ok && strings.Contains(expr, "N@") {
			expanded, err := target.ExpandNodegroups(expr, m.opts.Nodegroups)
			return tgtType, expanded, err
		}
	case target.TypeList:
		switch t := tgt.(type) {
		case []string:
			return tgtType, nested.Anys(t), nil
		case string:
			var names []any
			for _, n := range strings.Split(t, ",") {
				if n = strings.TrimSpace(n); n != "" {
					names = append(names, n)
				}
			}
			return tgtType, names, nil
		}
	}
	return tgtType, tgt, nil
}

// kindOf returns the kind of a target: the given one; without one, a list is a list of ids, and text a glob.
func kindOf(tgtType string, tgt any) string {
	if tgtType != "" {
		return tgtType
	}
	switch tgt.(type) {
	case []string, []any:
		return target.TypeList
	}
	return target.TypeGlob
}

// topics are the ids to send a publish to, where a transport can choose: for targets by id only, as Salt does
// (salt/channel/server.py, wrap_payload), unless it is for all of them. nil is everybody.
func (m *Master) topics(tgtType string, ids, missing []string) []string {
	if m.sender.Isolated() {
		return slices.Concat(ids, missing)
	}
	if all := slices.Concat(ids, missing); target.OfIDs(tgtType) && len(all) > 0 {
		return all
	}
	return nil
}
