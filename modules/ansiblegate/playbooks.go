package ansiblegate

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
)

// playbookLine returns the command line of ansible-playbook.
func playbookLine(c *modules.Call) (string, error) {
	words := []string{"ansible-playbook", c.Str("playbook")}
	flag := func(names ...string) {
		for _, name := range names {
			if c.Bool(name) {
				words = append(words, "--"+strings.ReplaceAll(name, "_", "-"))
			}
		}
	}
	value := func(names ...string) {
		for _, name := range names {
			if c.Bool(name) {
				words = append(words, "--"+strings.ReplaceAll(name, "_", "-")+"="+c.Str(name))
			}
		}
	}
	flag("check", "diff")
	switch v := c.Value("extra_vars").(type) {
	case map[string]any, map[any]any:
		text, err := pyjson.Format(v, pyjson.Options{Indent: -1, ASCII: true})
		if err != nil {
			return "", err
		}
		words = append(words, "--extra-vars="+shlex.Quote(text))
	case string:
		if strings.HasPrefix(v, "@") {
			words = append(words, "--extra-vars="+shlex.Quote(v))
		}
	}
	flag("flush_cache")
	value("inventory", "limit")
	flag("list_hosts", "list_tags", "list_tasks")
	value("module_path", "skip_tags", "start_at_task")
	flag("syntax_check")
	value("tags")
	more, err := moreOptions(c)
	words = append(words, more...)
	return strings.Join(append(words, "--forks="+c.Str("forks")), " "), err
}

// moreOptions returns the options of playbook_kwargs.
func moreOptions(c *modules.Call) ([]string, error) {
	if !c.Bool("playbook_kwargs") {
		return nil, nil
	}
	m, err := c.Map("playbook_kwargs")
	if err != nil {
		return nil, err
	}
	var words []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		name := "--" + strings.ReplaceAll(k, "_", "-")
		switch v := m[k].(type) {
		case bool:
			if v {
				words = append(words, name)
			}
		case string:
			words = append(words, name+"="+v)
		case map[string]any, map[any]any:
			text, err := pyjson.Format(v, pyjson.Options{Indent: -1, ASCII: true})
			if err != nil {
				return nil, err
			}
			words = append(words, name+"="+shlex.Quote(text))
		}
	}
	return words, nil
}

func playbooks(ctx context.Context, c *modules.Call) (any, error) {
	if err := saltcmd.Needs(c, "ansible-playbook"); err != nil {
		return nil, err
	}
	line, err := playbookLine(c)
	if err != nil {
		return nil, err
	}
	// The text is split at blanks and quotes; no shell interprets it.
	v, err := c.ExecKw(ctx, "cmd.run_all", []any{line}, map[string]any{
		"cwd": c.Value("rundir"), "reset_system_locale": false, "python_shell": false,
		"env": map[string]any{"ANSIBLE_STDOUT_CALLBACK": "json", "ANSIBLE_RETRY_FILES_ENABLED": "0", "ANSIBLE_DEPRECATION_WARNINGS": "0"},
	})
	if err != nil {
		return nil, err
	}
	ret, ok := v.(map[string]any)
	if !ok {
		return v, nil
	}
	data := ret
	if parsed, err := pyjson.Parse([]byte(pytext.Str(ret["stdout"]))); err == nil {
		if m, ok := parsed.(map[string]any); ok {
			data = m
		}
	}
	if code, ok := ret["retcode"].(int64); ok {
		data["retcode"] = code
		c.SetRetcode(int(code))
	}
	return data, nil
}

func targets(ctx context.Context, c *modules.Call) (any, error) {
	several, multi := c.Value("inventories").([]any)
	files := slices.Clone(several)
	if one := c.Value("inventory"); one != nil && (c.Given("inventory") || c.Value("inventories") == nil) && !slices.Contains(files, one) {
		files = append(files, one)
	}
	ret := map[string]any{}
	for _, f := range files {
		v, err := target(ctx, c, pytext.Str(f))
		if err != nil || !multi {
			return v, err
		}
		ret[pytext.Str(f)] = v
	}
	return ret, nil
}

// target lists one inventory.
func target(ctx context.Context, c *modules.Call, inventory string) (any, error) {
	if !c.IsFile(inventory) {
		return nil, modules.Errorf("Inventory file not found: %s", inventory)
	}
	if !posixpath.IsAbs(inventory) {
		return nil, modules.Errorf("Path to inventory file must be an absolute path")
	}
	line := "ansible-inventory -i " + inventory + " --list"
	for _, name := range [...]string{"export", "yaml"} {
		if c.Bool(name) {
			line += " --" + name
		}
	}
	v, err := c.ExecKw(ctx, "cmd.run", []any{line}, map[string]any{
		"env": map[string]any{"ANSIBLE_DEPRECATION_WARNINGS": "0"}, "reset_system_locale": false, "python_shell": false,
	})
	if err != nil || c.Bool("yaml") {
		return v, err
	}
	parsed, err := pyjson.Parse([]byte(pytext.Str(v)))
	if err != nil {
		return nil, modules.Errorf("Error processing the inventory: %s", pytext.Str(v))
	}
	return parsed, nil
}
