//go:build interop

package interop

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// noticed is the time within which the master must report minions on a dead path as gone: half a minute, and a margin
// for a slow machine.
const noticed = 45 * time.Second

// TestPresence checks that the master reports the connected minions, stock's and brine's, on every transport. It must
// notice within half a minute that packets are lost on their path, and then that the path works again.
func TestPresence(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	type party struct {
		*site
		bus *bus
		ids []string
	}
	var all []*party
	for _, transport := range []string{"zeromq", "tcp", "ws"} {
		p := &party{site: newSite(t, transport, "auto_accept: True\npresence_events: True")}
		b, err := os.ReadFile(p.config())
		if err != nil {
			t.Fatal(err)
		}
		write(t, p.config(), strings.Replace(string(b), "interface: 127.0.0.1", "interface: "+oldAddress, 1))
		start(t, "ip", n.in(n.master, ours("salt-master"), "-c", p.dir+"/etc")...)
		await(t, "the master is there", func() bool { return exists(p.dir + "/run/master_event_pub.ipc") })
		p.bus = listen(t, "3007", p.config())
		for program, id := range map[string]string{stock(t, "3007", "salt-minion"): "stock-" + transport, ours("salt-minion"): "ours-" + transport} {
			conf := p.minion(t, id, "")
			write(t, conf+"/minion.d/far.conf", "master: "+oldAddress+"\ntcp_keepalive_idle: 3\ntcp_keepalive_cnt: 3\ntcp_keepalive_intvl: 2\n")
			start(t, "ip", n.in(n.minion, program, "-c", conf)...)
			p.ids = append(p.ids, id)
		}
		all = append(all, p)
	}
	// there returns how many of a party's minions are in the last list.
	there := func(p *party) int {
		list, _ := p.bus.last("salt/presence/present").Data["present"].([]any)
		n := 0
		for _, id := range p.ids {
			if slices.Contains(list, any(id)) {
				n++
			}
		}
		return n
	}
	// told reports whether the changes since a mark named all of a party's minions.
	told := func(p *party, mark int, kind string) bool {
		var list []any
		for _, e := range p.bus.since(mark) {
			if ids, ok := e.Data[kind].([]any); ok && e.Tag == "salt/presence/change" {
				list = append(list, ids...)
			}
		}
		return !slices.ContainsFunc(p.ids, func(id string) bool { return !slices.Contains(list, any(id)) })
	}
	for _, p := range all {
		await(t, "both are there over "+p.transport, func() bool { return there(p) == 2 })
	}
	// With a wrong link-layer address all packets are lost: no connection ends, and there is no error.
	cut, marks := time.Now(), make([]int, len(all))
	for i, p := range all {
		marks[i] = p.bus.mark()
	}
	n.ip("-n S neigh replace 10.213.7.1 lladdr 02:00:00:00:00:99 dev scable nud permanent")
	n.ip("-n M neigh replace " + oldAddress + " lladdr 02:00:00:00:00:99 dev mcable nud permanent")
	for i, p := range all {
		await(t, "both are missed over "+p.transport, func() bool { return there(p) == 0 && told(p, marks[i], "lost") })
		took := time.Since(cut).Round(time.Second)
		t.Logf("%s: noticed %v after the path died", p.transport, took)
		if took > noticed {
			t.Errorf("%s: noticed %v after the path died, later than %v", p.transport, took, noticed)
		}
		marks[i] = p.bus.mark()
	}
	n.ip("-n S neigh del 10.213.7.1 dev scable")
	n.ip("-n M neigh del " + oldAddress + " dev mcable")
	// A stock minion over ws does not connect again, so its connection must have survived.
	for i, p := range all {
		await(t, "both are back over "+p.transport, func() bool { return there(p) == 2 && told(p, marks[i], "new") })
	}
}
