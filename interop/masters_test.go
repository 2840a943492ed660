//go:build interop

package interop

import (
	"fmt"
	"testing"
)

// TestSeveralMasters runs a minion of brine with two stock masters at once, and another one that uses one of two. One
// master is killed, the other one continues, and the first one returns.
func TestSeveralMasters(t *testing.T) {
	t.Parallel()
	one := startStockMaster(t, "3007", "zeromq", "auto_accept: True")
	two := startStockMaster(t, "3007", "zeromq", "auto_accept: True")
	// The masters of one minion share their key, as Salt requires.
	two.down(false)
	for _, file := range []string{"master.pem", "master.pub"} {
		copyFile(t, one.dir+"/pki/"+file, two.dir+"/pki/"+file)
	}
	two.up()
	list := fmt.Sprintf("master: ['127.0.0.1:%d', '127.0.0.1:%d']\npublish_port: 4506\n", one.ret, two.ret)
	hot, spare := one.minion(t, "hot", ""), one.minion(t, "spare", "")
	write(t, hot+"/minion.d/masters.conf", list)
	write(t, spare+"/minion.d/masters.conf", list+"master_type: failover\nmaster_failback: True\nmaster_alive_interval: 2\nauth_timeout: 3\n")
	start(t, ours("salt-minion"), "-c", hot)
	start(t, ours("salt-minion"), "-c", spare)
	one.bus.wait(0, "salt/minion/hot/start")
	two.bus.wait(0, "salt/minion/hot/start")
	one.bus.wait(0, "salt/minion/spare/start")
	pings := func(m *stockMaster, id string) bool {
		return m.run(query{"tgt": id, "fun": "test.ping", "timeout": 4})[id].Ret == true
	}
	await(t, "the hot minion answers both masters", func() bool { return pings(one, "hot") && pings(two, "hot") })
	await(t, "the spare one answers the first", func() bool { return pings(one, "spare") })

	mark := two.bus.mark()
	one.down(true)
	if !pings(two, "hot") {
		t.Error("the hot minion has lost its second master with the first")
	}
	two.bus.wait(mark, "salt/minion/spare/start")
	await(t, "the spare one answers the second", func() bool { return pings(two, "spare") })

	one.up()
	await(t, "the hot minion is back at the first", func() bool { return pings(one, "hot") })
	await(t, "the spare one is back at the first", func() bool { return pings(one, "spare") })
	if !pings(two, "hot") {
		t.Error("the hot minion does not answer the second any more")
	}
}

// TestExternalAuth runs jobs as a user of a stock master's external_auth, with a password and with a token. The
// minion must see the user.
func TestExternalAuth(t *testing.T) {
	t.Parallel()
	m := startStockMaster(t, "3007", "zeromq", "auto_accept: True\nexternal_auth:\n  sharedsecret:\n    ann:\n      - ours:\n        - test.*\nsharedsecret: hush\n")
	start(t, ours("salt-minion"), "-c", m.minion(t, "ours", ""))
	m.bus.wait(0, "salt/minion/ours/start")
	await(t, "a ping", func() bool { return m.run(query{"tgt": "ours", "fun": "test.ping", "timeout": 4})["ours"].Ret == true })
	who := map[string]any{"eauth": "sharedsecret", "username": "ann", "password": "hush"}
	jid := m.publish(query{"tgt": "ours", "fun": "test.echo", "arg": []any{"hello"}, "extra": who})
	e := m.bus.wait(0, "salt/job/"+jid+"/ret/ours")
	if e.Data["return"] != "hello" || e.Data["user"] != "ann" {
		t.Errorf("the return says %v for user %v", e.Data["return"], e.Data["user"])
	}
	if _, errText := m.call("pub", query{"tgt": "ours", "fun": "cmd.run", "arg": []any{"true"}, "extra": who}); errText == "" {
		t.Error("cmd.run was published for ann")
	}
}
