package master

import (
	"context"

	"github.com/brine-salt/brine/master/requests"
	"github.com/brine-salt/brine/master/store"
)

// EventRequest is a minion's request to fire an event.
type EventRequest = requests.EventRequest

// KeptEvent is a stored event of an announced minion. Its tag matches one of EventOptions.Keep.
type KeptEvent = requests.KeptEvent

// EventRules returns an EventOptions.Access from rules like the option event_access of /etc/salt/master. Keys
// are shell patterns of minion ids, values are shell patterns of the tags that those minions may fire. {id}
// stands for the minion's id, and "*" also matches slashes. All rules that match a minion apply.
func EventRules(rules map[string][]string) (func(EventRequest) bool, error) {
	return requests.EventRules(rules)
}

// GrantEvents grants event tags to an announced minion and revokes others. It returns all tags granted now,
// sorted. Tags are shell patterns that begin with two parts without wildcards; "*" also matches slashes. Other
// minions may not fire a granted tag unless it is granted to them too. The minion may fire it whatever
// EventOptions.Access returns. It returns store.ErrNotFound if the minion was not announced.
func (m *Master) GrantEvents(ctx context.Context, id string,
	add, remove []string) ([]string, error) {
	return m.requests.Events.Grant(ctx, id, false, add, remove)
}

// KeptEvents returns an announced minion's stored events, oldest first, whichever master of the store received
// them. With a tag it returns only events with exactly that tag. They stay until ForgetEvents or RevokeMinion.
// It returns store.ErrNotFound if the minion was not announced.
func (m *Master) KeptEvents(ctx context.Context, id, tag string) ([]KeptEvent, error) {
	return m.requests.Events.Kept(ctx, id, tag)
}

// ForgetEvents deletes a minion's stored events with a tag and returns how many there were.
func (m *Master) ForgetEvents(ctx context.Context, id, tag string) (int, error) {
	return m.requests.Events.ForgetKept(ctx, id, tag)
}

// GrantEvents is Master.GrantEvents for the tenant's minions. The tags are reserved only against the tenant's
// other minions.
func (t *Tenant) GrantEvents(ctx context.Context, id string,
	add, remove []string) ([]string, error) {
	if err := t.mustOwn(ctx, id); err != nil {
		return nil, err
	}
	return t.m.requests.Events.Grant(ctx, id, true, add, remove)
}

// KeptEvents is Master.KeptEvents for the tenant's minions.
func (t *Tenant) KeptEvents(ctx context.Context, id, tag string) ([]KeptEvent, error) {
	if err := t.mustOwn(ctx, id); err != nil {
		return nil, err
	}
	return t.m.KeptEvents(ctx, id, tag)
}

// ForgetEvents is Master.ForgetEvents for the tenant's minions.
func (t *Tenant) ForgetEvents(ctx context.Context, id, tag string) (int, error) {
	if err := t.mustOwn(ctx, id); err != nil {
		return 0, err
	}
	return t.m.ForgetEvents(ctx, id, tag)
}

// mustOwn returns store.ErrNotFound if the minion does not belong to the tenant.
func (t *Tenant) mustOwn(ctx context.Context, id string) error {
	tenant, _, err := t.m.tenants.Of(ctx, id)
	if err == nil && tenant != t.name {
		err = store.ErrNotFound
	}
	return err
}
