//go:build openstack && trove

package trove

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	stdnet "net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// master is a client of the master that Trove's services share. The master identifies callers by the credentials of
// its socket.
var master = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, DialContext: func(ctx context.Context, _, _ string) (stdnet.Conn, error) {
	return new(stdnet.Dialer).DialContext(ctx, "unix", filepath.Join(dbaas.Master, "api.sock"))
}}}

// request sends a request to the master and returns the status and the body of the response.
func request(t *testing.T, method, path string, body any) (int, []byte) {
	t.Helper()
	text, err := json.Marshal(body)
	must(t, err)
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, "http://master"+path, bytes.NewReader(text))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := master.Do(req)
	must(t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, answer
}

// An order is the master's record of a job for one minion.
type order struct {
	Done    bool
	Minions map[string]struct {
		Status  string
		Success bool
		Return  any
	}
}

// TestTroveT6Memory: after 10,000 calls of list_users, made as Trove's services make them, the agent uses at most 30
// MiB of memory.
func TestTroveT6Memory(t *testing.T) {
	const calls, callers, budget = 10000, 8, 30 << 20
	id := create(t, "memory", "10.11")
	healthy(t, id)
	g := guestOf(t, "memory")
	place := func(name, fun string, kwargs map[string]any) (out order) {
		code, answer := request(t, "POST", "/v1/jobs", map[string]any{"id": name, "tgt": []string{id}, "fun": "trove." + fun, "kwarg": kwargs,
			"ttl": 15, "deadline": float64(time.Now().Unix() + 15), "parallel": true, "secret": true, "metadata": map[string]any{"trove_method": fun}})
		for code < 300 && !out.Done {
			code, answer = request(t, "GET", "/v1/jobs/"+name+"?wait=15", nil)
			if code < 300 {
				must(t, json.Unmarshal(answer, &out))
			}
		}
		if r := out.Minions[id]; r.Status != "returned" || !r.Success {
			t.Errorf("%s: HTTP %d: %.500s", name, code, answer)
		}
		return out
	}
	var users []map[string]any
	for i := range 25 {
		users = append(users, map[string]any{"_name": fmt.Sprintf("user%02d", i), "_host": "%", "_password": canary})
	}
	place("memory-users", "create_user", map[string]any{"users": users})
	list := map[string]any{"limit": 20, "marker": nil, "include_marker": false}
	first, err := json.Marshal(place("memory-first", "list_users", list).Minions[id].Return)
	must(t, err)
	if n := bytes.Count(first, []byte(`"_name":"user`)); n != 20 || !bytes.HasSuffix(first, []byte(`,"user19@%"]`)) {
		t.Fatalf("list_users returns %s", first)
	}
	pid := g.agent(t)
	before := memory(t, pid, "VmRSS")
	began := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for n := next.Add(1); n <= calls && !t.Failed(); n = next.Add(1) {
				got, err := json.Marshal(place(fmt.Sprintf("memory-%d", n), "list_users", list).Minions[id].Return)
				if err != nil || !bytes.Equal(got, first) {
					t.Errorf("call %d returns %s, %v", n, got, err)
				}
			}
		})
	}
	wg.Wait()
	after, most := memory(t, pid, "VmRSS"), memory(t, pid, "VmHWM")
	t.Logf("%d calls in %s; the agent had %.1f MiB before, has %.1f after, and had %.1f at most; the budget is %.0f", calls,
		time.Since(began).Round(time.Second), mebi(before), mebi(after), mebi(most), mebi(budget))
	if after > budget {
		t.Errorf("the agent has %.1f MiB after %d calls, more than the budget of %.0f", mebi(after), calls, mebi(budget))
	}
	if got := g.calls(t)["list_users"]; got != calls+1 {
		t.Errorf("list_users ran %d times", got)
	}
}

func mebi(n int64) float64 { return float64(n) / (1 << 20) }

// memory returns a line of a process's status: an amount of memory in bytes.
func memory(t *testing.T, pid int, line string) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	m := regexp.MustCompile(line + `:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		t.Fatalf("no %s", line)
	}
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	must(t, err)
	return kb << 10
}
