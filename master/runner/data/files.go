package data

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/modules"
)

// fileserverModule declares the runner fileserver (salt/runners/fileserver.py).
func (f funcs) fileserverModule() *modules.Module {
	env := []modules.Param{{Name: "saltenv", Default: "base"}, {Name: "backend", Optional: true}}
	backend := modules.Param{Name: "backend", Optional: true}
	entries := func(pick func(ctx context.Context, files *fileserver.Server, env string) (any,
		error)) modules.Func {
		return func(ctx context.Context, c *modules.Call) (any, error) {
			if f.Files == nil {
				return nil, host.Needs("file server")
			}
			files := f.Files
			if c.Value("backend") != nil {
				wanted := f.backends(c)
				files = files.Of(func(b fileserver.Backend) bool {
					return slices.Contains(wanted,
						b)
				})
			}
			return pick(ctx, files, c.Str("saltenv"))
		}
	}
	always := func(v any) modules.Func {
		return func(context.Context, *modules.Call) (any, error) { return v, nil }
	}
	return &modules.Module{Name: "fileserver", Doc: "What the file server serves.",
		Funcs: []modules.Def{
			{Name: "envs", Doc: `The environments.

    salt-run fileserver.envs`, Params: []modules.Param{backend, {Name: "sources", Default: false}},
				Run: entries(func(_ context.Context, files *fileserver.Server, _ string) (any,
					error) {
					return nested.Anys(files.Envs()), nil
				})},
			{Name: "file_list", Doc: `The files of an environment.

    salt-run fileserver.file_list saltenv=prod`, Params: env, Run: entries(func(ctx context.Context, files *fileserver.Server, env string) (any, error) {
				l, err := files.List(ctx, env)
				return nested.Anys(l.Files), err
			})},
			{Name: "dir_list", Doc: `The directories of an environment.

    salt-run fileserver.dir_list saltenv=prod`, Params: env, Run: entries(func(ctx context.Context, files *fileserver.Server, env string) (any, error) {
				l, err := files.List(ctx, env)
				return nested.Anys(l.Dirs), err
			})},
			{Name: "empty_dir_list", Doc: `The empty directories of an environment.

    salt-run fileserver.empty_dir_list`, Params: env, Run: entries(func(ctx context.Context, files *fileserver.Server, env string) (any, error) {
				l, err := files.List(ctx, env)
				return nested.Anys(l.EmptyDirs), err
			})},
			{Name: "symlink_list", Doc: `The symbolic links of an environment and where they point.

    salt-run fileserver.symlink_list saltenv=prod`, Params: env, Run: entries(func(ctx context.Context, files *fileserver.Server, env string) (any, error) {
				l, err := files.List(ctx, env)
				out := make(map[string]any, len(l.Links))
				for k, v := range l.Links {
					out[k] = v
				}
				return out, err
			})},
			{Name: "update", Doc: `Bring copies of remote sources up to date. Directories are read when they are asked for: for them there is nothing to do.

backend
    Sources in place of all: git, roots, or with a minus all but these.
remotes
    Addresses or names of remotes in place of all.

    salt-run fileserver.update
    salt-run fileserver.update backend=git remotes=https://example.com/states.git`, Params: []modules.Param{backend}, Kwargs: "kwargs", Run: f.updateFiles},
			{Name: "clear_file_list_cache", Doc: `Forget cached lists of files. This master keeps none on disk.

    salt-run fileserver.clear_file_list_cache`, Params: []modules.Param{{Name: "saltenv", Optional: true}, backend}, Run: always(map[string]any{})},
			{Name: "clear_cache", Doc: `Delete copies of remote sources. The next update fetches them again.

    salt-run fileserver.clear_cache
    salt-run fileserver.clear_cache backend=git`, Params: []modules.Param{backend}, Run: f.clearFiles},
			{Name: "clear_lock", Doc: `Remove locks that keep remote sources from being updated.

remote
    A glob of addresses.

    salt-run fileserver.clear_lock
    salt-run fileserver.clear_lock backend=git remote='*states*'`, Params: []modules.Param{backend, {Name: "remote", Optional: true}},
				Run: f.lockFiles(fileserver.Source.Unlock, "cleared", "No locks were removed")},
			{Name: "lock", Doc: `Keep remote sources from being updated.

remote
    A glob of addresses.

    salt-run fileserver.lock
    salt-run fileserver.lock backend=git remote='*states*'`, Params: []modules.Param{backend, {Name: "remote", Optional: true}},
				Run: f.lockFiles(fileserver.Source.Lock, "locked", "No locks were set")},
		}}
}

// backends returns the backends that the argument backend selects: names in a comma-separated string or a list.
// Without the argument it returns all; names with a minus exclude backends
// (salt.fileserver.Fileserver.backends).
func (f funcs) backends(c *modules.Call) []fileserver.Backend {
	if f.Files == nil {
		return nil
	}
	all := f.Files.Backends()
	var names []string
	switch v := c.Value("backend").(type) {
	case nil:
		return all
	case string:
		names = strings.Split(v, ",")
	case []any:
		for _, name := range v {
			names = append(names, pytext.Str(name))
		}
	default:
		names = []string{pytext.Str(v)}
	}
	named := func(b fileserver.Backend, prefix string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			name, ok := strings.CutPrefix(name, prefix)
			return ok && (name == b.Name() || name == b.Name()+"fs")
		})
	}
	prefix := ""
	if !slices.ContainsFunc(names,
		func(name string) bool { return !strings.HasPrefix(name, "-") }) {
		prefix = "-"
	}
	return slices.DeleteFunc(all,
		func(b fileserver.Backend) bool { return named(b, prefix) == (prefix == "-") })
}

// sources returns those of them that keep copies.
func (f funcs) sources(c *modules.Call) []fileserver.Source {
	var out []fileserver.Source
	for _, b := range f.backends(c) {
		if s, ok := b.(fileserver.Source); ok {
			out = append(out, s)
		}
	}
	return out
}

// updateFiles is fileserver.update, which fetches the remotes of all backends, or of those that the caller
// names. A remote that fails is logged and does not prevent updates of the others. As in Salt, the answer is
// true even then.
func (f funcs) updateFiles(ctx context.Context, c *modules.Call) (any, error) {
	var remotes []string
	switch v := c.Keywords["remotes"].(type) {
	case nil:
	case string:
		remotes = strings.Split(v, ",")
	case []any:
		for _, r := range v {
			remotes = append(remotes, pytext.Str(r))
		}
	}
	for _, s := range f.sources(c) {
		if _, err := s.Update(ctx, remotes...); err != nil {
			// The answer is stock's.
			f.Log.Error("Cannot update files", "backend", s.Name(), "err", err)
		}
	}
	if f.Files != nil {
		f.Files.Forget()
	}
	return true, nil
}

// clearFiles is fileserver.clear_cache, which deletes the copies of remote repositories. The next update fetches
// them again.
func (f funcs) clearFiles(_ context.Context, c *modules.Call) (any, error) {
	out := map[string]any{}
	for _, s := range f.sources(c) {
		key, text := "cleared", "The "+s.Name()+" fileserver cache was successfully cleared"
		if err := s.Clear(); err != nil {
			key, text = "errors", err.Error()
		}
		lines, _ := out[key].([]any)
		out[key] = append(lines, text)
	}
	if f.Files != nil {
		f.Files.Forget()
	}
	if len(out) == 0 {
		return "No cache was cleared", nil
	}
	return out, nil
}

// lockFiles returns the functions lock and clear_lock.
func (f funcs) lockFiles(do func(fileserver.Source, string) (done, failed []string), key,
	none string) modules.Func {
	return func(_ context.Context, c *modules.Call) (any, error) {
		var done, failed []string
		for _, s := range f.sources(c) {
			d, e := do(s, host.Text(c, "remote"))
			done, failed = append(done, d...), append(failed, e...)
		}
		out := map[string]any{}
		if len(done) > 0 {
			out[key] = nested.Anys(done)
		}
		if len(failed) > 0 {
			out["errors"] = nested.Anys(failed)
		}
		if len(out) == 0 {
			return none, nil
		}
		return out, nil
	}
}
