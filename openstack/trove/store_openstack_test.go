//go:build openstack

package trove

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/internal/testkit/testserver"
)

// startSwift starts Debian's swift with tempauth and the S3 middleware, and returns its address. Its user is
// trove:guest.
func startSwift(t *testing.T) string {
	t.Helper()
	prereq.Root(t)
	memcached := testserver.Program(t, "memcached")
	testserver.Program(t, "swift-proxy-server")
	dir, _ := testserver.Dir(t, "")
	if err := os.MkdirAll(filepath.Join(dir, "devices/d1"), 0o700); err != nil {
		t.Fatal(err)
	}
	cache := testserver.Port(t)
	testserver.Start(t, nil, syscall.SIGTERM, memcached, "-u", "root", "-l", "127.0.0.1", "-p", cache)
	ports := map[string]string{}
	for _, kind := range []string{"account", "container", "object", "proxy"} {
		ports[kind] = testserver.Port(t)
		pipeline := "healthcheck " + kind + "-server"
		filters := ""
		app := "[app:" + kind + "-server]\nuse = egg:swift#" + kind + "\n"
		if kind == "proxy" {
			pipeline = "catch_errors gatekeeper healthcheck cache s3api tempauth copy slo dlo proxy-server"
			for f := range strings.FieldsSeq("catch_errors gatekeeper copy slo dlo") {
				filters += "[filter:" + f + "]\nuse = egg:swift#" + f + "\n"
			}
			filters += "[filter:cache]\nuse = egg:swift#memcache\nmemcache_servers = 127.0.0.1:" + cache + "\n" +
				"[filter:tempauth]\nuse = egg:swift#tempauth\nuser_trove_guest = guestsecret .admin\n" +
				"[filter:s3api]\nuse = egg:swift#s3api\nlocation = us-east-1\nauth_pipeline_check = false\n"
			app += "account_autocreate = true\n"
		}
		conf := "[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = " + ports[kind] + "\nworkers = 0\nuser = root\nswift_dir = " + dir + "\ndevices = " + dir +
			"/devices\nmount_check = false\nfallocate_reserve = 0\nlog_level = INFO\nrecon_cache_path = " + dir + "\n[pipeline:main]\npipeline = " +
			pipeline + "\n[filter:healthcheck]\nuse = egg:swift#healthcheck\n" + filters + app
		if err := os.WriteFile(filepath.Join(dir, kind+"-server.conf"), []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "../lab/swift_rings.py", dir, ports["account"], ports["container"],
		ports["object"]).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for kind, port := range ports {
		testserver.Start(t, nil, syscall.SIGTERM, "/usr/bin/python3", "/usr/bin/swift-"+kind+"-server", filepath.Join(dir, kind+"-server.conf"), "-v")
		defer testserver.Until(t, "swift-"+kind, func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/healthcheck", nil)
			if err != nil {
				return err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return errors.New(resp.Status)
			}
			return nil
		})
	}
	return "http://127.0.0.1:" + ports["proxy"]
}

// swiftStores returns a configuration of each kind of store; one swift serves both.
func swiftStores(at string) map[string]map[string]any {
	return map[string]map[string]any{
		"swift": {"type": "swift", "auth_version": int64(1), "auth_url": at + "/auth/v1.0", "username": "trove:guest", "password": "guestsecret",
			"segment_size": int64(minSegment)},
		"s3": {"type": "s3", "endpoint": at, "access_key": "trove:guest", "secret_key": "guestsecret", "region": "us-east-1", "path_style": true,
			"segment_size": int64(minSegment)},
	}
}

// TestTroveStores keeps small and large objects in a real swift, over its own interface and over S3's.
func TestTroveStores(t *testing.T) {
	at := startSwift(t)
	large := make([]byte, 2*minSegment+12345)
	for i := 0; i < len(large)-8; i += 8 {
		copy(large[i:], strconv.FormatUint(rand.Uint64(), 36))
	}
	sum := func(b []byte) string { s := md5.Sum(b); return hex.EncodeToString(s[:]) }
	for kind, conf := range swiftStores(at) {
		t.Run(kind, func(t *testing.T) {
			ctx := t.Context()
			h := newHost(t, map[string]any{"datastore_manager": "mariadb", "store": conf})
			settings, err := readSettings(h.env.Opts()["trove"])
			if err != nil {
				t.Fatal(err)
			}
			g := &guest{settings: settings, c: h.reg.NewCall(h.env, "trove.rpc_ping", "", nil)}
			s, err := g.openStore(ctx)
			if err != nil {
				t.Fatal(err)
			}
			container := "kept_" + kind
			// Read a missing object in a missing container.
			if _, err := s.get(ctx, container, "none"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a missing object: %v", err)
			}
			if err := s.remove(ctx, container, "none"); err != nil {
				t.Errorf("a missing object is removed: %v", err)
			}
			if names, err := s.names(ctx, container, ""); err != nil || len(names) != 0 {
				t.Errorf("a missing container: %v, %v", names, err)
			}

			medium := large[:minSegment-1]
			meta := map[string]string{"parent_location": "http://x/y z", "lsn": "12", "start_wal_file": "A"}
			for name, data := range map[string][]byte{"empty": {}, "a/small one": []byte("text"), "medium.tar.gz": medium, "exact.x": large[:minSegment],
				"id.large.xbstream.gz": large} {
				want := sum(data)
				if len(data) > minSegment && kind == "swift" {
					want = ""
					for part := range slices.Chunk(data, minSegment) {
						want += sum(part)
					}
					want = sum([]byte(want))
				}
				got, err := s.put(ctx, container, name, onlyReader{bytes.NewReader(data)}, meta)
				if err != nil || got != want {
					t.Fatalf("%s: the checksum is %q, not %q: %v", name, got, want, err)
				}
				c, n, err := s.locate(s.location(container, name))
				if err != nil || n != name || c != container && c != bucket(container) {
					t.Errorf("%s is found as %s, %s, %v", name, c, n, err)
				}
				more := map[string]string{"sha256": "5", "lsn": "13"}
				if err := s.annotate(ctx, c, n, more); err != nil {
					t.Error(err)
				}
				o, err := s.get(ctx, c, n)
				if err != nil {
					t.Fatal(err)
				}
				read, err := io.ReadAll(o)
				if err != nil || !bytes.Equal(read, data) || o.Close() != nil {
					t.Errorf("%s: %d bytes of %d, %v", name, len(read), len(data), err)
				}
				if diff := cmp.Diff(more, o.meta); diff != "" {
					t.Error(diff)
				}
				if o.checksum != "" && o.checksum != want {
					t.Errorf("%s: the store says %s, not %s", name, o.checksum, want)
				}
			}
			names, err := s.names(ctx, container, "")
			want := []string{"a/small one", "empty", "exact.x", "id.large.xbstream.gz", "medium.tar.gz"}
			if kind == "swift" {
				want = slices.Insert(want, 3, "id_00000000", "id_00000001", "id_00000002")
				slices.Sort(want)
			}
			if diff := cmp.Diff(want, names); diff != "" || err != nil {
				t.Error(diff, err)
			}
			if names, err := s.names(ctx, container, "a/"); err != nil || cmp.Diff([]string{"a/small one"}, names) != "" {
				t.Error(names, err)
			}

			// A stream that fails leaves nothing behind, wherever it fails.
			for _, n := range []int{10, minSegment, minSegment + 5} {
				failing := io.MultiReader(bytes.NewReader(large[:n]), failingReader{errors.New("the program has failed")})
				if _, err := s.put(ctx, container, "half", failing, nil); err == nil {
					t.Errorf("a stream that fails after %d bytes is stored", n)
				}
			}
			if after, err := s.names(ctx, container, ""); err != nil || cmp.Diff(names, after) != "" {
				t.Errorf("streams that failed left %v, %v", after, err)
			}
			for _, name := range want {
				if strings.HasPrefix(name, "id_") {
					continue
				}
				if err := s.remove(ctx, container, name); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if left, err := s.names(ctx, container, ""); err != nil || len(left) != 0 {
				t.Errorf("removed, but there are %v, %v", left, err)
			}
			for _, foreign := range []string{"file:///srv/x/y", "http://127.0.0.1/v1/AUTH_other/c/n", "s3://elsewhere/c/n", "", "x"} {
				if _, _, err := s.locate(foreign); err == nil || !strings.HasPrefix(err.Error(), "cannot find the backup "+strconv.Quote(foreign)) {
					t.Errorf("%s: %v", foreign, err)
				}
			}
		})
	}
	// The error for wrong credentials says so, and does not contain them.
	for kind, key := range map[string]string{"swift": "password", "s3": "secret_key"} {
		conf := swiftStores(at)[kind]
		conf[key] = "wrongsecret"
		h := newHost(t, map[string]any{"datastore_manager": "mariadb", "store": conf})
		settings, err := readSettings(h.env.Opts()["trove"])
		if err != nil {
			t.Fatal(err)
		}
		g := &guest{settings: settings, c: h.reg.NewCall(h.env, "trove.rpc_ping", "", nil)}
		s, err := g.openStore(t.Context())
		if err == nil {
			_, err = s.put(t.Context(), "c-1", "n", strings.NewReader("x"), nil)
		}
		if err == nil || strings.Contains(err.Error(), "wrongsecret") || strings.Contains(err.Error(), "guestsecret") {
			t.Errorf("%s with a wrong secret: %v", kind, err)
		}
	}
}

// onlyReader hides all other methods of a reader.
type onlyReader struct{ io.Reader }

// TestTroveStoredBackups makes encrypted backups of PostgreSQL in Swift and of MariaDB in S3, and restores an incremental one from each.
func TestTroveStoredBackups(t *testing.T) {
	stores := swiftStores(startSwift(t))
	for _, c := range []struct {
		kind   string
		open   func(*testing.T, map[string]any) *instance
		sql    func(i *instance, statement string) string
		config func(*instance) string
	}{
		{"swift", newPostgres, func(i *instance, s string) string { return i.psql("web", s) }, (*instance).postgresConfig},
		{"s3", newInstance, func(i *instance, s string) string { return i.query("USE web; " + s) }, (*instance).config},
	} {
		t.Run(c.kind, func(t *testing.T) {
			more := map[string]any{"store": stores[c.kind], "backup_aes_cbc_key": "a-key"}
			prepare := func(i *instance, backup string) {
				i.must("prepare", `{"memory_mb": 512, "packages": [], "users": [], "databases": [{"_name": "web"}], "config_contents": `+
					quoteJSON(c.config(i))+backup+`}`)
			}
			a := c.open(t, more)
			prepare(a, "")
			c.sql(a, "CREATE TABLE t (i INT PRIMARY KEY, s TEXT); INSERT INTO t VALUES (1, REPEAT('x', 60000))")
			a.seen()
			at := a.backUp(func() { c.sql(a, "INSERT INTO t SELECT MAX(i)+1, 'after' FROM t") })
			b := c.open(t, more)
			prepare(b, `, "backup_info": {"id": "inc", `+at+`}`)
			if got := strings.Fields(c.sql(b, "SELECT COUNT(*), SUM(LENGTH(s)) FROM t")); strings.Join(got, "|") != "2|60005" {
				t.Errorf("restored: %v", got)
			}
			// Logs use the same store.
			b.must("guest_log_action", `{"log_name": "general", "enable": true, "disable": false, "publish": false, "discard": false}`)
			if got := b.must("guest_log_action", `{"log_name": "general", "enable": false, "disable": true, "publish": false, "discard": true}`).(map[string]any); got["status"] != "Disabled" {
				t.Errorf("the log is %v", got)
			}
		})
	}
}
