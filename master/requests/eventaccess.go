package requests

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
)

// EventRequest is a minion that wants to fire an event.
type EventRequest struct {
	ID string
	// Tenant is the tenant that the minion belongs to, "" for none.
	Tenant string
	Tag    string
}

// Bounds of the tags that are granted to one minion.
const (
	maxGrants     = 256
	maxGrantBytes = 256
)

// grantsKey and tenantGrantsKey are where a minion's record holds the tags that are granted to it. Those of the first
// keep all other minions out, those of the second, which a tenant granted, only the tenant's other minions.
const (
	grantsKey       = "events"
	tenantGrantsKey = "tenant_events"
)

// grantsFor is how long grants are used that another master of the same store may have changed.
const grantsFor = 5 * time.Second

// EventAccess decides which events minions may fire.
type EventAccess interface {
	// MayFire reports whether a minion may fire a tag.
	MayFire(r EventRequest) bool
}

// EventRules returns a test of events by Salt-like rules, the option event_access of /etc/salt/master: the keys are
// shell patterns of minion ids, the values shell patterns of the tags that those minions may fire, in which {id} stands
// for the minion's id. All rules that match a minion count. A "*" also matches slashes.
func EventRules(rules map[string][]string) (func(EventRequest) bool, error) {
	type rule struct {
		id   string
		tags []string
	}
	var list []rule
	for _, id := range slices.Sorted(maps.Keys(rules)) {
		for _, tag := range append([]string{id}, rules[id]...) {
			if tag == "" || !utf8.ValidString(tag) || len(tag) > maxTagBytes {
				return nil, fmt.Errorf("event_access: %.80q of %.80q is not a pattern", tag, id)
			}
		}
		list = append(list, rule{id, slices.Clone(rules[id])})
	}
	return func(q EventRequest) bool {
		for _, r := range list {
			if !fnmatch.Match(r.id, q.ID) {
				continue
			}
			for _, tag := range r.tags {
				if fnmatch.Match(withID(tag, q.ID), q.Tag) {
					return true
				}
			}
		}
		return false
	}, nil
}

// withID puts an id in the place of {id} in a pattern, where its characters stand for themselves.
func withID(pattern, id string) string {
	if !strings.Contains(pattern, "{id}") {
		return pattern
	}
	return strings.ReplaceAll(pattern, "{id}",
		strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(id))
}

// grants are the tags that are granted to minions, for all of them.
type grants struct {
	mu       sync.Mutex // guards the fields below; held while the store is read
	of       map[string][]grant
	byPrefix map[string][]grant // by the part of the pattern before the first wildcard
	lengths  []int              // of the prefixes, ascending
	read     time.Time
}

// grant is a pattern that only some minions may fire.
type grant struct {
	id, pattern string
	// tenant is whose minions are kept out, "*" for all.
	tenant string
}

// checkGrants checks patterns of tags. They must say where the tag begins, so that no grant keeps others from what is
// not meant.
func checkGrants(tags []string) error {
	if len(tags) > maxGrants {
		return fmt.Errorf("more than %d tags are granted to the minion", maxGrants)
	}
	for _, tag := range tags {
		first, rest, ok := strings.Cut(literal(tag), "/")
		switch {
		case len(tag) > maxGrantBytes || !utf8.ValidString(tag) ||
			strings.ContainsFunc(tag, unicode.IsControl):
			return fmt.Errorf("tag %.80q is not usable: it may have %d bytes of printable text",
				tag, maxGrantBytes)
		case !ok || first == "" || rest == "" && literal(tag) != tag:
			return fmt.Errorf("tag %.80q is not usable: it must begin with two parts "+
				"without wildcards, as in app/done", tag)
		case first == "salt" || tagReserved("", tag) != "":
			return fmt.Errorf("tag %.80q is not usable: it is reserved", tag)
		}
	}
	return nil
}

// literal is the part of a pattern before its first wildcard.
func literal(pattern string) string {
	if i := strings.IndexAny(pattern, "*?["); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// grantsOf reads the grants in a minion's record.
func grantsOf(x store.Minion) (out []grant) {
	for key, tenant := range map[string]string{grantsKey: "*", tenantGrantsKey: x.Tenant} {
		for _, tag := range textsOf(x.Spec[key]) {
			out = append(out, grant{x.ID, tag, tenant})
		}
	}
	return out
}

// Granted returns the tags that a minion's record grants to it.
func Granted(x store.Minion) []string {
	return append(textsOf(x.Spec[grantsKey]), textsOf(x.Spec[tenantGrantsKey])...)
}

func textsOf(v any) (out []string) {
	list, _ := payload.List(v)
	for _, x := range list {
		if s, ok := payload.Text(x); ok {
			out = append(out, s)
		}
	}
	return out
}

// index rebuilds what is looked up. Callers hold mu.
func (g *grants) index() {
	g.byPrefix, g.lengths = make(map[string][]grant), nil
	for _, list := range g.of {
		for _, x := range list {
			p := literal(x.pattern)
			if g.byPrefix[p] == nil && !slices.Contains(g.lengths, len(p)) {
				g.lengths = append(g.lengths, len(p))
			}
			g.byPrefix[p] = append(g.byPrefix[p], x)
		}
	}
	slices.Sort(g.lengths)
}

// TakeGrants takes what is granted to one minion now.
func (e *Events) TakeGrants(x store.Minion) {
	g := &e.grants
	g.mu.Lock()
	defer g.mu.Unlock()
	list := grantsOf(x)
	if g.of == nil || len(list) == 0 && len(g.of[x.ID]) == 0 {
		return // it is read at the next event, or nothing changes
	}
	if delete(g.of, x.ID); len(list) > 0 {
		g.of[x.ID] = list
	}
	g.index()
}

// grantedTo reports whether a tag is granted to a minion, and whose minions are kept from it because it is granted to
// others: "*" is all.
func (e *Events) grantedTo(ctx context.Context,
	id, tag string) (own bool, kept []string, err error) {
	g := &e.grants
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil || e.Shared && time.Since(g.read) >= grantsFor {
		list, err := e.Minions.Minions(ctx, store.MinionFilter{})
		if err != nil {
			return false, nil, err
		}
		g.of, g.read = make(map[string][]grant), time.Now()
		for _, x := range list {
			if granted := grantsOf(x); len(granted) > 0 {
				g.of[x.ID] = granted
			}
		}
		g.index()
	}
	for _, n := range g.lengths {
		if n > len(tag) {
			break
		}
		for _, x := range g.byPrefix[tag[:n]] {
			switch {
			case !fnmatch.Match(x.pattern, tag):
			case x.id == id:
				own = true
			default:
				kept = append(kept, x.tenant)
			}
		}
	}
	return own, kept, nil
}

// refusalOf says why a minion may not fire a tag, or returns nothing if it may: the tag is reserved, or granted to
// another minion, or Access refuses it.
func (e *Events) refusalOf(ctx context.Context, id, tag string) string {
	if why := tagReserved(id, tag); why != "" {
		return why
	}
	if ownTag(id, tag) || e.Minions == nil && e.Access == nil {
		return ""
	}
	own, kept, tenant, err := false, []string(nil), "", error(nil)
	if e.Minions != nil {
		own, kept, err = e.grantedTo(ctx, id, tag)
		if err == nil && !own && (len(kept) > 0 || e.Access != nil) {
			own, err = e.grantedNow(ctx, id, tag)
		}
		if err == nil && !own && (len(kept) > 0 || e.Access != nil) {
			tenant, err = e.Tenants.KnownTenant(ctx, id)
		}
	}
	switch {
	case err != nil:
		e.Log.Error("Cannot read which minion may fire an event", "minion", id, "err", err)
		return "the store cannot be read"
	case own:
		return ""
	case slices.Contains(kept, "*"), tenant != "" && slices.Contains(kept, tenant):
		return "only another minion may fire it"
	case e.Access != nil && !e.Access.MayFire(EventRequest{ID: id, Tenant: tenant, Tag: tag}):
		return "event_access does not allow it"
	}
	return ""
}

// grantedNow asks the store what is granted to a minion: another master may just have granted it.
func (e *Events) grantedNow(ctx context.Context, id, tag string) (bool, error) {
	if !e.Shared {
		return false, nil // this master knows
	}
	x, err := e.Minions.Minion(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	matches := func(g grant) bool { return fnmatch.Match(g.pattern, tag) }
	return slices.ContainsFunc(grantsOf(x), matches), err
}

// ownTag reports whether a tag is one of those by which minions report about themselves, as Salt's do. Access is not
// asked about them.
func ownTag(id, tag string) bool {
	switch tag {
	case "minion_start", "minion_ping", "_salt_error":
		return true
	}
	for _, prefix := range []string{"salt/minion/", "salt/beacon/", "salt/engine/",
		"salt/startup/failed/", "brine/minion/"} {
		rest, ok := strings.CutPrefix(tag, prefix)
		if name, _, _ := strings.Cut(rest, "/"); ok && name == id {
			return true
		}
	}
	parts := strings.SplitN(tag, "/", 6)
	return len(parts) > 4 && parts[0] == "salt" && parts[1] == "job" && parts[3] == "prog" &&
		parts[4] == id
}

// Grant grants tags to an announced minion and takes others back: shell patterns, in which "*" also matches slashes,
// and which begin with two parts without wildcards. Nobody else may fire what is granted to a minion, unless it is
// granted to that one as well, and the minion may whatever Access says. What a tenant grants keeps only its own other
// minions out. Grant returns all tags that are granted now by the same side, sorted. store.ErrNotFound if no such
// minion was announced.
func (e *Events) Grant(ctx context.Context, id string, byTenant bool,
	add, remove []string) ([]string, error) {
	if e.Minions == nil {
		return nil, store.ErrNoMinions
	}
	var changed store.Minion
	var failure error
	key := keyOfGrants(byTenant)
	err := store.ChangeMinion(ctx, e.Minions, id, func(x *store.Minion) bool {
		failure = nil
		if x.Version == 0 {
			failure = store.ErrNotFound
			return false
		}
		removed := func(tag string) bool { return slices.Contains(remove, tag) }
		tags := slices.DeleteFunc(append(textsOf(x.Spec[key]), add...), removed)
		failure = SetGrants(x, byTenant, tags)
		changed = *x
		return failure == nil
	})
	if err == nil {
		err = failure
	}
	if err != nil {
		return nil, fmt.Errorf("cannot grant events to minion %.80q: %w", id, err)
	}
	e.TakeGrants(changed)
	return textsOf(changed.Spec[key]), nil
}

// keyOfGrants is where a record has the tags that the operator, or its tenant, has granted.
func keyOfGrants(byTenant bool) string {
	if byTenant {
		return tenantGrantsKey
	}
	return grantsKey
}

// SetGrants writes the tags that the operator, or its tenant, grants into a minion's record, sorted and once each.
func SetGrants(x *store.Minion, byTenant bool, tags []string) error {
	key := keyOfGrants(byTenant)
	tags = slices.Clone(tags)
	slices.Sort(tags)
	tags = slices.Compact(tags)
	if err := checkGrants(tags); err != nil {
		return err
	}
	if delete(x.Spec, key); len(tags) > 0 {
		x.Spec[key] = nested.Anys(tags)
	}
	return nil
}
