//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A Network is a tenant's network as in Neutron: a network for guests behind their own router, which hides their
// addresses from the provider's network, where the engines are.
//
//	guest (Port) ─┐
//	guest (Port) ─┴ 10.0.0.1 router 192.0.2.1 ─── Addresses of the calling process, 192.0.2.11 and others
//	                 169.254.169.254
//
// The router forwards only connections from guests to the addresses given to Allow. Guests cannot reach each other.
//
// The calling process must be in its own network namespace, because it gets an interface. Everything ends with the
// lab.
type Network struct {
	lab    *Lab
	router *Process
	device string
	ports  int
}

// These are the addresses of the networks: Neutron's usual ones, and those that RFC 5737 reserves for documentation,
// as on the documentation's pages.
const (
	routerInside  = "10.0.0.1"
	routerOutside = "192.0.2.1"
	metadataAddr  = "169.254.169.254"
)

// rules are the router's rules. The destination of a dropped packet is added to the set dropped, that of a forwarded
// connection to the set used.
const rules = `
table inet filter {
	set allowed { type ipv4_addr . inet_service; }
	set used { type ipv4_addr . inet_service; flags dynamic; size 1024; }
	set dropped { type ipv4_addr . inet_proto . inet_service; flags dynamic; size 1024; }
	chain forward {
		type filter hook forward priority filter; policy drop;
		ct state established,related accept
		iifname tenant ct original ip daddr . tcp dport @allowed add @used { ct original ip daddr . tcp dport } accept
		add @dropped { ct original ip daddr . meta l4proto . th dport }
	}
	chain input {
		type filter hook input priority filter; policy drop;
		iifname lo accept
		ct state established,related accept
		iifname tenant ip daddr . tcp dport @allowed add @used { ip daddr . tcp dport } accept
		add @dropped { ip daddr . meta l4proto . th dport }
	}
}
table ip nat {
	chain prerouting { type nat hook prerouting priority dstnat; }
	chain postrouting { type nat hook postrouting priority srcnat; oifname provider masquerade; }
}
`

// StartNetwork creates a network. The addresses, in 192.0.2.0/24, are those of the calling process in the provider's
// network.
func (l *Lab) StartNetwork(ctx context.Context, addresses ...string) (*Network, error) {
	p, err := l.namespace(ctx, "router")
	if err != nil {
		return nil, err
	}
	n := &Network{lab: l, router: p, device: fmt.Sprintf("eng%d", p.Pid())}
	var b strings.Builder
	fmt.Fprintf(&b, "ip link add %s type veth peer name provider netns %d\n", n.device, p.Pid())
	for _, a := range addresses {
		fmt.Fprintf(&b, "ip addr add %s/24 dev %s\n", a, n.device)
	}
	fmt.Fprintf(&b, "ip link set %s up\n", n.device)
	if _, err := l.runInput(ctx, b.String(), "sh", "-es"); err != nil {
		return nil, err
	}
	script := fmt.Sprintf("echo 1 >/proc/sys/net/ipv4/ip_forward\nip addr add %s/24 dev provider\nip link set provider up\n"+
		"ip link add tenant type bridge\nip addr add %s/16 dev tenant\nip link set tenant up\nip addr add %s/32 dev lo\nnft -f - <<'END'\n%sEND\n",
		routerOutside, routerInside, metadataAddr, rules)
	_, err = l.runInput(ctx, script, append(inNetwork(p), "sh", "-es")...)
	return n, err
}

// namespace starts a process in a new network namespace, which has a loopback interface and no IPv6.
func (l *Lab) namespace(ctx context.Context, name string) (*Process, error) {
	ready := l.path("log", name+".ready")
	if err := os.RemoveAll(ready); err != nil {
		return nil, err
	}
	p, err := l.service(spec{name: name, argv: []string{"unshare", "--net", "sh", "-ec",
		"echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6\necho 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6\n" +
			"ip link set lo up\n: >" + ready + "\nexec sleep infinity"}})
	if err != nil {
		return nil, err
	}
	return p, await(ctx, name, func(context.Context) error { return unix.Access(ready, unix.R_OK) }, p)
}

func inNetwork(p *Process) []string {
	return []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", p.Pid())}
}

// Allow lets guests connect to addresses, each a host:port.
func (n *Network) Allow(ctx context.Context, addresses ...string) error {
	return n.change(ctx, "add", addresses)
}

// Forbid reverses Allow. Open connections remain.
func (n *Network) Forbid(ctx context.Context, addresses ...string) error {
	return n.change(ctx, "delete", addresses)
}

func (n *Network) change(ctx context.Context, how string, addresses []string) error {
	var elements []string
	for _, a := range addresses {
		ap, err := netip.ParseAddrPort(a)
		if err != nil {
			return err
		}
		elements = append(elements, fmt.Sprintf("%s . %d", ap.Addr(), ap.Port()))
	}
	return n.nft(ctx, "%s element inet filter allowed { %s }", how, strings.Join(elements, ", "))
}

// Forget clears the results of Used and Dropped.
func (n *Network) Forget(ctx context.Context) error {
	return n.nft(ctx, "flush set inet filter used\nflush set inet filter dropped")
}

// Virtual makes the router accept connections to an address that no host has, and distribute them among hosts in
// turn.
func (n *Network) Virtual(ctx context.Context, address string, tcpPorts []int, hosts ...string) error {
	var to []string
	for i, h := range hosts {
		to = append(to, fmt.Sprintf("%d : %s", i, h))
	}
	return n.nft(ctx, "add rule ip nat prerouting ip daddr %s tcp dport { %s } dnat to numgen inc mod %d map { %s }", address,
		strings.Trim(strings.Join(strings.Fields(fmt.Sprint(tcpPorts)), ", "), "[]"), len(hosts), strings.Join(to, ", "))
}

func (n *Network) nft(ctx context.Context, format string, args ...any) error {
	_, err := n.lab.runInput(ctx, fmt.Sprintf(format, args...)+"\n", append(inNetwork(n.router), "nft", "-f", "-")...)
	return err
}

// Used returns the destinations of the guests' connections as host:port, sorted.
func (n *Network) Used(ctx context.Context) ([]string, error) { return n.set(ctx, "used") }

// Dropped returns the destinations of dropped packets as host/protocol:port, sorted.
func (n *Network) Dropped(ctx context.Context) ([]string, error) { return n.set(ctx, "dropped") }

// set returns a set of the router: its elements are concatenations, with the port last.
func (n *Network) set(ctx context.Context, name string) ([]string, error) {
	out, err := n.lab.run(ctx, append(inNetwork(n.router), "nft", "-j", "list", "set", "inet", "filter", name)...)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Nftables []struct {
			Set struct {
				Elem []json.RawMessage `json:"elem"`
			} `json:"set"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		return nil, err
	}
	found := []string{}
	for _, t := range doc.Nftables {
		for _, raw := range t.Set.Elem {
			var e struct {
				Concat []any `json:"concat"`
				Elem   struct {
					Val struct {
						Concat []any `json:"concat"`
					} `json:"val"`
				} `json:"elem"`
			}
			if err := json.Unmarshal(raw, &e); err != nil {
				return nil, err
			}
			var parts []string
			for _, v := range slices.Concat(e.Concat, e.Elem.Val.Concat) {
				parts = append(parts, fmt.Sprint(v))
			}
			if len(parts) < 2 {
				return nil, fmt.Errorf("nft lists the element %s", raw)
			}
			last := len(parts) - 1
			found = append(found, strings.Join(parts[:last], "/")+":"+parts[last])
		}
	}
	slices.Sort(found)
	return found, nil
}

// Listen listens at an address of the router, such as that of the metadata service.
func (n *Network) Listen(addr string) (net.Listener, error) {
	type result struct {
		ln  net.Listener
		err error
	}
	done := make(chan result)
	go func() {
		// The thread has moved to another namespace; this goroutine never unlocks it, so it ends with the goroutine.
		runtime.LockOSThread()
		ln, err := listenIn(n.router.Pid(), addr)
		done <- result{ln, err}
	}()
	r := <-done
	return r.ln, r.err
}

func listenIn(pid int, addr string) (net.Listener, error) {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("cannot enter a network namespace: %w", err)
	}
	return net.Listen("tcp", addr)
}

// Close ends the network: guests lose it, and the calling process loses its interface.
func (n *Network) Close() { n.router.kill() }

// A Port is the network of one guest.
type Port struct{ ns *Process }

// Port creates a port with an address in 10.0.0.0/16 and a route through the router.
func (n *Network) Port(ctx context.Context, address string) (*Port, error) {
	p, err := n.PortWithoutRoute(ctx, address)
	if err != nil {
		return p, err
	}
	_, err = n.lab.run(ctx, p.enter("ip", "route", "add", "default", "via", routerInside)...)
	return p, err
}

// PortWithoutRoute creates a port that reaches nothing outside of its network.
func (n *Network) PortWithoutRoute(ctx context.Context, address string) (*Port, error) {
	if _, err := netip.ParseAddr(address); err != nil {
		return nil, errors.New("a port needs an address")
	}
	n.ports++
	p, err := n.lab.namespace(ctx, fmt.Sprintf("port-%d-%d", n.router.Pid(), n.ports))
	if err != nil {
		return nil, err
	}
	script := fmt.Sprintf("ip link add port%[1]d type veth peer name eth0 netns %[2]d\nip link set port%[1]d master tenant\n"+
		"bridge link set dev port%[1]d isolated on\nip link set port%[1]d up\nexec nsenter --net=/proc/%[2]d/ns/net sh -ec '"+
		"ip addr add %[3]s/16 dev eth0; ip link set eth0 up'\n", n.ports, p.Pid(), address)
	_, err = n.lab.runInput(ctx, script, append(inNetwork(n.router), "sh", "-es")...)
	return &Port{p}, err
}

// Close ends the port. The guest's processes lose their network.
func (p *Port) Close() { p.ns.kill() }

// enter returns a command that runs another command in the port's network. If the port is nil, it returns the other
// command unchanged.
func (p *Port) enter(argv ...string) []string {
	if p == nil {
		return argv
	}
	return append(inNetwork(p.ns), argv...)
}
