package client

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol/payload"
)

// connectedFor is how long an answer of the system about its connections is used.
const connectedFor = 10 * time.Second

// disconnected says that a minion has surely no connection to the master: the master remembers its addresses, another
// remembered minion is connected, and this one is not (salt/utils/minions.py: connected_ids). It is used for the words
// about a minion that did not return, and is only as good as addresses are: behind address translation it knows
// nothing.
func (c *Client) disconnected(id string) bool {
	if c.o.PublishPort == 0 {
		return false
	}
	if grains, _ := c.Cached(id); grains == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.connectedAt) > connectedFor {
		c.connected = c.Connected()
		c.connectedAt = time.Now()
	}
	_, there := c.connected[id]
	return len(c.connected) > 0 && !there
}

// presentTime is how long the master may take to say who is there.
const presentTime = 10 * time.Second

// Present asks the master who is connected, and gives an address of each where one is known. A master of ours knows it
// to the connection; a stock one looks where Connected does, and so does this where no master answers.
func (c *Client) Present(ctx context.Context) map[string]string {
	here := c.Connected()
	ids, err := c.askPresent(ctx)
	if err != nil {
		c.log.Debug("The master does not say who is connected", "err", err)
		return here
	}
	out := make(map[string]string, len(ids))
	for _, id := range ids {
		out[id] = here[id]
		if out[id] != "" {
			continue
		}
		for _, a := range c.minionAddresses(id) {
			if !a.IsLoopback() {
				out[id] = a.String()
				break
			}
		}
	}
	return out
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

// Connected lists the minions that the master remembers and that have a connection to its publish port on this host,
// with the address of each. It is as good as the addresses in their grains are.
func (c *Client) Connected() map[string]string {
	remote := remoteAddresses(c.o.PublishPort)
	ids := map[string]string{}
	if len(remote) == 0 {
		return ids
	}
	for _, id := range c.cachedMinions() {
		addrs := c.minionAddresses(id)
		if i := slices.IndexFunc(addrs, func(a netip.Addr) bool { return remote[a] }); i >= 0 {
			ids[id] = addrs[i].String()
		}
	}
	return ids
}

// minionAddresses are those that a minion's cached grains have.
func (c *Client) minionAddresses(id string) []netip.Addr {
	grains, _ := c.Cached(id)
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
