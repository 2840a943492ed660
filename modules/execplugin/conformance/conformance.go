// Package conformance checks whether a program is a good module in the sense of package execplugin: that it describes itself, that
// its examples come out as it says, that it ends when it is told to, that it survives nonsense, and that no secret of its
// examples shows in the log. The program's author runs it from a test,
//
//	func TestProgram(t *testing.T) { conformance.Run(t, "./appdeploy") }
//
// or, without any Go, as the command in the directory cmd.
package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/execplugin"
)

// patience is how long a program may take for what should not take long.
const patience = 30 * time.Second

// Problem is something that is wrong with a program.
type Problem struct {
	// Check is the name of the check, Text its outcome.
	Check, Text string
}

func (p Problem) String() string { return p.Check + ": " + p.Text }

// Run checks a program as part of a test.
func Run(t *testing.T, program string) {
	t.Helper()
	problems, err := Check(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// Check checks a program. An error means that the program is not a module at all, so that no other check was
// possible.
func Check(ctx context.Context, program string) ([]Problem, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	k := &kit{runner: &runcmd.Runner{}, log: &record{}}
	defer k.runner.Close()
	m, err := execplugin.Load(k.env(), program)
	if err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", program, err)
	}
	k.registry = modules.NewRegistry(m, echo)
	k.module = m
	first, err := k.describe(ctx, program)
	if err != nil {
		return nil, err
	}
	second, err := k.describe(ctx, program)
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(first, second) {
		k.report("describe", "two descriptions differ; a description should depend on the host only")
	}
	if len(first.Functions) == 0 {
		k.report("describe", "there are no functions")
	}
	k.nonsense(ctx, program, first)
	for _, name := range slices.Sorted(maps.Keys(first.Functions)) {
		f := first.Functions[name]
		if strings.TrimSpace(f.Doc) == "" {
			k.report(name, "it has no documentation")
		}
		if len(f.Examples) == 0 {
			k.report(name, "it has no example; give it one that does no harm")
		}
		for i, x := range f.Examples {
			k.example(ctx, name, i, x)
		}
	}
	return k.problems, nil
}

// echo is a function for programs to call.
var echo = &modules.Module{Name: "test", Funcs: []modules.Def{
	{Name: "echo", Doc: "Return the text.", Params: []modules.Param{{Name: "text"}},
		Run: func(_ context.Context, c *modules.Call) (any, error) { return c.Value("text"), nil }},
	{Name: "ping", Doc: "Return True.", Run: func(context.Context, *modules.Call) (any, error) { return true, nil }},
}}

type kit struct {
	runner   *runcmd.Runner
	registry *modules.Registry
	module   *modules.Module
	log      *record
	problems []Problem
}

func (k *kit) report(check, format string, args ...any) {
	k.problems = append(k.problems, Problem{check, fmt.Sprintf(format, args...)})
}

// env returns the environment in which the program runs.
func (k *kit) env() *modules.Env {
	return &modules.Env{
		ID: "conformance", Runner: k.runner, Log: slog.New(k.log),
		Opts:   func() map[string]any { return map[string]any{"id": "conformance"} },
		Grains: func() map[string]any { return map[string]any{"id": "conformance", "os": "Debian", "kernel": "Linux"} },
		Pillar: func() map[string]any { return map[string]any{} },
	}
}

func (k *kit) run(ctx context.Context, stdin string, args ...string) (modules.CommandResult, error) {
	return k.runner.Run(ctx, modules.Command{Args: args, Dir: "/", Stdin: strings.NewReader(stdin), Timeout: patience})
}

func (k *kit) describe(ctx context.Context, program string) (d execplugin.Description, err error) {
	res, err := k.run(ctx, "", program, "describe")
	switch {
	case err != nil:
	case res.TimedOut:
		err = fmt.Errorf("it did not describe itself within %v", patience)
	case res.ExitCode != 0:
		err = fmt.Errorf("describe ended with exit status %d: %s", res.ExitCode, bytes.TrimSpace(res.Stderr))
	default:
		err = json.Unmarshal(res.Stdout, &d)
	}
	if err != nil {
		return d, fmt.Errorf("cannot use %s: %w", program, err)
	}
	return d, nil
}

// nonsense sends input that a program must survive: it need not answer, but it must end.
func (k *kit) nonsense(ctx context.Context, program string, d execplugin.Description) {
	const absent = "no_such_function_here"
	res, err := k.run(ctx, "{}\n", program, "call", absent)
	switch {
	case err != nil:
		k.report("unknown function", "%v", err)
	case res.TimedOut:
		k.report("unknown function", "the program does not end")
	case res.ExitCode == 0 && len(bytes.TrimSpace(res.Stdout)) > 0 && !bytes.Contains(res.Stdout, []byte(`"error"`)) && len(d.Functions) > 1:
		k.report("unknown function", "the program answers for a function that it does not have")
	}
	for _, name := range slices.Sorted(maps.Keys(d.Functions)) {
		if len(d.Functions[name].Examples) == 0 {
			continue // who knows what it does
		}
		for what, stdin := range map[string]string{"an empty standard input": "", "a standard input that is no JSON": "\x00{[\n"} {
			if res, err := k.run(ctx, stdin, program, "call", name); err != nil || res.TimedOut {
				k.report(name, "with %s the program does not end: %v", what, err)
			}
		}
	}
}

// example runs an example and compares.
func (k *kit) example(ctx context.Context, name string, i int, x execplugin.Example) {
	check := fmt.Sprintf("%s, example %d", name, i+1)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	k.log.reset(func() {
		if x.Cancel {
			cancel()
		}
	})
	args, err := plain(x.Args)
	if err != nil {
		k.report(check, "%v", err)
		return
	}
	kwargs, err := plain(x.Kwargs)
	if err != nil {
		k.report(check, "%v", err)
		return
	}
	list, _ := args.([]any)
	named, _ := kwargs.(map[string]any)
	begin := time.Now()
	res := k.registry.Run(ctx, k.env(), modules.Request{Fun: k.module.Called() + "." + name, JID: "20260101000000000000", Args: list, Kwargs: named,
		Progress: func(any) { k.log.tell() }})
	k.secrets(check, name, list, named)
	if x.Cancel {
		switch {
		case time.Since(begin) >= patience:
			k.report(check, "it neither reports progress nor writes to the log, or does not end")
		case res.Err == nil:
			k.report(check, "it returned %v although it was cancelled", res.Return)
		}
		return
	}
	if ctx.Err() != nil {
		k.report(check, "it takes longer than %v", patience)
		return
	}
	k.compare(check, x, res)
}

func (k *kit) compare(check string, x execplugin.Example, res modules.Result) {
	text, _ := res.Return.(string)
	switch {
	case x.Error != "" && (res.Err == nil || !strings.Contains(text, x.Error)):
		k.report(check, "it returned %v, not an error with %q", res.Return, x.Error)
	case x.Error == "" && res.Err != nil:
		k.report(check, "%v", res.Return)
	}
	if x.Error == "" && res.Err == nil && x.Return != nil {
		want, err := pyjson.Parse(x.Return)
		if err != nil || !reflect.DeepEqual(want, res.Return) {
			k.report(check, "it returned %s, not %s", inJSON(res.Return), x.Return)
		}
	}
	if res.Retcode != x.Retcode {
		k.report(check, "the return code is %d, not %d", res.Retcode, x.Retcode)
	}
}

// inJSON returns a result as an example would have it.
func inJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// secrets looks for secret arguments in the log as the program wrote it, before any of them was masked.
func (k *kit) secrets(check, name string, args []any, kwargs map[string]any) {
	i := slices.IndexFunc(k.module.Funcs, func(d modules.Def) bool { return d.Name == name })
	if i < 0 || !strings.Contains(k.log.text(), "**********") {
		return
	}
	for n, p := range k.module.Funcs[i].Params {
		_, named := kwargs[p.Name]
		if p.Secret && (named || n < len(args)) {
			k.report(check, "the secret %s is written to standard error", p.Name)
		}
	}
}

// plain gives the values of an example the types of arguments.
func plain(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return pyjson.Parse(b)
}

// record is a log that is kept.
type record struct {
	mu    sync.Mutex
	lines []string // guarded by mu
	news  func()   // guarded by mu; called for each line
}

var _ slog.Handler = (*record)(nil)

func (r *record) reset(news func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines, r.news = nil, news
}

func (r *record) tell() {
	r.mu.Lock()
	news := r.news
	r.mu.Unlock()
	if news != nil {
		news()
	}
}

func (r *record) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

// Enabled implements slog.Handler.
func (r *record) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (r *record) Handle(_ context.Context, rec slog.Record) error {
	r.mu.Lock()
	r.lines = append(r.lines, rec.Message)
	r.mu.Unlock()
	r.tell()
	return nil
}

// WithAttrs implements slog.Handler.
func (r *record) WithAttrs([]slog.Attr) slog.Handler { return r }

// WithGroup implements slog.Handler.
func (r *record) WithGroup(string) slog.Handler { return r }
