package minion

import (
	"context"
	"os"
	"time"

	"github.com/brine-salt/brine/minion/connections"
	"github.com/brine-salt/brine/minion/keys"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// connections returns the state of the daemon's connections, in the form of its event.
func (m *Minion) connections() map[string]any {
	list := []any{}
	for _, l := range m.eachLink() {
		l.mu.Lock()
		st, at := l.state, l.stateAt
		l.mu.Unlock()
		c := map[string]any{"master": st.Master, "state": string(st.State), "since": at.Unix(),
			"answered": l.answered.Load() / int64(time.Second), "pinged": l.pinged.Load(),
			"error": ""}
		if st.Err != nil {
			c["error"] = rootCause(st.Err)
		}
		list = append(list, c)
	}
	return map[string]any{"pid": int64(os.Getpid()), "connections": list}
}

// Connections asks the daemon on this host for its connections, through its event sockets. It returns an error
// if no daemon answers before ctx ends.
func (m *Minion) Connections(ctx context.Context) (pid int,
	list []connections.Connection, err error) {
	sockets, err := m.settings().busSockets()
	if err != nil {
		return 0, nil, err
	}
	return connections.Ask(ctx, sockets)
}

// SignInReport is the outcome of one sign-in at a master.
type SignInReport struct {
	Master string
	Status protocol.SigninStatus // zero if Err is set
	Err    error
	// Fingerprint is that of the master's key, or empty if the master showed no key that can be trusted.
	Fingerprint string
	// Known reports whether the master's key was cached before.
	Known bool
	// Time is the master's clock when this host's was At. It is zero if the master does not send it.
	Time, At time.Time
}

// SignIn signs in once at each master, as the daemon does at its start, and stores nothing. own is the
// fingerprint of the minion's key. It returns an error if the minion has no key yet, because it does not create
// one.
func (m *Minion) SignIn(ctx context.Context) (own string, list []SignInReport, err error) {
	s := m.settings()
	m.opening.Lock()
	if m.opened {
		m.opening.Unlock()
	} else {
		defer m.opening.Unlock() // Run and Call open the keys for writing afterwards
		m.store, err = keys.Open(keys.Options{Dir: s.pkiDir, Owners: ownerIDs(s.optional("user")),
			Permissive: s.truth("permissive_pki_access"), ReadOnly: true})
		if err == nil {
			m.key, err = m.store.Identity()
		}
		if err != nil {
			return "", nil, err
		}
		m.token = protocol.NewToken()
	}
	hash := s.text("hash_type")
	if own, err = m.key.Public().Fingerprint(hash); err != nil {
		return "", nil, err
	}
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
