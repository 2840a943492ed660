package states

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/fnmatch"
	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
)

// outcome of the requisites of a chunk (State.check_requisite).
type status uint8

const (
	met status = iota
	unmet
	failed
	watched  // a watched state changed
	nothing  // a prereq has nothing to do
	noFail   // onfail, and nothing failed
	noChange // onchanges, and nothing changed
	skipped  // what changed says that others shall not mind
	unwatched
)

// What was seen of the targets.
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

// requisites in the order in which Salt looks at them; prerequired only counts before the first look at a prereq.
var requisites = [...]string{"require", "require_any", "watch", "watch_any", "prereq", "onfail", "onfail_any", "onfail_all", "onchanges",
	"onchanges_any", "prerequired"}

// behind are the chunks behind each of the requisites.
type behind [len(requisites)][]*Low

func (b *behind) byName() map[string][]*Low {
	m := make(map[string][]*Low, len(requisites))
	for i, name := range requisites {
		m[name] = b[i]
	}
	return m
}

// requisite is one target of a requisite: what it names, and as what.
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

// pattern is the target of a requisite: a state, "id" or "sls", and a name that may be a glob.
type pattern struct {
	key, val string
	glob     bool
}

func newPattern(key, val string) pattern {
	return pattern{key, val, strings.ContainsAny(val, "*?[")}
}

func (p *pattern) names(s string) bool {
	if !p.glob {
		return s == p.val
	}
	return fnmatch.Match(p.val, s)
}

// means tells whether a chunk is meant.
func (p *pattern) means(l *Low) bool {
	if p.key == "sls" {
		return p.names(l.sls) || slices.Contains(items(l.d.Value("__sls_included_from__")), any(p.val))
	}
	return (p.key == "id" || p.key == l.state) && (p.names(l.name) || p.names(l.id))
}

// chunkIndex finds chunks by id or name.
type chunkIndex struct {
	chunks []*Low
	by     map[string][]*Low
}

// targets are the chunks that a requisite means, in their order.
func (r *Run) meant(p *pattern, chunks []*Low) []*Low {
	var found []*Low
	if p.glob || p.key == "sls" {
		for _, chunk := range chunks {
			if p.means(chunk) {
				found = append(found, chunk)
			}
		}
		return found
	}
	if x := &r.index; len(x.chunks) != len(chunks) || len(chunks) > 0 && &x.chunks[0] != &chunks[0] {
		x.chunks, x.by = chunks, make(map[string][]*Low, len(chunks))
		for _, chunk := range chunks {
			x.by[chunk.id] = append(x.by[chunk.id], chunk)
			if chunk.name != chunk.id {
				x.by[chunk.name] = append(x.by[chunk.name], chunk)
			}
		}
	}
	for _, chunk := range r.index.by[p.val] {
		if p.means(chunk) {
			found = append(found, chunk)
		}
	}
	return found
}

// emptySLS tells whether a requisite names a file that has no states: it is met.
func (r *Run) emptySLS(key, val string) bool {
	if key != "sls" {
		return false
	}
	for sls := range r.processed {
		if globs(sls, val) {
			return true
		}
	}
	return false
}

// hasRequisites tells whether there is anything to look at. Where the module cannot watch, watch becomes require.
func (r *Run) hasRequisites(low *Low) bool {
	present := false
	for _, w := range [...][2]string{{"watch", "require"}, {"watch_any", "require_any"}} {
		if !low.Has(w[0]) {
			continue
		}
		if r.find(low.state, low.fun).watch {
			present = true
		} else {
			watchIsRequire(low, w[0], w[1])
		}
	}
	return present || slices.ContainsFunc(requisites[:], low.Has)
}

// checkRequisite looks at the states that a chunk waits for.
func (r *Run) checkRequisite(ctx context.Context, low *Low, running *results, chunks []*Low, pre bool) (status, *behind, error) {
	if !r.hasRequisites(low) {
		return met, nil, nil
	}
	r.reconcile(running)
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
		for _, req := range items(list) {
			key, v, ok := requisiteOf(req)
			if !ok || v == nil {
				continue
			}
			val, text := v.(string)
			if !text && len(chunks) > 0 {
				return 0, nil, renderErrorf("Could not locate requisite of [%s] present in state with name [%s]", key, chunks[0].name)
			}
			p := newPattern(key, val)
			found := r.meant(&p, chunks)
			reqs[i] = append(reqs[i], found...)
			if len(found) == 0 && !r.emptySLS(key, val) {
				return unmet, nil, nil
			}
		}
	}
	saw := 0
	for i, name := range requisites {
		saw |= r.look(ctx, name, reqs[i], running)
	}
	return judge(saw), reqs, nil
}

// look collects what the targets of one requisite came to.
func (r *Run) look(ctx context.Context, name string, chunks []*Low, running *results) int {
	saw := 0
	prereq, prerequired := name == "prereq", name == "prerequired"
	for _, chunk := range chunks {
		tag := chunk.Tag()
		rec := running.get(tag)
		if prereq {
			rec = r.pre[tag]
		} else {
			r.await(ctx, running, tag)
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
			if result == false || !changed(rec) {
				saw |= sawOnchanges
			} else {
				saw |= sawOnchangesMet
			}
			continue
		case result == false:
			saw |= sawFail
			continue
		}
		if strings.HasPrefix(name, "watch") && changed(rec) {
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

func judge(saw int) status {
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

// lostOrder is the order in which missing requisites are listed.
var lostOrder = [...]string{"require", "require_any", "watch", "watch_any", "prereq", "onfail", "onfail_any", "onchanges", "onchanges_any",
	"prerequired"}

// missing collects the chunks that must run before this one, and the text that lists what is not there at all. last is the
// chunk that was looked at last, which Salt asks about failhard afterwards.
func (r *Run) missing(low *Low, chunks []*Low, withPrerequired bool) (reqs []*Low, lost string, last *Low) {
	var b strings.Builder
	for _, name := range lostOrder {
		if !low.Has(name) || name == "prerequired" && !withPrerequired {
			continue
		}
		head := false
		for _, req := range items(low.d.Value(name)) {
			key, v, ok := requisiteOf(req)
			if !ok {
				continue
			}
			val, text := v.(string)
			var found []*Low
			if text {
				p := newPattern(key, val)
				found = r.meant(&p, chunks)
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
