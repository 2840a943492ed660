package grains

import (
	"context"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/sorting"
)

// hostname returns localhost, fqdn, host and domain.
func hostname(ctx context.Context, h *host) (map[string]any, error) {
	if !h.live {
		return nil, nil
	}
	name, err := os.Hostname()
	fqdn := h.fqdn(ctx)
	host, domain, _ := strings.Cut(fqdn, ".")
	return map[string]any{"localhost": name, "fqdn": fqdn, "host": host, "domain": domain}, err
}

// findFQDN returns this host's canonical name (salt.utils.network.get_fqhostname), as getaddrinfo returns it.
// /etc/hosts is read directly; otherwise the system's resolver is used, so that every name service counts. If it does
// not answer in time, the result is the host name.
func (h *host) findFQDN(ctx context.Context) string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost.localdomain"
	}
	if e := h.hosts().byName(name); len(e) > 0 {
		return e[0].names[0]
	}
	if bin := h.which("getent"); bin != "" {
		if out, code, err := h.exec(ctx, bin, "ahosts", name); err == nil && code == 0 {
			for _, line := range lines(out) {
				if f := strings.Fields(line); len(f) >= 3 {
					return f[2]
				}
			}
		}
		return name
	}
	if cname, err := h.resolver.LookupCNAME(ctx, name); err == nil && cname != "" {
		return strings.TrimSuffix(cname, ".")
	}
	return name
}

// ipFQDN returns ipv4, ipv6, fqdn_ip4 and fqdn_ip6.
func ipFQDN(ctx context.Context, h *host) (map[string]any, error) {
	if !h.live {
		return nil, nil
	}
	list, err := h.interfaces()
	v4, v6 := addressList(list, false), addressList(list, true)
	g := map[string]any{"ipv4": nested.Anys(v4), "ipv6": nested.Anys(v6), "fqdn_ip4": []any{},
		"fqdn_ip6": []any{}}
	fqdn := h.fqdn(ctx)
	var wait sync.WaitGroup
	var fqdn4, fqdn6 []string
	if len(v4) > 0 {
		wait.Go(func() { fqdn4 = h.lookupAddresses(ctx, fqdn, false) })
	}
	if len(v6) > 0 {
		wait.Go(func() { fqdn6 = h.lookupAddresses(ctx, fqdn, true) })
	}
	wait.Wait()
	g["fqdn_ip4"], g["fqdn_ip6"] = nested.Anys(fqdn4), nested.Anys(fqdn6)
	return g, err
}

// lookupAddresses resolves a name to addresses of one family. They are sorted; Salt's come in the order of a
// set.
func (h *host) lookupAddresses(ctx context.Context, name string, v6 bool) []string {
	var found []netip.Addr
	for _, e := range h.hosts().byName(name) {
		if e.addr.Is4() != v6 {
			found = append(found, e.addr)
		}
	}
	if len(found) == 0 {
		found = h.askAddresses(ctx, name, v6)
	}
	sorting.Stable(found, netip.Addr.Compare)
	found = slices.Compact(found)
	out := make([]string, len(found))
	for i, a := range found {
		out[i] = a.String()
	}
	return out
}

func (h *host) askAddresses(ctx context.Context, name string, v6 bool) []netip.Addr {
	var found []netip.Addr
	if bin := h.which("getent"); bin != "" {
		database := "ahostsv4"
		if v6 {
			database = "ahostsv6"
		}
		out, code, err := h.exec(ctx, bin, database, name)
		if err != nil || code != 0 {
			return nil
		}
		for _, line := range lines(out) {
			text, _, _ := strings.Cut(line, " ")
			// ahostsv6 also returns mapped IPv4 addresses.
			if a, err := netip.ParseAddr(text); err == nil && a.Is4() != v6 && !a.Is4In6() {
				found = append(found, a)
			}
		}
		return found
	}
	network := "ip4"
	if v6 {
		network = "ip6"
	}
	found, err := h.resolver.LookupNetIP(ctx, network, name)
	if err != nil {
		return nil
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found
}

// fqdns returns fqdns: the names of the addresses of all interfaces except the loopback. Eight look-ups run at the
// same time. Look-ups without an answer by the source's deadline are left out.
func fqdns(ctx context.Context, h *host) (map[string]any, error) {
	if !h.live || !enabledByDefault(h.o.Opts["enable_fqdns_grains"], fqdnsByDefault) {
		return map[string]any{"fqdns": []any{}}, nil
	}
	list, err := h.interfaces()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	names := []string{}
	slots := make(chan struct{}, 8)
	for _, text := range slices.Concat(addressList(list, false), addressList(list, true)) {
		a, err := netip.ParseAddr(text)
		if err != nil || a.IsLoopback() {
			continue
		}
		wait.Go(func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-ctx.Done():
				return
			}
			if name := h.reverse(ctx, a); name != "" {
				mu.Lock()
				defer mu.Unlock()
				names = append(names, name)
			}
		})
	}
	wait.Wait()
	slices.Sort(names)
	return map[string]any{"fqdns": nested.Anys(slices.Compact(names))}, nil
}

// reverse returns the full name of an address: the first of its names that contains a dot.
func (h *host) reverse(ctx context.Context, a netip.Addr) string {
	for _, e := range h.hosts().entries {
		if e.addr != a {
			continue
		}
		for _, name := range e.names {
			if strings.Contains(name, ".") {
				return name
			}
		}
		return e.names[0]
	}
	found, err := h.resolver.LookupAddr(ctx, a.String())
	if err == nil && len(found) > 0 {
		return strings.TrimSuffix(found[0], ".")
	}
	// The name services myhostname and resolve know the machine's own addresses.
	if text, err := h.read("/etc/nsswitch.conf"); err == nil {
		for _, line := range lines(text) {
			if f := strings.Fields(line); len(f) > 0 && f[0] == "hosts:" &&
				(slices.Contains(f, "myhostname") || slices.Contains(f, "resolve")) {
				return h.fqdn(ctx)
			}
		}
	}
	return ""
}

func enabledByDefault(v any, fallback bool) bool {
	if v == nil {
		return fallback
	}
	return truth(v)
}

// hostsFile is the parsed /etc/hosts.
type hostsFile struct{ entries []hostsEntry }

type hostsEntry struct {
	addr  netip.Addr
	names []string
}

func (h *host) hosts() hostsFile {
	text, err := h.read(hostsPath(h))
	if err != nil {
		return hostsFile{}
	}
	return parseHosts(text)
}

func parseHosts(text string) hostsFile {
	var f hostsFile
	for _, line := range lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.FieldsFunc(line, unicode.IsSpace)
		if len(words) < 2 {
			continue
		}
		if a, err := netip.ParseAddr(words[0]); err == nil {
			f.entries = append(f.entries, hostsEntry{a, words[1:]})
		}
	}
	return f
}

// byName returns the lines with the name, IPv6 first, like the C library's resolver.
func (f hostsFile) byName(name string) []hostsEntry {
	var v4, v6 []hostsEntry
	for _, e := range f.entries {
		if !slices.ContainsFunc(e.names,
			func(n string) bool { return strings.EqualFold(n, name) }) {
			continue
		}
		if e.addr.Is4() {
			v4 = append(v4, e)
		} else {
			v6 = append(v6, e)
		}
	}
	return append(v6, v4...)
}
