package minion

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

func TestMaskedArgs(t *testing.T) {
	def := &modules.Def{Name: "f", Params: []modules.Param{{Name: "name"}, {Name: "pw", Secret: true}, {Name: "token", Secret: true, KeywordOnly: true}}}
	declared := func(fun string) []*modules.Def {
		if fun == "m.f" {
			return []*modules.Def{def}
		}
		return nil
	}
	kw := pairs("__kwarg__", true, "token", "s3", "name", "ada")
	cases := []struct {
		job  protocol.Job
		want []any
	}{
		{protocol.Job{Fun: []string{"m.f"}, Args: [][]any{{"ada", "s3", "x"}}}, []any{"ada", mask, "x"}},
		{protocol.Job{Fun: []string{"m.f"}, Args: [][]any{{"pw=s3", "ada", "name=x"}}}, []any{"pw=" + mask, "ada", "name=x"}},
		{protocol.Job{Fun: []string{"m.f"}, Args: [][]any{{"ada", kw}}}, []any{"ada", pairs("__kwarg__", true, "token", mask, "name", "ada")}},
		{protocol.Job{Fun: []string{"m.f"}, Args: [][]any{{pairs(int64(1), "s3", "__kwarg__", true, "pw", "s3")}}}, []any{pairs(int64(1), mask, "__kwarg__", true, "pw", mask)}},
		{protocol.Job{Fun: []string{"m.f"}, Args: [][]any{{pairs("pw", "a value")}}}, []any{pairs("pw", "a value")}},
		{protocol.Job{Fun: []string{"x.y"}, Args: [][]any{{"a", kw}}}, []any{mask, pairs("__kwarg__", true, "token", mask, "name", mask)}},
		{protocol.Job{Fun: []string{"m.f"}}, []any{}},
		{protocol.Job{Compound: true, Fun: []string{"m.f", "m.f"}, Args: [][]any{{"a", "s3"}, {"b"}}}, []any{[]any{"a", mask}, []any{"b"}}},
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.want, maskedArgs(c.job, declared)); diff != "" {
			t.Errorf("%v\n%s", c.job.Args, diff)
		}
	}
	if token, _ := kw.Get("token"); token != "s3" {
		t.Error("the job's own arguments were changed")
	}
}

// TestSecretsAreNotKept looks for a secret on the disk, in the log and in the return, while its job runs and afterwards.
func TestSecretsAreNotKept(t *testing.T) {
	const canary = "canary-7f3a"
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		secret := &modules.Module{Name: "db", Funcs: []modules.Def{{Name: "login",
			Params: []modules.Param{{Name: "user"}, {Name: "password", Secret: true}},
			Run: func(ctx context.Context, c *modules.Call) (any, error) {
				time.Sleep(time.Minute)
				return c.Str("password") == canary, nil
			}}}}
		r := newRig(t, n, map[string]any{"cache_jobs": true})
		r.mods = []*modules.Module{secret}
		r.start()
		r.until(Connected)
		f.subscribed(1)
		f.await("start event", isEvent("salt/minion/alpha/start"))
		look := func(when string) {
			err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(canary)) {
					t.Errorf("%s it is in %s", when, path)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if r.log.has(canary) {
				t.Errorf("%s it is in the log", when)
			}
		}
		f.publish(jobMap(jidAt(1), "db.login", map[string]any{"arg": []any{"ada", canary}}))
		f.publish(jobMap(jidAt(2), "db.login", map[string]any{"arg": []any{"ada", map[string]any{"__kwarg__": true, "password": canary}}}))
		time.Sleep(30 * time.Second)
		look("while the job runs,")
		for i := 1; i < 3; i++ {
			got := f.await("return", isReturn(jidAt(i)))
			if got["return"] != true || strings.Contains(fmt.Sprint(got), canary) {
				t.Errorf("returned %v", got)
			}
		}
		look("after the job,")
	})
}

// The journal has no environment of programs and no long texts; what goes back to the master about a job that ran has both.
func TestJournalHasNoEnvironmentAndNoLongTexts(t *testing.T) {
	def := &modules.Def{Name: "run", Params: []modules.Param{{Name: "cmd"}, {Name: "env", Optional: true}}, Kwargs: "kwargs"}
	declared := func(string) []*modules.Def { return []*modules.Def{def} }
	long := strings.Repeat("x", maxJournalText) + "canary"
	cut := strings.Repeat("x", maxJournalText) + fmt.Sprintf("… (%d bytes)", len(long))
	env := pairs("TOKEN", "canary")
	for _, c := range []struct{ args, want []any }{
		{[]any{"true", env}, []any{"true", mask}},
		{[]any{"true", "env={TOKEN: canary}", "environ=canary"}, []any{"true", "env=" + mask, "environ=" + mask}},
		{[]any{"true", pairs("__kwarg__", true, "env", env, "cwd", "/")}, []any{"true", pairs("__kwarg__", true, "env", mask, "cwd", "/")}},
		{[]any{long, []any{pairs("k", long)}, []byte(long)}, []any{cut, mask, cut}},
		{[]any{pairs("z", []any{long}, long, pairs("a", long))}, []any{pairs("z", []any{cut}, cut, pairs("a", cut))}},
		{[]any{"true", "contents=" + long}, []any{"true", "contents=" + strings.Repeat("x", maxJournalText-9) + fmt.Sprintf("… (%d bytes)", len(long)+9)}},
	} {
		job := protocol.Job{Fun: []string{"cmd.run"}, Args: [][]any{c.args}}
		if diff := cmp.Diff(c.want, journalArgs(job, declared)); diff != "" {
			t.Errorf("%v\n%s", c.args, diff)
		}
	}
	args := []any{"true", "env={TOKEN: canary}"}
	if diff := cmp.Diff(args, maskedArgs(protocol.Job{Fun: []string{"cmd.run"}, Args: [][]any{args}}, declared)); diff != "" {
		t.Errorf("the return lacks what the master sent\n%s", diff)
	}
}
