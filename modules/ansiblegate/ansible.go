// Package ansiblegate is Salt's execution module "ansible": modules and playbooks of the Ansible of this host. Salt's source:
// salt/modules/ansiblegate.py, salt/utils/ansible.py.
//
// Ansible and what it runs are programs and files of this host. Nothing of them comes from the master: a playbook is named by
// its path, and neither salt:// nor other addresses are taken.
package ansiblegate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Compatibility.
//
// ansible.call differs: several keyword arguments are passed in the order of their names.
// ansible.playbooks differs: extra_vars and maps in playbook_kwargs are quoted, so that text with quotes arrives, as in Salt 3008 for extra_vars.
// ansible.targets differs: inventories lists several files, as in Salt 3008; it must be given by its name.
// ansible.discover_playbooks differs: files ending with .yaml are found by default, as in Salt 3008. playbook_extension may be a list,
// and each ending may have its dot. Text for locations is one directory. syntax_check keeps the playbooks that are right; Salt keeps none.

const (
	defaultInventory = "/etc/ansible/hosts"
	callTimeout      = 1200            // seconds that a module of Ansible may take
	listTimeout      = 2 * time.Minute // to list the modules of Ansible
)

func available(e *modules.Env) (bool, string) {
	if runtime.GOOS == "windows" {
		return false, "The ansiblegate module isn't supported on Windows"
	}
	for _, program := range [...]string{"ansible", "ansible-doc", "ansible-playbook"} {
		if e.Which(program) == "" {
			return false, "The '" + program + "' binary was not found."
		}
	}
	return true, ""
}

// callable is a module of Ansible, by one of its names.
type callable struct{ name, module, doc string }

// callables lists the modules of the host's Ansible, each by all names that Salt gives it.
func callables(e *modules.Env) ([]callable, error) {
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	res, err := e.Cmd(ctx, command(listTimeout, e.Which("ansible-doc"), "--list", "--json", "--type=module"))
	if err != nil {
		return nil, err
	}
	if res.TimedOut || res.ExitCode != 0 {
		return nil, fmt.Errorf("Failed to get the listing of ansible modules:\n%s", text(res.Stderr)) //nolint:staticcheck // Salt's text
	}
	v, err := pyjson.ParseObject(res.Stdout)
	listing, ok := v.(*pyobj.Dict)
	if err != nil || !ok {
		return nil, errors.New("cannot read the listing of ansible modules: ansible-doc printed no JSON object")
	}
	var found []callable
	seen := map[string]bool{}
	add := func(name, module string, doc any) {
		seen[name] = true
		found = append(found, callable{name, module, pytext.Str(doc)})
	}
	for k, doc := range listing.All() {
		module := pytext.Str(k)
		name, builtin := strings.CutPrefix(module, "ansible.")
		if !builtin {
			add(module, module, doc)
			continue
		}
		if seen[name] || own(name) {
			continue
		}
		add(name, module, doc)
		for _, prefix := range [...]string{"builtin.", "system."} {
			if short, ok := strings.CutPrefix(name, prefix); ok && !seen[short] && !own(short) {
				add(short, module, doc)
			}
		}
	}
	return found, nil
}

// own reports whether a name is one of the functions that are not modules of Ansible.
func own(name string) bool { return slices.Contains(ownNames(), name) }

func ownNames() []string {
	return []string{"help", "list_", "call", "playbooks", "discover_playbooks", "targets"}
}

// discover declares the modules of the host's Ansible as functions.
func discover(e *modules.Env) (modules.Found, error) {
	list, err := callables(e)
	if err != nil {
		return nil, err
	}
	return newListing(list), nil
}

func list(_ context.Context, c *modules.Call) (any, error) {
	found, err := callables(c.Env)
	if err != nil {
		return nil, modules.Errorf("%v", err)
	}
	names := ownNames()
	for _, m := range found {
		names = append(names, m.name)
	}
	if c.Value("pattern") != nil {
		names = fnmatch.Filter(names, c.Str("pattern"))
	}
	slices.Sort(names)
	return nested.Anys(names), nil
}

// command returns the command of an Ansible program, with the directory and environment of this process.
func command(timeout time.Duration, args ...string) modules.Command {
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	return modules.Command{Args: args, Env: []string{"ANSIBLE_DEPRECATION_WARNINGS=0"}, Dir: dir, Timeout: timeout}
}

// text returns the output of a program as Python decodes it.
func text(b []byte) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(string(b), "\uFFFD"))
}

// failure returns Python's error text for a program that failed.
func failure(args []string, code int) string {
	shown := "Command '" + pytext.Repr(nested.Anys(args)) + "'"
	if code < 0 {
		return fmt.Sprintf("%s died with signal %d.", shown, -code)
	}
	return fmt.Sprintf("%s returned non-zero exit status %d.", shown, code)
}

func help(ctx context.Context, c *modules.Call) (any, error) {
	if !c.Bool("module") {
		return nil, modules.Errorf(`Please tell me what module you want to have helped with. Or call "ansible.list" to know what is available.`)
	}
	cmd := command(0, c.Which("ansible-doc"), "--json", "--type=module", c.Str("module"))
	res, err := c.Cmd(ctx, cmd)
	if err != nil {
		return nil, err
	}
	if res.ExitCode != 0 {
		return nil, &modules.PythonError{Type: "subprocess.CalledProcessError", Msg: failure(cmd.Args, res.ExitCode)}
	}
	v, err := pyjson.ParseObject(res.Stdout)
	if err != nil {
		return nil, modules.Errorf("cannot read what ansible-doc printed: %v", err)
	}
	all, _ := v.(*pyobj.Dict)
	if all == nil || all.Len() == 0 {
		return nil, &modules.PythonError{Type: "StopIteration"}
	}
	first, _ := pyobj.Plain(all.Values()[0]).(map[string]any)
	ret := map[string]any{}
	if len(c.Extra) > 0 {
		for _, part := range c.Extra {
			if v := first[pytext.Str(part)]; v != nil {
				ret[pytext.Str(part)] = v
			}
		}
		return ret, nil
	}
	if doc, ok := first["doc"].(map[string]any); ok {
		ret = doc
	}
	for _, section := range [...]string{"examples", "return", "metadata"} {
		if v := first[section]; pytext.Truth(v) {
			ret[section] = v
		}
	}
	return ret, nil
}
