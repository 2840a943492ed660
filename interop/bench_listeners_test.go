//go:build bench && linux

package interop

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/swarm"
	"github.com/brine-salt/brine/internal/testkit/freeport"
)

// TestListeners measures salt '*' test.ping alone, and while a browser follows /events and a reactor follows the
// returns. All minions must be in the answer, within the time of TestCommands. BRINE_SWARM sets the number of
// minions.
func TestListeners(t *testing.T) {
	n := 9000
	if text := os.Getenv("BRINE_SWARM"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
	}
	port := freeport.Port(t)
	s := newSite(t, "zeromq", fmt.Sprintf("auto_accept: True\nrest_cherrypy: {port: %d, host: 127.0.0.1, disable_ssl: true}\n"+
		"netapi_enable_clients: [local, runner]\nsharedsecret: hush\nexternal_auth: {sharedsecret: {ann: ['.*', '@runner', '@events']}}\n", port))
	// The reactor renders a file for each return, and reacts to that of the last minion.
	write(t, s.config(), readText(t, s.config())+fmt.Sprintf("\nreactor: [{'salt/job/*/ret/*': [%s/react.sls]}]\n", s.dir))
	write(t, s.dir+"/react.sls", fmt.Sprintf("{%% if data['id'] == 'swarm-%05d' %%}\nsay: {runner.event.send: [{tag: reacted}]}\n{%% endif %%}\n", n-1))
	proc := start(t, ours("salt-master"), "-c", filepath.Dir(s.config()))
	await(t, "the master serves", func() bool { return listening(s.ret) && listening(s.pub) && listening(port) })
	signedIn(t, "zeromq", s, swarm.Options{Minions: n})
	awaitIdle(t, proc)
	ping := func(what string) {
		t.Helper()
		used, memory, begin := cpuOf(t, proc), memoryOf(t, proc), time.Now()
		out, code := output(t, ours("salt"), "-c", filepath.Dir(s.config()), "-t", "60", "--static", "--out=json", "*", "test.ping")
		took := time.Since(begin)
		got := namedMinions(t, out)
		fmt.Printf("%-44s %6d minions %8.2f s %8.3f ms of the master for each, %4d MB more\n", what, got, took.Seconds(),
			float64((cpuOf(t, proc)-used).Microseconds())/1000/float64(n), (memoryOf(t, proc).rss-memory.rss)>>20)
		if code != 0 || got != n {
			t.Errorf("%s: exit code %d, and %d of %d in the answer", what, code, got, n)
		}
		awaitIdle(t, proc)
	}
	ping("the reactor")
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	var seen, reacted, gaps atomic.Int64
	followEvents(t, url, func(line string) {
		switch {
		case strings.HasPrefix(line, "tag: salt/job/") && strings.Contains(line, "/ret/swarm-"):
			seen.Add(1)
		case strings.HasPrefix(line, "tag: reacted"), strings.HasPrefix(line, "tag: salt/reactor/reacted"):
			reacted.Add(1)
		case strings.Contains(line, "are lost"):
			gaps.Add(1)
		}
	})
	for range 3 {
		ping("the reactor, and a browser with /events")
		fmt.Printf("  the browser saw %d returns, %d marks of missing events, %d reactions\n", seen.Load(), gaps.Load(), reacted.Load())
		if seen.Load() < int64(n) && gaps.Load() == 0 {
			t.Errorf("the stream has %d of %d returns, and no mark that any are missing", seen.Load(), n)
		}
		if reacted.Load() == 0 {
			t.Error("the reactor did not react")
		}
		seen.Store(0)
		reacted.Store(0)
		gaps.Store(0)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// followEvents logs in and calls f with each line of the event stream until the test ends.
func followEvents(t *testing.T, url string, f func(line string)) {
	t.Helper()
	do := func(method, path, token, body string) *http.Response {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, url+path, bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "*/*")
		q.Header.Set("X-Auth-Token", token)
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		if a.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %s", method, path, a.Status)
		}
		return a
	}
	login := do("POST", "/login", "", `{"eauth": "sharedsecret", "username": "ann", "password": "hush"}`)
	token := login.Header.Get("X-Auth-Token")
	login.Body.Close()
	stream := do("GET", "/events", token, "")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
			f(lines.Text())
		}
	}()
	t.Cleanup(func() { stream.Body.Close(); <-ended })
}
