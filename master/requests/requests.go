package requests

import (
	"context"

	"github.com/brine-salt/brine/master/requests/returns"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Answers combines all handlers of this package.
type Answers struct {
	Mine       Mine
	Files      Files
	Pushed     Pushed
	Pillar     Pillar
	Config     Config
	Events     *Events
	Peers      *Peers
	Revocation Revocation
	Returns    *returns.Taker
	Jobs       Jobs
}

// Answer calls the requested function and returns its result, and whether it exists. An error is logged and
// answered with "", as Salt answers an exception.
func (a *Answers) Answer(ctx context.Context,
	v protocol.Verified) (result any, known bool, err error) {
	f := find(v.Cmd())
	if f == nil {
		return nil, false, nil
	}
	result, err = f(a, ctx, v)
	return result, true, err
}

// ReplyPillar answers _pillar; see Pillar.Reply.
func (a *Answers) ReplyPillar(ctx context.Context, v protocol.Verified, e protocol.Envelope,
	minion *crypt.PublicKey) any {
	return a.Pillar.Reply(ctx, v, e, minion)
}
