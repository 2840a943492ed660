package minion

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/configmod"
	"github.com/brine-salt/brine/modules/state"
	"github.com/brine-salt/brine/protocol/transport/mem"
	"github.com/brine-salt/brine/states/render"
)

// TestLockSaltenv: with lock_saltenv no job gets states of another environment, whatever wraps the call. The same jobs
// without the option do.
func TestLockSaltenv(t *testing.T) {
	kw := func(m map[string]any) map[string]any { m["__kwarg__"], m["saltenv"] = true, "dev"; return m }
	ways := map[string]struct {
		fun  string
		args []any
	}{
		"apply":     {"state.apply", []any{"apply", kw(map[string]any{})}},
		"sls":       {"state.sls", []any{"sls", kw(map[string]any{})}},
		"highstate": {"state.highstate", []any{kw(map[string]any{})}},
		"template": {"state.template_str", []any{
			"x:\n  test.nop:\n    - name: {{ salt['state.sls']('template', saltenv='dev', concurrent=True) }}\n"}},
		"module.run": {"state.high", []any{map[string]any{"x": map[string]any{"module": []any{"run", map[string]any{
			"state.sls": []any{map[string]any{"mods": "module.run"}, map[string]any{"saltenv": "dev"}, map[string]any{"concurrent": true}}}}}}}},
	}
	for _, locked := range []bool{false, true} {
		t.Run(fmt.Sprint("locked ", locked), func(t *testing.T) {
			bubble(t, func(t *testing.T, n *mem.Network) {
				f := newFake(t, n, "one:4506")
				r := newRig(t, n, map[string]any{"lock_saltenv": locked, "use_superseded": []any{"module.run"}})
				r.opts["grains"] = map[string]any{"os": "Debian", "shell": "/bin/sh"}
				c := &canary{}
				roots := map[string][]string{}
				for _, env := range []string{"base", "dev"} {
					dir := filepath.Join(r.dir, env)
					if err := os.Mkdir(dir, 0o700); err != nil {
						t.Fatal(err)
					}
					roots[env] = []string{dir}
				}
				for way := range ways {
					text := fmt.Sprintf("x:\n  cmd.run:\n    - name: %s\n", way)
					name := strings.ReplaceAll(way, ".", "/") + ".sls"
					if err := os.MkdirAll(filepath.Dir(filepath.Join(roots["dev"][0], name)), 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(roots["dev"][0], name), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(filepath.Join(roots["dev"][0], "top.sls"), []byte("dev:\n  '*':\n    - highstate\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				r.mods = []*modules.Module{c.module(), state.Module, configmod.Module}
				r.o.Templates = render.Render
				r.o.Files = func(opts map[string]any, _ FileRequest) modules.Files {
					return fileclient.New(fileclient.Options{Roots: roots, CacheDir: filepath.Join(r.dir, "cache")})
				}
				r.start()
				r.until(Connected)
				f.subscribed(1)
				i := 0
				for way, call := range ways {
					i++
					got := ask(f, i, call.fun, call.args...)
					if ran := c.count(way) > 0; ran == locked {
						t.Errorf("%s: ran: %v, answer %v", way, ran, got["return"])
					}
					if locked && !strings.Contains(pytext.Str(got["return"]), "lock_saltenv is enabled, saltenv cannot be changed") {
						t.Errorf("%s: %v", way, got["return"])
					}
				}
			})
		})
	}
}
