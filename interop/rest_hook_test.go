//go:build interop

package interop

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/freeport"
)

// TestHooksAsStock sends requests to /hook without a session (webhook_disable_auth), through stock's salt-api and
// brine's. The answers, and the tags and data of the events must be the same, except for tokens and cookies, which
// brine leaves out.
func TestHooksAsStock(t *testing.T) {
	t.Parallel()
	port := freeport.Ports(t, 2)
	open := func(port int) *site {
		s := newSite(t, "zeromq", "")
		write(t, s.dir+"/users", restUsers)
		more(t, s.config(), strings.Replace(restConfig(s.dir, port), "collect_stats: true", "webhook_disable_auth: true", 1))
		return s
	}
	theirs := &stockMaster{site: open(port[0]), t: t, root: t, line: "3007"}
	mine := &ourMaster{site: open(port[1]), t: t, root: t, line: "3007"}
	theirs.up()
	start(t, stock(t, "3007", "salt-api"), "-c", filepath.Dir(theirs.config()))
	mine.up()
	await(t, "salt-api listens", func() bool { return listening(port[0]) && listening(port[1]) })
	one, two := newAPI(t, "stock", theirs.dir, port[0]), newAPI(t, "ours", mine.dir, port[1])
	for i, c := range []restCase{
		{Request: "POST /hook", JSON: map[string]any{"a": 1, "b": []any{"x", nil, true}}},
		{Request: "POST /hook", JSON: []any{1, "two"}},
		{Request: "POST /hook", JSON: "text"},
		{Request: "POST /hook", Form: "a=1&b=two&b=three&c="},
		{Request: "POST /hook", Form: "arg=1&arg=x&arg="},
		{Request: "POST /hook", Form: "arg=&kwarg=&b&d=&d=x"},
		{Request: "POST /hook/", JSON: map[string]any{"a": 1}},
		{Request: "POST /hook/build/done", JSON: map[string]any{"a": 1}},
		{Request: "POST /hook/build/done/", JSON: map[string]any{"a": 1}},
		{Request: "POST /hook/a%20b/%C3%A4", JSON: map[string]any{"a": "ä"}},
		{Request: "POST /hook/x", Headers: map[string]string{"Content-Type": "application/x-yaml"}, Body: "{a: 1, b: [c]}"},
		{Request: "POST /hook/x", Headers: map[string]string{"Content-Type": "text/plain"}, Body: `{"a": 1}`},
		{Request: "POST /hook/x", Headers: map[string]string{"X-Event": "push", "X-Event-Id": "7", "User-Agent": "git"}, JSON: map[string]any{}},
		{Request: "POST /hook/x"},
	} {
		t.Run(fmt.Sprint(i)+" "+c.Request, func(t *testing.T) {
			one.t, two.t, theirs.bus.t, mine.bus.t = t, t, t, t
			c.As = "nobody"
			mark1, mark2 := theirs.bus.mark(), mine.bus.mark()
			want, got := one.do(c), two.do(c)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answer (-stock +ours)\n%s", diff)
			}
			if want.Status != 200 || t.Failed() {
				return
			}
			hook := func(e event) bool { return strings.HasPrefix(e.Tag, "salt/netapi/hook") }
			if diff := cmp.Diff(hookEvent(one, theirs.bus.first(mark1, hook)), hookEvent(two, mine.bus.first(mark2, hook))); diff != "" {
				t.Errorf("event (-stock +ours)\n%s", diff)
			}
		})
	}
	for _, c := range []restCase{
		{Request: "GET /hook"}, {Request: "POST /hook/x", Headers: map[string]string{"Content-Type": "application/json"}, Body: "{"},
		{Request: "POST /hook/x", Headers: map[string]string{"Content-Type": "application/xml"}, Body: "<a/>"},
		{Request: "POST /hook", Headers: map[string]string{"Origin": "http://pages.example"}, JSON: map[string]any{}},
		{Request: "POST /hook", Headers: map[string]string{"Accept": "application/x-yaml"}, JSON: map[string]any{}},
		{Request: "POST /minions", JSON: map[string]any{"tgt": "*", "fun": "test.ping"}},
	} {
		t.Run("refused or shown "+c.Request, func(t *testing.T) {
			one.t, two.t = t, t
			c.As = "nobody"
			if diff := cmp.Diff(one.do(c), two.do(c)); diff != "" {
				t.Errorf("(-stock +ours)\n%s", diff)
			}
		})
	}
}

// hookEvent returns the compared part of an event.
func hookEvent(a *api, e event) map[string]any {
	data, _ := a.values(e.Data).(map[string]any)
	delete(data, "_stamp")
	if h, ok := data["headers"].(map[string]any); ok {
		delete(h, "Remote-Addr")
	}
	return map[string]any{"tag": e.Tag, "data": data}
}
