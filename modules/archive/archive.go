//go:build unix

package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pyglob"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
)

// call is a running function with its context.
type call struct {
	*modules.Call
	ctx context.Context
}

// needs returns an error if a program is missing.
func (c *call) needs(program string) error {
	if c.Which(program) == "" {
		return &modules.MissingCommandError{Command: fmt.Sprintf("The '%s' binary was not found in $PATH.", program)}
	}
	return nil
}

// words returns the elements of a list, the parts of a text between commas, or a number as text.
func words(v any) []string {
	var out []string
	switch v := v.(type) {
	case nil:
	case []any:
		for _, x := range v {
			out = append(out, pytext.Str(x))
		}
	case string:
		for _, s := range strings.Split(v, ",") {
			out = append(out, pytext.Strip(s))
		}
	default:
		out = []string{pytext.Str(v)}
	}
	return out
}

// sources returns the files that an argument names, with patterns expanded.
func (c *call) sources(v any) []string {
	var out []string
	for _, s := range words(v) {
		if !pyglob.HasMagic(s) {
			out = append(out, s)
			continue
		}
		out = append(out, pyglob.Glob(c.Path, s)...)
	}
	return out
}

// run runs a program through the cmd module, and gives the lines that it prints.
func (c *call) run(args []any, more map[string]any) ([]string, error) {
	kwargs := map[string]any{"template": c.Value("template"), "runas": c.Value("runas"), "python_shell": false}
	for k, v := range more {
		kwargs[k] = v
	}
	v, err := c.ExecKw(c.ctx, "cmd.run", []any{args}, kwargs)
	if err != nil {
		return nil, err
	}
	return pytext.SplitLines(pytext.Str(v), false), nil
}

// trimmed returns as many of the files as the argument trim_output allows.
func (c *call) trimmed(files []string) any {
	v := c.Value("trim_output")
	count := int64(100)
	if _, isBool := v.(bool); !isBool {
		n, err := modules.ToInt(v)
		if err != nil || n < 0 {
			return nested.Anys(files)
		}
		count = n
	}
	if v == any(false) || int64(len(files)) <= count {
		return nested.Anys(files)
	}
	return nested.Anys(append(files[:count:count], fmt.Sprintf("List trimmed after %d files.", count)))
}

func runTar(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	if err := c.needs("tar"); err != nil {
		return nil, err
	}
	if !c.Bool("options") {
		return nil, modules.Usagef("Tar options can not be empty")
	}
	args := []any{"tar"}
	args = append(args, nested.Anys(strings.Fields(c.Str("options")))...)
	args = append(args, pytext.Str(c.Value("tarfile")))
	if c.Bool("dest") {
		args = append(args, "-C", c.Str("dest"))
	}
	args = append(args, nested.Anys(c.sources(c.Value("sources")))...)
	return modules.AnswerList(c.run(args, map[string]any{"cwd": c.Value("cwd")}))
}

// zipped answers gzip and gunzip.
func zipped(ctx context.Context, mc *modules.Call, program, file string) (any, error) {
	c := &call{mc, ctx}
	if err := c.needs(program); err != nil {
		return nil, err
	}
	args := []any{program}
	if c.Bool("options") {
		args = append(args, c.Value("options"))
	}
	return modules.AnswerList(c.run(append(args, pytext.Str(c.Value(file))), nil))
}

func cmdZip(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	if err := c.needs("zip"); err != nil {
		return nil, err
	}
	args := append([]any{"zip", "-r", pytext.Str(c.Value("zip_file"))}, nested.Anys(c.sources(c.Value("sources")))...)
	return modules.AnswerList(c.run(args, map[string]any{"cwd": c.Value("cwd")}))
}

func cmdUnzip(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	if err := c.needs("unzip"); err != nil {
		return nil, err
	}
	args, level := []any{"unzip"}, "debug"
	if c.Bool("password") {
		args, level = append(args, "-P", c.Str("password")), "quiet"
	}
	if c.Bool("options") {
		options, err := shlex.Split(c.Str("options"))
		if err != nil {
			return nil, &modules.PythonError{Type: "ValueError", Msg: err.Error()}
		}
		args = append(args, nested.Anys(options)...)
	}
	args = append(args, pytext.Str(c.Value("zip_file")), "-d", pytext.Str(c.Value("dest")))
	if c.Value("excludes") != nil {
		args = append(append(args, "-x"), nested.Anys(words(c.Value("excludes")))...)
	}
	v, err := c.ExecKw(ctx, "cmd.run_all", []any{args}, map[string]any{
		"template": c.Value("template"), "runas": c.Value("runas"), "python_shell": false, "redirect_stderr": true, "output_loglevel": level,
	})
	if err != nil {
		return nil, err
	}
	res, _ := v.(map[string]any)
	out := pytext.Str(res["stdout"])
	if res["retcode"] != any(int64(0)) {
		return nil, modules.Errorf("%s", out)
	}
	return c.trimmed(pytext.SplitLines(out, false)), nil
}

func rar(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	if err := c.needs("rar"); err != nil {
		return nil, err
	}
	args := append([]any{"rar", "a", "-idp", pytext.Str(c.Value("rarfile"))}, nested.Anys(c.sources(c.Value("sources")))...)
	return modules.AnswerList(c.run(args, map[string]any{"cwd": c.Value("cwd")}))
}

func unrar(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	program := c.Which("unrar")
	if program == "" {
		program = c.Which("rar")
	}
	if program == "" {
		return nil, &modules.MissingCommandError{Command: `None of provided binaries(["'unrar'", "'rar'"]) were found in $PATH.`}
	}
	args := []any{program, "x", "-idp", pytext.Str(c.Value("rarfile"))}
	for _, x := range words(c.Value("excludes")) {
		args = append(args, "-x", x)
	}
	out, err := c.run(append(args, pytext.Str(c.Value("dest"))), nil)
	if err != nil {
		return nil, err
	}
	return c.trimmed(out), nil
}

// cached brings an archive to the minion.
func (c *call) cached() (name, path string, err error) {
	name = c.Str("name")
	v, err := c.ExecKw(c.ctx, "cp.cache_file", []any{c.Value("name"), c.Value("saltenv")},
		map[string]any{"source_hash": c.Value("source_hash"), "use_etag": c.Value("use_etag")})
	if err != nil {
		return "", "", err
	}
	if path, _ = v.(string); path == "" {
		return "", "", modules.Errorf("Failed to cache %s", name)
	}
	return name, path, nil
}

// clean removes the cached archive if the call wants it.
func (c *call) clean(path string) {
	if !c.Bool("clean") {
		return
	}
	if err := os.Remove(c.Path(path)); err != nil && !errors.Is(err, os.ErrNotExist) {
		c.Logger().Warn("Cannot remove the cached archive", "file", path, "err", err)
	}
}

func osText(err error) string {
	if s, _ := modules.OSErrorText(err); s != "" {
		return s
	}
	return err.Error()
}

// named puts the user's path in the place of the one that was opened.
func named(err error, path string) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return &os.PathError{Op: p.Op, Path: path, Err: p.Err}
	}
	return err
}

// commonPrefix implements os.path.commonprefix: the longest prefix that all texts share.
func commonPrefix(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	prefix := texts[0]
	for _, s := range texts[1:] {
		for !strings.HasPrefix(s, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return prefix
}

// rendered returns arguments after the template engine of the call has expanded them.
func (c *call) rendered(names ...string) ([]any, error) {
	out := make([]any, len(names))
	engine := c.Value("template")
	for i, n := range names {
		out[i] = c.Value(n)
		if !pytext.Truth(engine) {
			continue
		}
		s, err := c.Render(c.ctx, pytext.Str(engine), pytext.Str(out[i]), nil)
		switch {
		case errors.Is(err, modules.ErrEngine):
			return nil, modules.Errorf("Attempted to render file paths with unavailable engine %s", pytext.Str(engine))
		case err != nil:
			return nil, modules.Errorf("Failed to render file path with error: %s", err)
		}
		out[i] = s
	}
	return out, nil
}

// user returns the account that the argument runas names, or "" without it. It returns an error if the account does
// not exist.
func (c *call) user() (string, error) {
	if !c.Bool("runas") {
		return "", nil
	}
	v, err := c.Exec(c.ctx, "user.info", c.Value("runas"))
	if err != nil {
		return "", err
	}
	if !pytext.Truth(v) {
		return "", modules.Usagef("User '%s' does not exist", c.Str("runas"))
	}
	return c.Str("runas"), nil
}
