package keys

import (
	"errors"
	"fmt"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Verdict is what the store says about a sign-in.
type Verdict struct {
	// State is Accepted, Pending, Rejected, or Denied when the id belongs to another key.
	State State
	// Stored says that this sign-in changed the store; a minion that just comes back changes nothing.
	Stored bool
	// Auto says that the policy, not an operator, decided.
	Auto bool
}

// SignIn decides about a minion that shows a public key, and stores what follows from the decision. It is steps 3 to 8 of
// Salt's procedure (salt/channel/server.py, _auth): a rejected id stays rejected; an accepted id must show the same
// key; an unknown or pending one goes where the policy sends it. ErrPendingFull means that the key was not stored because
// too many wait; the verdict is Pending all the same.
func (s *Store) SignIn(id, pubText string, p Policy, autosignGrains map[string]any) (Verdict, error) {
	if err := protocol.ValidID(id); err != nil {
		return Verdict{}, err
	}
	if n := len(pubText); n == 0 || n > maxKeyBytes {
		return Verdict{}, fmt.Errorf("cannot sign in %q: %d bytes are no key", id, n)
	}
	pubText = crypt.CleanKey(pubText)
	s.change.Lock()
	v, change, err := s.signIn(id, pubText, p, autosignGrains)
	s.change.Unlock()
	if change != nil {
		s.forget(id)
		s.tell(*change)
	}
	return v, err
}

func (s *Store) signIn(id, pubText string, p Policy, grains map[string]any) (Verdict, *Change, error) {
	reject := p.rejects(id)
	auto := p.accepts(id, pubText, grains, s.useStub)
	if p.OpenMode {
		return s.signInOpen(id, pubText)
	}
	if _, err := s.back.stat(Rejected.Folder(), id); err == nil {
		return Verdict{State: Rejected}, nil, nil
	} else if !errors.Is(err, ErrNotFound) {
		return Verdict{}, nil, err
	}
	switch known, err := s.text(id, Accepted); {
	case err == nil && known == pubText:
		return Verdict{State: Accepted}, nil, nil
	case err == nil:
		return s.deny(id, pubText, Accepted)
	case !errors.Is(err, ErrNotFound):
		return Verdict{}, nil, err
	}
	known, err := s.text(id, Pending)
	pending := err == nil
	switch {
	case err != nil && !errors.Is(err, ErrNotFound):
		return Verdict{}, nil, err
	case pending && reject:
		if err := s.put(id, Rejected, known); err != nil {
			return Verdict{}, nil, err
		}
		err := s.back.remove(Pending.Folder(), id)
		return Verdict{State: Rejected, Stored: true, Auto: true}, &Change{Act: "reject", ID: id, From: Pending, To: Rejected}, err
	case pending && known != pubText:
		return s.deny(id, pubText, Pending)
	case reject:
		err := s.put(id, Rejected, pubText)
		return Verdict{State: Rejected, Stored: true, Auto: true}, &Change{Act: "reject", ID: id, To: Rejected}, err
	case auto:
		return s.autoAccept(id, pubText, pending)
	case pending:
		return Verdict{State: Pending}, nil, nil
	}
	return s.pend(id, pubText)
}

// signInOpen accepts whatever key comes: open_mode.
func (s *Store) signInOpen(id, pubText string) (Verdict, *Change, error) {
	if known, err := s.text(id, Accepted); err == nil && known == pubText {
		return Verdict{State: Accepted}, nil, nil
	}
	if err := s.put(id, Accepted, pubText); err != nil {
		return Verdict{}, nil, err
	}
	for _, st := range []State{Rejected, Pending} {
		if err := s.back.remove(st.Folder(), id); err != nil {
			return Verdict{}, nil, err
		}
	}
	return Verdict{State: Accepted, Stored: true, Auto: true}, &Change{Act: "accept", ID: id, To: Accepted}, nil
}

func (s *Store) autoAccept(id, pubText string, pending bool) (Verdict, *Change, error) {
	// A key that cannot be used is refused here: accepting it would only lock the id to garbage.
	if _, err := crypt.ParsePublicKey([]byte(pubText)); err != nil {
		return Verdict{State: Rejected}, nil, nil
	}
	if err := s.put(id, Accepted, pubText); err != nil {
		return Verdict{}, nil, err
	}
	c := &Change{Act: "accept", ID: id, To: Accepted}
	if pending {
		c.From = Pending
		if err := s.back.remove(Pending.Folder(), id); err != nil {
			return Verdict{}, nil, err
		}
	}
	return Verdict{State: Accepted, Stored: true, Auto: true}, c, nil
}

func (s *Store) pend(id, pubText string) (Verdict, *Change, error) {
	if s.maxPending > 0 {
		waiting, err := s.back.list(Pending.Folder())
		if err != nil {
			return Verdict{}, nil, err
		}
		if len(waiting) >= s.maxPending {
			return Verdict{State: Pending}, nil, ErrPendingFull
		}
	}
	if err := s.put(id, Pending, pubText); err != nil {
		return Verdict{}, nil, err
	}
	return Verdict{State: Pending, Stored: true}, &Change{Act: "pend", ID: id, To: Pending}, nil
}

// deny keeps the foreign key for the operator to see. Denied keys count against the same bound as pending ones, so that
// nobody fills the disk with them; each id has at most one.
func (s *Store) deny(id, pubText string, from State) (Verdict, *Change, error) {
	v := Verdict{State: Denied}
	if known, err := s.text(id, Denied); err == nil && known == pubText {
		return v, nil, nil
	}
	if err := s.put(id, Denied, pubText); err != nil {
		return Verdict{}, nil, err
	}
	v.Stored = true
	return v, &Change{Act: "denied", ID: id, From: from, To: Denied}, nil
}

func (s *Store) text(id string, st State) (string, error) {
	b, _, err := s.back.read(st.Folder(), id)
	if err != nil {
		return "", err
	}
	return crypt.CleanKey(string(b)), nil
}
