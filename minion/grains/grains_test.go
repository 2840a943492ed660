package grains

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGatherLive(t *testing.T) {
	opts := map[string]any{"id": "web1.example.org", "master": "salt", "enable_fqdns_grains": false, "grains": map[string]any{"roles": []any{"web"}}}
	g := Gather(t.Context(), Options{Opts: opts, Version: "1.2"})
	for key, want := range map[string]any{
		"id": "web1.example.org", "master": "salt", "saltversion": DefaultSaltVersion, "brineversion": "1.2", "pid": int64(os.Getpid()),
		"server_id": serverID("web1.example.org"), "roles": []any{"web"}, "package": nil,
		"pythonversion": []any{int64(3), int64(10), int64(0), "final", int64(0)},
	} {
		if got, ok := g[key]; !ok || !cmp.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}
	for _, key := range []string{"os", "os_family", "kernel", "num_cpus", "mem_total", "fqdn", "host", "localhost", "path", "systempath", "shell",
		"cwd", "locale_info", "ip_interfaces", "hwaddr_interfaces", "ipv4", "ipv6", "username", "virtual", "ps", "gpus", "num_gpus"} {
		if _, ok := g[key]; !ok && runtime.GOOS == "linux" {
			t.Errorf("%s is missing", key)
		}
	}
	for key, v := range g {
		checkWire(t, key, v)
	}
}

// checkWire checks that grains consist of values that can be sent to a master.
func checkWire(t *testing.T, where string, v any) {
	t.Helper()
	switch x := v.(type) {
	case nil, bool, int64, float64, string:
	case []any:
		for i, e := range x {
			checkWire(t, fmt.Sprintf("%s:%d", where, i), e)
		}
	case map[string]any:
		for k, e := range x {
			checkWire(t, where+":"+k, e)
		}
	default:
		t.Errorf("%s is a %T", where, v)
	}
}

// TestServerID compares with values of Salt's get_server_id.
func TestServerID(t *testing.T) {
	for id, want := range map[string]int64{"graintest": 1134480519, "": 2018687061} {
		if got := serverID(id); got != want {
			t.Errorf("%q: got %d, want %d", id, got, want)
		}
	}
}

// TestFourSystems checks the grains that state files use most.
func TestFourSystems(t *testing.T) {
	cases := loadCases(t)
	for name, want := range map[string]map[string]any{
		"debian12": {"os": "Debian", "os_family": "Debian", "osrelease": "12", "osmajorrelease": int64(12), "osrelease_info": []any{int64(12)},
			"osfinger": "Debian-12", "oscodename": "bookworm", "osarch": "amd64"},
		"rhel9": {"os": "RedHat", "os_family": "RedHat", "osfullname": "Red Hat Enterprise Linux", "osrelease": "9.4", "osmajorrelease": int64(9),
			"osrelease_info": []any{int64(9), int64(4)}, "osfinger": "Red Hat Enterprise Linux-9", "oscodename": "Plow", "osarch": "x86_64"},
		"suse155": {"os": "SUSE", "os_family": "Suse", "osfullname": "Leap", "osrelease": "15.5", "osmajorrelease": int64(15),
			"osrelease_info": []any{int64(15), int64(5)}, "osfinger": "Leap-15", "oscodename": "openSUSE Leap 15.5", "osarch": "x86_64"},
		"ubuntu2404": {"os": "Ubuntu", "os_family": "Debian", "osfullname": "Ubuntu", "osrelease": "24.04", "osmajorrelease": int64(24),
			"osrelease_info": []any{int64(24), int64(4)}, "osfinger": "Ubuntu-24.04", "oscodename": "noble", "lsb_distrib_id": "Ubuntu",
			"lsb_distrib_release": "24.04", "lsb_distrib_codename": "noble", "lsb_distrib_description": "Ubuntu 24.04 LTS"},
	} {
		t.Run(name, func(t *testing.T) {
			got := cases["os "+name].gather(t)
			for key, v := range want {
				if !cmp.Equal(got[key], v) {
					t.Errorf("%s: got %v, want %v", key, got[key], v)
				}
			}
		})
	}
}

func TestStaticGrains(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("grains", "role: web\ndeep: {a: 1, b: {c: 2}}\nkernel: Mine\n8080: port\nfoo: bar\n")
	write("grains.d/10-site.conf", "site: north\ndeep: {b: {d: 3}}\n")
	write("grains.d/20-broken.conf", "a: [\n")
	write("grains.d/30-list.conf", "- a\n")
	write("grains.d/ignored.yaml", "ignored: true\n")
	root := loadCases(t)["os debian12"].build(t)
	gather := func(opts map[string]any, custom ...Source) map[string]any {
		opts["conf_file"] = filepath.Join(dir, "minion")
		return Gather(t.Context(), Options{Root: root, Opts: opts, Custom: custom})
	}

	g := gather(map[string]any{"grains": map[string]any{"foo": "conf"}})
	want := map[string]any{"role": "web", "site": "north", "deep": map[string]any{"b": map[string]any{"d": int64(3)}}, "kernel": "Mine", "8080": "port", "foo": "conf", "ignored": nil, "a": nil}
	for k, v := range want {
		if !cmp.Equal(g[k], v) {
			t.Errorf("%s: got %v, want %v", k, g[k], v)
		}
	}

	g = gather(map[string]any{"grains_deep_merge": true}, Source{Name: "mine", Gather: func(_ context.Context, seen map[string]any) (map[string]any, error) {
		return map[string]any{"deep": map[string]any{"e": seen["role"]}, "role": "custom"}, nil
	}})
	if diff := cmp.Diff(map[string]any{"a": int64(1), "b": map[string]any{"c": int64(2), "d": int64(3)}, "e": "web"}, g["deep"]); diff != "" {
		t.Error(diff)
	}
	if g["role"] != "custom" {
		t.Errorf("custom grains do not override: %v", g["role"])
	}

	g = gather(map[string]any{"grains_blacklist": []any{"ro*", "sit.", "os"}, "grains": map[string]any{"os": "kept"}})
	if _, ok := g["role"]; ok || g["site"] != nil || g["os"] != "kept" {
		t.Errorf("blacklist: role %v, site %v, os %v", g["role"], g["site"], g["os"])
	}

	if g = gather(map[string]any{"skip_grains": true}); len(g) != 0 {
		t.Errorf("skip_grains: got %v", g)
	}
}

func TestStaticGrainsErrors(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "grains")
	if err := os.WriteFile(name, []byte("a: 1\nb: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := static(t.Context(), newHost(Options{GrainsFile: name}))
	if err == nil || !strings.Contains(err.Error(), "Bad syntax in grains file! Skipping.") || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(name, []byte("just text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := static(t.Context(), newHost(Options{GrainsFile: name})); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v", err)
	}
	found, err := static(t.Context(), newHost(Options{GrainsFile: filepath.Join(dir, "none")}))
	if err != nil || len(found) != 0 {
		t.Errorf("no file: got %v, %v", found, err)
	}
}

func TestCache(t *testing.T) {
	root := loadCases(t)["os debian12"].build(t)
	dir := t.TempDir()
	opts := map[string]any{"grains_cache": true, "cachedir": dir, "grains": map[string]any{"n": int64(1)}}
	o := Options{Root: root, Opts: opts}
	first := Gather(t.Context(), o)
	name := filepath.Join(dir, "grains.cache.p")
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o", info.Mode().Perm())
	}
	opts["grains"] = map[string]any{"n": int64(2)}
	if g := Gather(t.Context(), o); !cmp.Equal(g, first) {
		t.Errorf("not from the cache: %s", cmp.Diff(first, g))
	}
	o.Refresh = true
	if g := Gather(t.Context(), o); g["n"] != any(int64(2)) {
		t.Errorf("refresh: got %v", g["n"])
	}
	o.Refresh = false
	opts["grains"] = map[string]any{"n": int64(3)}
	opts["refresh_grains_cache"] = true
	if g := Gather(t.Context(), o); g["n"] != any(int64(3)) {
		t.Errorf("refresh_grains_cache: got %v", g["n"])
	}
	delete(opts, "refresh_grains_cache")
	opts["grains"] = map[string]any{"n": int64(4)}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(name, old, old); err != nil {
		t.Fatal(err)
	}
	if g := Gather(t.Context(), o); g["n"] != any(int64(4)) {
		t.Errorf("expired: got %v", g["n"])
	}
	if err := os.WriteFile(name, []byte("\x81\xa1"), 0o600); err != nil {
		t.Fatal(err)
	}
	opts["grains"] = map[string]any{"n": int64(5)}
	if g := Gather(t.Context(), o); g["n"] != any(int64(5)) {
		t.Errorf("damaged: got %v", g["n"])
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// recorder collects log messages.
type recorder struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

func TestBadSources(t *testing.T) {
	root := loadCases(t)["os debian12"].build(t)
	var log recorder
	stuck := make(chan struct{})
	custom := []Source{
		{Name: "panics", Gather: func(context.Context, map[string]any) (map[string]any, error) { panic("boom") }},
		{Name: "fails", Gather: func(context.Context, map[string]any) (map[string]any, error) {
			return map[string]any{"half": true}, errors.New("other half")
		}},
		{Name: "hangs", Gather: func(context.Context, map[string]any) (map[string]any, error) { <-stuck; return nil, nil }},
		{Name: "obeys", Gather: func(ctx context.Context, _ map[string]any) (map[string]any, error) {
			<-ctx.Done()
			return map[string]any{"obeyed": true}, nil
		}},
		{Name: "good", Gather: func(context.Context, map[string]any) (map[string]any, error) {
			return map[string]any{"good": true}, nil
		}},
	}
	start := time.Now()
	g := Gather(t.Context(), Options{Root: root, Custom: custom, Timeout: time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))})
	close(stuck)
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
	for _, key := range []string{"half", "obeyed", "good"} {
		if g[key] != any(true) {
			t.Errorf("%s is %v", key, g[key])
		}
	}
	if g["os"] != "Debian" {
		t.Errorf("os is %v", g["os"])
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, want := range []string{"boom", "other half", "source=hangs"} {
		if !strings.Contains(log.text.String(), want) {
			t.Errorf("%q not logged:\n%s", want, log.text.String())
		}
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	start := time.Now()
	Gather(ctx, Options{})
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
}

// TestBlackHole uses name servers that never answer and a getent that waits for them. It has its own clock, so that a
// busy machine does not look like a slow source.
func TestBlackHole(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the live sources of Linux")
	}
	// The resolver reads its configuration once; do so before the synctest clock starts.
	refused := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF }}
	if _, err := refused.LookupAddr(t.Context(), "198.51.100.7"); err == nil {
		t.Fatal("a refused resolver has an answer")
	}
	synctest.Test(t, blackHole)
}

func blackHole(t *testing.T) {
	const timeout = 200 * time.Millisecond
	h := newHost(Options{Timeout: timeout, Opts: map[string]any{"enable_fqdns_grains": true}})
	defer h.close()
	var asked atomic.Int32
	h.resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		asked.Add(1)
		c, _ := net.Pipe() // whose other end does not read
		return c, nil
	}}
	run := h.exec
	h.exec = func(ctx context.Context, args ...string) (string, int, error) {
		if filepath.Base(args[0]) == "getent" {
			asked.Add(1)
			<-ctx.Done()
			return "", 1, ctx.Err()
		}
		return run(ctx, args...)
	}
	h.interfaces = func() ([]iface, error) {
		return []iface{{name: "eth0", v4: []string{"198.51.100.7", "198.51.100.8"}, v6: []string{"2001:db8::7"}}}, nil
	}
	start := time.Now()
	found := h.runAll(t.Context(), []source{{name: "hostname", gather: hostname}, {name: "ip_fqdn", gather: ipFQDN}, {name: "fqdns", gather: fqdns}, {name: "kernel", gather: kernel}})
	if d := time.Since(start); d > timeout+timeout/4 {
		t.Errorf("took %v", d)
	}
	if asked.Load() == 0 {
		t.Error("no resolver was asked")
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if found[0]["localhost"] != name || found[0]["fqdn"] == "" {
		t.Errorf("hostname: got %v", found[0])
	}
	if diff := cmp.Diff([]any{"198.51.100.7", "198.51.100.8"}, found[1]["ipv4"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"fqdns": []any{}}, found[2]); diff != "" {
		t.Error(diff)
	}
	if found[3]["kernel"] != "Linux" {
		t.Errorf("kernel: got %v", found[3])
	}
}

func TestHosts(t *testing.T) {
	f := parseHosts("# comment\n127.0.0.1 localhost\n127.0.1.1\tweb1.example.org web1 # mine\n::1 ip6-localhost WEB1\njunk x\n10.0.0.1\n")
	var got []string
	for _, e := range f.byName("web1") {
		got = append(got, e.addr.String()+" "+e.names[0])
	}
	if diff := cmp.Diff([]string{"::1 ip6-localhost", "127.0.1.1 web1.example.org"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestReverse checks the rules of socket.getfqdn for /etc/hosts.
func TestReverse(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "10.0.0.1 web1 web1.example.org\n10.0.0.2 db\n10.0.0.3 a.example.org a\n"
	if err := os.WriteFile(filepath.Join(root, "etc", "hosts"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	h := newHost(Options{Root: root})
	for addr, want := range map[string]string{"10.0.0.1": "web1.example.org", "10.0.0.2": "db", "10.0.0.3": "a.example.org"} {
		if got := h.reverse(t.Context(), netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: got %q, want %q", addr, got, want)
		}
	}
}

// TestLocale compares with the answers of Python 3.11 on a system with C.UTF-8 and two more locales.
func TestLocale(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"de_DE.utf8", "fr_FR"} {
		if err := os.MkdirAll(filepath.Join(root, "usr/lib/locale", d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for env, want := range map[string][2]any{
		"":                      {"en_US", "UTF-8"},
		"LANG=C":                {"en_US", "UTF-8"},
		"LANG=C.UTF-8":          {"en_US", "UTF-8"},
		"LANG=xx_XX.UTF-8":      {"en_US", "UTF-8"},
		"LC_ALL=C":              {nil, nil},
		"LC_ALL=xx_XX":          {nil, nil},
		"LC_ALL=C.UTF-8":        {"en_US", "UTF-8"},
		"LANG=de_DE.UTF-8":      {"de_DE", "UTF-8"},
		"LC_CTYPE=de_DE.utf8":   {"de_DE", "UTF-8"},
		"LANG=fr_FR":            {"fr_FR", "ISO8859-1"},
		"LANG=../../etc/passwd": {"en_US", "UTF-8"},
	} {
		h := newHost(Options{Root: root, Getenv: func(name string) string {
			v, _ := strings.CutPrefix(env, name+"=")
			if v == env {
				return ""
			}
			return v
		}})
		language, encoding := h.locale()
		if language != want[0] || encoding != want[1] {
			t.Errorf("%s: got %v, %v; want %v", env, language, encoding, want)
		}
	}
}

func TestGetent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no user database")
	}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "usr/bin/getent"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	h := newHost(Options{Root: root, Getenv: func(string) string { return "" }})
	h.exec = func(_ context.Context, args ...string) (string, int, error) {
		switch strings.Join(args[1:], " ") {
		case fmt.Sprintf("passwd %d", os.Geteuid()):
			return fmt.Sprintf("ldapuser:x:%d:5000:A User:/home/u:/bin/sh", os.Geteuid()), 0, nil
		case "group 5000":
			return "staff:*:5000:", 0, nil
		}
		return "", 2, nil
	}
	g, err := process(t.Context(), h)
	if err != nil || g["username"] != "ldapuser" || g["groupname"] != "staff" || g["uid"] != any(int64(os.Geteuid())) {
		t.Errorf("got %v, %v", g, err)
	}
}

func BenchmarkGather(b *testing.B) {
	opts := map[string]any{"id": "web1", "enable_fqdns_grains": false}
	b.ReportAllocs()
	for b.Loop() {
		if g := Gather(context.Background(), Options{Opts: opts}); len(g) < 30 {
			b.Fatal(len(g))
		}
	}
}

func BenchmarkSources(b *testing.B) {
	for _, s := range sources(true) {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h := newHost(Options{Opts: map[string]any{"id": "web1", "enable_fqdns_grains": false}})
				if _, err := s.gather(context.Background(), h); err != nil {
					b.Log(err)
				}
				h.close()
			}
		})
	}
}

func TestSourceNames(t *testing.T) {
	for _, live := range []bool{true, false} {
		seen := map[string]bool{}
		for _, s := range sources(live) {
			if seen[s.name] || s.gather == nil {
				t.Errorf("source %q is there twice or empty", s.name)
			}
			seen[s.name] = true
		}
		if !slices.Contains(slices.Collect(maps.Keys(seen)), "static") {
			t.Error("no static grains")
		}
	}
}
