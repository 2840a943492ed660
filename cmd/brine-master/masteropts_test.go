package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/orders/content"
)

func load(t *testing.T, text string) *conf.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := conf.LoadMaster(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEventAccessOption: without the option there are no rules, an empty option allows nothing, and an invalid
// pattern is an error.
func TestEventAccessOption(t *testing.T) {
	for text, want := range map[string]string{
		"id: x": "any", "event_access: {}": "none", "event_access:\n  'web*': ['app/{id}/*']": "web1", "event_access:\n  '*': 'app/*'": "both",
		"event_access: [a]": "error", "event_access:": "error",
	} {
		o, err := masterOptions(load(t, text), slog.New(slog.DiscardHandler))
		got := ""
		switch {
		case err != nil:
			got = "error"
		case o.Events.Access == nil:
			got = "any"
		default:
			one, two := o.Events.Access(master.EventRequest{ID: "web1", Tag: "app/web1/x"}),
				o.Events.Access(master.EventRequest{ID: "db1", Tag: "app/web1/x"})
			got = map[[2]bool]string{{false, false}: "none", {true, false}: "web1", {true, true}: "both"}[[2]bool{one, two}]
		}
		if got != want {
			t.Errorf("%s: %s, not %s", text, got, want)
		}
	}
}

func TestMasterOptions(t *testing.T) {
	var log bytes.Buffer
	o, err := masterOptions(load(t, `
id: here
interface: 127.0.0.1
publish_port: 1505
auto_accept: True
autosign_timeout: 5
file_roots: {base: [/srv/a, /srv/b], dev: [/srv/dev]}
file_recv_max_size: 2
rotate_aes_key: False
peer: {web.*: [test.ping, 'cmd.*']}
publisher_acl: {fred: [test.ping], 'web.*': {'web*': [test.*]}}
timeout: 7
keep_jobs_seconds: 60
max_jobs: 1000
max_jobs_size: 3
max_unfinished: 50
max_announced_tenant: 40
isolate_minions: True
allow_remote_clients: True
max_order_files: 7
max_order_size: 2
max_order_pillar: 3
max_orders_size: 9
nodegroups: {g: 'L@a'}
advertise: [a.example, 'b.example:4606']
engines: [{x: {}}]
master_tops: {reclass: {}}
ext_pillar: [{cmd_yaml: x}, {git: [x]}]
fileserver_backend: [roots, s3fs]
`), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	got := []any{o.ID, o.Network.Interface, o.Network.PublishPort, o.Network.RetPort,
		o.Keys.Policy.AutoAccept, o.Keys.Policy.AutosignTimeout, o.Files.RecvMaxSize,
		o.Keys.KeepAESOnDelete, o.Minions.Peer, o.Local.ACL, o.Jobs.Timeout, o.Jobs.Keep,
		o.Jobs.Max, o.Jobs.MaxBytes, o.Orders.MaxUnfinished, o.Keys.MaxAnnouncedTenant,
		o.Orders.Limits, o.Network.Isolate, o.Local.AnyHost, o.Jobs.Nodegroups,
		o.Minions.MineGet == nil, o.Network.Listen != nil, o.Files.HashType,
		o.Network.Advertise, o.Network.AdvertiseTransport}
	want := []any{"here", "127.0.0.1", 1505, 4506, true, 5 * time.Minute,
		int64(2 << 20), true, map[string][]any{"web.*": {"test.ping", "cmd.*"}}, map[string][]any{"fred": {"test.ping"}, "web.*": {map[string]any{"web*": []any{"test.*"}}}},
		7 * time.Second, time.Minute, 1000, int64(3 << 20), 50, 40, content.Limits{Files: 7, Bytes: 2 << 20, Pillar: 3 << 10, Total: 9 << 20}, true, true, map[string]any{"g": "L@a"}, true, true, "sha256",
		[]string{"a.example", "b.example:4606"}, "zeromq"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"engines", "ext_pillar: git", "fileserver_backend: s3fs", "master_tops: reclass"} {
		if !strings.Contains(log.String(), "The option "+name+" is not supported") {
			t.Errorf("the log does not name %s:\n%s", name, log.String())
		}
	}
}

// TestEachMasterOption sets options one at a time. Each must change the field of master.Options that implements it.
func TestEachMasterOption(t *testing.T) {
	for text, field := range map[string]func(master.Options) any{
		"allow_minion_key_revoke: False":   func(o master.Options) any { return o.Minions.NoKeyRevoke },
		"file_recv: True":                  func(o master.Options) any { return o.Files.Recv },
		"file_buffer_size: 4096":           func(o master.Options) any { return o.Files.BufferSize == 4096 },
		"ping_on_rotate: True":             func(o master.Options) any { return o.Keys.PingOnRotate },
		"publish_session: 7":               func(o master.Options) any { return o.Keys.PublishSession == 7*time.Second },
		"request_server_ttl: 9":            func(o master.Options) any { return o.Security.RequestTTL == 9*time.Second },
		"minion_data_cache: False":         func(o master.Options) any { return o.Minions.NoDataCache },
		"sudo_acl: True":                   func(o master.Options) any { return o.Local.SudoACL },
		"ipc_write_buffer: 12345":          func(o master.Options) any { return o.Local.WriteBuffer == 12345 },
		"job_cache: False":                 func(o master.Options) any { return o.Local.NoJobCache },
		"master_sign_pubkey: True":         func(o master.Options) any { return o.Keys.SignPubkey },
		"master_use_pubkey_signature: yes": func(o master.Options) any { return o.Keys.UsePubkeySignature },
		"master_sign_key_name: other":      func(o master.Options) any { return o.Keys.SignKeyName == "other" },
		"master_pubkey_signature: sig":     func(o master.Options) any { return o.Keys.PubkeySignature == "sig" },
		"publish_signing_algorithm: PKCS1v15-SHA224": func(o master.Options) any {
			return o.Security.SigningAlgorithm == "PKCS1v15-SHA224"
		},
		"pillar_cache: True\npillar_cache_ttl: 11":         func(o master.Options) any { return o.Pillar.CacheTTL == 11*time.Second },
		"pillar_cache: True\npillar_cache_backend: memory": func(o master.Options) any { return o.Pillar.CacheInMemory },
		"jinja_trim_blocks: True":                          func(o master.Options) any { return o.Minions.Opts["jinja_trim_blocks"] },
		"jinja_lstrip_blocks: True":                        func(o master.Options) any { return o.Minions.Opts["jinja_lstrip_blocks"] },
		"state_aggregate: True":                            func(o master.Options) any { return o.Minions.Opts["state_aggregate"] },
	} {
		before, err := masterOptions(load(t, ""), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		after, err := masterOptions(load(t, text), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if had, has := field(before), field(after); had == true || has != true {
			t.Errorf("%s: the field is %v, by default %v", text, has, had)
		}
	}
	// The master logs the names of options that it does not support.
	for _, text := range []string{"order_masters: True", "syndic_master: a", "event_return: mysql", "minionfs_whitelist: [a]", "signing_key_pass: x",
		"key_cache: sched", "cluster_id: c\ncluster_peers: [127.0.0.1]\ncluster_pki_dir: /tmp"} {
		var log bytes.Buffer
		if _, err := masterOptions(load(t, text), slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		name, _, _ := strings.Cut(text, ":")
		if want := "The option " + name + " is not supported by this master and has no effect"; !strings.Contains(log.String(), want) {
			t.Errorf("%s: the log is %s", text, log.String())
		}
	}
}

// TestNamedOptionsHaveNoEffect: the options that the master names at its start also have no effect in the table of
// options.
func TestNamedOptionsHaveNoEffect(t *testing.T) {
	for _, name := range namedAtStart {
		c := &conf.Config{Opts: map[string]any{"__role": "master", name: "x"}, Given: map[string]bool{name: true}}
		if got := c.Idle(); len(got) != 1 && name != "ext_job_cache" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMasterOptionsOfDefaultsWarnOfNothing(t *testing.T) {
	var log bytes.Buffer
	if _, err := masterOptions(load(t, ""), slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	if log.Len() > 0 {
		t.Errorf("a default configuration is complained about:\n%s", log.String())
	}
}

// TestDefaultsOfTheMaster: options that a file does not set have stock's defaults, including those that stock's table
// of defaults lacks.
func TestDefaultsOfTheMaster(t *testing.T) {
	for _, tt := range []struct {
		text           string
		autosign, keep time.Duration
		bytes          int64
	}{
		{"", 120 * time.Minute, 24 * time.Hour, 0},
		{"autosign_timeout: 0\nkeep_jobs: 48\nmax_jobs_size:", -1, 48 * time.Hour, 0},
		{"autosign_timeout: none\nkeep_jobs: 48\nkeep_jobs_seconds: 60\nmax_jobs_size: 0", 120 * time.Minute, time.Minute, -1},
		{"keep_jobs_seconds: 0", 120 * time.Minute, -1, 0},
	} {
		o, err := masterOptions(load(t, tt.text), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		got := []any{o.Keys.Policy.AutosignTimeout, o.Jobs.Keep, o.Jobs.MaxBytes,
			o.Orders.MaxUnfinished, o.Orders.Limits}
		want := []any{tt.autosign, tt.keep, tt.bytes, master.DefaultMaxUnfinished,
			content.Limits{Files: 100, Bytes: 256 << 20, Pillar: 1 << 20, Total: 4 << 30}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", tt.text, diff)
		}
	}
}

// TestSampleOfTheMaster: a master starts with the sample file, and with every option in it uncommented except
// event_access, which needs rules. Neither changes the master's options, and neither causes warnings.
func TestSampleOfTheMaster(t *testing.T) {
	sample, err := os.ReadFile("../../pkg/etc/master")
	if err != nil {
		t.Fatal(err)
	}
	on := regexp.MustCompile(`(?m)^#( {2}|[a-z])`).ReplaceAllString(string(sample), "$1")
	var list []master.Options
	for _, text := range []string{"user: salt", string(sample), strings.Replace(on, "\nevent_access:\n", "\n", 1)} {
		var log bytes.Buffer
		o, err := masterOptions(load(t, text), slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil || log.Len() > 0 {
			t.Fatalf("%v: %s", err, log.String())
		}
		o.Log, o.Keys.Policy.Log, o.Network.Listen = nil, nil, nil
		list = append(list, o)
	}
	for _, o := range list[1:] {
		if d := cmp.Diff(list[0], o, cmp.Exporter(func(reflect.Type) bool { return true })); d != "" {
			t.Error(d)
		}
	}
}

func TestUnknownTransport(t *testing.T) {
	if _, err := masterOptions(load(t, "transport: carrier_pigeon"), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "carrier_pigeon") {
		t.Errorf("error %v", err)
	}
}

// TestTenants: an invalid option must not have the effect that everybody sees everything.
func TestTenants(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"rest_cherrypy: {port: 1}", ""}, {"rest_cherrypy: {port: 1, tenants: {'b*': blue}}", "blue"},
		{"rest_cherrypy: {port: 1, tenants: {alice: red}}", eauth.ErrNoTenant.Error()}, {"rest_cherrypy: {port: 1, tenants: {}}", eauth.ErrNoTenant.Error()},
		{"rest_cherrypy: {port: 1, tenants: }", "rest_cherrypy: tenants must be a map of names and tenants"},
		{"rest_cherrypy: {port: 1, tenants: [bob]}", "rest_cherrypy: tenants must be a map of names and tenants"},
		{"rest_cherrypy: {port: 1, tenants: {bob: }}", "rest_cherrypy: tenants: <nil> of bob is not a valid tenant name"},
	} {
		whose, err := tenantFinder(load(t, c.text))
		got := ""
		if err == nil && whose != nil {
			got, err = whose(eauth.Token{Name: "bob"})
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestLocksThatAreNotHonoured: an option that restricts access in stock but is not implemented here prevents the
// start, unless it is off.
func TestLocksThatAreNotHonoured(t *testing.T) {
	for name, on := range map[string]string{
		"require_minion_sign_messages": "True", "drop_messages_signature_fail": "yes", "eauth_acl_module": "file", "cluster_pub_fingerprint": "aa:bb",
		"publish_whitelist": "[a]",
	} {
		if _, err := masterOptions(load(t, name+": "+on+"\n"), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := masterOptions(load(t, name+": \n"), slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("%s, not set: %v", name, err)
		}
	}
}

// TestListCacheOption tests fileserver_list_cache_time, whose default is 20 seconds in stock
// (salt/fileserver/__init__.py).
func TestListCacheOption(t *testing.T) {
	for _, tt := range []struct {
		opts map[string]any
		want time.Duration
	}{
		{map[string]any{}, 20 * time.Second}, {map[string]any{"fileserver_list_cache_time": int64(0)}, -1}, {map[string]any{"fileserver_list_cache_time": 1.5}, 1500 * time.Millisecond},
		{map[string]any{"fileserver_list_cache_time": int64(60)}, time.Minute},
	} {
		if got := listCache(&conf.Config{Opts: tt.opts}); got != tt.want {
			t.Errorf("%v: %s, not %s", tt.opts, got, tt.want)
		}
	}
}
