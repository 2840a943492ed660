// Package augeas_cfg is Salt's execution module "augeas": configuration files as trees. Salt's source:
// salt/modules/augeas_cfg.py. Salt uses the Python library of Augeas; this uses its program, augtool.
package augeas_cfg

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

func available(e *modules.Env) (bool, string) {
	if e.Which("augtool") == "" {
		return false, "Cannot load augeas_cfg module: augtool is not installed"
	}
	return true, ""
}

// Method returns Augeas's name for a command of augeas.execute, or "" if there is no such command (METHOD_MAP).
func Method(command string) string {
	switch command {
	case "set", "setm", "move", "insert", "remove":
		return command
	case "mv":
		return "move"
	case "ins":
		return "insert"
	case "rm":
		return "remove"
	}
	return ""
}

// command is one of augeas.execute: its name and arguments.
type command struct {
	method string
	args   []string
}

// line returns the command for augtool.
func (c command) line() string {
	words := []string{c.method}
	if c.method == "remove" {
		words[0] = "rm" // the only name that augtool has
	}
	for _, arg := range c.args {
		words = append(words, quote(arg))
	}
	return strings.Join(words, " ")
}

// parseCommands parses commands. If one is invalid, text is Salt's error text. Relative paths are placed below the
// context.
func parseCommands(list []any, context string) (out []command, text string, err error) {
	arg, hasArg := "", false
	for _, v := range list {
		whole, ok := v.(string)
		if !ok {
			return nil, "", attributeError(v, "split")
		}
		name, rest, ok := strings.Cut(whole, " ")
		if ok {
			arg, hasArg = rest, true
			if Method(name) == "" {
				return nil, "Command " + name + " is not supported (yet)", nil
			}
		}
		if !hasArg {
			arg = whole
		}
		c := command{method: Method(name)}
		if ok {
			c.args, err = shlex.Split(rest)
			ok = err == nil && c.complete(context)
		}
		if !ok {
			return nil, "Invalid formatted command, see debug log for details: " + arg, nil
		}
		out = append(out, c)
	}
	return out, "", nil
}

// complete checks the number of arguments and converts them to augtool's form.
func (c *command) complete(context string) bool {
	n := len(c.args)
	switch c.method {
	case "set":
		if n == 1 {
			c.args = append(c.args, "") // Python's library makes "" of None
		}
		if n < 1 || n > 2 {
			return false
		}
	case "setm":
		if n == 2 {
			c.args = append(c.args, "")
		}
		if n < 2 || n > 3 {
			return false
		}
	case "move":
		if n != 2 {
			return false
		}
	case "insert":
		if n != 3 || c.args[1] != "before" && c.args[1] != "after" {
			return false
		}
		c.args[2] = below(context, c.args[2])
		return true
	case "remove":
		if n != 1 {
			return false
		}
	}
	c.args[0] = below(context, c.args[0])
	return true
}

// below puts a path below the context (make_path).
func below(context, path string) string {
	rest := strings.TrimLeft(path, "/")
	switch {
	case context == "":
		return path
	case rest == "":
		return context
	case strings.HasPrefix(path, context):
		return path
	}
	return posixpath.Join(context, rest)
}

func execute(ctx context.Context, c *modules.Call) (any, error) {
	list, _ := c.Value("commands").([]any)
	context, lens := c.Str("context"), c.Str("lens")
	commands, text, err := parseCommands(list, context)
	if err != nil {
		return nil, err
	}
	if text != "" {
		c.Logger().Error("augeas.execute: " + text)
		return failure(text), nil
	}
	t := newTool(c, c.Value("load_path"))
	if lens != "" && context != "" {
		t.lens, t.file = lens, strings.TrimPrefix(context, "/files")
	}
	lines := make([]string, len(commands), len(commands)+1)
	for i, command := range commands {
		lines[i] = command.line()
	}
	// augtool goes on after a command that failed, so that several are tried without saving at first.
	if len(lines) > 1 {
		said, err := t.run(ctx, lines...)
		if err != nil {
			return nil, err
		}
		if err := firstError(commands, said); err != nil {
			return nil, err
		}
	}
	said, err := t.run(ctx, append(lines, "save")...)
	if err != nil {
		return nil, err
	}
	if err := firstError(commands, said); err != nil {
		return nil, err
	}
	if text = said.saved(); text == "" {
		return map[string]any{"retval": true}, nil
	}
	if lens != "" && !strings.HasSuffix(lens, ".lns") {
		text += "\nLenses are normally configured as \"name.lns\". Did you mean \"" + lens + ".lns\"?"
	}
	return failure(text), nil
}

// failure returns the result of a function that failed and changed nothing.
func failure(text string) any {
	return pyobj.Keyed(map[string]any{"retval": false, "error": text}, "retval", "error")
}

// firstError returns the exception of Python's library for the first command that failed. It ignores a failed rm, as
// the library does.
func firstError(commands []command, said answer) error {
	for i, c := range commands {
		text := said.errs[i]
		if c.method == "insert" && text == "" && strings.Contains(c.args[0], "/") {
			text = "No error" // augtool is silent about a label with a slash, and so is Augeas about why
		}
		if text != "" && c.method != "remove" {
			return valueError(c.method, text)
		}
	}
	return nil
}

func get(ctx context.Context, c *modules.Call) (any, error) {
	path, err := pathOf(c, "rstrip")
	if err != nil {
		return nil, err
	}
	path = strings.TrimRight(path, "/")
	if v := c.Value("value"); pytext.Truth(v) {
		s, ok := v.(string)
		if !ok {
			return nil, attributeError(v, "strip")
		}
		path += "/" + strings.Trim(s, "/")
	}
	said, err := newTool(c, c.Value("load_path")).run(ctx, "get "+quote(path))
	if err != nil {
		return nil, err
	}
	if text := said.errs[0]; strings.HasPrefix(text, "Invalid path expression") {
		return map[string]any{"error": "Augeas.match() failed: " + path + ": " + text}, nil
	} else if text != "" {
		return nil, valueError("get", text)
	}
	value, exists, err := parseGot(path, said.out)
	if err != nil {
		return nil, err
	}
	if !exists {
		value = ""
	}
	return map[string]any{path: value}, nil
}

func setValue(ctx context.Context, c *modules.Call) (any, error) {
	var given [2][]string // of load_path= and prefix=
	var pairs []any
	for _, arg := range c.Extra {
		text, which := pytext.Str(arg), -1
		for i, name := range [...]string{"load_path=", "prefix="} {
			if rest, ok := strings.CutPrefix(text, name); ok {
				which, given[i] = i, append(given[i], rest)
			}
		}
		if which < 0 {
			pairs = append(pairs, arg)
		}
	}
	for i, name := range [...]string{"load_path=", "prefix="} {
		if len(given[i]) > 1 {
			return nil, modules.Usagef("Only one '%s' value is permitted", name)
		}
	}
	if len(pairs)%2 != 0 {
		return nil, modules.Usagef("Uneven number of path/value arguments")
	}
	var lines []string
	for i := 0; i < len(pairs); i += 2 {
		path, ok := pairs[i].(string)
		if !ok {
			return nil, notText()
		}
		if len(given[1]) > 0 && given[1][0] != "" {
			path = posixpath.Join(strings.TrimRight(given[1][0], "/"), strings.TrimLeft(path, "/"))
		}
		lines = append(lines, command{"set", []string{path, pytext.Str(pairs[i+1])}}.line())
	}
	var dirs any
	if len(given[0]) > 0 {
		dirs = given[0][0]
	}
	said, err := newTool(c, dirs).run(ctx, append(lines, "save")...)
	if err != nil {
		return nil, err
	}
	ret := pyobj.NewDict("retval", true)
	for _, text := range said.errs[:len(lines)] {
		if text != "" {
			_ = ret.Set("error", "Multiple values: Augeas.set() failed: "+text) // a text can be a key
		}
	}
	if text := said.saved(); text != "" {
		return failure(text), nil
	}
	return ret, nil
}

func match(ctx context.Context, c *modules.Call) (any, error) {
	path, err := pathOf(c, "")
	if err != nil {
		return nil, err
	}
	nodes, said, err := newTool(c, c.Value("load_path")).printAnd(ctx, path, "match "+quote(path))
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return map[string]any{}, nil
	}
	if nodes, err = pickMatched(nodes, said.out); err != nil {
		return nil, err
	}
	ret, value := pyobj.NewDict(), c.Value("value")
	for _, n := range nodes {
		if !pytext.Truth(value) || n.value == value {
			_ = ret.Set(n.path, n.value) // a text can be a key
		}
	}
	return ret, nil
}

func remove(ctx context.Context, c *modules.Call) (any, error) {
	path, err := pathOf(c, "")
	if err != nil {
		return nil, err
	}
	said, err := newTool(c, c.Value("load_path")).run(ctx, command{"remove", []string{path}}.line(), "save")
	if err != nil {
		return nil, err
	}
	ret, count := pyobj.NewDict("retval", true), int64(-1)
	if said.errs[0] == "" {
		line, _, _ := strings.Cut(said.out, "\n")
		if count, err = modules.ToInt(strings.TrimPrefix(line, "rm : "+path+" ")); err != nil {
			return nil, modules.Errorf("cannot read what augtool says: %q", said.out)
		}
	} else {
		ret = pyobj.NewDict("retval", false, "error", "Invalid node")
	}
	if text := said.saved(); text != "" {
		ret = pyobj.NewDict("retval", false, "error", text)
	}
	_ = ret.Set("count", count) // a text can be a key
	return ret, nil
}

func list(ctx context.Context, c *modules.Call) (any, error) {
	path, err := pathOf(c, "rstrip")
	if err != nil {
		return nil, err
	}
	path = strings.TrimRight(path, "/") + "/"
	nodes, err := newTool(c, c.Value("load_path")).print(ctx, path+"*")
	if err != nil {
		return nil, err
	}
	ret := pyobj.NewDict()
	for i := 0; i < len(nodes); {
		n, next := nodes[i], i+1
		for next < len(nodes) && strings.HasPrefix(nodes[next].path, n.path+"/") {
			next++
		}
		name := strings.TrimPrefix(n.path, path)
		if next > i+1 {
			name += "/"
		}
		_ = ret.Set(name, n.value) // a text can be a key
		i = next
	}
	return ret, nil
}

func tree(ctx context.Context, c *modules.Call) (any, error) {
	path, err := pathOf(c, "rstrip")
	if err != nil {
		return nil, err
	}
	path = strings.TrimRight(path, "/*")
	nodes, said, err := newTool(c, c.Value("load_path")).printAnd(ctx, path, "get "+quote(path))
	if err != nil {
		return nil, err
	}
	if text := said.errs[0]; text != "" {
		return nil, valueError("get", text)
	}
	value, _, err := parseGot(path, said.out)
	if err != nil {
		return nil, err
	}
	ret := pyobj.NewDict(path, value)
	for _, n := range nodes[min(1, len(nodes)):] {
		_ = ret.Set(n.path, n.value) // a text can be a key
	}
	return ret, nil
}

// pathOf returns the argument path, which must be text. method is the Python method that Salt would call on it; the
// error names it.
func pathOf(c *modules.Call, method string) (string, error) {
	path, ok := c.Value("path").(string)
	switch {
	case ok:
		return path, nil
	case method != "":
		return "", attributeError(c.Value("path"), method)
	}
	return "", notText()
}

func attributeError(v any, name string) error {
	return &modules.PythonError{Type: "AttributeError", Msg: "'" + modules.TypeName(v) + "' object has no attribute '" + name + "'"}
}

func notText() error { return &modules.TypeError{Msg: "path MUST be a string!"} }

// valueError returns the exception of Python's library for a method that failed.
func valueError(method, text string) error {
	return &modules.PythonError{Type: "augeas.AugeasValueError", Msg: "Augeas." + method + "() failed: " + text}
}
