// Package ansiblegate is Salt's state module "ansible": modules and playbooks of the Ansible of this host
// (salt/states/ansiblegate.py).
//
// A playbook is a file of this host, or of a git repository that the state names. Ansible has its own way to run it; what the
// master's file server has is not looked at.
package ansiblegate

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "ansible".
var Module = &states.Module{Name: "ansiblegate", Virtual: "ansible", Doc: "Modules and playbooks of Ansible.", Funcs: []states.Def{
	{Name: "call", Python: "<lambda>", Doc: callDoc, Kwargs: "kwargs", Run: call},
	{Name: "playbooks", Doc: playbooksDoc, Params: []modules.Param{{Name: "name"}, {Name: "rundir", Optional: true},
		{Name: "git_repo", Optional: true}, {Name: "git_kwargs", Optional: true}, {Name: "ansible_kwargs", Optional: true}}, Run: playbooks},
}}

const (
	callDoc = `Run modules of Ansible.

Each argument is a module with a list of its named arguments. They run in their order, and what each one answered is among
the changes. The state fails only where a module could not be run.

    some_tasks:
      ansible.call:
        - ping:
          - data: hello`
	playbooksDoc = `Run a playbook.

name
    the playbook, as ansible-playbook finds it from rundir
rundir
    the directory to run ansible-playbook in
git_repo
    a git repository to check out into rundir first, or into the minion's cache if there is no such directory
git_kwargs
    further arguments of the state git.latest
ansible_kwargs
    further arguments of the function ansible.playbooks

In test mode ansible-playbook only says what it would change.`
)

func call(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	ret.Result = states.True
	for _, module := range c.KeywordNames {
		if module == "name" || module == "__reqs__" {
			continue
		}
		args, kwargs := split(c.Keywords[module])
		v, err := c.ExecKw(ctx, "ansible."+module, nil, map[string]any{"__pub_arg": []any{args, kwargs}})
		if err != nil {
			ret.Result = states.False
			v = `Module "` + module + `" failed. Error message: (` + exception(err)
		}
		ret.Changes[module] = v
	}
	return ret, nil
}

// exception returns an error as its type, an opening bracket and its text.
func exception(err error) string {
	name, text := modules.Exception(err)
	if name == "" {
		name = "Exception"
	}
	return name[strings.LastIndexByte(name, '.')+1:] + ") " + text
}

// split parts the arguments of a module into those with a name and those without.
func split(v any) ([]any, map[string]any) {
	args, kwargs := []any{}, map[string]any{}
	list, ok := v.([]any)
	if !ok {
		for _, c := range pytext.Str(v) {
			args = append(args, string(c))
		}
		if !pytext.Truth(v) {
			args = nil
		}
		return args, kwargs
	}
	for _, x := range list {
		switch m := x.(type) {
		case map[string]any:
			for k, v := range m {
				kwargs[k] = v
			}
		default:
			args = append(args, x)
		}
	}
	return args, kwargs
}

func playbooks(ctx context.Context, c *states.Call) (*states.Result, error) {
	if c.Which("ansible-playbook") == "" {
		return nil, &modules.MissingCommandError{Command: "The 'ansible-playbook' binary was not found in $PATH."}
	}
	rundir, err := checkout(ctx, c)
	if err != nil {
		return nil, err
	}
	kw := map[string]any{}
	if m, ok := c.Value("ansible_kwargs").(map[string]any); ok {
		kw = nested.CopyMap(m)
	}
	kw["rundir"], kw["diff"] = rundir, true
	if c.Test() {
		kw["check"] = true
	}
	v, err := c.ExecKw(ctx, "ansible.playbooks", []any{c.Value("name")}, kw)
	if err != nil {
		return nil, err
	}
	report, _ := v.(map[string]any)
	return judge(c, report)
}

// judge makes a result of what ansible-playbook reported.
func judge(c *states.Call, report map[string]any) (*states.Result, error) {
	ret := c.Result()
	stats, ok := report["stats"].(map[string]any)
	if !ok {
		why, ok := report["stderr"]
		if !ok {
			why = report
		}
		if text, ok := why.(string); ok {
			return ret.As(states.False, text)
		}
		ret.Extra = map[string]any{"comment": why}
		return ret, nil
	}
	// good tells that no host failed, quiet that nothing changed either, some that there is a host that changed and did not fail.
	good, quiet, some := true, true, false
	for _, v := range stats {
		host, _ := v.(map[string]any)
		changed := pytext.Truth(host["changed"])
		failed := pytext.Truth(host["failures"]) || pytext.Truth(host["unreachable"])
		good, quiet, some = good && !failed, quiet && !failed && !changed, some || changed && !failed
	}
	name := c.Name()
	if !quiet || !c.Test() {
		ret.Changes = changes(report)
	}
	switch {
	case quiet:
		return ret.As(states.True, "No changes to be made from playbook "+name)
	case c.Test() && some:
		return ret.As(states.None, "Changes will be made from playbook "+name)
	case !c.Test() && good:
		return ret.As(states.True, "Changes were made by playbook "+name)
	}
	return ret.As(states.False, "There were some issues running the playbook "+name)
}

// changes returns the changes of the plays' tasks, or the reasons of failures, by play, task and host.
func changes(report map[string]any) map[string]any {
	out := map[string]any{}
	for play := range each(report["plays"]) {
		tasks := map[string]any{}
		for task := range each(play["tasks"]) {
			hosts, found := map[string]any{}, map[string]any{}
			if m, ok := task["hosts"].(map[string]any); ok {
				hosts = m
			}
			for host, v := range hosts {
				data, _ := v.(map[string]any)
				if data["changed"] == true {
					found[host] = first(data, "diff", "changes")
				} else if has(data, "failed") || has(data, "skipped") || has(data, "unreachable") {
					found[host] = first(data, "results", "msg")
				}
			}
			if len(found) > 0 {
				tasks[named(task["task"])] = found
			}
		}
		if len(tasks) > 0 {
			out[named(play["play"])] = tasks
		}
	}
	return out
}

// each goes through the maps in a list.
func each(v any) func(yield func(map[string]any) bool) {
	return func(yield func(map[string]any) bool) {
		list, _ := v.([]any)
		for _, x := range list {
			if m, ok := x.(map[string]any); ok && !yield(m) {
				return
			}
		}
	}
}

func has(m map[string]any, key string) bool {
	_, ok := m[key]
	return ok
}

// first returns the value of the first key that exists, or an empty map.
func first(m map[string]any, keys ...string) any {
	for _, k := range keys {
		if v, ok := m[k]; ok {
			return v
		}
	}
	return map[string]any{}
}

func named(v any) string {
	m, _ := v.(map[string]any)
	return pytext.Str(m["name"])
}

// checkout updates the git repository, if there is one, and returns the directory to run in.
func checkout(ctx context.Context, c *states.Call) (any, error) {
	rundir := c.Value("rundir")
	if !c.Bool("git_repo") {
		return rundir, nil
	}
	repo := c.Str("git_repo")
	dir, _ := rundir.(string)
	if info, err := os.Stat(c.Path(dir)); dir == "" || err != nil || !info.IsDir() {
		cache, _ := c.Opt("cachedir").(string)
		if cache == "" {
			return nil, errors.New("cannot check out " + modules.RedactAuth(repo) + ": the minion has no cache (option cachedir)")
		}
		dir = cached(cache, repo)
	}
	kw := map[string]any{}
	if m, ok := c.Value("git_kwargs").(map[string]any); ok {
		kw = nested.CopyMap(m)
	}
	kw["name"], kw["target"] = repo, dir
	// As in Salt, a checkout that failed shows when the playbook is not there.
	_, err := c.State(ctx, "git.latest", kw)
	return dir, err
}

// cached returns the directory in the minion's cache for a repository.
func cached(cache, repo string) string {
	host, name := "", repo
	if u, err := url.Parse(repo); err == nil && u.Scheme != "" {
		host, name = u.Hostname(), u.Path
		if port := u.Port(); port != "" {
			host += port
		}
		if u.RawQuery != "" {
			name += "-" + u.RawQuery
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "Invalid path"
		}
	}
	return path.Join(cache, "extrn_files", "base", host, name)
}
