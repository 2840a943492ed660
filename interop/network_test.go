//go:build interop

package interop

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// network is two network namespaces connected by a cable that can be cut: one of a minion, with its own /etc/hosts,
// and one of a master, with two addresses.
type network struct {
	t              *testing.T
	minion, master string
	hosts          string
}

// The master's namespace has both addresses.
const (
	oldAddress = "10.213.7.2"
	newAddress = "10.213.7.3"
)

// networks counts the networks of this process.
var networks atomic.Int64

func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Fatal("network namespaces need the program ip (iproute2)")
	}
	name := fmt.Sprintf("brine%d-%d", os.Getpid(), networks.Add(1))
	n := &network{t: t, minion: name + "m", master: name + "s"}
	n.hosts = "/etc/netns/" + n.minion + "/hosts"
	t.Cleanup(func() {
		_ = exec.Command("ip", "netns", "del", n.minion).Run()
		_ = exec.Command("ip", "netns", "del", n.master).Run()
		_ = os.RemoveAll("/etc/netns/" + n.minion)
		_ = os.Remove("/etc/netns") // unless it contains files of others
	})
	write(t, n.hosts, "127.0.0.1 localhost\n")
	n.point(oldAddress)
	for _, line := range []string{
		"netns add M", "netns add S", "link add mcable netns M type veth peer name scable netns S",
		"-n M link set lo up", "-n S link set lo up", "-n M addr add 10.213.7.1/24 dev mcable",
		"-n S addr add " + oldAddress + "/24 dev scable", "-n S addr add " + newAddress + "/24 dev scable",
		"-n M link set mcable up", "-n S link set scable up",
	} {
		n.ip(line)
	}
	return n
}

func (n *network) ip(line string) {
	n.t.Helper()
	args := strings.Fields(line)
	for i, a := range args {
		switch a {
		case "M":
			args[i] = n.minion
		case "S":
			args[i] = n.master
		}
	}
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v\n%s", line, err, out)
	}
}

// point makes the master's name lead to an address. The file keeps its inode, because namespaces see it through a
// mount.
func (n *network) point(address string) {
	n.t.Helper()
	if err := os.WriteFile(n.hosts, []byte("127.0.0.1 localhost\n"+address+" moving.test\n"), 0o644); err != nil {
		n.t.Fatal(err)
	}
}

// in returns the arguments of ip that run a command in a namespace.
func (n *network) in(ns string, command ...string) []string {
	return append([]string{"netns", "exec", ns}, command...)
}

// site creates the configuration of a master at an address.
func (n *network) site(address string) *site {
	n.t.Helper()
	s := newSite(n.t, "zeromq", "auto_accept: True")
	b, err := os.ReadFile(s.config())
	if err != nil {
		n.t.Fatal(err)
	}
	text := strings.Replace(string(b), "interface: 127.0.0.1", "interface: "+address, 1)
	text = strings.Replace(text, fmt.Sprint("publish_port: ", s.pub), "publish_port: 4505", 1)
	write(n.t, s.config(), strings.Replace(text, fmt.Sprint("ret_port: ", s.ret), "ret_port: 4506", 1))
	return s
}

// answers reports whether the minion answers a ping from a master.
func (n *network) answers(s *site, id string) bool {
	n.t.Helper()
	out, _ := output(n.t, "ip", n.in(n.master, ours("salt"), "-c", s.dir+"/etc", "--out=json", "--static", "-t", "3", id, "test.ping")...)
	return strings.Contains(out, "true")
}

// TestNetwork checks faults between a minion and its master: a path on which packets are lost without notice, and a
// name that changes while the old address still works.
func TestNetwork(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	one, two := n.site(oldAddress), n.site(newAddress)
	start(t, "ip", n.in(n.master, ours("salt-master"), "-c", one.dir+"/etc")...)
	await(t, "the first master has made its key", func() bool { return exists(one.dir + "/pki/master.pub") })
	for _, file := range []string{"master.pem", "master.pub"} {
		write(t, two.dir+"/pki/"+file, "")
		copyFile(t, one.dir+"/pki/"+file, two.dir+"/pki/"+file)
	}
	if err := os.Chmod(two.dir+"/pki", 0o700); err != nil {
		t.Fatal(err)
	}
	start(t, "ip", n.in(n.master, ours("salt-master"), "-c", two.dir+"/etc")...)
	conf := one.minion(t, "far", "")
	write(t, conf+"/minion.d/network.conf", "master: moving.test\nmaster_port: 4506\npublish_port: 4505\n"+
		"tcp_keepalive_idle: 2\ntcp_keepalive_cnt: 2\ntcp_keepalive_intvl: 1\nlog_level_logfile: info\n")
	start(t, "ip", n.in(n.minion, ours("salt-minion"), "-c", conf)...)
	log := func(text string) bool {
		b, _ := os.ReadFile(one.dir + "/far/minion.log")
		return strings.Contains(string(b), text)
	}
	await(t, "the minion is connected", func() bool { return log("Minion is ready to receive requests!") })
	await(t, "the minion answers", func() bool { return n.answers(one, "far") })

	n.ip("-n S link set scable down")
	await(t, "the dead path is noticed", func() bool { return log("Not connected to publisher") })
	n.ip("-n S link set scable up")
	await(t, "the minion answers again", func() bool { return n.answers(one, "far") })

	n.point(newAddress)
	begin := time.Now()
	await(t, "the moved name is noticed", func() bool { return log("the master's name leads to another address") })
	await(t, "the minion answers at the new address", func() bool { return n.answers(two, "far") })
	t.Logf("at the new address after %v", time.Since(begin).Round(time.Second))
}
