package keys

import (
	"errors"
	"fmt"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// A Verdict is the store's decision about a sign-in.
type Verdict struct {
	// State is Accepted, Pending, Rejected, or Denied if the id belongs to another key.
	State State
	// Stored is true if this sign-in changed the store; a minion that returns changes nothing.
	Stored bool
	// Auto is true if the policy, not an operator, decided.
	Auto bool
}

// SignIn decides about a minion that shows a public key, and stores the result. It is steps 3 to 8 of Salt's
// procedure (salt/channel/server.py, _auth): a rejected id stays rejected, an accepted id must show the same key,
// and the policy decides about an unknown or pending one. ErrPendingFull means that the key was not stored because
// too many are pending; the verdict is still Pending. Keys whose minions stopped signing in then make room for
// later attempts.
func (s *Store) SignIn(id, pubText string, p Policy, autosignGrains map[string]any) (Verdict, error) {
	// guard: CVE-2025-22241 @key-ids TestT1HostileIDs
	if err := protocol.ValidID(id); err != nil {
		return Verdict{}, err
	}
	if n := len(pubText); n == 0 || n > maxKeyBytes {
		return Verdict{}, fmt.Errorf("cannot sign in %q: %d bytes are not a public key", id, n)
	}
	pubText = crypt.CleanKey(pubText)
	reject := p.Rejects(id)
	auto := p.acceptsKey(id, pubText, autosignGrains, s.useStub)
	var verdict Verdict
	err := s.editKeys(id, func(v view) (change *Change, err error) {
		at := attempt{s: s, view: v, id: id, pubText: pubText}
		if p.OpenMode {
			verdict, change, err = at.signInOpen()
		} else {
			verdict, change, err = at.signIn(reject, auto, p.Proven)
		}
		return change, err
	})
	return verdict, err
}

// An attempt is a sign-in that is being decided.
type attempt struct {
	s *Store
	view
	id, pubText string
}

func (a attempt) signIn(reject, auto, proven bool) (Verdict, *Change, error) {
	id, pubText := a.id, a.pubText
	if _, err := a.stat(Rejected.Folder(), id); err == nil {
		return Verdict{State: Rejected}, nil, nil
	} else if !errors.Is(err, ErrNotFound) {
		return Verdict{}, nil, err
	}
	switch known, err := a.keyText(Accepted); {
	case err == nil && known == pubText:
		return Verdict{State: Accepted}, nil, nil
	case err == nil:
		return a.denyKey(Accepted)
	case !errors.Is(err, ErrNotFound):
		return Verdict{}, nil, err
	}
	known, err := a.keyText(Pending)
	pending := err == nil
	switch {
	case err != nil && !errors.Is(err, ErrNotFound):
		return Verdict{}, nil, err
	case pending && reject:
		if err := putKey(a, id, Rejected, known); err != nil {
			return Verdict{}, nil, err
		}
		err := a.remove(Pending.Folder(), id)
		return Verdict{State: Rejected, Stored: true, Auto: true}, &Change{Act: "reject", ID: id, From: Pending, To: Rejected}, err
	case pending && known != pubText && !proven:
		return a.denyKey(Pending)
	case reject:
		err := putKey(a, id, Rejected, pubText)
		return Verdict{State: Rejected, Stored: true, Auto: true}, &Change{Act: "reject", ID: id, To: Rejected}, err
	case auto:
		return a.autoAccept(pending)
	case pending:
		a.s.pending.touch(a.s, id)
		return Verdict{State: Pending}, nil, nil
	}
	return a.makePending()
}

// signInOpen accepts any key: open_mode.
func (a attempt) signInOpen() (Verdict, *Change, error) {
	if known, err := a.keyText(Accepted); err == nil && known == a.pubText {
		return Verdict{State: Accepted}, nil, nil
	}
	if err := putKey(a, a.id, Accepted, a.pubText); err != nil {
		return Verdict{}, nil, err
	}
	for _, st := range []State{Rejected, Pending} {
		if err := a.remove(st.Folder(), a.id); err != nil {
			return Verdict{}, nil, err
		}
	}
	return Verdict{State: Accepted, Stored: true, Auto: true}, &Change{Act: "accept", ID: a.id, To: Accepted}, nil
}

func (a attempt) autoAccept(pending bool) (Verdict, *Change, error) {
	// An unusable key is refused here: accepting it would only lock the id.
	if _, err := crypt.ParsePublicKey([]byte(a.pubText)); err != nil {
		return Verdict{State: Rejected}, nil, nil
	}
	if err := putKey(a, a.id, Accepted, a.pubText); err != nil {
		return Verdict{}, nil, err
	}
	c := &Change{Act: "accept", ID: a.id, To: Accepted}
	if pending {
		c.From = Pending
		if err := a.remove(Pending.Folder(), a.id); err != nil {
			return Verdict{}, nil, err
		}
	}
	return Verdict{State: Accepted, Stored: true, Auto: true}, c, nil
}

func (a attempt) makePending() (Verdict, *Change, error) {
	if a.s.maxPending > 0 {
		free, err := a.s.pending.reserve(a.s, a.id)
		if err != nil {
			return Verdict{}, nil, err
		}
		// guard: pending-flood TestPendingFlood
		if !free {
			return Verdict{State: Pending}, nil, ErrPendingFull
		}
		defer a.s.pending.leave()
	}
	if err := putKey(a, a.id, Pending, a.pubText); err != nil {
		return Verdict{}, nil, err
	}
	return Verdict{State: Pending, Stored: true}, &Change{Act: "pend", ID: a.id, To: Pending}, nil
}

// denyKey stores the foreign key for the operator. Denied keys count against the same limit as pending ones, so
// that a flood cannot fill the disk with them; each id has at most one.
func (a attempt) denyKey(from State) (Verdict, *Change, error) {
	v := Verdict{State: Denied}
	if known, err := a.keyText(Denied); err == nil && known == a.pubText {
		return v, nil, nil
	}
	if err := putKey(a, a.id, Denied, a.pubText); err != nil {
		return Verdict{}, nil, err
	}
	v.Stored = true
	return v, &Change{Act: "denied", ID: a.id, From: from, To: Denied}, nil
}

func (a attempt) keyText(st State) (string, error) {
	b, _, err := a.read(st.Folder(), a.id)
	if err != nil {
		return "", err
	}
	return crypt.CleanKey(string(b)), nil
}
