package pillar_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render"
	"github.com/brine-salt/brine/states/render/pillar"
)

// TestSafeRenderErrors checks that a minion sees the text of a render error, which may contain a secret, only with
// pillar_safe_render_error: False.
func TestSafeRenderErrors(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"top.sls": "base: {'*': [bad]}", "bad.sls": "{{ canary }"} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for safe, shown := range map[any]bool{true: false, false: true, nil: false} {
		opts := map[string]any{"renderer": "jinja|yaml", "state_top": "top.sls"}
		if safe != nil {
			opts["pillar_safe_render_error"] = safe
		}
		c := pillar.New(pillar.Options{Opts: opts, Roots: map[string][]string{"base": {dir}}, Log: slog.New(slog.DiscardHandler),
			Env: modules.Env{Templates: render.Render, Runner: &runcmd.Runner{}}})
		d, err := c.Compile(context.Background(), pillar.Request{ID: "m", Saltenv: "base"})
		if err != nil {
			t.Fatal(err)
		}
		text := pyobj.Repr(d.Value("_errors"))
		if !strings.Contains(text, "bad") || strings.Contains(text, "canary") != shown {
			t.Errorf("pillar_safe_render_error %v: %s", safe, text)
		}
	}
}
