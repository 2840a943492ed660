package conf

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// Host answers questions about the host, to guess an id. Functions that are nil use the real host.
type Host struct {
	// Hostname returns the kernel's host name.
	Hostname func() (string, error)
	// FQDN returns the full name of a host name (Python's socket.getfqdn).
	FQDN func(hostname string) string
	// ReadFile reads the minion_id file, /etc/hostname, /etc/nodename and /etc/hosts.
	ReadFile func(path string) ([]byte, error)
	// Addrs returns the addresses of the interfaces, without loopback addresses.
	Addrs func() []string
}

// MinionID returns the id that Load determined. It returns an error if there is no id or if it cannot be a file name.
func MinionID(c *Config) (string, error) {
	id := c.String("id")
	switch {
	case id == "":
		return "", &Error{Msg: "The minion has no id"}
	case id == "." || id == ".." || len(id) > 255 || strings.ContainsAny(id, "/\x00\n\r"):
		return "", &Error{Msg: "The id " + pytext.Str(id) + " cannot be used: it must be a file name"}
	}
	return id, nil
}

// identify determines the id unless the files set one (salt.config.get_id). byAddress is true if the id is an IPv4
// address.
func (l *loader) identify() (byAddress bool, err error) {
	o := l.Opts
	if pytext.Truth(o["id"]) {
		return false, nil
	}
	if id, ok := l.Overrides["id"].(string); ok && id != "" {
		// The override is used anyway; do not query name servers.
		o["id"] = id
		return false, nil
	}
	root := l.String("root_dir")
	if root == "" {
		root = PlatformDirs().Root
	}
	cache := filepath.Join(root, strings.TrimPrefix(PlatformDirs().Config, PlatformDirs().Root), "minion_id")
	caching := true
	if v, ok := o["minion_id_caching"]; ok {
		caching = pytext.Truth(v)
	}
	if caching {
		readFile := os.ReadFile
		if l.Host != nil && l.Host.ReadFile != nil {
			readFile = l.Host.ReadFile
		}
		if b, err := readFile(cache); err == nil {
			line, _, _ := strings.Cut(string(b), "\n")
			// Salt intends to drop a byte order mark, but looks for UTF-16's; a UTF-8 mark stays in the id.
			name := strings.TrimSpace(line)
			if name != "" && name != "localhost" {
				l.note(slog.LevelDebug, "Using cached minion ID from %s: %s", cache, name)
				o["id"] = name
				return false, nil
			}
		}
	}
	if l.name == "minion" && pytext.Truth(o["id_function"]) {
		return false, &Error{Msg: "Config option 'id_function' is not supported: set 'id'"}
	}
	id := guessID(l.Host)
	if pytext.Truth(o["minion_id_lowercase"]) {
		id = strings.ToLower(id)
	}
	id = removeDomain(id, o["minion_id_remove_domain"])
	l.note(slog.LevelDebug, "Found minion id from generate_minion_id(): %s", id)
	if l.CacheID && caching {
		l.cacheID(cache, id)
	}
	o["id"] = id
	addr, err := netip.ParseAddr(id)
	return err == nil && addr.Is4(), nil
}

// cacheID writes the minion_id file. It only logs an error.
func (l *loader) cacheID(path, id string) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.note(slog.LevelError, "Failed to create dirs to minion_id file: %s", err)
	}
	if err := os.WriteFile(path, []byte(id), 0o644); err != nil {
		l.note(slog.LevelError, "Could not cache minion ID: %s", err)
	}
}

func removeDomain(id string, rule any) string {
	if rule == true {
		id, _, _ = strings.Cut(id, ".")
		return id
	}
	domain, _ := rule.(string)
	if domain != "" && strings.HasSuffix(strings.ToUpper(id), "."+strings.ToUpper(domain)) {
		return id[:len(id)-len(domain)-1]
	}
	return id
}

// guessID implements salt.utils.network.generate_minion_id: the first name of the host that is not a generic name.
func guessID(h *Host) string {
	if h == nil {
		h = &Host{}
	}
	hostname, fqdn, readFile, addrs := os.Hostname, realFQDN, os.ReadFile, realAddrs
	if h.Hostname != nil {
		hostname = h.Hostname
	}
	if h.FQDN != nil {
		fqdn = h.FQDN
	}
	if h.ReadFile != nil {
		readFile = h.ReadFile
	}
	if h.Addrs != nil {
		addrs = h.Addrs
	}
	name, err := hostname()
	if err == nil {
		for _, candidate := range []string{fqdn(name), name} {
			if usableName(candidate) {
				return candidate
			}
		}
	}
	for _, path := range []string{"/etc/hostname", "/etc/nodename", "/etc/hosts"} {
		b, err := readFile(path)
		if err != nil {
			continue
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
			words := strings.Fields(line)
			if len(words) == 0 || len(words) > 1 && !strings.HasPrefix(words[0], "127.") && !strings.HasPrefix(words[0], "::1") {
				continue
			}
			for _, w := range words {
				if usableName(w) {
					return w
				}
			}
		}
	}
	for _, a := range addrs() {
		if usableName(a) {
			return a
		}
	}
	return "localhost"
}

// usableName reports whether a name is not one that every host has (localhost_matchers).
func usableName(s string) bool {
	if s == "" {
		return false
	}
	for _, p := range []string{"localhost", "ip6-", "0.0.0.0", "::1", "ipv6-", "fe00::", "fe02::"} {
		if strings.HasPrefix(s, p) {
			return false
		}
	}
	if len(s) > 4 && s[:4] == "127." && s[4] >= '0' && s[4] <= '9' {
		return false
	}
	// This is 1.0.0.*.ip6.arpa as a regular expression, in which a dot matches any character.
	if len(s) > 5 && s[0] == '1' && s[2] == '0' && s[4] == '0' {
		if i := strings.Index(s[5:], "ip6"); i > 0 && len(s[5+i:]) >= 8 && s[5+i+4:5+i+8] == "arpa" {
			return false
		}
	}
	return true
}

// nameTimeout limits how long a guess waits for name servers.
const nameTimeout = 5 * time.Second

// realFQDN implements socket.getfqdn: of the names of the host's first address, the first with a dot, else the first.
func realFQDN(hostname string) string {
	ctx, cancel := context.WithTimeout(context.Background(), nameTimeout)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, hostname)
	if err != nil || len(addrs) == 0 {
		return hostname
	}
	names, err := net.DefaultResolver.LookupAddr(ctx, addrs[0])
	if err != nil || len(names) == 0 {
		return hostname
	}
	for i, n := range names {
		names[i] = strings.TrimSuffix(n, ".")
	}
	for _, n := range names {
		if strings.Contains(n, ".") {
			return n
		}
	}
	return names[0]
}

func realAddrs() []string {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []string
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			out = append(out, n.IP.String())
		}
	}
	return out
}
