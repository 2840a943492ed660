package status

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func loadavg(ctx context.Context, c *modules.Call) (any, error) {
	text := proc(c, "/proc/loadavg")
	if kernel(c) != "Linux" {
		var err error
		if text, err = output(ctx, c, "sysctl", "-n", "vm.loadavg"); err != nil {
			return nil, err
		}
	}
	if load, ok := parseLoad(text); ok {
		return load, nil
	}
	return nil, modules.Errorf("status.loadavag is not available on your platform")
}

func uptime(ctx context.Context, c *modules.Call) (any, error) {
	var (
		now     = c.Now()
		seconds int64
	)
	switch kernel(c) {
	case "Linux":
		text := proc(c, "/proc/uptime")
		first, _, _ := strings.Cut(text, " ")
		f, err := strconv.ParseFloat(strings.TrimSpace(first), 64)
		if err != nil {
			return nil, modules.Errorf("File /proc/uptime was not found.")
		}
		seconds = int64(f)
	case "FreeBSD", "OpenBSD", "NetBSD", "Darwin":
		boot, err := bootTime()
		if err != nil {
			return nil, modules.Errorf("Cannot find kern.boottime system parameter")
		}
		seconds = int64(now.Sub(boot).Seconds())
	default:
		return output(ctx, c, "uptime")
	}
	since := now.Add(-time.Duration(seconds) * time.Second).UTC().Truncate(time.Microsecond)
	iso := since.Format("2006-01-02T15:04:05.000000")
	ret := map[string]any{
		"seconds": seconds, "since_iso": strings.TrimSuffix(iso, ".000000"), "since_t": since.Unix(), "days": seconds / 86400,
		"time": strconv.FormatInt(seconds%86400/3600, 10) + ":" + strconv.FormatInt(seconds%3600/60, 10),
	}
	if c.Which("who") != "" {
		args := []string{"who", "-s"}
		if kernel(c) == "OpenBSD" {
			args = args[:1]
		}
		text, err := output(ctx, c, args...)
		if err != nil {
			return nil, err
		}
		ret["users"] = int64(strings.Count(text, "\n") + 1) // stock counts one for no users, too
	}
	return ret, nil
}

func diskusage(ctx context.Context, c *modules.Call) (any, error) {
	var paths, types []string
	for _, a := range c.Extra {
		if text := pytext.Str(a); strings.HasPrefix(text, "/") {
			paths = append(paths, text)
		} else {
			types = append(types, text)
		}
	}
	if len(c.Extra) == 0 {
		types = []string{"*"}
	}
	if len(types) > 0 {
		table, err := mounts(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, line := range lines(table) {
			comps := strings.Fields(line)
			if len(comps) >= 3 && slices.ContainsFunc(types, func(p string) bool { return fnmatch.Match(p, comps[2]) }) {
				paths = append(paths, unescape(comps[1]))
			}
		}
	}
	slices.Sort(paths)
	ret := map[string]any{}
	for _, p := range slices.Compact(paths) {
		available, total, err := usage(ctx, c.Path(p))
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			c.Logger().Warn("Cannot tell the usage of a file system", "path", p, "err", err)
			ret[p] = map[string]any{"available": nil, "total": nil}
		default:
			ret[p] = map[string]any{"available": available, "total": total}
		}
	}
	return ret, nil
}

// mounts returns the table of mounted file systems.
func mounts(ctx context.Context, c *modules.Call) (string, error) {
	switch kernel(c) {
	case "Linux":
		return proc(c, "/proc/mounts"), nil
	case "FreeBSD":
		return output(ctx, c, "mount", "-p")
	}
	return "", modules.Errorf("status.diskusage not yet supported on this platform")
}

// unescape undoes the kernel's spelling of blanks and the like in mount points: \040.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// usage asks the system about a file system. A server that does not answer does not hold the job: it is left behind.
func usage(ctx context.Context, path string) (available, total int64, err error) {
	type answer struct {
		available, total int64
		err              error
	}
	done := make(chan answer, 1)
	go func() {
		a, t, err := statfs(path)
		done <- answer{a, t, err}
	}()
	select {
	case a := <-done:
		return a.available, a.total, a.err
	case <-ctx.Done():
		return 0, 0, context.Cause(ctx)
	}
}

func master(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("master")
	if name == "" {
		return nil, nil
	}
	addrs, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil || len(addrs) == 0 {
		return nil, nil
	}
	if c.Agent != nil {
		up := c.Agent.Masters()
		for _, a := range append(addrs, name) {
			if is, known := up[a]; known {
				return is, nil
			}
		}
	}
	port := int64(4505)
	if p, err := modules.ToInt(c.Opt("publish_port")); err == nil {
		port = p
	}
	return slices.ContainsFunc(addrs, func(a string) bool { return slices.Contains(connected(c, port), a) }), nil
}

// connected returns the remote addresses of this host's connections to a port.
func connected(c *modules.Call, port int64) []string {
	var list []string
	for _, table := range [...]string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for _, line := range lines(proc(c, table)) {
			comps := strings.Fields(line)
			if len(comps) < 4 || comps[3] != "01" {
				continue
			}
			if addr, ok := parseAddr(comps[2]); ok && int64(addr.Port()) == port {
				list = append(list, addr.Addr().String())
			}
		}
	}
	return list
}

// parseAddr reads an address of the kernel's connection tables: hexadecimal words in the order of a little-endian machine.
func parseAddr(s string) (netip.AddrPort, bool) {
	hex, port, ok := strings.Cut(s, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || len(hex) != 8 && len(hex) != 32 {
		return netip.AddrPort{}, false
	}
	b := make([]byte, 0, 16)
	for i := 0; i < len(hex); i += 8 {
		word, err := strconv.ParseUint(hex[i:i+8], 16, 32)
		if err != nil {
			return netip.AddrPort{}, false
		}
		b = append(b, byte(word), byte(word>>8), byte(word>>16), byte(word>>24))
	}
	addr, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), ok
}

func pingMaster(ctx context.Context, c *modules.Call) (any, error) {
	name := c.Str("master")
	if name == "" {
		return false, nil
	}
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		host, port = strings.Trim(name, "[]"), "4506"
		if p, err := modules.ToInt(c.Opt("master_port")); err == nil {
			port = strconv.FormatInt(p, 10)
		}
	}
	timeout := 60 * time.Second
	if n, err := modules.ToInt(c.Opt("auth_timeout")); err == nil && n > 0 {
		timeout = time.Duration(n) * time.Second
	}
	d := net.Dialer{Timeout: timeout}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return false, nil
	}
	return true, conn.Close()
}
