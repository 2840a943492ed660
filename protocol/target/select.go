package target

// Cached is what a master has cached about a minion. A nil map is unknown.
type Cached struct {
	Grains map[string]any
	Pillar map[string]any
}

// A Selection is a master's estimate of the minions that a target matches, in the order of the given ids.
type Selection struct {
	// Matched are the minions that certainly match.
	Matched []string
	// Unknown are the minions for which the answer depends on data that is not cached.
	Unknown []string
	// Missing are ids in a list target that do not exist.
	Missing []string
}

// Greedy returns Matched and Unknown together, in no particular order: the minions to publish to and to wait for.
// Salt's CkMinions is greedy in this sense up to the releases of 2025. The latest release of each line ignores minions
// without cached data, which makes Matched alone its answer.
func (s Selection) Greedy() []string {
	return append(append(make([]string, 0, len(s.Matched)+len(s.Unknown)), s.Matched...), s.Unknown...)
}

// Select estimates which of the ids an expression matches (salt.utils.minions.CkMinions). It calls cached for a
// minion only if the expression needs grains or pillar; nil means that nothing is cached.
//
// Unknown is a third truth value: "not G@os:Debian" is unknown for a minion without cached grains, "web1 or
// G@os:Debian" is certain for web1. An id for which the evaluation fails matches nothing. The first such error is
// returned with the selection.
func (e *Expr) Select(ids []string, cached func(id string) Cached) (Selection, error) {
	var sel Selection
	var first error
	var have bool
	var data Cached
	s := Subject{}
	// look fetches the cached data at most once per minion, and only if the expression needs it.
	look := func() Cached {
		if !have {
			have = true
			if data = (Cached{}); cached != nil {
				data = cached(s.ID)
			}
		}
		return data
	}
	s.Grains = func() map[string]any { return look().Grains }
	s.Pillar = func() map[string]any { return look().Pillar }
	r := run{subject: &s, partial: true}
	for _, id := range ids {
		s.ID, have = id, false
		v, err := e.root.eval(&r)
		switch {
		case err != nil:
			if first == nil {
				first = err
			}
		case v == yes:
			sel.Matched = append(sel.Matched, id)
		case v == unknown:
			sel.Unknown = append(sel.Unknown, id)
		}
		// An expression with many parts may compile many patterns, so the caches are limited.
		if len(r.globs)+len(r.regexes) > 1024 {
			r.globs, r.regexes = nil, nil
		}
	}
	sel.Missing = missingIDs(e.root, ids)
	return sel, first
}

// Select compiles a target and estimates which of the ids it matches; see Expr.Select. A target that does not
// compile selects no minion.
func Select(tgtType string, tgt any, delimiter string, nodegroups map[string]any, ids []string, cached func(id string) Cached) (Selection, error) {
	e, err := Compile(tgtType, tgt, delimiter, nodegroups)
	if err != nil {
		return Selection{}, err
	}
	return e.Select(ids, cached)
}

// missingIDs returns the ids in list targets that are not in ids. Lists under "not" do not count, as in Salt.
func missingIDs(n node, ids []string) []string {
	var lists []listNode
	collectLists(n, &lists)
	if len(lists) == 0 {
		return nil
	}
	// Mark each id as known once it is reported, so that it is reported once.
	known := make(map[string]struct{}, len(ids))
	for _, id := range ids {
		known[id] = struct{}{}
	}
	var out []string
	for _, l := range lists {
		for _, id := range l.sortedIDs() {
			if _, ok := known[id]; !ok {
				known[id] = struct{}{}
				out = append(out, id)
			}
		}
	}
	return out
}

// collectLists collects the lists of an expression, except those under "not".
func collectLists(n node, out *[]listNode) {
	switch x := n.(type) {
	case listNode:
		*out = append(*out, x)
	case orNode:
		for _, part := range x {
			collectLists(part, out)
		}
	case andNode:
		for _, part := range x {
			collectLists(part, out)
		}
	}
}
