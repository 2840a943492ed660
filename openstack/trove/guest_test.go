package trove

import (
	"bytes"
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/agent"
	"github.com/brine-salt/brine/modules/fs"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/modules/xfs"
)

// host is a host without servers.
type host struct {
	t    *testing.T
	env  *modules.Env
	reg  *modules.Registry
	runs []string
}

func newHost(t *testing.T, trove map[string]any) *host {
	t.Helper()
	h := &host{t: t, env: modulestest.Env(t)}
	h.env.Opts = func() map[string]any { return map[string]any{"id": "inst-1", "trove": trove} }
	h.env.ID = "inst-1"
	h.env.Clock = func() time.Time { return time.Date(2026, 5, 4, 3, 2, 1, 500_000_000, time.UTC) }
	h.env.Runner = modulestest.Runner(func(_ context.Context, c modules.Command) (modules.CommandResult, error) {
		h.runs = append(h.runs, strings.Join(append(c.Args, c.Script), " "))
		return modules.CommandResult{}, nil
	})
	said := func(name string, answer any) modules.Func {
		return func(_ context.Context, c *modules.Call) (any, error) {
			h.runs = append(h.runs, name+" "+strings.Join(c.Strings("args"), " ")+" "+textOf(c.Keywords, "fstype"))
			return answer, nil
		}
	}
	h.reg = modules.NewRegistry(Module, agent.Module, fs.Module, xfs.Module, &modules.Module{Name: "mount", Funcs: []modules.Def{
		{Name: "active", Args: "args", Run: func(context.Context, *modules.Call) (any, error) {
			return map[string]any{"/var/lib/mysql": map[string]any{"device": "/dev/vdb"}}, nil
		}},
		{Name: "mount", Args: "args", Kwargs: "kwargs", Run: func(_ context.Context, c *modules.Call) (any, error) {
			h.runs = append(h.runs, "mount "+strings.Join(stringsOf(c.Extra), " ")+" "+textOf(c.Keywords, "fstype")+" "+textOf(c.Keywords, "opts"))
			return true, nil
		}},
		{Name: "umount", Args: "args", Run: said("umount", true)},
	}})
	return h
}

func stringsOf(list []any) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i], _ = v.(string)
	}
	return out
}

func (h *host) run(fun string, kwargs map[string]any) (any, error) {
	r := h.reg.Run(h.t.Context(), h.env, modules.Request{Fun: "trove." + fun, Kwargs: kwargs})
	return r.Return, r.Err
}

// TestSettings: the error for an invalid configuration contains the key.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		option any
		want   string
	}{
		{nil, "cannot work on a datastore: the option trove has no datastore_manager (mysql, mariadb or postgresql)"},
		{"x", "cannot use the option trove: it must be a mapping, not 'x'"},
		{map[string]any{"datastore_manger": "mysql"}, "cannot use the option trove: there is no datastore_manger"},
		{map[string]any{"datastore_manager": "redis"}, "cannot work on the datastore redis: this agent knows mysql, mariadb and postgresql"},
		{map[string]any{"datastore_manager": "mysql", "way": "vm"}, "cannot work in the way vm: this agent knows packages and container"},
		{map[string]any{"datastore_manager": "mysql", "way": "container", "database_service_uid": "mysql"},
			"cannot work in the way container: database_service_uid must be a number, not mysql"},
		{map[string]any{"datastore_manager": "mysql", "state_change_poll_time": "x"},
			"cannot use the option trove: state_change_poll_time: it must be a number, not 'x'"},
		{map[string]any{"datastore_manager": "mysql", "store": "x"}, "cannot use the option trove: store: it must be a mapping, not 'x'"},
	} {
		if _, err := readSettings(c.option); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, not %s", c.option, err, c.want)
		}
	}
	s, err := readSettings(map[string]any{"datastore_manager": "mariadb", "mount_point": "/data", "ignore_dbs": "mysql,sys"})
	if err != nil {
		t.Fatal(err)
	}
	if s.dataDir != "/data/data" || s.service != "mariadb" || s.strategy != "MariaDBGTIDReplication" || s.wait != 3*time.Minute ||
		s.confDir() != "/data/conf.d" {
		t.Errorf("%+v", s)
	}
	if diff := cmp.Diff([]string{"mysql", "sys"}, s.ignoreDB); diff != "" {
		t.Error(diff)
	}
}

// TestWithoutDatastore: functions that need no datastore work without one, and the others report what is missing.
func TestWithoutDatastore(t *testing.T) {
	h := newHost(t, nil)
	h.env.Grains = func() map[string]any { return map[string]any{"mem_total": int64(512), "num_cpus": int64(2)} }
	if v, err := h.run("rpc_ping", nil); v != true || err != nil {
		t.Error(v, err)
	}
	if v, err := h.run("get_hwinfo", nil); err != nil || cmp.Diff(any(map[string]any{"mem_total": int64(512), "num_cpus": int64(2)}), v) != "" {
		t.Error(v, err)
	}
	v, err := h.run("get_diagnostics", nil)
	if d, ok := v.(map[string]any); err != nil || !ok || len(d) != 7 || d["vm_rss"].(int64) < 1000 || d["threads"].(int64) < 1 {
		t.Error(v, err)
	}
	if _, err := h.run("attach_replication_slave", map[string]any{"snapshot": nil}); err == nil ||
		err.Error() != "no manager of Trove has attach_replication_slave; the function is attach_replica" {
		t.Errorf("attach_replication_slave: %v", err)
	}
	for fun, want := range map[string]string{
		"update_guest": "cannot update the agent: its package is updated by the host's package manager",
		"list_users":   "cannot work on a datastore: the option trove has no datastore_manager (mysql, mariadb or postgresql)",
	} {
		if _, err := h.run(fun, nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v", fun, err)
		}
	}
}

// TestRefused: for each datastore, unsupported operations have Trove's error texts, and all other functions of
// Trove's interface exist.
func TestRefused(t *testing.T) {
	for _, manager := range []string{"mysql", "mariadb", "postgresql"} {
		h := newHost(t, map[string]any{"datastore_manager": manager, "socket": "/none", "state_change_poll_time": int64(0),
			"state_change_wait_time": int64(0)})
		for _, m := range Methods() {
			kwargs := map[string]any{}
			for _, p := range Module.Def(m.Name).Params {
				if p.Required() {
					kwargs[p.Name] = nil
				}
			}
			if _, err := h.run(m.Name, kwargs); err != nil && strings.Contains(err.Error(), "not a function of Trove's guest") {
				t.Errorf("%s of %s: %v", m.Name, manager, err)
			}
		}
		if v, err := h.run("ssl_show", nil); err != nil || cmp.Diff(any(map[string]any{"status": "not implemented"}), v) != "" {
			t.Errorf("ssl_show: %v, %v", v, err)
		}
		for _, c := range []struct {
			fun             string
			enable, disable bool
			want            string
		}{
			{"ssl_action", true, true, "Cannot enable and disable ssl"},
			{"ssl_action", true, false, "ssl enable not implemented"},
			{"ssl_action", false, true, "ssl disable not implemented"},
			{"ssl_action", false, false, ""},
			{"ssl_rollback", false, false, "cannot roll back: ssl_action has changed nothing"},
			{"get_root_password", false, false, "The 'get_root_password' operation is not supported for the '" + manager + "' datastore."},
			{"get_txn_count", false, false, "The 'get_txn_count' operation is not supported for the '" + manager + "' datastore."},
		} {
			kwargs := map[string]any{}
			if c.fun == "ssl_action" {
				kwargs = map[string]any{"mode": "basic", "container": nil, "enable": c.enable, "disable": c.disable}
			}
			if _, err := h.run(c.fun, kwargs); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
				t.Errorf("%s(%v, %v): %v", c.fun, c.enable, c.disable, err)
			}
		}
	}
}

// TestVolumes mounts, unmounts, resizes, freezes and thaws a volume.
func TestVolumes(t *testing.T) {
	t.Setenv("PATH", "/usr/sbin")
	for _, c := range []struct {
		fun    string
		trove  map[string]any
		kwargs map[string]any
		want   []string
	}{
		{"mount_volume", nil, map[string]any{"device_path": "/dev/vdb", "mount_point": "/var/lib/mysql"},
			[]string{"mount /var/lib/mysql /dev/vdb ext3 defaults,noatime"}},
		{"unmount_volume", nil, map[string]any{"mount_point": "/mnt/none"}, nil},
		{"unmount_volume", nil, map[string]any{"mount_point": "/var/lib/mysql/"}, []string{"umount  "}},
		{"resize_fs", nil, map[string]any{"device_path": "/dev/vdb", "mount_point": "/var/lib/mysql"},
			[]string{"blockdev --getsize64 /dev/vdb ", "umount  ", "e2fsck -f -p /dev/vdb ", "resize2fs /dev/vdb "}},
		{"resize_fs", nil, map[string]any{"device_path": "/dev/vdb", "mount_point": "/var/lib/mysql", "online": true},
			[]string{"blockdev --getsize64 /dev/vdb ", "resize2fs /dev/vdb "}},
		{"resize_fs", map[string]any{"volume_fstype": "xfs"}, map[string]any{"device_path": "/dev/vdb", "mount_point": "/var/lib/mysql"},
			[]string{"blockdev --getsize64 /dev/vdb ", "xfs_growfs /var/lib/mysql "}},
		{"pre_create_backup", nil, nil, []string{`sleep 600; mv "$FS_MARK" "$FS_MARK-ended" && ` +
			`flock "$FS_LOCK" sh -c 'rm "$FS_MARK-ended" && fsfreeze --unfreeze "$FS_VOLUME"'`,
			"sync -f ROOT/var/lib/mysql ", "fsfreeze --freeze ROOT/var/lib/mysql "}},
		{"post_create_backup", nil, nil, []string{"fsfreeze --unfreeze ROOT/var/lib/mysql "}},
	} {
		trove := map[string]any{"datastore_manager": "mysql"}
		for k, v := range c.trove {
			trove[k] = v
		}
		h := newHost(t, trove)
		for _, name := range []string{"/usr/sbin/fsfreeze", "/usr/sbin/flock"} {
			file := h.env.Path(name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := h.run(c.fun, c.kwargs); err != nil {
			t.Errorf("%s: %v", c.fun, err)
		}
		for i := range h.runs {
			h.runs[i] = strings.ReplaceAll(h.runs[i], h.env.Root, "ROOT")
		}
		if diff := cmp.Diff(c.want, h.runs); diff != "" {
			t.Errorf("%s %v:\n%s", c.fun, c.kwargs, diff)
		}
	}
}

func TestFilesystemStats(t *testing.T) {
	h := newHost(t, map[string]any{"datastore_manager": "mysql"})
	if _, err := h.run("get_filesystem_stats", map[string]any{"fs_path": nil}); err == nil || err.Error() != "Filesystem not found (/var/lib/mysql)" {
		t.Error(err)
	}
	if err := os.MkdirAll(h.env.Path("/var/lib/mysql"), 0o755); err != nil {
		t.Fatal(err)
	}
	v, err := h.run("get_filesystem_stats", map[string]any{"fs_path": nil})
	if err != nil {
		t.Fatal(err)
	}
	m := v.(map[string]any)
	size := m["block_size"].(int64)
	if m["total"] != gigabytes(m["total_blocks"].(int64)*size) || m["free"] != m["free_blocks"].(int64)*size || m["total"].(float64) <= 0 {
		t.Errorf("%v", m)
	}
	for n, want := range map[int64]float64{0: 0, 1: 0.01, 5 << 30: 5, 1610612736: 1.5, 1234567890: 1.15} {
		if got := gigabytes(n); got != want {
			t.Errorf("%d bytes are %v GB, not %v", n, got, want)
		}
	}
}

// TestNames compares with the results of trove.common.db.mysql.models in Trove 18.
func TestNames(t *testing.T) {
	for name, want := range map[string]bool{"web": true, "a": false, "ab": true, "a-b_c1": true, "a b": true, "a?#b": true, "a.b": false,
		" ab": false, "ab ": false, "a b c": false, "a\tb": false, "äb": false, "a`b": false, "a\nb": false, strings.Repeat("a", 64): true} {
		if got := isSchemaName(name); got != want {
			t.Errorf("database %q: %v", name, got)
		}
	}
	for name, want := range map[string]bool{"ada": true, "a": true, "a b": true, " a": false, "a ": false, "a'b": false, `a\b`: false,
		"a,b": false, "a/b": false, "a;b": false, "é": true, "a\tb": false, "a@b%": true} {
		if got := isUserText(name); got != want {
			t.Errorf("user %q: %v", name, got)
		}
	}
	for host, want := range map[string]bool{"%": true, "10.0.0.1": true, "10.0.%.%": true, "10.0": true, "10.0.0.0/8": true,
		"10.0.0.0/255.0.0.0": true, "::1": true, "fe80::/10": true, "localhost": false, "a b": false, "10.0.0.256": false, "1.2.3.4.5": false} {
		if got := mysqlNames.checkHost(host) == nil; got != want {
			t.Errorf("host %q: %v", host, got)
		}
	}
}

func TestQuote(t *testing.T) {
	if got := quote("it's \\ a\nline\x00"); got != `'it\'s \\ a\nline\0'` {
		t.Error(got)
	}
	if got := ident("a`b"); got != "`a``b`" {
		t.Error(got)
	}
	for _, c := range []struct {
		v    any
		want string
	}{{true, "=1"}, {false, "=0"}, {nil, ""}, {"16M", "=16777216"}, {"1K", "=1024"}, {"M", "='M'"}, {"x'y", `='x\'y'`}, {int64(5), "=5"}, {1.5, "=1.5"}} {
		if got := variable(c.v); got != c.want {
			t.Errorf("%v: %s, not %s", c.v, got, c.want)
		}
	}
	for _, name := range []string{"", "a b", "a=1; DROP", "a--"} {
		if isVariable(name) {
			t.Errorf("%q is a variable", name)
		}
	}
}

// TestOverrides: the files sort in the server's order, values cannot contain further lines, and changes are merged.
func TestOverrides(t *testing.T) {
	h := newHost(t, map[string]any{"datastore_manager": "mysql", "database_service_uid": "0"})
	do := func(overrides map[string]any, remove bool) error {
		_, err := h.run("update_overrides", map[string]any{"overrides": overrides, "remove": remove})
		return err
	}
	file := h.env.Path("/etc/mysql/conf.d/20-user-001-common.cnf")
	if err := do(map[string]any{"max_connections": int64(5), "skip-name-resolve": nil}, false); err != nil {
		t.Fatal(err)
	}
	if err := do(map[string]any{"max-connections": int64(6), "b": "x"}, false); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if want := "[mysqld]\nmax_connections = 6\nskip_name_resolve\nb = x\n\n"; err != nil || string(b) != want {
		t.Errorf("%q, %v", b, err)
	}
	for _, bad := range []map[string]any{{"a": "x\n[client]"}, {"a\nb": "x"}, {"[x]": nil}, {"!include": "x"}, {"": "x"}} {
		if err := do(bad, false); err == nil {
			t.Errorf("%v is written", bad)
		}
	}
	if after, _ := os.ReadFile(file); !bytes.Equal(b, after) {
		t.Errorf("a refused value has changed the file: %q", after)
	}
	if err := do(nil, true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, iofs.ErrNotExist) {
		t.Error("the file is still there")
	}
}

// TestEncryption decrypts the output of openssl enc -aes-256-cbc -md sha512 -pbkdf2 -iter 10000 -salt -pass
// pass:a-key for "a backup\n".
func TestEncryption(t *testing.T) {
	made, err := os.ReadFile("testdata/openssl.enc")
	if err != nil {
		t.Fatal(err)
	}
	open := func(b []byte, key string) (string, error) {
		r, err := decrypt(bytes.NewReader(b), key)
		if err != nil {
			return "", err
		}
		out, err := io.ReadAll(r)
		return string(out), err
	}
	if got, err := open(made, "a-key"); err != nil || got != "a backup\n" {
		t.Errorf("%q, %v", got, err)
	}
	for _, size := range []int{0, 1, 15, 16, 17, 4096, 4097, 100000} {
		var b bytes.Buffer
		w, err := encrypt(&b, "k")
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Repeat("x", size)
		for part := want; part != ""; part = part[min(7000, len(part)):] {
			if _, err := io.WriteString(w, part[:min(7000, len(part))]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := open(b.Bytes(), "k"); err != nil || got != want {
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		}
		for name, bad := range map[string][]byte{"cut": b.Bytes()[:b.Len()-1], "no head": b.Bytes()[:10], "no body": b.Bytes()[:16]} {
			if _, err := open(bad, "k"); err == nil {
				t.Errorf("%d bytes, %s: no error", size, name)
			}
		}
	}
}

// TestFailedBackup: if the store fails, create_backup returns only after the program that creates the backup has
// ended, as the next backup requires.
func TestFailedBackup(t *testing.T) {
	h := newHost(t, map[string]any{"datastore_manager": "mariadb", "store": map[string]any{"type": "directory", "path": "/store"}})
	if err := errors.Join(os.MkdirAll(h.env.Path("/var/lib/mysql"), 0o755), os.WriteFile(h.env.Path("/store"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	started, ended := make(chan struct{}), atomic.Bool{}
	h.env.Runner = modulestest.Runner(func(ctx context.Context, c modules.Command) (modules.CommandResult, error) {
		close(started)
		<-ctx.Done()
		ended.Store(true)
		return modules.CommandResult{}, ctx.Err()
	})
	_, err := h.run("create_backup", map[string]any{"backup_info": map[string]any{"id": "b-1"}})
	if err == nil || !strings.HasPrefix(err.Error(), "Failed to create backup b-1, error: cannot store b-1.xbstream.gz:") {
		t.Fatal(err)
	}
	select {
	case <-started:
		if !ended.Load() {
			t.Error("the program still runs")
		}
	default:
		t.Error("the program was not started")
	}
}

// TestBackupInNoLog: Docker's log of a container contains no copy of a backup that the container writes.
func TestBackupInNoLog(t *testing.T) {
	h := newHost(t, map[string]any{"datastore_manager": "mariadb", "datastore_version": "10.11", "way": "container",
		"store": map[string]any{"type": "directory", "path": "/store"}})
	if err := os.MkdirAll(h.env.Path("/var/lib/mysql"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := h.run("create_backup", map[string]any{"backup_info": map[string]any{"id": "b-1"}})
	i := slices.IndexFunc(h.runs, func(line string) bool { return strings.Contains(line, "--entrypoint=mariabackup") })
	if i < 0 {
		t.Fatalf("no backup was made: %v, %q", err, h.runs)
	}
	if !strings.Contains(h.runs[i], " run --rm --log-driver=none ") {
		t.Error(h.runs[i])
	}
}

// TestDirectoryStore: names cannot leave the directory of the store.
func TestDirectoryStore(t *testing.T) {
	d := directory{root: t.TempDir(), named: "/store"}
	ctx := t.Context()
	if sum, err := d.put(ctx, "c", "a/b", strings.NewReader("text"), map[string]string{"k": "v"}); err != nil || sum != "1cb251ec0d568de6a929b520c4aed8d1" {
		t.Fatal(sum, err)
	}
	r, err := d.get(ctx, "c", "a/b")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if string(b) != "text" || err != nil || r.meta["k"] != "v" || r.Close() != nil {
		t.Errorf("%q %v %v", b, r.meta, err)
	}
	if names, err := d.names(ctx, "c", "a/"); err != nil || cmp.Diff([]string{"a/b"}, names) != "" {
		t.Error(names, err)
	}
	if got := d.location("c", "a/b"); got != "file:///store/c/a/b" {
		t.Error(got)
	}
	if c, n, err := d.locate("file:///store/c/a/b"); c != "c" || n != "a/b" || err != nil {
		t.Error(c, n, err)
	}
	for _, name := range []string{"", "../x", "a/../../x", "/etc/passwd", "..", "x" + metaEnd} {
		if _, err := d.put(ctx, "c", name, strings.NewReader(""), nil); err == nil {
			t.Errorf("%q is stored", name)
		}
		if _, _, err := d.locate("file:///store/c/" + name); err == nil {
			t.Errorf("%q is found", name)
		}
	}
	for _, container := range []string{"", "..", "a/b"} {
		if _, err := d.put(ctx, container, "x", strings.NewReader(""), nil); err == nil {
			t.Errorf("container %q is used", container)
		}
	}
	failing := io.MultiReader(strings.NewReader("half"), failingReader{errors.New("the end")})
	if _, err := d.put(ctx, "c", "half", failing, nil); err == nil {
		t.Error("half an object is stored")
	}
	if left, _ := filepath.Glob(filepath.Join(d.root, "c/half*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if err := d.remove(ctx, "c", "a/b"); err != nil {
		t.Error(err)
	}
	if err := d.remove(ctx, "c", "a/b"); err != nil {
		t.Error(err)
	}
	if _, err := d.get(ctx, "c", "a/b"); !errors.Is(err, iofs.ErrNotExist) {
		t.Error(err)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// TestModules applies, lists and removes Trove modules.
func TestModules(t *testing.T) {
	h := newHost(t, map[string]any{"datastore_manager": "mysql"})
	module := func(id, name, contents string, more map[string]any) map[string]any {
		m := map[string]any{"id": id, "type": "ping", "name": name, "contents": contents, "md5": "x", "auto_apply": false, "visible": true,
			"tenant": "t1", "datastore": "mysql"}
		for k, v := range more {
			m[k] = v
		}
		return map[string]any{"module": m}
	}
	const hello, nothing = "bWVzc2FnZT1IZWxsbw==", "eD15"
	v, err := h.run("module_apply", map[string]any{"modules": []any{module("2", "second", nothing, map[string]any{"apply_order": int64(5), "priority_apply": false}),
		module("1", "first", hello, map[string]any{"apply_order": int64(1), "priority_apply": true})}})
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]any{"id": "1", "type": "ping", "name": "first", "md5": "x", "auto_apply": false, "visible": true, "tenant": "t1",
		"datastore": "mysql", "datastore_version": "all", "is_admin": false, "status": "OK", "message": "Hello", "contents": nil,
		"created": "2026-05-04 03:02:01.50", "updated": "2026-05-04 03:02:01.50", "removed": nil}
	list := v.([]any)
	if diff := cmp.Diff(any(first), list[0]); diff != "" || list[1].(map[string]any)["status"] != "ERROR" ||
		list[1].(map[string]any)["message"] != "Message not found in contents file" {
		t.Errorf("%s%v", diff, list[1])
	}
	v, err = h.run("module_list", map[string]any{"include_contents": true})
	if list, ok := v.([]any); err != nil || !ok || len(list) != 2 || list[0].(map[string]any)["contents"] != hello {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := h.run("module_remove", map[string]any{"module": module("1", "first", hello, nil)}); err != nil {
		t.Error(err)
	}
	if v, err := h.run("module_list", nil); err != nil || len(v.([]any)) != 1 {
		t.Errorf("%v, %v", v, err)
	}
	for want, bad := range map[string]map[string]any{
		"No driver implemented for module type 'x'":                   module("1", "n", hello, map[string]any{"type": "x"}),
		"Module name not specified":                                   module("1", "", hello, nil),
		"Module contents not specified":                               module("1", "n", "", nil),
		"cannot keep the module 'n': its id or type is not a name":    module("../1", "n", hello, nil),
		"The module is invalid: Module not valid for datastore mysql": module("1", "n", hello, map[string]any{"datastore": "redis"}),
	} {
		if _, err := h.run("module_apply", map[string]any{"modules": []any{bad}}); err == nil || err.Error() != want {
			t.Errorf("%v, not %s", err, want)
		}
	}
	if _, err := h.run("module_remove", map[string]any{"module": module("9", "n", hello, nil)}); err == nil || err.Error() != "Module 'n' has not been applied" {
		t.Error(err)
	}
}

// TestHeartbeat: the beacon sends no events before the instance is prepared, and reports then that the database is
// down.
func TestHeartbeat(t *testing.T) {
	h := newHost(t, map[string]any{"datastore_manager": "mysql"})
	m, reason := modules.FindIn(modules.KindBeacons, h.env, "trove")
	if m == nil {
		t.Fatal(reason)
	}
	call := func(fun string, config any) any {
		t.Helper()
		c, err := h.reg.NewCall(h.env, "trove."+fun, "", &modules.Context{}).Foreign(h.env, nil, m.Def(fun), "trove."+fun, []any{config}, nil)
		if err != nil {
			t.Fatal(err)
		}
		v, err := m.Def(fun).Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if diff := cmp.Diff(any([]any{true, "Valid beacon configuration"}), call("validate", []any{})); diff != "" {
		t.Error(diff)
	}
	if v := call("validate", map[string]any{}).([]any); v[0] != false {
		t.Error(v)
	}
	if diff := cmp.Diff(any([]any{}), call("beacon", []any{})); diff != "" {
		t.Error(diff)
	}
	if err := os.MkdirAll(h.env.Path("/opt/trove-guestagent"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.env.Path("/opt/trove-guestagent/"+prepareEnd), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	want := []any{map[string]any{"tag": "heartbeat", "payload": map[string]any{"service_status": "shutdown"}, "sent": 1777863721.5}}
	if diff := cmp.Diff(any(want), call("beacon", []any{})); diff != "" {
		t.Error(diff)
	}
}
