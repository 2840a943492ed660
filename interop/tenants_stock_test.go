//go:build interop

package interop

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol/target"
)

// TestTenantsOfStockMinions checks stock minions of several tenants, one for each line of Salt, under one master.
// Each minion must have the key of its tenant, run the jobs of its tenant for any target and those of the operator,
// and read nothing of the other tenants.
func TestTenantsOfStockMinions(t *testing.T) {
	t.Parallel()
	m := embedded(t, master.Options{Network: master.NetworkOptions{Advertise: []string{"127.0.0.1"}}})
	s := &site{dir: tempDir(t), transport: "zeromq", pub: portOf(m.PublishAddr()), ret: portOf(m.RequestAddr())}
	lines := []string{"3006", "3007", "3008"}
	views, minions := map[string]*master.Tenant{}, map[string]*process{}
	for _, line := range lines {
		view, err := m.Tenant("t" + line)
		if err != nil {
			t.Fatal(err)
		}
		b, err := view.EnsureMinion(soon(t), master.MinionSpec{ID: "m" + line, KeyPair: true})
		if err != nil {
			t.Fatal(err)
		}
		conf := s.minion(t, "m"+line, "")
		pki := filepath.Join(s.dir, "m"+line, "pki")
		if err := errors.Join(os.MkdirAll(pki, 0o700), os.WriteFile(pki+"/minion.pem", []byte(b.PrivateKey), 0o400), os.WriteFile(pki+"/minion.pub", []byte(b.PublicKey), 0o644)); err != nil {
			t.Fatal(err)
		}
		views[line], minions[line] = view, start(t, stock(t, line, "salt-minion"), "-c", conf, "-l", "trace")
	}
	await(t, "all are known by name", func() bool { return m.Named() == len(lines) })
	for _, line := range lines {
		id, word := "m"+line, "only-for-"+line
		for _, j := range []master.Job{{Tgt: "*"}, {Tgt: "role:tester", TgtType: target.TypeGrain}, {Tgt: []any{"m3006", "m3007", "m3008"}, TgtType: target.TypeList}} {
			j.Fun, j.Args = "test.echo", []any{word}
			res, err := views[line].Run(soon(t), j)
			if err != nil {
				t.Fatal(line, j.Tgt, err)
			}
			if res[id].Return != word {
				t.Errorf("%s at %v: %+v", line, j.Tgt, res)
			}
			for other, r := range res {
				if other != id && r.Status == master.Returned {
					t.Errorf("%s at %v: %s answers, too", line, j.Tgt, other)
				}
			}
		}
	}
	res, err := m.Run(soon(t), master.Job{Fun: "test.echo", Args: []any{"for-all"}, Tgt: "*"})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if res["m"+line].Return != "for-all" {
			t.Errorf("the operator's job: %+v", res["m"+line])
		}
		log := read(t, minions[line].log)
		for _, other := range lines {
			if known := strings.Contains(log, "only-for-"+other); known != (other == line) {
				t.Errorf("%s knows of the job of %s: %v", line, other, known)
			}
		}
	}
}
