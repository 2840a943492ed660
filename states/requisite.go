package states

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// A status is the outcome of a chunk's requisites (State.check_requisite).
type status uint8

const (
	met status = iota
	unmet
	failed
	watched  // a watched state changed
	nothing  // the target of a prereq would change nothing
	noFail   // onfail, and nothing failed
	noChange // onchanges, and nothing changed
	skipped  // a requisite changed, but asked its dependents to be skipped
	unwatched
)

// What checkTargets saw of the chunks behind the requisites. Bits, because Salt too collects a set first and judges
// it as a whole.
const (
	sawUnmet = 1 << iota
	sawFail
	sawChange
	sawPre
	sawPreMet
	sawMet
	sawOnfail
	sawOnchanges
	sawOnchangesMet
	sawSkip
)

// requisites are listed in the order in which Salt evaluates them. prerequired counts only before the look ahead of
// a prereq.
var requisites = [...]string{"require", "require_any", "watch", "watch_any", "prereq", "onfail", "onfail_any", "onfail_all", "onchanges",
	"onchanges_any", "prerequired"}

// behind holds the chunks behind each of the requisites. It is an array, because one is built for every chunk.
type behind [len(requisites)][]*Low

// byName returns the chunks by the name of their requisite, as mod_watch gets them.
func (b *behind) byName() map[string][]*Low {
	m := make(map[string][]*Low, len(requisites))
	for i, name := range requisites {
		m[name] = b[i]
	}
	return m
}

// requisiteOf returns what one target of a requisite names, and as what. A bare string is an id or name. The
// function of a dotted state is dropped: requisites mean states.
func requisiteOf(req any) (key string, val any, ok bool) {
	switch req := req.(type) {
	case string:
		return "id", req, true
	case *pyobj.Dict:
		for k, v := range req.All() {
			key = pyobj.Str(k)
			if i := strings.IndexByte(key, '.'); i >= 0 {
				key = key[:i]
			}
			return key, v, true
		}
	}
	return "", nil, false
}

// A pattern is the target of a requisite: a state, "id" or "sls", and a name that may be a glob.
type pattern struct {
	key, val string
	glob     bool
}

func newPattern(key, val string) pattern {
	return pattern{key, val, strings.ContainsAny(val, "*?[")}
}

// matchesName reports whether the pattern's name stands for s.
func (p *pattern) matchesName(s string) bool {
	if !p.glob {
		return s == p.val
	}
	return fnmatch.Match(p.val, s)
}

// matchesChunk reports whether the pattern stands for a chunk.
func (p *pattern) matchesChunk(l *Low) bool {
	if p.key == "sls" {
		return p.matchesName(l.sls) || slices.Contains(listItems(l.d.Value("__sls_included_from__")), any(p.val))
	}
	return (p.key == "id" || p.key == l.state) && (p.matchesName(l.name) || p.matchesName(l.id))
}

// A chunkIndex finds chunks by id or name. Without it every requisite would be compared with every chunk. What was
// found for a glob or an SLS file is kept beside them, under the pattern with zero bytes.
type chunkIndex struct {
	chunks []*Low
	by     map[string][]*Low
}

// findTargets returns the chunks that a requisite stands for, in their order; the caller must not change the slice.
// Globs and SLS files need a walk through all chunks, once for each; anything else is found by the index, which is
// built again when the run has other chunks.
func (r *Run) findTargets(p *pattern, chunks []*Low) []*Low {
	x := &r.index
	if len(x.chunks) != len(chunks) || len(chunks) > 0 && &x.chunks[0] != &chunks[0] {
		x.chunks, x.by = chunks, make(map[string][]*Low, len(chunks))
		for _, chunk := range chunks {
			x.by[chunk.id] = append(x.by[chunk.id], chunk)
			if chunk.name != chunk.id {
				x.by[chunk.name] = append(x.by[chunk.name], chunk)
			}
		}
	}
	var found []*Low
	if p.glob || p.key == "sls" {
		at := "\x00" + p.key + "\x00" + p.val
		found, ok := x.by[at]
		if !ok {
			for _, chunk := range chunks {
				if p.matchesChunk(chunk) {
					found = append(found, chunk)
				}
			}
			x.by[at] = found
		}
		return found
	}
	for _, chunk := range x.by[p.val] {
		if p.matchesChunk(chunk) {
			found = append(found, chunk)
		}
	}
	return found
}

// emptySLS reports whether a requisite names a file that rendered to no states. Such a requisite is met: there is
// nothing to wait for.
func (r *Run) emptySLS(key, val string) bool {
	if key != "sls" {
		return false
	}
	for sls := range r.processed {
		if matchesGlob(sls, val) {
			return true
		}
	}
	return false
}

// hasRequisites reports whether a chunk has requisites to evaluate. If the module cannot watch, its watch becomes
// require.
func (r *Run) hasRequisites(low *Low) bool {
	present := false
	for _, w := range [...][2]string{{"watch", "require"}, {"watch_any", "require_any"}} {
		if !low.Has(w[0]) {
			continue
		}
		if r.findFunction(low.state, low.fun).watch {
			present = true
		} else {
			watchIsRequire(low, w[0], w[1])
		}
	}
	return present || slices.ContainsFunc(requisites[:], low.Has)
}

// checkRequisite evaluates the requisites of a chunk. It returns unmet as soon as one of them names no chunk, or a
// chunk that has not run yet. pre is false for the look ahead of a prereq, which must not wait for its own target.
func (r *Run) checkRequisite(ctx context.Context, low *Low, running *results, chunks []*Low, pre bool) (status, *behind, error) {
	if !r.hasRequisites(low) {
		return met, nil, nil
	}
	r.collectParallel(running)
	reqs := &behind{}
	for i, name := range requisites {
		if name == "prerequired" && !pre {
			continue
		}
		list := low.d.Value(name)
		if list == nil {
			continue
		}
		if slices.Contains(r.disabled, name) {
			r.env.Logger().Warn("The " + name + " requisite has been disabled, Ignoring.")
			continue
		}
		for _, req := range listItems(list) {
			key, v, ok := requisiteOf(req)
			if !ok || v == nil {
				continue
			}
			val, text := v.(string)
			if !text && len(chunks) > 0 {
				return 0, nil, renderErrorf("Could not locate requisite of [%s] present in state with name [%s]", key, chunks[0].name)
			}
			p := newPattern(key, val)
			found := r.findTargets(&p, chunks)
			reqs[i] = append(reqs[i], found...)
			if len(found) == 0 && !r.emptySLS(key, val) {
				return unmet, nil, nil
			}
		}
	}
	saw := 0
	for i, name := range requisites {
		saw |= r.checkTargets(ctx, name, reqs[i], running)
	}
	return statusOf(saw), reqs, nil
}

// checkTargets collects the outcomes of the chunks behind one requisite, by the rules of salt/utils/requisite.py.
// The records of a prereq are those of its look ahead. Of the _any forms one target is enough.
func (r *Run) checkTargets(ctx context.Context, name string, chunks []*Low, running *results) int {
	saw := 0
	prereq, prerequired := name == "prereq", name == "prerequired"
	for _, chunk := range chunks {
		tag := chunk.Tag()
		rec := running.get(tag)
		if prereq {
			rec = r.pre[tag]
		} else {
			r.awaitParallel(ctx, running, tag)
		}
		if rec == nil {
			saw |= sawUnmet
			continue
		}
		if pytext.Truth(rec["skip_req"]) {
			saw |= sawSkip
		}
		result := rec["result"]
		switch {
		case strings.HasPrefix(name, "onfail"):
			if result == true {
				saw |= sawOnfail
				continue
			}
		case strings.HasPrefix(name, "onchanges"):
			if result == false || !hasChanges(rec) {
				saw |= sawOnchanges
			} else {
				saw |= sawOnchangesMet
			}
			continue
		case result == false:
			saw |= sawFail
			continue
		}
		if strings.HasPrefix(name, "watch") && hasChanges(rec) {
			saw |= sawChange
			continue
		}
		if prereq && result == nil {
			saw |= sawPreMet
		}
		if (prereq || prerequired) && result != nil {
			if prereq {
				saw |= sawPre
			}
		} else if ran, ok := rec["__state_ran__"].(bool); !ok || ran {
			saw |= sawMet
		}
	}
	if strings.HasSuffix(name, "_any") || name == "onfail" {
		if saw&(sawMet|sawChange) != 0 {
			saw &^= sawFail
		}
		if saw&sawOnchangesMet != 0 {
			saw &^= sawOnchanges | sawFail
		}
		if saw&sawMet != 0 {
			saw &^= sawOnfail
		}
	}
	if strings.HasSuffix(name, "_all") && saw&sawOnfail != 0 {
		saw &^= sawMet
	}
	return saw
}

// statusOf judges the outcomes of all requisites. The order of the cases is Salt's and decides: a failed require
// outweighs an onchanges that holds.
func statusOf(saw int) status {
	has := func(bit int) bool { return saw&bit != 0 }
	switch {
	case has(sawUnmet):
		return unmet
	case has(sawFail):
		return failed
	case has(sawSkip) && (has(sawOnchangesMet) || has(sawPreMet)):
		return skipped
	case has(sawSkip) && has(sawChange):
		return unwatched
	case has(sawPre):
		if has(sawPreMet) {
			return met
		}
		return nothing
	case has(sawOnfail) && !has(sawOnchangesMet):
		return noFail
	case has(sawOnchanges) && !has(sawOnchangesMet):
		return noChange
	case has(sawChange):
		return watched
	case has(sawOnfail):
		return noFail
	}
	return met
}

// lostOrder is the order in which Salt's error text lists requisites that were not found.
var lostOrder = [...]string{"require", "require_any", "watch", "watch_any", "prereq", "onfail", "onfail_any", "onchanges", "onchanges_any",
	"prerequired"}

// findMissing returns the chunks that must run before this one, and the error text for requisites that stand for no
// chunk. last is the chunk that was compared last, because Salt then checks failhard of that one (a loop variable
// that outlives its loop).
func (r *Run) findMissing(low *Low, chunks []*Low, withPrerequired bool) (reqs []*Low, lost string, last *Low) {
	var b strings.Builder
	for _, name := range lostOrder {
		if !low.Has(name) || name == "prerequired" && !withPrerequired {
			continue
		}
		head := false
		for _, req := range listItems(low.d.Value(name)) {
			key, v, ok := requisiteOf(req)
			if !ok {
				continue
			}
			val, text := v.(string)
			var found []*Low
			if text {
				p := newPattern(key, val)
				found = r.findTargets(&p, chunks)
			}
			if len(chunks) > 0 {
				last = chunks[len(chunks)-1]
			}
			for _, chunk := range found {
				switch name {
				case "prereq":
					chunk.Set("__prereq__", true)
				case "prerequired":
					if key != "sls" {
						chunk.Set("__prerequired__", true)
					}
				}
				reqs = append(reqs, chunk)
			}
			if len(found) > 0 || r.emptySLS(key, val) {
				continue
			}
			if !head {
				b.WriteString(strings.Repeat(" ", 19) + name + ":\n")
				head = true
			}
			b.WriteString(strings.Repeat(" ", 23) + key + ": " + pyobj.Str(v) + "\n")
		}
	}
	if b.Len() > 0 {
		lost = "The following requisites were not found:\n" + b.String()
	}
	return reqs, lost, last
}
