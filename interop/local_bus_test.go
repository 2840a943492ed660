//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/freeport"
)

// TestLocalBus checks the minion's event bus on its host: stock programs of every line listen to brine's minion and
// fire events there, and brine's salt-call does the same with a stock minion.
func TestLocalBus(t *testing.T) {
	for _, line := range []string{"3006", "3007", "3008"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			t.Run("ours/stock programs", func(t *testing.T) {
				t.Parallel()
				dir := busSite(t, "")
				if got := fired(t, stock(t, line, "salt-call"), dir); got != false {
					t.Errorf("stock salt-call without daemon: %v", got)
				}
				start(t, ours("salt-minion"), "-c", dir)
				tryBus(t, line, dir, stock(t, line, "salt-call"), true)
			})
			t.Run("ours/tcp", func(t *testing.T) {
				if line == "3006" {
					return // its framing differs, and a client over tcp does not show its line
				}
				t.Parallel()
				dir := busSite(t, tcpBus(t))
				start(t, ours("salt-minion"), "-c", dir)
				tryBus(t, line, dir, ours("salt-call"), false)
			})
			t.Run("stock/our salt-call", func(t *testing.T) {
				t.Parallel()
				dir := busSite(t, "")
				if got := fired(t, ours("salt-call"), dir); got != false {
					t.Errorf("our salt-call without daemon: %v", got)
				}
				start(t, stock(t, line, "salt-minion"), "-c", dir)
				tryBus(t, line, dir, ours("salt-call"), false)
			})
		})
	}
}

func tcpBus(t *testing.T) string {
	p := freeport.Ports(t, 2)
	return fmt.Sprintf("ipc_mode: tcp\ntcp_pub_port: %d\ntcp_pull_port: %d\n", p[0], p[1])
}

// busSite returns the configuration directory of a minion without a master.
func busSite(t *testing.T, extra string) string {
	t.Helper()
	dir := tempDir(t)
	write(t, dir+"/etc/minion", "id: bus\nmaster_type: disable\nfile_client: local\nroot_dir: "+dir+"\npki_dir: pki\ncachedir: cache\n"+
		"sock_dir: run\npidfile: minion.pid\nlog_file: minion.log\nenable_fqdns_grains: false\nuser: root\n"+extra)
	return dir + "/etc"
}

// fired returns the result of event.fire in salt-call.
func fired(t *testing.T, call, dir string) any {
	t.Helper()
	out, _ := output(t, call, "-c", dir, "--local", "--out=json", "event.fire", `{"n": 7, "text": "smørrebrød"}`, "own/tag")
	var v map[string]any
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("salt-call printed %q", out)
	}
	return v["local"]
}

// tryBus sends events in both directions through a running minion. With large it also sends one that is many times
// the size of a socket's buffer.
func tryBus(t *testing.T, line, dir, call string, large bool) {
	t.Helper()
	config := filepath.Join(dir, "minion")
	b := awaitBus(t, line, dir, config)
	if got := fired(t, call, dir); got != true {
		t.Errorf("event.fire answers %v", got)
	}
	e := b.wait(0, "own/tag")
	if e.Data["n"] != 7.0 || e.Data["text"] != "smørrebrød" || e.Data["_stamp"] == nil {
		t.Errorf("event %v", e)
	}
	size := 10
	if large {
		size = 900_000
	}
	q, err := json.Marshal(map[string]any{"tag": "by/python", "data": map[string]any{"x": strings.Repeat("y", size)}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		mark := b.mark()
		if _, err := b.driver.in.Write(append(q, '\n')); err != nil {
			t.Fatal(err)
		}
		if e := b.wait(mark, "by/python"); len(e.Data["x"].(string)) != size {
			t.Errorf("%d bytes came back as %d", size, len(e.Data["x"].(string)))
		}
	}
}

// awaitBus waits for the minion's sockets and listens to its events.
func awaitBus(t *testing.T, line, dir, config string) *bus {
	t.Helper()
	b, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, rest, tcp := strings.Cut(string(b), "tcp_pull_port: "); tcp {
		port, err := strconv.Atoi(strings.TrimSpace(rest))
		if err != nil {
			t.Fatal(err)
		}
		await(t, "the minion listens", func() bool { return listening(port) })
	} else {
		await(t, "the minion's sockets are there", func() bool {
			found, _ := filepath.Glob(filepath.Dir(dir) + "/run/minion_event_*_pull.ipc")
			return len(found) == 1
		})
	}
	return listenAs(t, line, "minion", config)
}
