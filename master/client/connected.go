package client

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// connectedFor is how long the system's list of connections is cached.
const connectedFor = 10 * time.Second

// disconnected reports whether a minion certainly has no connection to the master: its addresses are cached,
// another cached minion is connected, and this one is not (salt/utils/minions.py: connected_ids). It only
// affects the text about a minion that did not return. It relies on addresses, so it does not work behind
// address translation. A cluster's masters are asked instead, because a minion may be connected to any of them.
func (c *Client) disconnected(ctx context.Context, id string) bool {
	if c.o.PublishPort == 0 {
		return false
	}
	if c.o.Minions == nil {
		if grains, _ := c.Cached(id); grains == nil {
			return false
		}
	}
	c.mu.Lock()
	connected, at := c.connected, c.connectedAt
	c.mu.Unlock()
	if time.Since(at) > connectedFor {
		connected = make(map[string]bool)
		if c.o.Minions == nil {
			for id := range c.Connected() {
				connected[id] = true
			}
		} else if ids, err := c.askPresent(ctx); err != nil {
			c.log.Debug("The masters do not say who is connected", "err", err)
		} else {
			for _, id := range ids {
				connected[id] = true
			}
		}
		c.mu.Lock()
		c.connected, c.connectedAt = connected, time.Now()
		c.mu.Unlock()
	}
	return len(connected) > 0 && !connected[id]
}

// presentTime limits how long the master may take to list connected minions.
const presentTime = 10 * time.Second

// Present asks the master for the connected minions. A brine master knows them per connection. A stock master
// uses the same method as Connected, which is also the fallback if the master does not answer. The masters of a
// cluster must answer.
func (c *Client) Present(ctx context.Context) ([]string, error) {
	ids, err := c.askPresent(ctx)
	if err == nil {
		return ids, nil
	}
	if c.o.Minions != nil {
		return nil, fmt.Errorf("cannot list connected minions: %w", err)
	}
	c.log.Debug("The master does not say who is connected", "err", err)
	return slices.Collect(maps.Keys(c.Connected())), nil
}

// Addresses returns known addresses of minions: that of the minion's connection to this host, or else one of
// its grains outside of loopback.
func (c *Client) Addresses(ids []string) (map[string]string, error) {
	remote := remoteAddresses(c.o.PublishPort)
	cached, failed := c.known(ids, target.Needs{Grains: []string{"ipv4", "ipv6"}})
	out := make(map[string]string, len(ids))
	for _, id := range ids {
		grains, _ := cached(id)
		for _, a := range addressesIn(grains) {
			if remote[a] {
				out[id] = a.String()
				break
			}
			if out[id] == "" && !a.IsLoopback() {
				out[id] = a.String()
			}
		}
	}
	return out, failed()
}

// Clones returns the ids that several hosts use at once, as found by the master.
func (c *Client) Clones(ctx context.Context) (map[string]any, error) {
	v, err := c.askMinions(ctx, "minions.clones")
	if err != nil {
		return nil, fmt.Errorf("cannot list clones: %w", err)
	}
	all, _ := payload.Map(v)
	return all, nil
}

func (c *Client) askPresent(ctx context.Context) ([]string, error) {
	v, err := c.askMinions(ctx, "minions.connected")
	return fields.Texts(v), err
}

// askMinions queries the master about minions' connections.
func (c *Client) askMinions(ctx context.Context, fun string) (any, error) {
	if marker := c.o.Events.Marker; marker != "" {
		if _, err := os.Stat(marker); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	key := c.key
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, presentTime)
	defer cancel()
	v, err := c.Request(ctx,
		map[string]any{"cmd": "wheel", "fun": fun, "key": key, "user": c.o.User})
	if err != nil {
		return nil, err
	}
	reply, _ := payload.Map(v)
	data, _ := payload.Map(reply["data"])
	if data["success"] != true {
		return nil, fmt.Errorf("refused: %.200v", v)
	}
	return data["return"], nil
}

// Connected returns the minions in a single master's cache that have a connection to its publish port on this
// host, with their addresses. It relies on the addresses in their grains.
func (c *Client) Connected() map[string]string {
	remote := remoteAddresses(c.o.PublishPort)
	ids := map[string]string{}
	if len(remote) == 0 {
		return ids
	}
	for _, id := range c.cachedMinions() {
		grains, _ := c.Cached(id)
		addrs := addressesIn(grains)
		if i := slices.IndexFunc(addrs, func(a netip.Addr) bool { return remote[a] }); i >= 0 {
			ids[id] = addrs[i].String()
		}
	}
	return ids
}

// addressesIn returns the addresses in a minion's grains.
func addressesIn(grains map[string]any) []netip.Addr {
	var out []netip.Addr
	for _, key := range []string{"ipv4", "ipv6"} {
		list, _ := payload.List(grains[key])
		for _, v := range list {
			s, _ := payload.Text(v)
			if a, err := netip.ParseAddr(s); err == nil {
				out = append(out, a.Unmap().WithZone(""))
			}
		}
	}
	return out
}

// remoteAddresses returns the addresses connected to the publish port. A connection over loopback counts for
// all addresses of this host.
func remoteAddresses(port int) map[netip.Addr]bool {
	remote := map[netip.Addr]bool{}
	loop := false
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			a, ok := parseTCPLine(s.Text(), port)
			if ok && a.IsLoopback() {
				loop = true
			} else if ok {
				remote[a] = true
			}
		}
		f.Close()
	}
	if loop {
		addrs, _ := net.InterfaceAddrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLoopback() {
				remote[p.Addr().Unmap().WithZone("")] = true
			}
		}
	}
	return remote
}

// parseTCPLine parses a line of /proc/net/tcp or tcp6. It returns the remote address of an established
// connection to a local port.
func parseTCPLine(line string, port int) (netip.Addr, bool) {
	fields := strings.Fields(line)
	const established = "01"
	if len(fields) < 4 || fields[3] != established {
		return netip.Addr{}, false
	}
	_, local, ok := strings.Cut(fields[1], ":")
	n, err := strconv.ParseUint(local, 16, 16)
	if !ok || err != nil || int(n) != port {
		return netip.Addr{}, false
	}
	host, _, _ := strings.Cut(fields[2], ":")
	b, err := hex.DecodeString(host)
	if err != nil || len(b) != 4 && len(b) != 16 {
		return netip.Addr{}, false
	}
	// The kernel prints 32-bit words in the host's byte order.
	for i := 0; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], binary.NativeEndian.Uint32(b[i:]))
	}
	a, ok := netip.AddrFromSlice(b)
	return a.Unmap(), ok
}
