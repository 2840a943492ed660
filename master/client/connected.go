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

// connectedFor is how long an answer of the system about its connections is used.
const connectedFor = 10 * time.Second

// disconnected says that a minion has surely no connection to the master: the master remembers its addresses, another
// remembered minion is connected, and this one is not (salt/utils/minions.py: connected_ids). It is used for the words
// about a minion that did not return, and is only as good as addresses are: behind address translation it knows
// nothing. Masters that share a database are asked, since a minion may be connected to any of them.
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

// presentTime is how long the master may take to say who is there.
const presentTime = 10 * time.Second

// Present asks the master who is connected. A master of ours knows it to the connection; a stock one looks where
// Connected does, and so does this where no master answers. Masters that share a database must answer.
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

// Addresses returns an address of each of these minions, where one is known: the one that it is connected with to this
// host, or else one of its grains that is not of the loopback interface.
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

// Clones shows the ids that several hosts use at once, as the master has found them.
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

// askMinions asks the master for what it knows of minions' connections.
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

// Connected lists the minions that a master alone remembers and that have a connection to its publish port on this
// host, with the address of each. It is as good as the addresses in their grains are.
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

// addressesIn are the addresses that a minion's grains have.
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

// remoteAddresses are the addresses connected to the publish port. A connection over loopback counts for the other
// addresses of this host.
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

// parseTCPLine reads a line of /proc/net/tcp or tcp6 and returns the remote address of an established connection to a
// local port.
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
	// The kernel prints 32 bit words in the byte order of the host.
	for i := 0; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], binary.NativeEndian.Uint32(b[i:]))
	}
	a, ok := netip.AddrFromSlice(b)
	return a.Unmap(), ok
}
