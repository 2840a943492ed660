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

// EventRequest is a minion's request to fire an event.
type EventRequest struct {
	ID string
	// Tenant is the minion's tenant, or "".
	Tenant string
	Tag    string
}

// Limits of the tags granted to one minion.
const (
	maxGrants     = 256
	maxGrantBytes = 256
)

// grantsKey and tenantGrantsKey are the fields of a minion's record with the tags granted to it. Those of the
// first exclude all other minions. Those of the second, granted by a tenant, exclude only the tenant's other
// minions.
const (
	grantsKey       = "events"
	tenantGrantsKey = "tenant_events"
)

// grantsFor is how long grants are cached that another master of the same store may have changed.
const grantsFor = 5 * time.Second

// EventAccess decides which events minions may fire.
type EventAccess interface {
	// MayFire reports whether a minion may fire a tag.
	MayFire(r EventRequest) bool
}

// EventRules returns a check of events by rules like the option event_access of /etc/salt/master. Keys are
// shell patterns of minion ids, values are shell patterns of the tags that those minions may fire. {id} stands
// for the minion's id, and "*" also matches slashes. All rules that match a minion apply.
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

// withID replaces {id} in a pattern by an id, with the id's characters taken literally.
func withID(pattern, id string) string {
	if !strings.Contains(pattern, "{id}") {
		return pattern
	}
	return strings.ReplaceAll(pattern, "{id}",
		strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(id))
}

// grants caches the granted tags of all minions.
type grants struct {
	mu       sync.Mutex // guards the fields below; held while the store is read
	of       map[string][]grant
	byPrefix map[string][]grant // by the pattern's text before its first wildcard
	lengths  []int              // lengths of the prefixes, ascending
	read     time.Time
}

// grant is a pattern of tags that only some minions may fire.
type grant struct {
	id, pattern string
	// tenant is the tenant whose other minions are excluded; "*" means all minions.
	tenant string
}

// checkGrants validates patterns of tags. They must start with literal text, so that no grant excludes minions
// from tags that it does not mean.
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

// literal returns the part of a pattern before its first wildcard.
func literal(pattern string) string {
	if i := strings.IndexAny(pattern, "*?["); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// grantsOf returns the grants in a minion's record.
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

// index rebuilds the look-up table. The caller holds mu.
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

// TakeGrants updates the cached grants of one minion.
func (e *Events) TakeGrants(x store.Minion) {
	g := &e.grants
	g.mu.Lock()
	defer g.mu.Unlock()
	list := grantsOf(x)
	if g.of == nil || len(list) == 0 && len(g.of[x.ID]) == 0 {
		return // read at the next event, or unchanged
	}
	if delete(g.of, x.ID); len(list) > 0 {
		g.of[x.ID] = list
	}
	g.index()
}

// grantedTo reports whether a tag is granted to a minion, and for which tenant ("*" for all) it is excluded
// because the tag is granted to others.
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

// refusalOf returns why a minion may not fire a tag (it is reserved, granted to another minion, or refused by
// Access), or "".
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

// grantedNow reads a minion's grants from the store, because another master may just have changed them.
func (e *Events) grantedNow(ctx context.Context, id, tag string) (bool, error) {
	if !e.Shared {
		return false, nil // the cache is current
	}
	x, err := e.Minions.Minion(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	matches := func(g grant) bool { return fnmatch.Match(g.pattern, tag) }
	return slices.ContainsFunc(grantsOf(x), matches), err
}

// ownTag reports whether a tag is one with which minions report about themselves, as Salt's do. Access does not
// apply to those.
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

// Grant grants tags to an announced minion and revokes others. It returns all tags granted now by the same
// side, sorted. Tags are shell patterns that begin with two parts without wildcards; "*" also matches slashes.
// Other minions may not fire a granted tag unless it is granted to them too; a tenant's grants exclude only its
// own other minions. The minion may fire it whatever Access returns. Grant returns store.ErrNotFound if the
// minion was not announced.
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

// keyOfGrants returns the record's field for tags granted by the operator, or by the minion's tenant.
func keyOfGrants(byTenant bool) string {
	if byTenant {
		return tenantGrantsKey
	}
	return grantsKey
}

// SetGrants stores the tags granted by the operator, or by the tenant, in a minion's record, sorted and without
// duplicates.
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
