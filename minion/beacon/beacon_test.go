package beacon

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
)

// fixture creates a host from files.
func fixture(t *testing.T, files map[string]string) *Host {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return &Host{Env: &modules.Env{ID: "m", Root: root}, Memory: map[string]any{}}
}

func part(pairs map[string]any) []any { return []any{pairs} }

func TestReadersOfProc(t *testing.T) {
	h := fixture(t, map[string]string{
		"proc/meminfo": "MemTotal:  1000 kB\nMemAvailable:  250 kB\nSwapTotal:  200 kB\nSwapFree: 150 kB\n",
		"proc/loadavg": "1.50 2.25 0.10 1/100 4711\n",
		"proc/net/dev": "Inter-|   Receive  |  Transmit\n face |bytes    packets\n  eth0: 100 10 1 2 0 0 0 0 200 20 3 4 0 0 0 0\n",
		"proc/12/stat": "12 (sshd) S 1", "proc/13/stat": "13 (a name (odd)) S 1", "proc/14/stat": "14 (fifteen-charact) S 1",
		"proc/14/cmdline": "/usr/bin/fifteen-characters\x00-x\x00", "proc/self/stat": "1 (nobody) S",
	})
	averages := func(low, high float64) map[string]any {
		pair := []any{low, high}
		return map[string]any{"averages": map[string]any{"1m": pair, "5m": pair, "15m": pair}}
	}
	for _, c := range []struct {
		name   string
		kind   *Kind
		config []any
		want   []map[string]any
	}{
		{"memory", &memUsage, part(map[string]any{"percent": "75%"}), []map[string]any{{"memusage": 75.0}}},
		{"memory below", &memUsage, part(map[string]any{"percent": 75.1}), nil},
		{"swap", &swapUsage, part(map[string]any{"percent": int64(25)}), []map[string]any{{"swapusage": 25.0}}},
		{"load above", &load, part(averages(0, 2)), []map[string]any{{"1m": 1.5, "5m": 2.25, "15m": 0.1}}},
		{"load within", &load, part(averages(0, 3)), nil},
		{"network", &networkInfo, part(map[string]any{"interfaces": map[string]any{"eth0": map[string]any{"type": "greater", "errin": int64(0)}, "eth1": map[string]any{"errin": int64(0)}}}),
			[]map[string]any{{"interface": "eth0", "network_info": map[string]any{"bytes_sent": int64(200), "bytes_recv": int64(100), "packets_sent": int64(20),
				"packets_recv": int64(10), "errin": int64(1), "errout": int64(3), "dropin": int64(2), "dropout": int64(4)}}}},
		{"processes", &ps, part(map[string]any{"processes": map[string]any{"sshd": "running", "a name (odd)": "running", "fifteen-characters": "running", "gone": "stopped", "nobody": "x"}}),
			[]map[string]any{{"a name (odd)": "Running"}, {"fifteen-characters": "Running"}, {"gone": "Stopped"}, {"nobody": false}, {"sshd": "Running"}}},
	} {
		if ok, why := c.kind.Validate(h, c.config); !ok {
			t.Errorf("%s: %s", c.name, why)
		}
		got, err := c.kind.Look(t.Context(), h, c.config)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestLoadOnChange(t *testing.T) {
	h := fixture(t, map[string]string{"proc/loadavg": "1.0 1.0 1.0 1/1 1\n"})
	pair := []any{0.0, 2.0}
	config := []any{map[string]any{"averages": map[string]any{"1m": pair, "5m": pair, "15m": pair}}, map[string]any{"onchangeonly": true}, map[string]any{"emitatstartup": false}}
	for i, c := range []struct {
		load string
		told bool
	}{{"9.0", false}, {"9.0", false}, {"1.0", false}, {"3.0", true}, {"4.0", false}} {
		if err := os.WriteFile(h.Path("/proc/loadavg"), []byte(c.load+" 1.0 1.0 1/1 1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := lookLoad(t.Context(), h, config)
		if err != nil || (len(got) > 0) != c.told {
			t.Errorf("look %d at %s: %v, %v", i, c.load, got, err)
		}
	}
}

func TestLogThatIsRotated(t *testing.T) {
	h := fixture(t, map[string]string{"log": "old\n"})
	config := []any{map[string]any{"file": "/log"}, map[string]any{"tags": map[string]any{"t": map[string]any{"regex": "new"}}}, map[string]any{"_beacon_name": "log"}}
	look := func() int {
		t.Helper()
		found, err := lookLog(t.Context(), h, config)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if n := look(); n != 0 {
		t.Errorf("%d events for what was there before", n)
	}
	if err := os.WriteFile(h.Path("/log"), []byte("old\nnew 1\nnew 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if n := look(); n != 2 {
		t.Errorf("%d events for two lines", n)
	}
	if err := os.WriteFile(h.Path("/log"), []byte("new 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if n := look(); n != 1 {
		t.Errorf("%d events after the rotation", n)
	}
}

func TestJournal(t *testing.T) {
	h := fixture(t, nil)
	outputs := []string{`{"__CURSOR":"c1","MESSAGE":"before"}`, `{"__CURSOR":"c2","MESSAGE":"hello","SYSLOG_IDENTIFIER":"sshd","PRIORITY":"6","_PID":"12","MESSAGE_ID":"0123456789abcdef0123456789abcdef"}` +
		"\n" + `{"__CURSOR":"c3","MESSAGE":[104,105],"SYSLOG_IDENTIFIER":"cron","PRIORITY":"6"}`, ""}
	var asked [][]string
	h.Runner = runner(func(c modules.Command) string {
		asked = append(asked, c.Args)
		out := outputs[0]
		outputs = outputs[1:]
		return out + "\n"
	})
	config := part(map[string]any{"services": map[string]any{"ssh": map[string]any{"SYSLOG_IDENTIFIER": "sshd", "PRIORITY": int64(6)}}})
	var got []map[string]any
	for range 3 {
		found, err := lookJournal(t.Context(), h, config)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, found...)
	}
	want := []map[string]any{{"tag": "ssh", "__CURSOR": "c2", "MESSAGE": "hello", "SYSLOG_IDENTIFIER": "sshd", "PRIORITY": int64(6), "_PID": int64(12),
		"MESSAGE_ID": "UUID('01234567-89ab-cdef-0123-456789abcdef')"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if last := asked[2][len(asked[2])-1]; last != "--after-cursor=c3" {
		t.Errorf("the third look asks %v", asked[2])
	}
}

// runner starts no programs and prints the output of a function.
type runner func(modules.Command) string

func (r runner) Run(_ context.Context, c modules.Command) (modules.CommandResult, error) {
	return modules.CommandResult{Stdout: []byte(r(c))}, nil
}

func TestSettingChanges(t *testing.T) {
	before := map[string]any{"eth0": map[string]any{"mtu": int64(1500), "promiscuity": int64(0)}, "eth1": map[string]any{"mtu": int64(1500)}, "lo": map[string]any{"mtu": int64(9)}}
	now := map[string]any{"eth0": map[string]any{"mtu": int64(9000), "promiscuity": int64(1)}, "eth1": map[string]any{"mtu": int64(9000)}, "lo": map[string]any{"mtu": int64(10)}}
	c := map[string]any{"interfaces": map[string]any{"eth*": map[string]any{"mtu": nil, "promiscuity": map[string]any{"onvalue": int64(5)}}}}
	got, err := settingChanges(c, before, now)
	want := []map[string]any{{"tag": "eth0", "interface": "eth0", "change": map[string]any{"mtu": int64(9000)}}, {"tag": "eth1", "interface": "eth1", "change": map[string]any{"mtu": int64(9000)}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	c["coalesce"] = true
	got, err = settingChanges(c, before, now)
	want = []map[string]any{{"tag": "result", "changes": map[string]any{"eth0": map[string]any{"mtu": int64(9000)}, "eth1": map[string]any{"mtu": int64(9000)}}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		count := map[string]int{}
		states := false
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		e := New(Options{
			Kinds: Kinds(),
			Beacons: map[string]any{
				"every":  []any{map[string]any{"salt_fun": "test.ping"}, map[string]any{"beacon_module": "salt_monitor"}},
				"ten":    []any{map[string]any{"salt_fun": "test.ping"}, map[string]any{"beacon_module": "salt_monitor"}, map[string]any{"interval": int64(10)}},
				"polite": []any{map[string]any{"salt_fun": "test.ping"}, map[string]any{"beacon_module": "salt_monitor"}, map[string]any{"disable_during_state_run": true}},
				"map":    map[string]any{"salt_fun": "test.ping"}, "nosuch": []any{map[string]any{"a": "b"}}, "ps": []any{map[string]any{"wrong": true}},
			},
			Host: func(context.Context) *Host {
				return &Host{Env: &modules.Env{ID: "m"}, Exec: func(context.Context, string, []any, map[string]any) (any, error) { return true, nil }}
			},
			StateRunning: func() bool { mu.Lock(); defer mu.Unlock(); return states },
			Send: func(events []any) {
				mu.Lock()
				defer mu.Unlock()
				for _, x := range events {
					count[x.(map[string]any)["tag"].(string)]++
				}
			},
		})
		e.Start(ctx)
		time.Sleep(30500 * time.Millisecond)
		mu.Lock()
		states = true
		if diff := cmp.Diff(map[string]int{"salt/beacon/m/every/": 31, "salt/beacon/m/ten/": 3, "salt/beacon/m/polite/": 31}, count); diff != "" {
			t.Error(diff)
		}
		clear(count)
		mu.Unlock()
		if answer := e.Manage(ctx, map[string]any{"func": "disable_beacon", "name": "every"}); answer["complete"] != true {
			t.Errorf("%v", answer)
		}
		time.Sleep(10 * time.Second)
		mu.Lock()
		if diff := cmp.Diff(map[string]int{"salt/beacon/m/ten/": 1}, count); diff != "" {
			t.Error(diff)
		}
		mu.Unlock()
		e.Manage(ctx, map[string]any{"func": "reset"})
		synctest.Wait()
		e.mu.Lock()
		if e.timer != nil {
			t.Error("an engine without beacons keeps a timer")
		}
		e.mu.Unlock()
		e.Stop()
	})
}

func TestUnfinishedLoginRecords(t *testing.T) {
	h := fixture(t, map[string]string{"var/log/btmp": ""})
	b := make([]byte, recordSize)
	binary.NativeEndian.PutUint16(b, 6)
	copy(b[44:], "alice")
	if err := os.WriteFile(h.Path(btmpFile), b[:100], 0o644); err != nil {
		t.Fatal(err)
	}
	h.Memory["btmp.loc"] = int64(0)
	for _, want := range []int{0, 1, 0} {
		got, err := btmp.Look(t.Context(), h, []any{})
		if err != nil || len(got) != want {
			t.Errorf("%v, %v; want %d", got, err, want)
		}
		if err := os.WriteFile(h.Path(btmpFile), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
