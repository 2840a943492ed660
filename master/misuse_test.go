package master_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
)

// TestNoAddressBeforeServe checks that a master that does not listen has no address, whether it has not begun, could
// not begin, or was closed.
func TestNoAddressBeforeServe(t *testing.T) {
	none := func(name string, m *master.Master) {
		t.Helper()
		if p, r := m.PublishAddr(), m.RequestAddr(); p != nil || r != nil {
			t.Errorf("%s: %v %v", name, p, r)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	o := master.Options{Network: master.Loopback()}
	o.Network.PublishPort = taken.Addr().(*net.TCPAddr).Port
	m, err := master.New(o)
	if err != nil {
		t.Fatal(err)
	}
	none("new", m)
	if err := m.Serve(t.Context()); err == nil {
		t.Error("it listens on a port that is in use")
	}
	none("failed", m)
	if m, err = master.New(master.Options{Network: master.Loopback()}); err != nil {
		t.Fatal(err)
	}
	m.Close()
	none("closed", m)
}

// TestAnnouncementsThatCannotWork checks that EnsureMinion refuses what no machine could use.
func TestAnnouncementsThatCannotWork(t *testing.T) {
	m, err := master.New(master.Options{Network: master.Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	here := []string{"salt.example"}
	ports := map[string]any{"master_port": 4506, "publish_port": 4505}
	for _, c := range []struct {
		name string
		s    master.MinionSpec
		want string
	}{
		{"ports", master.MinionSpec{Masters: here}, "call AwaitReady first"},
		{"own ports", master.MinionSpec{Masters: here, Config: ports}, ""},
		{"no master", master.MinionSpec{Config: ports}, "Network.Advertise"},
		{"empty master", master.MinionSpec{Masters: []string{"a", ""}, Config: ports}, `"" is not the address`},
		{"two in one", master.MinionSpec{Masters: []string{"a b"}, Config: ports}, `"a b" is not the address`},
		{"tenant", master.MinionSpec{Masters: here, Config: ports, Tenant: "a/b"}, "contains a slash"},
		{"term", master.MinionSpec{Masters: here, Config: ports, TokenTTL: -time.Second}, "TokenTTL -1s is negative"},
	} {
		c.s.ID = "db-7"
		_, err := m.EnsureMinion(t.Context(), c.s)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %s", c.name, err, c.want)
		}
	}
}
