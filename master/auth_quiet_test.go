package master_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol"
)

// TestRefusedMinionsAreLoggedOnce checks that repeated refusals are logged once an hour for each minion and reason.
func TestRefusedMinionsAreLoggedOnce(t *testing.T) {
	var log testlog.Buffer
	o := announcing()
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	r := serve(t, o)
	token := ensure(t, r, master.MinionSpec{ID: "m"})
	m := r.newMinion("m", 1)
	if got := m.signInWith(protocol.Signin{JoinToken: token}); got != protocol.Accepted {
		t.Fatal(got)
	}
	if err := r.RevokeMinion(within(t), "m"); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if got := m.signInWith(protocol.Signin{JoinToken: token}); got == protocol.Accepted {
			t.Fatal(got)
		}
	}
	if n := strings.Count(log.String(), "Minion may not join"); n != 1 {
		t.Errorf("%d lines about the token\n%s", n, log.String())
	}
	other := r.newMinion("m", 2)
	for range 5 {
		if got := other.signInWith(protocol.Signin{}); got == protocol.Accepted {
			t.Fatal(got)
		}
	}
	if n := strings.Count(log.String(), "Sign-in with another key"); n != 1 {
		t.Errorf("%d lines about another key\n%s", n, log.String())
	}
}
