package minion

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/minion/beacon"
	"github.com/brine-salt/brine/modules"
)

// maxRefusalEvents is how many events of refused calls may be on their way at once, and refusalTimeout the time
// for each. Further refusals are only counted, in the next event, so that a flood of refused calls cannot fill
// the memory.
const (
	maxRefusalEvents = 64
	refusalTimeout   = 10 * time.Second
)

// refusalEvents counts the events of refused calls.
type refusalEvents struct{ sending, omitted atomic.Int64 }

// restrict calls Options.Restrict, before the minion serves any caller.
func (m *Minion) restrict() error {
	if m.o.Restrict == nil {
		return nil
	}
	err := m.o.Restrict()
	if err == nil || errors.As(err, new(*ExitError)) {
		return err
	}
	return &ExitError{Code: 1, Err: err}
}

// noteRefusal logs a call that the seal refused, and reports it to the master and to programs on this host.
func (m *Minion) noteRefusal(l *link, j *job, fun string, err error) {
	if m.o.Seal == nil {
		return
	}
	data := map[string]any{"fun": fun, "why": err.Error()}
	if j != nil {
		data["jid"] = string(j.JID)
	}
	m.log.Warn("The seal refused a call", "fun", fun, "jid", data["jid"], "err", err)
	tag := "brine/minion/" + m.ID() + "/seal/refused"
	if m.bus.bus != nil {
		m.bus.bus.Publish(tag, data)
	}
	if l == nil || l.local || l.session() == nil {
		return
	}
	if m.refusals.sending.Add(1) > maxRefusalEvents {
		m.refusals.sending.Add(-1)
		m.refusals.omitted.Add(1)
		return
	}
	if n := m.refusals.omitted.Swap(0); n > 0 {
		data["omitted"] = n
	}
	send := func() {
		defer m.refusals.sending.Add(-1)
		ctx, cancel := context.WithTimeout(m.lifetime(), refusalTimeout)
		defer cancel()
		if err := (masterDoor{l}).Fire(ctx, tag, data); err != nil {
			m.log.Warn("Cannot report a refused call to the master", "err", err)
		}
	}
	if m.ctx == nil {
		send() // salt-call ends soon and would not wait
		return
	}
	m.wg.Go(send)
}

// lifetime returns the daemon's context. In salt-call it never ends.
func (m *Minion) lifetime() context.Context {
	if m.ctx == nil {
		return context.Background()
	}
	return m.ctx
}

// refusals is a runner that reports programs that the seal refuses.
type refusals struct {
	modules.Runner
	report func(fun string, err error)
}

// Run implements [modules.Runner].
func (r refusals) Run(ctx context.Context, c modules.Command) (modules.CommandResult, error) {
	res, err := r.Runner.Run(ctx, c)
	var refused *modules.RefusedError
	if errors.As(err, &refused) {
		r.report(refused.Fun, err)
	}
	return res, err
}

// allowedBeacons returns the kinds of beacons that the seal permits as beacon.<kind>. The check is needed
// because the pillar, which belongs to the master, may configure any.
func (m *Minion) allowedBeacons() []*beacon.Kind {
	var list []*beacon.Kind
	for _, k := range m.o.Beacons {
		// guard: seal TestSealedBeacons
		if m.o.Seal.Refuse(modules.Execution, "beacon."+k.Name) == nil {
			list = append(list, k)
		}
	}
	return list
}
