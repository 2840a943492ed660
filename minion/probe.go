package minion

import (
	"context"
	"os"
	"time"

	"github.com/brine-salt/brine/minion/keys"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
)

// ConnectionsTag is the event by which a program on the host asks the daemon how it is connected; connectionsAnswer is
// its answer's tag.
const (
	ConnectionsTag    = "brine/connections"
	connectionsAnswer = "brine/connections/answer"
)

// connections is what the daemon says to ConnectionsTag.
func (m *Minion) connections() map[string]any {
	list := []any{}
	for _, l := range m.eachLink() {
		l.mu.Lock()
		st, at := l.state, l.stateAt
		l.mu.Unlock()
		c := map[string]any{"master": st.Master, "state": string(st.State), "since": at.Unix(),
			"answered": int64(0), "error": ""}
		if n := l.answered.Load(); n > 0 {
			c["answered"] = time.Unix(0, n).Unix()
		}
		if st.Err != nil {
			c["error"] = rootCause(st.Err)
		}
		list = append(list, c)
	}
	return map[string]any{"pid": int64(os.Getpid()), "connections": list}
}

// Connection is how the daemon on this host is connected to a master.
type Connection struct {
	Master string
	State  State
	Since  time.Time // when the state began
	// Answered is when the master last answered an authentic request, zero if it never did.
	Answered time.Time
	Err      string // why it is not connected
}

// Connections asks the minion's daemon on this host, through its event sockets, how it is connected. The error says
// that there is no daemon, or none that knows the question, within ctx.
func (m *Minion) Connections(ctx context.Context) (pid int, list []Connection, err error) {
	sockets, err := m.settings().busSockets()
	if err != nil {
		return 0, nil, err
	}
	c, err := ipc.Dial(ctx, sockets)
	if err != nil {
		return 0, nil, err
	}
	defer c.Close()
	asked := time.Time{}
	for {
		// The daemon may notice only now that somebody listens, so it is asked again.
		if time.Since(asked) > connectionsAgain {
			if err := ipc.Fire(ctx, sockets, ConnectionsTag, map[string]any{}); err != nil {
				return 0, nil, err
			}
			asked = time.Now()
		}
		part, stop := context.WithTimeout(ctx, connectionsAgain)
		e, err := c.Next(part)
		stop()
		switch {
		case ctx.Err() != nil:
			return 0, nil, ctx.Err()
		case err != nil && part.Err() != nil:
			c.Close()
			if c, err = ipc.Dial(ctx, sockets); err != nil {
				return 0, nil, err
			}
		case err != nil:
			return 0, nil, err
		case e.Tag == connectionsAnswer:
			return readConnections(e.Data)
		}
	}
}

// connectionsAgain is how long Connections waits for an answer before it asks again.
const connectionsAgain = 300 * time.Millisecond

func readConnections(data map[string]any) (pid int, list []Connection, err error) {
	when := func(v any) time.Time {
		if n, ok := payload.Int(v); ok && n > 0 {
			return time.Unix(n, 0)
		}
		return time.Time{}
	}
	n, _ := payload.Int(data["pid"])
	all, _ := data["connections"].([]any)
	for _, v := range all {
		m, ok := payload.Map(v)
		if !ok {
			continue
		}
		var c Connection
		c.Master, _ = payload.Text(m["master"])
		state, _ := payload.Text(m["state"])
		c.State, c.Since, c.Answered = State(state), when(m["since"]), when(m["answered"])
		c.Err, _ = payload.Text(m["error"])
		list = append(list, c)
	}
	return int(n), list, nil
}

// SignInReport is what one sign-in at a master told.
type SignInReport struct {
	Master string
	Status protocol.SigninStatus // zero if Err is set
	Err    error
	// Fingerprint is that of the master's key, "" if the master showed none that can be trusted.
	Fingerprint string
	// Known reports whether the master's key was known before.
	Known bool
	// Time is the master's clock at the moment At of this host, zero if the master does not tell it.
	Time, At time.Time
}

// SignIn signs in once at each master, as a start of the daemon would, and keeps nothing of it. A key that is missing
// is an error: SignIn makes none. own is the fingerprint of the minion's key.
func (m *Minion) SignIn(ctx context.Context) (own string, list []SignInReport, err error) {
	s := m.settings()
	m.store, err = keys.Open(keys.Options{Dir: s.pkiDir, Owners: ownerIDs(s.optional("user")),
		Permissive: s.truth("permissive_pki_access"), ReadOnly: true})
	if err == nil {
		m.key, err = m.store.Identity()
	}
	if err != nil {
		return "", nil, err
	}
	hash := s.text("hash_type")
	if own, err = m.key.Public().Fingerprint(hash); err != nil {
		return "", nil, err
	}
	m.token = protocol.NewToken()
	for _, a := range s.masters {
		list = append(list, m.signInOnce(ctx, a, hash))
	}
	return own, list, nil
}

func (m *Minion) signInOnce(ctx context.Context, a master, hash string) SignInReport {
	rep := SignInReport{Master: a.name}
	l := newLink(m, []master{a})
	defer l.close()
	dial, err := l.requester(a)
	if err != nil {
		rep.Err = err
		return rep
	}
	defer dial.Close()
	res, err := l.askSignIn(ctx, a, dial, m.settings().authTimeout)
	if err == nil && res.Status == protocol.Accepted {
		err = l.checkPinned(res)
	}
	if rep.Err = err; err != nil {
		return rep
	}
	rep.Status, rep.Known, rep.Time, rep.At = res.Status, !res.FirstContact, res.Time, m.now()
	if res.MasterKey != nil {
		rep.Fingerprint, _ = crypt.FingerprintPEM([]byte(res.MasterKey.Text()), hash)
	}
	return rep
}
