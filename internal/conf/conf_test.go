package conf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustLoad(t *testing.T, path string, o Options) *Config {
	t.Helper()
	c, err := LoadMinionWith(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaultsAreFresh(t *testing.T) {
	a := MinionDefaults()
	a["file_roots"].(map[string]any)["base"].([]any)[0] = "changed"
	if b := MinionDefaults()["file_roots"].(map[string]any)["base"].([]any)[0]; b != "/srv/salt" {
		t.Errorf("the second map has %v", b)
	}
	if n, m := len(MinionDefaults()), len(MasterDefaults()); n < 303 || m < 345 {
		t.Errorf("%d minion and %d master options", n, m)
	}
	for key, want := range map[string]any{"master": "salt", "master_port": int64(4506), "publish_port": nil, "auth_timeout": int64(5), "auth_tries": int64(7),
		"acceptance_wait_time": int64(10), "random_reauth_delay": int64(10), "recon_default": int64(1000), "recon_max": int64(10000), "retry_dns": int64(30),
		"ping_interval": int64(0), "return_retry_timer": int64(5), "request_channel_timeout": int64(60), "max_event_size": int64(1 << 20), "mine_interval": int64(60),
		"process_count_max": int64(-1), "hash_type": "sha256", "encryption_algorithm": "OAEP-SHA1", "signing_algorithm": "PKCS1v15-SHA1",
		"sign_pub_messages": false, "log_level": "warning", "enable_legacy_startup_events": true, "tcp_keepalive_idle": int64(300)} {
		if got := MinionDefaults()[key]; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
}

// TestLostConfiguration: a daemon does not start if it cannot read an existing file, because restrictions may be in
// it. Tools continue, as stock's do.
func TestLostConfiguration(t *testing.T) {
	const broken = "minion_deny_functions: ["
	for name, files := range map[string]map[string]string{
		"may not be read":             {"minion": "id: secret\n"},
		"included":                    {"minion": "id: x\n", "minion.d/a.conf": broken},
		"included by an included one": {"minion": "id: x\n", "minion.d/a.conf": "include: ../more\n", "more": broken},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range files {
				write(t, filepath.Join(dir, name), text)
			}
			main := filepath.Join(dir, "minion")
			var o Options
			if len(files) == 1 {
				// Trust returns the system's error, since root, who may run this test, can read all files.
				o.Trust = func(path string) error {
					return &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
				}
			}
			if _, err := LoadMinionWith(main, o); !errors.As(err, new(*Error)) {
				t.Errorf("a daemon: %v", err)
			}
			o.Tool = true
			if c, err := LoadMinionWith(main, o); err != nil || len(c.Notes) == 0 {
				t.Errorf("a tool: %v", err)
			}
		})
	}
}

func TestOverridesWinLast(t *testing.T) {
	root := t.TempDir()
	path := write(t, filepath.Join(root, "minion"), "id: file\nlog_level: info\npidfile: x.pid\nroot_dir: "+root+"\n")
	c := mustLoad(t, path, Options{Overrides: map[string]any{"id": "flag", "log_level": "debug", "pidfile": "rel.pid"}})
	if c.String("id") != "flag" || c.String("log_level") != "debug" || c.String("pidfile") != "rel.pid" {
		t.Errorf("id %s, log_level %s, pidfile %s", c.String("id"), c.String("log_level"), c.String("pidfile"))
	}
	if d := cmp.Diff([]string{path}, c.Files); d != "" {
		t.Error(d)
	}
}

func TestNoPathReadsNothing(t *testing.T) {
	c := mustLoad(t, "", Options{Overrides: map[string]any{"id": "a"}})
	if len(c.Files) != 0 || c.String("conf_file") != "/etc/salt/minion" || c.String("id") != "a" {
		t.Errorf("files %v, conf_file %s", c.Files, c.String("conf_file"))
	}
}

func TestEnvironmentMovesTheDefaultPathOnly(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "one"), "id: from-file\n")
	write(t, filepath.Join(dir, "minion"), "id: from-dir\n")
	other := write(t, filepath.Join(dir, "other"), "id: other\n")
	env := map[string]string{}
	load := func(path string) string {
		t.Helper()
		return mustLoad(t, path, Options{Getenv: func(k string) string { return env[k] }, Host: fixedHost("guess")}).String("id")
	}
	def := PlatformDirs().Config + "/minion"
	if _, err := os.Stat(def); err == nil {
		t.Logf("%s exists on this host", def)
	}
	env["SALT_CONFIG_DIR"] = dir
	if got := load(def); got != "from-dir" {
		t.Errorf("SALT_CONFIG_DIR: %s", got)
	}
	env["SALT_MINION_CONFIG"] = file
	if got := load(def); got != "from-file" {
		t.Errorf("SALT_MINION_CONFIG: %s", got)
	}
	if got := load(other); got != "other" {
		t.Errorf("a path of its own: %s", got)
	}
}

func fixedHost(name string) *Host {
	return &Host{Hostname: func() (string, error) { return name, nil }, FQDN: func(h string) string { return h },
		ReadFile: func(path string) ([]byte, error) {
			if !strings.HasPrefix(path, os.TempDir()) {
				return nil, fs.ErrNotExist
			}
			return os.ReadFile(path)
		}, Addrs: func() []string { return nil }}
}

func TestGuessedID(t *testing.T) {
	files := func(m map[string]string) func(string) ([]byte, error) {
		return func(path string) ([]byte, error) {
			if s, ok := m[path]; ok {
				return []byte(s), nil
			}
			return nil, fs.ErrNotExist
		}
	}
	for name, c := range map[string]struct {
		host, fqdn string
		files      map[string]string
		addrs      []string
		want       string
	}{
		"full name":        {"web", "web.example.org", nil, nil, "web.example.org"},
		"host name":        {"web", "localhost.localdomain", nil, nil, "web"},
		"etc hostname":     {"localhost", "localhost", map[string]string{"/etc/hostname": "# x\nfile-name\n"}, nil, "file-name"},
		"etc hosts":        {"localhost", "localhost", map[string]string{"/etc/hosts": "10.0.0.1 other\n127.0.1.1 localhost own # c\n"}, nil, "own"},
		"hosts of others":  {"localhost", "localhost", map[string]string{"/etc/hosts": "10.0.0.1 other\n"}, []string{"10.0.0.9"}, "10.0.0.9"},
		"ip6 names":        {"ip6-localhost", "ipv6-x", nil, []string{"127.0.0.1", "10.1.1.1"}, "10.1.1.1"},
		"nothing":          {"", "", nil, nil, "localhost"},
		"reverse of zeros": {"1.0.0.0.0.ip6.arpa", "1x0y0z.ip6.arpa", nil, nil, "localhost"},
	} {
		h := &Host{Hostname: func() (string, error) { return c.host, nil }, FQDN: func(string) string { return c.fqdn },
			ReadFile: files(c.files), Addrs: func() []string { return c.addrs }}
		if got := guessID(h); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestGuessedIDIsCached(t *testing.T) {
	root := t.TempDir()
	path := write(t, filepath.Join(root, "minion"), "root_dir: "+root+"\n")
	cache := filepath.Join(root, PlatformDirs().Config, "minion_id")
	mustLoad(t, path, Options{Host: fixedHost("one")})
	if _, err := os.Stat(cache); err == nil {
		t.Error("the id was cached without being asked to")
	}
	if got := mustLoad(t, path, Options{Host: fixedHost("one"), CacheID: true}).String("id"); got != "one" {
		t.Errorf("id %s", got)
	}
	if got := mustLoad(t, path, Options{Host: fixedHost("two"), CacheID: true}).String("id"); got != "one" {
		t.Errorf("id %s in spite of the cache", got)
	}
	if b, _ := os.ReadFile(cache); string(b) != "one" {
		t.Errorf("the cache has %q", b)
	}
}

func TestMinionID(t *testing.T) {
	for id, ok := range map[string]bool{"web1": true, "a b": true, "": false, "..": false, "a/b": false, "a\x00": false, strings.Repeat("x", 256): false} {
		if got, err := MinionID(&Config{Opts: map[string]any{"id": id}}); (err == nil) != ok || ok && got != id {
			t.Errorf("%q: %q, %v", id, got, err)
		}
	}
}

func TestIDFunctionIsRefused(t *testing.T) {
	root := t.TempDir()
	path := write(t, filepath.Join(root, "minion"), "id_function: {grains.get: {key: x}}\nroot_dir: "+root+"\n")
	if _, err := LoadMinion(path, nil); err == nil || !strings.Contains(err.Error(), "id_function") {
		t.Error(err)
	}
}

func TestSDBIsNeverTakenLiterally(t *testing.T) {
	dir := t.TempDir()
	for _, key := range []string{"master", "id", "master_finger", "pki_dir"} {
		path := write(t, filepath.Join(dir, key), key+": sdb://vault/x\n")
		if _, err := LoadMinion(path, nil); err == nil || !strings.Contains(err.Error(), "'"+key+"'") || !strings.Contains(err.Error(), "sdb") {
			t.Errorf("%s: %v", key, err)
		}
	}
	path := write(t, filepath.Join(dir, "others"), "id: a\ngitfs_password: sdb://p\nmine: {secret: sdb://q, list: [sdb://r, ok]}\n")
	c := mustLoad(t, path, Options{})
	if d := cmp.Diff(map[string]any{"secret": nil, "list": []any{nil, "ok"}}, c.Opts["mine"]); d != "" || c.Opts["gitfs_password"] != "" {
		t.Errorf("%s %v", d, c.Opts["gitfs_password"])
	}
	notes := 0
	for _, n := range c.Notes {
		if strings.Contains(n.Text, "sdb is not supported") {
			notes++
		}
	}
	if notes != 3 {
		t.Errorf("%d notes: %v", notes, c.Notes)
	}
}

func TestIncludeLoopEnds(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "minion"), "id: a\ninclude: a.conf\n")
	write(t, filepath.Join(dir, "a.conf"), "include: b.conf\n")
	write(t, filepath.Join(dir, "b.conf"), "include: a.conf\n")
	if _, err := LoadMinion(path, nil); err == nil || !strings.Contains(err.Error(), "include each other") {
		t.Error(err)
	}
}

func TestIncludeOfSomethingElse(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "minion"), "id: a\ninclude: [{a: b}]\n")
	if _, err := LoadMinion(path, nil); err == nil || !strings.Contains(err.Error(), "{'a': 'b'}") {
		t.Error(err)
	}
}

// TestMainFileIsADirectory covers a mistyped -c. Stock uses the defaults.
func TestMainFileIsADirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "minion")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	var e *Error
	if _, err := LoadMinionWith(path, Options{Overrides: map[string]any{"id": "a"}}); !errors.As(err, &e) || e.Path != path || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory in the place of the main file: %v", err)
	}
}

// TestUnreadableMainFileCountsAsMissing uses a file that the user may not read.
func TestUnreadableMainFileCountsAsMissing(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads every file")
	}
	path := write(t, filepath.Join(t.TempDir(), "minion"), "id: b\n")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if c := mustLoad(t, path, Options{Overrides: map[string]any{"id": "a"}}); len(c.Files) != 0 {
		t.Errorf("read %v", c.Files)
	}
}

// TestForeignFilesAreRefused: files of other users are refused (T18 in the tests of package minion).
func TestForeignFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "minion"), "id: a\n")
	drop := write(t, filepath.Join(dir, "minion.d", "x.conf"), "x: 1\n")
	o := Options{Trust: OwnerPolicy(os.Getuid())}
	if c := mustLoad(t, path, o); c.Opts["x"] != int64(1) {
		t.Errorf("x is %v", c.Opts["x"])
	}
	for _, file := range []string{path, drop} {
		if err := os.Chmod(file, 0o666); err != nil {
			t.Fatal(err)
		}
		var e *Error
		if _, err := LoadMinionWith(path, o); !errors.As(err, &e) || e.Path != file || !strings.Contains(err.Error(), "writable by everybody") {
			t.Errorf("%s writable by all: %v", file, err)
		}
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "minion.d"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadMinionWith(path, o); err == nil || !strings.Contains(err.Error(), "minion.d") {
		t.Errorf("a directory open to all: %v", err)
	}
	if err := os.Chmod(filepath.Join(dir, "minion.d"), 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	mustLoad(t, path, o)
	if os.Getuid() != 0 {
		return // only root can give files away
	}
	if err := os.Chown(drop, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadMinionWith(path, o); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("a file of another user: %v", err)
	}
	mustLoad(t, path, Options{Trust: OwnerPolicy(12345)})
	c := mustLoad(t, path, Options{})
	if err := CheckOwners(c); err == nil || !strings.Contains(err.Error(), drop) {
		t.Errorf("CheckOwners: %v", err)
	}
	if err := os.Chown(drop, 65534, -1); err != nil {
		t.Fatal(err)
	}
	c.Opts["user"] = "nobody"
	if err := CheckOwners(c); err != nil {
		t.Errorf("the service user's own file: %v", err)
	}
}

func TestAccessors(t *testing.T) {
	c := &Config{Opts: map[string]any{
		"s": "text", "i": int64(5), "si": " 7 ", "f": 2.5, "b": true, "bs": "no", "l": []any{"a", int64(1), nil}, "one": "x", "empty": "", "none": nil,
		"m": map[string]any{"k": map[any]any{int64(1): "deep", "t": []any{"x", "y"}}}, "with:colon": "c", "mm": map[any]any{int64(1): "a"}, "loop_interval": "soon",
		"inf": 1e300,
	}}
	check := func(what string, got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
	check("String", []string{c.String("s"), c.String("i"), c.String("b"), c.String("none"), c.String("m")}, []string{"text", "5", "True", "", ""})
	check("Int", []int{c.Int("i"), c.Int("si"), c.Int("f"), c.Int("b"), c.Int("loop_interval"), c.Int("absent")}, []int{5, 7, 2, 1, 1, 0})
	check("Duration", []time.Duration{c.Duration("f", time.Second), c.Duration("i", time.Millisecond), c.Duration("inf", time.Hour)},
		[]time.Duration{2500 * time.Millisecond, 5 * time.Millisecond, 1<<63 - 1})
	check("Bool", []bool{c.Bool("b"), c.Bool("bs"), c.Bool("s"), c.Bool("none"), c.Bool("l"), c.Bool("i"), c.Bool("empty")}, []bool{true, false, true, false, true, true, false})
	check("List", [][]any{c.List("l"), c.List("one"), c.List("none"), c.List("empty"), c.List("i")}, [][]any{{"a", int64(1), nil}, {"x"}, nil, nil, {int64(5)}})
	check("Strings", c.Strings("l"), []string{"a", "1"})
	check("Map", []map[string]any{c.Map("mm"), c.Map("s")}, []map[string]any{{"1": "a"}, nil})
	check("Get", []any{c.Get("m:k:1", 0), c.Get("m:k:t:1", 0), c.Get("with:colon", 0), c.Get("m:x", "def"), c.Get("s:x", "def"), c.Get("m:k:t:9", "def")},
		[]any{"deep", "y", "c", "def", "def", "def"})
}

func TestGlob(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.conf", "b.conf", ".hidden.conf", "c.txt", "sub/x.conf", "sub2/y.conf", "we[i]rd.conf", "!x.conf"} {
		write(t, filepath.Join(dir, name), "")
	}
	for pattern, want := range map[string][]string{
		"*.conf":     {"!x.conf", "a.conf", "b.conf", "we[i]rd.conf"},
		".*.conf":    {".hidden.conf"},
		"[ab].conf":  {"a.conf", "b.conf"},
		"[!ab].conf": nil,
		"[!a]*.txt":  {"c.txt"},
		"?.conf":     {"a.conf", "b.conf"},
		"sub*/*":     {"sub/x.conf", "sub2/y.conf"},
		"sub?/y*":    {"sub2/y.conf"},
		"a.conf":     {"a.conf"},
		"nope*":      nil,
		"[.conf":     nil,
		"we[[]i*":    {"we[i]rd.conf"},
		"*/x.conf":   {"sub/x.conf"},
	} {
		var got []string
		for _, m := range glob(filepath.Join(dir, pattern)) {
			rel, _ := filepath.Rel(dir, m)
			got = append(got, rel)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", pattern, d)
		}
	}
}

func TestPlatformDirs(t *testing.T) {
	env := func(k string) string { return map[string]string{"ProgramData": "P", "SystemDrive": "C:"}[k] }
	for goos, want := range map[string]string{"linux": "/etc/salt", "freebsd": "/usr/local/etc/salt", "netbsd": "/usr/pkg/etc/salt", "illumos": "/opt/local/etc/salt",
		"windows": filepath.Join("P", "Salt Project", "Salt", "conf")} {
		if got := dirsOf(goos, env).Config; got != want {
			t.Errorf("%s: %s, want %s", goos, got, want)
		}
	}
}

func TestDynamicBuffer(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "minion"), "id: a\nipc_write_buffer: dynamic\n")
	if n := mustLoad(t, path, Options{}).Int("ipc_write_buffer"); n < 5<<20 {
		t.Errorf("%d bytes", n)
	}
}

// FuzzLoad: no file makes Load panic, and a loaded configuration has an id and the default options.
func FuzzLoad(f *testing.F) {
	for _, c := range []string{"id: a\nmaster: [a, b]\n", "file_roots: {base: ~, 1: [x]}\n", "append_minionid_config_dirs: [pidfile, 1]\npidfile: 5\n", "ssl: [x]\n",
		"sock_dir: 5\ncachedir: ~\n", "include: {a: b}\n", "discovery: 5\n", "schedule: []\ngrains: 5\n", "log_dir: 5\nlog_file: []\n", "fileserver_backend: git\n", "return: [{}]\n"} {
		f.Add(c, false)
		f.Add(c, true)
	}
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		f.Setenv("TMPDIR", "/dev/shm") // a file per input would be slow on a disk
	}
	path := filepath.Join(f.TempDir(), "minion") // one file per process, since a directory per input would be slow too
	f.Fuzz(func(t *testing.T, text string, master bool) {
		if strings.Contains(text, "include") || strings.Contains(text, "_roots") {
			return // it would read files of this host
		}
		write(t, path, text)
		load := LoadMinionWith
		if master {
			load = LoadMasterWith
		}
		c, err := load(path, Options{Host: fixedHost("guess")})
		if err == nil && (c.String("id") == "" || len(c.Opts) < 300) {
			t.Errorf("%q gave id %q and %d options", text, c.String("id"), len(c.Opts))
		}
	})
}

// TestSDBInLocks: a security option whose value comes from sdb, even in part, is an error, because the minion would
// start without the restriction.
func TestSDBInLocks(t *testing.T) {
	for _, name := range HonouredLocks() {
		for value, at := range map[string]string{
			"sdb://db/x":                name,
			"[a, sdb://db/x]":           name,
			"{a: {b: [1, sdb://db/x]}}": name + ":a:b",
		} {
			_, err := LoadMinion(write(t, filepath.Join(t.TempDir(), "minion"), "id: m\n"+name+": "+value+"\n"), nil)
			if err == nil || !strings.Contains(err.Error(), "'"+at+"' refers to sdb://db/x") {
				t.Errorf("%s: %s: %v", name, value, err)
			}
		}
	}
}
