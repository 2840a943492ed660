package output

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func chunk(run int64, result any, comment string, changes map[string]any, ms float64) map[string]any {
	return map[string]any{"__run_num__": run, "result": result, "comment": comment, "changes": changes, "duration": ms}
}

func TestRecap(t *testing.T) {
	c := &Recap{}
	none := map[string]any{}
	if c.Add("web1", map[string]any{
		"pkg_|-a_|-nginx_|-installed": chunk(0, true, "", map[string]any{"nginx": "1"}, 12034.5),
		"file_|-b_|-/etc/x_|-managed": chunk(1, true, "", none, 20),
	}) {
		t.Error("web1 counts as failed")
	}
	if !c.Add("db", map[string]any{"cmd_|-a_|-false_|-run": chunk(0, false, "failed", map[string]any{"retcode": int64(1)}, 100),
		"test_|-b_|-x_|-nop": chunk(1, nil, "would", none, 0)}) {
		t.Error("db does not count as failed")
	}
	if !c.Add("broken", []any{"Rendering SLS failed"}) || !c.Add("odd", "text") {
		t.Error("what is no result of states does not count as failed")
	}
	c.Lost("gone", "it did not return")
	want := `broken : its states did not compile
db     : ok=0    changed=0    failed=1    would-change=1    0.1 s
gone   : it did not return
odd    : it did not run states
web1   : ok=2    changed=1    failed=0    12.1 s
total  : ok=2    changed=1    failed=1    would-change=1    12.2 s
2 of 5 minions ran states
The slowest states:
    12.0 s  web1  pkg.installed nginx
     0.1 s  db  cmd.run false
     0.0 s  web1  file.managed /etc/x
     0.0 s  db  test.nop x
`
	if diff := cmp.Diff(want, c.Text()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPlan(t *testing.T) {
	diff := map[string]any{"diff": "--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n"}
	same := func() map[string]any {
		return map[string]any{
			"file_|-b_|-/etc/x_|-managed": chunk(1, nil, "The file /etc/x is set to be changed", diff, 20),
			"pkg_|-a_|-nginx_|-installed": chunk(0, true, "All specified packages are already installed", map[string]any{}, 3),
		}
	}
	p := &Plan{}
	for _, host := range []string{"web7", "web1", "web2", "web3", "web4", "web5"} {
		p.Add(host, same())
	}
	p.Add("db", map[string]any{"pkg_|-a_|-nginx_|-installed": chunk(0, nil, "The following packages would be installed: nginx", map[string]any{}, 3)})
	p.Add("idle", map[string]any{"test_|-a_|-x_|-nop": chunk(0, true, "Success!", map[string]any{}, 3)})
	want := `file.managed /etc/x
    on 6 minions: web1, web2, web3, web4, web5, …
    The file /etc/x is set to be changed
    ----------
    diff:
        --- 
        +++ 
        @@ -1 +1 @@
        -a
        +b
pkg.installed nginx
    on 1 minion: db
    The following packages would be installed: nginx
2 states would change, on 7 of 8 minions.
`
	if diff := cmp.Diff(want, p.Text()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if p.Code() != 2 {
		t.Errorf("exit code %d", p.Code())
	}
	p.Lost("gone", "it did not return")
	if got := p.Text(); p.Code() != 1 || !strings.Contains(got, "gone: it did not return\n2 states would change, on 7 of 9 minions.\n") {
		t.Errorf("exit code %d, %s", p.Code(), got)
	}
	idle := &Plan{}
	idle.Add("idle", map[string]any{"test_|-a_|-x_|-nop": chunk(0, true, "", map[string]any{}, 3)})
	if got := idle.Text(); idle.Code() != 0 || got != "Nothing would change on 1 minion.\n" {
		t.Errorf("exit code %d, %s", idle.Code(), got)
	}
	failed := &Plan{}
	failed.Add("web1", map[string]any{"cmd_|-a_|-x_|-run": chunk(0, false, "cannot", map[string]any{}, 3)})
	if got := failed.Text(); failed.Code() != 1 || !strings.HasPrefix(got, "cmd.run x fails\n    on 1 minion: web1\n    cannot\n") {
		t.Errorf("exit code %d, %s", failed.Code(), got)
	}
	broken := &Plan{}
	broken.Add("web1", []any{"Rendering SLS failed"})
	if got := broken.Text(); broken.Code() != 1 || !strings.Contains(got, "web1:\n    - Rendering SLS failed\n") {
		t.Errorf("exit code %d, %s", broken.Code(), got)
	}
}
