package master

import (
	"context"

	"github.com/brine-salt/brine/master/requests"
	"github.com/brine-salt/brine/master/store"
)

// EventRequest is a minion that wants to fire an event.
type EventRequest = requests.EventRequest

// KeptEvent is an event of an announced minion that the store holds, because its tag is one of EventOptions.Keep.
type KeptEvent = requests.KeptEvent

// EventRules returns an EventOptions.Access from Salt-like rules, the option event_access of /etc/salt/master: the keys
// are shell patterns of minion ids, the values shell patterns of the tags that those minions may fire, in which {id}
// stands for the minion's id. All rules that match a minion count. A "*" also matches slashes.
func EventRules(rules map[string][]string) (func(EventRequest) bool, error) {
	return requests.EventRules(rules)
}

// GrantEvents grants tags to an announced minion and takes others back: shell patterns, in which "*" also matches
// slashes, and which begin with two parts without wildcards. Nobody else may fire what is granted to a minion, unless
// it is granted to that one as well, and the minion may whatever EventOptions.Access says. It returns all tags that
// are granted now, sorted. store.ErrNotFound if no such minion was announced.
func (m *Master) GrantEvents(ctx context.Context, id string,
	add, remove []string) ([]string, error) {
	return m.requests.Events.Grant(ctx, id, false, add, remove)
}

// KeptEvents returns the events of an announced minion that were kept, oldest first, whichever master of the store
// received them: all, or with a tag those that have exactly this one. They stay until ForgetEvents or RevokeMinion.
// store.ErrNotFound if no such minion was announced.
func (m *Master) KeptEvents(ctx context.Context, id, tag string) ([]KeptEvent, error) {
	return m.requests.Events.Kept(ctx, id, tag)
}

// ForgetEvents drops the kept events of a minion that have a tag and returns how many there were.
func (m *Master) ForgetEvents(ctx context.Context, id, tag string) (int, error) {
	return m.requests.Events.ForgetKept(ctx, id, tag)
}

// GrantEvents is Master.GrantEvents for the tenant's minions. It keeps only the tenant's other minions out.
func (t *Tenant) GrantEvents(ctx context.Context, id string,
	add, remove []string) ([]string, error) {
	if err := t.mustOwn(ctx, id); err != nil {
		return nil, err
	}
	return t.m.requests.Events.Grant(ctx, id, true, add, remove)
}

// KeptEvents is Master.KeptEvents, for this tenant's minions.
func (t *Tenant) KeptEvents(ctx context.Context, id, tag string) ([]KeptEvent, error) {
	if err := t.mustOwn(ctx, id); err != nil {
		return nil, err
	}
	return t.m.KeptEvents(ctx, id, tag)
}

// ForgetEvents is Master.ForgetEvents, for this tenant's minions.
func (t *Tenant) ForgetEvents(ctx context.Context, id, tag string) (int, error) {
	if err := t.mustOwn(ctx, id); err != nil {
		return 0, err
	}
	return t.m.ForgetEvents(ctx, id, tag)
}

// mustOwn returns store.ErrNotFound for a minion that is not the tenant's.
func (t *Tenant) mustOwn(ctx context.Context, id string) error {
	tenant, _, err := t.m.tenants.Of(ctx, id)
	if err == nil && tenant != t.name {
		err = store.ErrNotFound
	}
	return err
}
