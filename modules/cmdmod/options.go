package cmdmod

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// options are the arguments of a cmd function. A function may also get those that it does not declare as keywords,
// which Salt passes on to its inner function.
type options struct {
	c           *modules.Call
	cmd         any // text or list
	pythonShell bool
	merge, bg   bool
	level       level
	// calledByJob means that a master or an operator called the function, not another module.
	calledByJob bool
	// outside means that user and group belong to a root directory below this host's, not to this host.
	outside bool
	// rendered means that the template engine has expanded what it is for, a script. The command stays as it is.
	rendered bool
}

func readOptions(c *modules.Call) (*options, error) {
	o := &options{c: c, cmd: c.Value("cmd"), level: levelOf(c)}
	_, o.calledByJob = c.Keywords["__pub_jid"]
	o.pythonShell = o.shellDefault(pytext.Truth(c.Keywords["__pub_jid"]))
	o.bg = pytext.Truth(o.value("bg"))
	if o.bg && runtime.GOOS == "windows" && pytext.Truth(o.value("use_vt")) {
		return nil, modules.Errorf("VT not available on windows")
	}
	return o, nil
}

// shellDefault reports whether the command runs in a shell. Without the argument python_shell, an operator's command
// does, and with cmd_safe: False every command does.
func (o *options) shellDefault(pubJID bool) bool {
	v := o.value("python_shell")
	if v != nil {
		return pytext.Truth(v)
	}
	return pubJID || o.c.Opt("cmd_safe") == false
}

func (o *options) value(name string) any {
	if v := o.c.Value(name); v != nil {
		return v
	}
	return o.c.Keywords[name]
}

func (o *options) text(name string) string {
	if v := o.value(name); v != nil {
		return pytext.Str(v)
	}
	return ""
}

// inherited returns the argument runas or password. If it is not given, the value is the one that the running state
// has set for all its commands.
func (o *options) inherited(name string) string {
	if s := o.text(name); s != "" || o.value(name) != nil {
		return s
	}
	key := name
	if name == "password" {
		key = "runas_password"
	}
	if v, _ := o.c.Context().Get(key); v != nil {
		return pytext.Str(v)
	}
	return ""
}

func (o *options) truth(name string, otherwise bool) bool {
	if v := o.value(name); v != nil {
		return pytext.Truth(v)
	}
	return otherwise
}

// shellPath returns the shell: the argument, or the minion's own SHELL (grain "shell").
func (o *options) shellPath() string {
	if !o.c.Given("shell") {
		if s, ok := o.c.Grain("shell").(string); ok && s != "" {
			return s
		}
		if runtime.GOOS == "windows" {
			return "cmd.exe"
		}
		return "/bin/sh"
	}
	return o.text("shell")
}

// dir returns the working directory: the argument, otherwise the user's home, or the root directory if the home is
// not readable.
func (o *options) dir() string {
	if cwd := o.value("cwd"); pytext.Truth(cwd) {
		return pytext.Str(cwd)
	}
	home := homeOf(o.c, o.inherited("runas"))
	if f, err := os.Open(home); err == nil {
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return home
		}
	}
	return filepath.VolumeName(os.TempDir()) + string(filepath.Separator)
}

// render expands the command and the directory with the template engine that was asked for.
func (o *options) render(ctx context.Context, cwd string) (string, error) {
	engine := o.value("template")
	if o.rendered || !pytext.Truth(engine) {
		return cwd, nil
	}
	name := pytext.Str(engine)
	unavailable := modules.Errorf("Attempted to render file paths with unavailable engine %s", name)
	vars := map[string]any{"saltenv": o.saltenv()}
	override, _ := pyobj.From(o.value("pillar_override")).(*pyobj.Dict)
	if override == nil {
		v, _ := o.c.InOrder("pillar")
		override, _ = v.(*pyobj.Dict)
	}
	if err := o.addPillar(ctx, vars, override); err != nil {
		return "", err
	}
	for _, target := range []*any{&o.cmd, new(any)} {
		text := cwd
		if target == &o.cmd {
			text = pytext.Str(o.cmd)
		}
		out, err := o.c.Render(ctx, name, text, vars)
		if errors.Is(err, modules.ErrEngine) {
			return "", unavailable
		}
		if err != nil {
			return "", modules.Errorf("Failed to execute cmd with error: %s", err)
		}
		if target == &o.cmd {
			o.cmd = out
		} else {
			cwd = out
		}
	}
	return cwd, nil
}

// addPillar adds the pillar of the environment pillarenv, with override in it, to the variables of a template if the call
// names one of the two.
func (o *options) addPillar(ctx context.Context, vars map[string]any, override *pyobj.Dict) error {
	if o.c.FreshPillar == nil || override == nil && o.value("pillarenv") == nil {
		return nil
	}
	pillar, err := o.c.FreshPillar(ctx, o.saltenv(), o.text("pillarenv"), override)
	if err != nil {
		return err
	}
	pillar.Update(override)
	vars["pillar"] = pillar
	return nil
}

func (o *options) saltenv() string {
	if env := o.text("saltenv"); env != "" {
		return env
	}
	if env, ok := o.c.Opt("saltenv").(string); ok && env != "" {
		return env
	}
	return "base"
}

// permitted looks the command up in cmd_blacklist_glob and cmd_whitelist_glob. Only commands of jobs are looked up.
func (o *options) permitted(ctx context.Context) bool {
	text := pytext.Str(o.cmd)
	if list, ok := o.cmd.([]any); ok {
		words := make([]string, len(list))
		for i, x := range list {
			words[i] = pytext.Str(x)
		}
		text = strings.Join(words, " ")
	}
	matches := func(pattern string) bool { return fnmatch.Match(pattern, text) }
	if slices.ContainsFunc(o.globs(ctx, "cmd_blacklist_glob"), matches) {
		return false
	}
	white := o.globs(ctx, "cmd_whitelist_glob")
	return len(white) == 0 || slices.ContainsFunc(white, matches)
}

func (o *options) globs(ctx context.Context, name string) []string {
	v, err := o.c.Exec(ctx, "config.get", name)
	if err != nil {
		v = o.c.Opt(name)
	}
	var globs []string
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			globs = append(globs, pytext.Str(x))
		}
	case string: // Salt would take every character for a pattern; what was meant is one pattern
		if v != "" {
			globs = []string{v}
		}
	}
	return globs
}

// locale returns the settings for English messages.
func locale() []string {
	return []string{
		"LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_COLLATE", "LC_MONETARY", "LC_MESSAGES", "LC_PAPER", "LC_NAME", "LC_ADDRESS",
		"LC_TELEPHONE", "LC_MEASUREMENT", "LC_IDENTIFICATION", "LANGUAGE",
	}
}

// defaults returns the settings for English messages, or nil if the caller turned that off.
func (o *options) defaults() []string {
	v := o.value("reset_system_locale")
	if v != nil && v != true || runtime.GOOS == "windows" {
		return nil
	}
	set := envMap(o.value("env"))
	var env []string
	for _, name := range locale() {
		if _, ok := set[name]; !ok {
			env = append(env, name+"=C")
		}
	}
	return env
}

// environ returns the environment of the command: the caller's settings, with the argument prepend_path in front of
// PATH.
func (o *options) environ() ([]string, error) {
	set := envMap(o.value("env"))
	var env []string
	path, hasPath := "", false
	if !o.truth("clean_env", false) {
		path, hasPath = o.c.Context().Getenv("PATH")
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		value := set[name]
		if strings.Contains(name, "=") { // a list item "NAME=value" is a name
			return nil, &modules.PythonError{Type: "ValueError", Msg: "illegal environment variable name"}
		}
		if value == nil {
			o.c.Logger().Error("Environment variable passed without a value. Setting value to an empty string", "name", name)
			value = ""
		}
		if name == "PATH" {
			path, hasPath = pytext.Str(value), true
		}
		env = append(env, name+"="+pytext.Str(value))
	}
	if front := o.value("prepend_path"); pytext.Truth(front) {
		if !hasPath {
			return nil, keyError("PATH")
		}
		env = append(env, "PATH="+pytext.Str(front)+":"+path)
	}
	return env, nil
}

// envMap reads a map, or a list of maps with one setting each and of bare names.
func envMap(v any) map[string]any {
	out := map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		return v
	case map[any]any:
		for k, x := range v {
			out[pytext.Str(k)] = x
		}
	case []any:
		for _, x := range v {
			switch x := x.(type) {
			case map[string]any:
				if len(x) != 1 {
					return map[string]any{}
				}
				for k, y := range x {
					out[k] = y
				}
			case string, int64, float64, bool:
				out[pytext.Str(x)] = nil
			default:
				return map[string]any{}
			}
		}
	}
	return out
}

// timeout returns the time limit of the command, 0 for none, and the limit in Salt's spelling.
func (o *options) timeout() (time.Duration, string, error) {
	v := o.value("timeout")
	if !pytext.Truth(v) {
		return 0, "", nil
	}
	var seconds float64
	switch n := v.(type) {
	case int64:
		seconds = float64(n)
	case float64:
		seconds = n
	case bool:
		seconds = 1
	default:
		return 0, "", &modules.PythonError{Type: "TimedProcTimeoutError", Msg: "Error: timeout " + pytext.Str(v) + " must be a number"}
	}
	limit := max(time.Nanosecond, time.Duration(min(seconds, 1e9)*float64(time.Second)))
	return limit, pytext.Str(v), nil
}

// splitInput returns the elements of a list, or the parts of a text between commas (salt/utils/args.py split_input).
func splitInput(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	var out []any
	for _, s := range strings.Split(pytext.Str(v), ",") {
		out = append(out, strings.TrimSpace(s))
	}
	return out
}

// success are the exit statuses and texts that make a command a success.
type success struct {
	codes          []int64
	stdout, stderr []string
}

func (o *options) success() (success, error) {
	s := success{codes: []int64{0}}
	if v := o.value("success_retcodes"); v != nil {
		s.codes = nil
		for _, x := range splitInput(v) {
			n, err := modules.ToInt(x)
			var typ *modules.TypeError
			if errors.As(err, &typ) {
				return s, err
			}
			if err != nil {
				return s, modules.Usagef("success_retcodes must be a list of integers")
			}
			s.codes = append(s.codes, n)
		}
	}
	for _, list := range []struct {
		name string
		to   *[]string
	}{{"success_stdout", &s.stdout}, {"success_stderr", &s.stderr}} {
		if v := o.value(list.name); v != nil {
			for _, x := range splitInput(v) {
				text, ok := x.(string)
				if !ok {
					return s, &modules.TypeError{Msg: "'in <string>' requires string as left operand, not " + modules.TypeName(x)}
				}
				*list.to = append(*list.to, text)
			}
		}
	}
	return s, nil
}

// limit returns how many bytes of output are kept; 0 means the runner's own limit.
func (o *options) limit() int64 {
	n, _ := o.c.Opt("cmd_output_limit").(int64)
	return max(n, 0)
}

// pythonBool writes a bool as Python does.
func pythonBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}
