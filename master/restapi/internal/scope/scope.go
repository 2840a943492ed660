// Package scope defines what a caller sees of the master: all of it, or one tenant's part. Handlers use a
// [View], so they need not distinguish the two.
package scope

import (
	"context"
	"iter"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/bootstrap"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/protocol/events"
)

// View is a caller's view of the master: all of it, or a tenant's part.
type View interface {
	Run(ctx context.Context, j master.Job) (map[string]master.Result, error)
	Submit(ctx context.Context, j master.Job) (*master.Run, error)
	Publish(ctx context.Context, j master.Job) (master.Published, error)
	Match(ctx context.Context, tgtType string, tgt any) ([]string, error)
	EnsureMinion(ctx context.Context, s master.MinionSpec) (bootstrap.Bootstrap, error)
	RevokeMinion(ctx context.Context, id string) error
	Announced(ctx context.Context) ([]master.Announced, error)
	GrantEvents(ctx context.Context, id string, add, remove []string) ([]string, error)
	KeptEvents(ctx context.Context, id, tag string) ([]master.KeptEvent, error)
	ForgetEvents(ctx context.Context, id, tag string) (int, error)
	Present(ctx context.Context) ([]string, error)
	PlaceOrder(ctx context.Context, o master.Order) (master.Outcome, error)
	Order(ctx context.Context, id string) (master.Order, error)
	Orders(ctx context.Context, f master.OrderFilter) ([]master.Order, error)
	AwaitOrder(ctx context.Context, id string) (master.Outcome, error)
	OrderOutcome(ctx context.Context, id string) (master.Outcome, error)
	CancelOrder(ctx context.Context, id string) (master.Outcome, error)
	FollowMarked(ctx context.Context, every time.Duration, cursor string,
		tags ...string) iter.Seq[events.Logged]
}

// Whole is the view of callers without a tenant.
type Whole struct{ *master.Master }

func (w Whole) Match(_ context.Context, tgtType string, tgt any) ([]string, error) {
	return w.Master.Match(tgtType, tgt)
}

func (w Whole) Announced(ctx context.Context) ([]master.Announced, error) {
	return w.Master.Announced(ctx, "")
}

func (w Whole) Present(context.Context) ([]string, error) { return w.Master.Present(), nil }

// Owner returns a name for who placed an order. It includes the log-in system, because systems may use one name
// for different people.
func Owner(t eauth.Token) string { return t.EAuth + "/" + t.Name }
