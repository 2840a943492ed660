package modulestest

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Env returns a complete environment on an empty directory: the runner starts no program, the master returns nothing
// useful, and there are no files and no running jobs. A test replaces the parts that it is about.
func Env(t *testing.T) *modules.Env {
	t.Helper()
	root := t.TempDir()
	opts := map[string]any{
		"id": "minion", "cachedir": filepath.Join(root, "cache"), "conf_file": filepath.Join(root, "minion"),
		"hash_type": "sha256", "saltenv": "base", "file_client": "remote", "test.foo": "bar",
	}
	return &modules.Env{
		ID:   "minion",
		Root: root,
		Opts: func() map[string]any { return opts },
		Grains: func() map[string]any {
			return map[string]any{"os": "Debian", "os_family": "Debian", "kernel": "Linux", "id": "minion"}
		},
		Pillar: func() map[string]any { return map[string]any{"a": map[string]any{"b": "c"}} },
		Match:  func(string, any, string) (bool, error) { return false, errors.New("no targets here") },
		Runner: Runner(nil), Master: Master(nil), Files: NoFiles{}, Agent: &Agent{},
	}
}

// Runner is a runner made of a function; nil finds no program.
type Runner func(ctx context.Context, c modules.Command) (modules.CommandResult, error)

// Run implements modules.Runner.
func (r Runner) Run(ctx context.Context, c modules.Command) (modules.CommandResult, error) {
	if r != nil {
		return r(ctx, c)
	}
	name := c.Shell
	if len(c.Args) > 0 {
		name = c.Args[0]
	}
	return modules.CommandResult{}, &modules.MissingCommandError{Command: name}
}

// Master is a master made of a function for its requests; nil refuses them. Events are requests with cmd "_minion_event".
type Master func(ctx context.Context, load map[string]any) (any, error)

// Request implements modules.Master.
func (m Master) Request(ctx context.Context, load map[string]any) (any, error) {
	if m == nil {
		return nil, errors.New("no master")
	}
	return m(ctx, plain(load).(map[string]any))
}

// plain returns a request as it is encoded, without ordered values.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = plain(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = plain(x)
		}
		return out
	}
	return pyobj.Plain(v)
}

// Fire implements modules.Master.
func (m Master) Fire(ctx context.Context, tag string, data any) error {
	_, err := m.Request(ctx, map[string]any{"cmd": "_minion_event", "tag": tag, "data": data})
	return err
}

// NoFiles is a file client without files.
type NoFiles struct{}

// Envs and the other methods implement modules.Files.
func (NoFiles) Envs(context.Context) ([]string, error) { return nil, nil }

// List finds nothing.
func (NoFiles) List(context.Context, string, string) ([]string, error) { return nil, nil }

// EmptyDirs finds nothing.
func (NoFiles) EmptyDirs(context.Context, string, string) ([]string, error) { return nil, nil }

// Dirs finds nothing.
func (NoFiles) Dirs(context.Context, string, string) ([]string, error) { return nil, nil }

// Symlinks finds nothing.
func (NoFiles) Symlinks(context.Context, string, string) (map[string]string, error) { return nil, nil }

// Hash finds nothing.
func (NoFiles) Hash(context.Context, string, string) (map[string]any, error) { return nil, nil }

// HashAndStat finds nothing.
func (NoFiles) HashAndStat(context.Context, string, string) (map[string]any, []any, error) {
	return nil, nil, nil
}

// Cache finds nothing.
func (NoFiles) Cache(context.Context, string, string) (string, error) { return "", nil }

// CacheWeb finds nothing.
func (NoFiles) CacheWeb(context.Context, string, string, modules.WebFile) (string, error) {
	return "", nil
}

// CachePath has no place for anything.
func (NoFiles) CachePath(string, string) string { return "" }

// CacheRoot returns "".
func (NoFiles) CacheRoot() string { return "" }

// Send refuses.
func (NoFiles) Send(context.Context, string, string) (bool, error) { return false, nil }

// Clear has nothing to do.
func (NoFiles) Clear() error { return nil }

// Local implements modules.Files.
func (f NoFiles) Local(map[string][]string) modules.Files { return f }

// Agent is a minion whose parts a test sets and looks at.
type Agent struct {
	// Jobs are the running jobs, Kept the returns of finished ones by job id.
	Jobs []map[string]any
	Kept map[string]map[string]any
	// Done are the things that were asked for, in order: "grains", "pillar", "reload", "restart", "signal 9 <jid>", "fire <tag>",
	// "tell <tag>", "tell <tag> and await <tag>".
	Done []string
	// Up are the masters.
	Up map[string]bool
	// Err is the error that the refreshing methods return.
	Err error
}

// Running implements modules.Agent.
func (a *Agent) Running() []map[string]any { return a.Jobs }

// Job implements modules.Agent.
func (a *Agent) Job(jid string) map[string]any {
	for _, j := range a.Jobs {
		if j["jid"] == jid {
			return j
		}
	}
	return nil
}

// Cached implements modules.Agent.
func (a *Agent) Cached(jid string) map[string]any { return a.Kept[jid] }

// Signal implements modules.Agent.
func (a *Agent) Signal(jid string, sig int) string {
	if a.Job(jid) == nil {
		return ""
	}
	a.did("signal " + string(rune('0'+sig%10)) + " " + jid)
	return "Signal sent to job " + jid
}

// RefreshGrains implements modules.Agent.
func (a *Agent) RefreshGrains(context.Context) error { return a.did("grains") }

// RefreshPillar implements modules.Agent.
func (a *Agent) RefreshPillar(_ context.Context, clean bool) error {
	if clean {
		return a.did("pillar clean")
	}
	return a.did("pillar")
}

// Reload implements modules.Agent.
func (a *Agent) Reload(context.Context) error { return a.did("reload") }

// Manage implements modules.Manager.
func (a *Agent) Manage(_ context.Context, tag string, _ map[string]any, answer string) (map[string]any, bool) {
	what := "tell " + tag
	if answer != "" {
		what += " and await " + answer
	}
	return nil, a.did(what) == nil
}

// FireLocal implements modules.Agent.
func (a *Agent) FireLocal(tag string, _ any) bool { return a.did("fire "+tag) == nil }

// Masters implements modules.Agent.
func (a *Agent) Masters() map[string]bool { return a.Up }

// Restart implements modules.Agent.
func (a *Agent) Restart() error { return a.did("restart") }

func (a *Agent) did(what string) error {
	a.Done = append(a.Done, what)
	return a.Err
}
