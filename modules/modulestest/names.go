package modulestest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/modules"
)

// canary is part of the hostile names, and of nothing that a module makes by itself.
const canary = "brine-canary"

// hostileNames would run a program in any shell that is shown them without quotes, or within them.
func hostileNames() []any {
	run := "touch " + canary
	return []any{"$(" + run + ")", "`" + run + "`", "x; " + run, "x\n" + run, "x | " + run, "x && " + run, "'; " + run + "; '", `"; ` + run + `; "`, "x > " + canary}
}

// shells start what they are told by a text.
var shells = []string{"sh", "bash", "dash", "ash", "ksh", "zsh", "cmd.exe", "powershell", "pwsh"}

// forShells reports whether a function takes commands for a shell, so that its argument may contain any shell syntax.
func forShells(module, fun string) bool {
	return module == "cmd" && fun != "which" && fun != "has_exec" && fun != "which_bin"
}

// names calls every function with names that would run programs if a shell read them. Every command that it wants to start must have them
// as arguments of a program, never in a text for a shell.
func names(t *testing.T, m *modules.Module) {
	var mu sync.Mutex
	var bad []string // guarded by mu
	env := Env(t)
	env.Runner = Runner(func(_ context.Context, c modules.Command) (modules.CommandResult, error) {
		text := c.Script
		if c.Shell == "" && len(c.Args) > 1 && slices.Contains(shells, filepath.Base(c.Args[0])) {
			// What follows the script are its arguments, "$1" and so on.
			if i := slices.IndexFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "-") && strings.HasSuffix(a, "c") }); i >= 0 && i+1 < len(c.Args) {
				text = c.Args[i+1]
			}
		}
		if strings.Contains(text, canary) {
			mu.Lock()
			bad = append(bad, text)
			mu.Unlock()
		}
		return modules.CommandResult{}, nil
	})
	s := &suite{r: modules.NewRegistry(m), m: m, envs: []*modules.Env{env}}
	for i := range m.Funcs {
		d := &m.Funcs[i]
		if forShells(m.Name, d.Name) {
			continue
		}
		for _, name := range hostileNames() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			s.call(ctx, t, d, env, slices.Repeat([]any{name}, len(positional(d))), nil)
			s.call(ctx, t, d, env, slices.Repeat([]any{name}, required(d)), nil)
			cancel()
			mu.Lock()
			if bad != nil {
				t.Errorf("%s(%q) has a shell read %q", m.Called()+"."+d.Name, fmt.Sprint(name), bad[0])
			}
			bad = nil
			mu.Unlock()
		}
	}
}
