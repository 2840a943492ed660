//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// accessLists is the configuration of both masters.
const accessLists = `
auto_accept: true
timeout: 20
gather_job_timeout: 10
nodegroups:
  front: 'web1'
  all: 'N@front or db1'
  none: 'nobody*'
publisher_acl:
  nobody:
    - test.echo
    - web*: [test.ping, 'test.arg']
    - 'L@db1': ['test.version']
    - 'G@role:tester and db*': ['grains.get']
    - db1: [{test.kwarg: {kwargs: {a: '[0-9]'}}}, {test.fib: {args: ['1|2']}}]
  daemon: []
  bin: ['test.p.*']
  games: ['.*']
publisher_acl_blacklist:
  users: [games]
  modules: ['cmd.*', test.outputter]
peer:
  web1: [test.echo, 'test.ar.']
  'd.*': ['web.': ['test.ping'], db1: [{test.kwarg: {kwargs: {a: '[0-9]'}}}]]
peer_run:
  web1: [test.arg, 'test.meta.*']
`

// accessCase is a command line and the user who runs it.
type accessCase struct {
	user string
	args []string
	ours string // what brine's salt prints in addition, where it differs
	why  string
}

// TestAccessLists runs the same command lines, as several users of the host, with stock's salt on a stock master,
// with brine's salt on brine's master, and with stock's salt on brine's master. It also has a minion publish to
// others and write and read the mine through both masters. The permissions, the texts and the exit codes must be the
// same.
func TestAccessLists(t *testing.T) {
	inTurn(t)
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("only root can become another user")
	}
	open := func() *site {
		s := newSite(t, "zeromq", accessLists)
		if err := errors.Join(os.Chmod(s.dir, 0o755), os.Chmod(s.config(), 0o644)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	theirs := &stockMaster{site: open(), t: t, root: t, line: "3007"}
	mine := &ourMaster{site: open(), t: t, root: t, line: "3007"}
	theirs.up()
	mine.up()
	for s, b := range map[*site]*bus{theirs.site: theirs.bus, mine.site: mine.bus} {
		for _, id := range []string{"web1", "db1"} {
			start(t, ours("salt-minion"), "-c", s.minion(t, id, ""))
			b.wait(0, "salt/minion/"+id+"/start")
		}
	}
	ways := []struct {
		name, program string
		site          *site
	}{
		{"stock", stock(t, "3007", "salt"), theirs.site},
		{"ours", ours("salt"), mine.site},
		{"stock's salt, our master", stock(t, "3007", "salt"), mine.site},
	}
	equal, excused := 0, 0
	for i, c := range accessCases {
		t.Run(fmt.Sprintf("%d %s %s", i, c.user, strings.Join(c.args, " ")), func(t *testing.T) {
			got := make([]string, len(ways))
			var all sync.WaitGroup
			for i, w := range ways {
				all.Go(func() { got[i] = asUser(t, c.user, w.program, w.site, c.args) })
			}
			all.Wait()
			for i, w := range ways[1:] {
				if c.ours != "" && w.name == "ours" {
					if c.why == "" || got[0] == got[i+1] || !strings.Contains(got[i+1], c.ours) {
						t.Errorf("%s: %s (stock: %s)", w.name, got[i+1], got[0])
					}
					continue
				}
				if diff := cmp.Diff(got[0], got[i+1]); diff != "" {
					t.Errorf("%s (-stock +ours):\n%s", w.name, diff)
				}
			}
			if c.ours == "" {
				equal++
			} else {
				excused++
			}
		})
	}
	for _, c := range [][]string{
		{"web1", "publish.publish", "*", "test.echo", "x"}, {"web1", "publish.publish", "*", "test.ping"}, {"web1", "publish.publish", "*", "test.arg", "[1, 2]"},
		{"web1", "publish.publish", "nobody", "test.echo", "x"},
		{"web1", "publish.publish", "N@front", "test.echo", "x", "tgt_type=compound"},
		{"web1", "publish.publish", "role:tester", "test.echo", "x", "tgt_type=grain"}, {"web1", "publish.publish", "color:blue", "test.echo", "x", "tgt_type=pillar"},
		{"web1", "publish.publish", "*", "test.exception"}, {"web1", "publish.full_data", "db1", "test.echo", "x"}, {"web1", "publish.full_data", "db1", "test.ping"},
		{"db1", "publish.publish", "web1", "test.ping"}, {"db1", "publish.publish", "*", "test.ping"}, {"db1", "publish.publish", "web1", "test.echo", "x"},
		{"db1", "publish.publish", "db1", "test.kwarg", "a=1"}, {"db1", "publish.publish", "db1", "test.kwarg", "a=x"}, {"db1", "publish.publish", "db1", "test.kwarg"},
		{"web1", "publish.runner", "test.arg", "x"}, {"web1", "publish.runner", "test.metasyntactic"}, {"web1", "publish.runner", "test.sleep", "0"},
		{"web1", "publish.runner", "no.such"}, {"db1", "publish.runner", "test.arg", "x"},
		{"web1", "mine.send", "open", "mine_function=test.echo", "text=o"},
		{"web1", "mine.send", "closed", "mine_function=test.echo", "text=c", "allow_tgt=web1"},
		{"web1", "mine.send", "grain", "mine_function=test.echo", "text=g", "allow_tgt=role:tester", "allow_tgt_type=grain"},
		{"web1", "mine.send", "compound", "mine_function=test.echo", "text=c", "allow_tgt=G@role:tester and db*", "allow_tgt_type=compound"},
		{"web1", "mine.send", "listed", "mine_function=test.echo", "text=l", "allow_tgt=db1,other", "allow_tgt_type=list"},
		{"web1", "mine.send", "pillar", "mine_function=test.echo", "text=p", "allow_tgt=color:blue", "allow_tgt_type=pillar"},
		{"web1", "mine.send", "pcre", "mine_function=test.echo", "text=p", "allow_tgt=d.1", "allow_tgt_type=pcre"},
		{"web1", "mine.send", "group", "mine_function=test.echo", "text=g", "allow_tgt=front", "allow_tgt_type=nodegroup"},
		{"web1", "mine.send", "odd", "mine_function=test.echo", "text=o", "allow_tgt=*", "allow_tgt_type=nonsense"},
		{"web1", "mine.send", "other", "mine_function=test.echo", "text=o", "allow_tgt=G@role:other or L@web2", "allow_tgt_type=compound"},
		{"web1", "mine.get", "*", "[open, closed, grain, compound, listed, pillar, pcre, group, odd, other]"}, {"web1", "mine.get", "*", "closed"}, {"web1", "mine.get", "web1", "grain"},
		{"db1", "mine.get", "*", "[open, closed, grain, compound, listed, pillar, pcre, group, odd, other]"}, {"db1", "mine.get", "*", "closed"}, {"db1", "mine.get", "web1", "grain"},
		{"web1", "mine.delete", "open"}, {"db1", "mine.get", "*", "open"}, {"db1", "mine.delete", "grain"}, {"db1", "mine.get", "web*", "grain"}, {"web1", "mine.valid"},
		{"db1", "mine.flush"}, {"web1", "mine.get", "*", "[grain, closed]"}, {"web1", "mine.flush"}, {"web1", "mine.flush"}, {"web1", "mine.get", "*", "[grain, closed]"},
	} {
		t.Run(strings.Join(c, " "), func(t *testing.T) {
			call := func(program string, s *site) any {
				out := asUser(t, "root", program, s, append([]string{"-t", "60"}, c...))
				return out
			}
			var want, got any
			var both sync.WaitGroup
			both.Go(func() { want = call(ours("salt"), theirs.site) })
			both.Go(func() { got = call(ours("salt"), mine.site) })
			both.Wait()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-stock +ours):\n%s", diff)
				return
			}
			equal++
		})
	}
	t.Logf("%d equal, %d excused", equal, excused)
}

// asUser runs a program as a user of this host, in the master's group and with read access to all directories. It
// returns the output, made comparable, and the exit code.
func asUser(t *testing.T, user, program string, s *site, args []string) string {
	t.Helper()
	line := append([]string{program, "-c", filepath.Dir(s.config()), "--log-file=/dev/null", "--out=json"}, args...)
	if user != "root" {
		line = append([]string{"setpriv", "--reuid", user, "--regid", "root", "--clear-groups", "--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"}, line...)
	}
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+homeOf(t))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Error(err)
	}
	out := strings.ReplaceAll(stdout.String(), s.dir, "<dir>")
	all := map[string]any{} // each minion's return is a separate document, in the order of arrival
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var v map[string]any
		if err := d.Decode(&v); err == io.EOF {
			b, _ := json.Marshal(all)
			out = string(b)
			break
		} else if err != nil {
			break
		}
		maps.Copy(all, v)
	}
	t.Logf("%s %s: %q", filepath.Base(filepath.Dir(program)), args, stderr.String())
	if parts := strings.Split(out, "Executing run on"); len(parts) > 1 { // the batches may come in any order
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		slices.Sort(parts[1:])
		out = strings.Join(parts, "\n")
	}
	return fmt.Sprintf("%s (%d)", strings.TrimSpace(restJID.ReplaceAllString(out, "<jid>")), cmd.ProcessState.ExitCode())
}

var accessCases = []accessCase{
	{user: "root", args: []string{"*", "test.ping"}},
	{user: "root", args: []string{"*", "cmd.run", "id"}},
	{user: "root", args: []string{"*", "test.ping,cmd.run", ",id"}},
	{user: "root", args: []string{"*", "test.outputter", "x"}},
	{user: "nobody", args: []string{"*", "test.echo", "x"}},
	{user: "nobody", args: []string{"*", "test.ping"}},
	{user: "nobody", args: []string{"web1", "test.ping"}},
	{user: "nobody", args: []string{"web*", "test.ping"}},
	{user: "nobody", args: []string{"-L", "web1,db1", "test.ping"}},
	{user: "nobody", args: []string{"-G", "role:tester", "test.ping"}},
	{user: "nobody", args: []string{"-N", "front", "test.ping"}},
	{user: "nobody", args: []string{"-N", "all", "test.ping"}},
	{user: "nobody", args: []string{"db1", "test.version"}},
	{user: "nobody", args: []string{"db1", "grains.get", "role"}},
	{user: "nobody", args: []string{"web1", "grains.get", "role"}},
	{user: "nobody", args: []string{"db1", "test.kwarg", "a=1"}},
	{user: "nobody", args: []string{"db1", "test.kwarg", "a=x"}},
	{user: "nobody", args: []string{"db1", "test.fib", "5"}},
	{user: "nobody", args: []string{"nothing", "test.echo", "x"}},
	{user: "nobody", args: []string{"nothing", "test.ping"}},
	{user: "nobody", args: []string{"--async", "db1", "test.ping"}},
	{user: "nobody", args: []string{"--async", "db1", "test.echo", "x"}},
	{user: "nobody", args: []string{"-b", "1", "*", "test.echo", "x"}},
	{user: "nobody", args: []string{"-b", "1", "db1", "cmd.run", "id"}},
	{user: "daemon", args: []string{"web1", "test.ping"}},
	{user: "bin", args: []string{"*", "test.ping"}},
	{user: "bin", args: []string{"*", "test.echo", "x"}},
	{user: "games", args: []string{"*", "test.ping"}},
	{user: "sys", args: []string{"*", "test.ping"}},
	// Batches of node groups.
	{user: "root", args: []string{"-N", "all", "-b", "1", "test.echo", "x"}},
	{user: "root", args: []string{"-N", "front", "-b", "50%", "test.echo", "x"}},
	{user: "root", args: []string{"-N", "none", "-b", "1", "test.echo", "x"}},
	{user: "root", args: []string{"-N", "nosuch", "-b", "1", "test.echo", "x"}},
	{user: "root", args: []string{"-N", "nosuch", "test.echo", "x"}},
	{user: "root", args: []string{"-C", "N@all and not web1", "-b", "1", "test.echo", "x"}},
	{user: "root", args: []string{"-L", "web1,nobody", "-b", "2", "test.echo", "x"}, ours: "Minion nobody did not respond. No job will be sent.",
		why: "stock forgets ids that have no key"},
	{user: "root", args: []string{"-N", "front", "-b", "1", "test.retcode", "3"}},
	{user: "root", args: []string{"web1", "-b", "1", "--failhard", "test.retcode", "3"}},
}
