package cmdmod

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

func script(ctx context.Context, c *modules.Call) (any, error) { return runScript(ctx, c) }

func scriptRetcode(ctx context.Context, c *modules.Call) (any, error) {
	v, err := runScript(ctx, c)
	if err != nil {
		return nil, err
	}
	code, ok := v["retcode"]
	if !ok {
		return nil, keyError("retcode")
	}
	return code, nil
}

func cacheError() map[string]any {
	return map[string]any{"pid": int64(0), "retcode": int64(1), "stdout": "", "stderr": "", "cache_error": true}
}

// runScript fetches the script, makes a private copy that the user can run, runs it and removes it.
func runScript(ctx context.Context, c *modules.Call) (map[string]any, error) {
	o, err := readOptions(c)
	if err != nil {
		return nil, err
	}
	file, err := o.fetch(ctx, c.Str("source"))
	if err != nil {
		return nil, err
	}
	if file == "" {
		return cacheError(), nil
	}
	remove := true
	defer func() {
		if remove {
			os.Remove(file)
		}
	}()
	if err := makeRunnable(c, file, o.text("runas")); err != nil {
		return nil, err
	}
	args, err := scriptArgs(c.Value("args"))
	if err != nil {
		return nil, err
	}
	if pytext.Truth(c.Value("args")) {
		o.pythonShell = false
	}
	o.cmd = append([]any{file}, args...)
	if o.bg && runtime.GOOS != "windows" {
		// The script is removed when it has ended, so a shell has to wait for it.
		o.cmd = append([]any{"/bin/sh", "-c", cleanupScript, "salt-cmd-script", file, file}, args...)
		o.pythonShell, remove = false, false
	}
	ret := map[string]any{}
	res, err := o.run(ctx)
	var usage *modules.UsageError
	switch {
	case modules.IsExecError(err) || errors.As(err, &usage):
		c.Logger().Error("cmd.script: unable to run script", "source", c.Str("source"), "err", err)
		remove = true
	case err != nil:
		remove = true
		return nil, err
	default:
		ret = res.value()
	}
	if o.truth("hide_output", false) {
		ret["stdout"], ret["stderr"] = "", ""
	}
	return ret, nil
}

func scriptArgs(v any) ([]any, error) {
	switch v := v.(type) {
	case string:
		words, err := shlex.Split(v)
		if err != nil {
			return nil, &modules.PythonError{Type: "ValueError", Msg: err.Error()}
		}
		args := make([]any, len(words))
		for i, w := range words {
			args[i] = w
		}
		return args, nil
	case []any:
		return v, nil
	}
	if !pytext.Truth(v) {
		return nil, nil
	}
	return nil, &modules.TypeError{Msg: "Value after * must be an iterable, not " + modules.TypeName(v)}
}

// fetch copies the script, rendered if the call names a template engine, to a file that only this user can read. It
// returns "" if there is no such script.
func (o *options) fetch(ctx context.Context, source string) (string, error) {
	cached, err := o.c.Exec(ctx, "cp.cache_file", source, o.saltenv())
	if err != nil {
		return "", err
	}
	from, _ := cached.(string)
	if from == "" {
		return "", nil
	}
	src, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", modules.OSError(err)
	}
	defer src.Close()
	var text io.Reader = src
	if engine := o.value("template"); pytext.Truth(engine) {
		out, err := o.renderScript(ctx, pytext.Str(engine), src)
		if errors.Is(err, modules.ErrEngine) {
			o.c.Logger().Error("cmd.script: there is no such template engine", "source", source, "engine", pytext.Str(engine))
			return "", nil
		}
		if err != nil {
			return "", err
		}
		text = strings.NewReader(out)
	}
	o.rendered = true
	name, _, _ := strings.Cut(source, "?")
	return copyTemp(text, scriptDir(o.text("cwd"), o.text("runas")), path.Ext(name))
}

// renderScript expands a script. The template sees the keyword arguments of the call, and first of all those in context.
func (o *options) renderScript(ctx context.Context, engine string, src io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(src, maxTemplate))
	if err != nil {
		return "", modules.OSError(err)
	}
	vars := map[string]any{"saltenv": o.saltenv()}
	for k := range o.c.Keywords {
		vars[k], _ = o.c.InOrder(k)
	}
	pillar, _ := vars["pillar"].(*pyobj.Dict)
	if err := o.addPillar(ctx, vars, pillar); err != nil {
		return "", err
	}
	context, _ := vars["context"].(*pyobj.Dict)
	delete(vars, "context")
	if context != nil {
		for k, v := range context.All() {
			vars[pytext.Str(k)] = v
		}
	}
	return o.c.Render(ctx, engine, string(text), vars)
}

// cleanupScript runs a program and removes the file in $1 when it ended. Arguments: the file, the program, its arguments.
const cleanupScript = `script="$1"; shift; trap 'rm -f -- "$script"' EXIT; "$@"`

// maxTemplate is the size of a script that is expanded.
const maxTemplate = 16 << 20

func copyTemp(from io.Reader, dir, ext string) (string, error) {
	if strings.ContainsAny(ext, `/\*`) {
		ext = ""
	}
	f, err := os.CreateTemp(dir, "__salt.tmp.*"+ext) // mode 0600, never an existing file
	if err != nil {
		return "", modules.OSError(err)
	}
	_, err = io.Copy(f, from)
	if err := errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", modules.OSError(err)
	}
	return f.Name(), nil
}

func execCode(ctx context.Context, c *modules.Call) (any, error) {
	v, err := runCode(ctx, c)
	if err != nil {
		return nil, err
	}
	m, _ := v.(map[string]any)
	return m["stdout"], nil
}

func execCodeAll(ctx context.Context, c *modules.Call) (any, error) { return runCode(ctx, c) }

// runCode writes the code into a private file and has the language's program run it.
func runCode(ctx context.Context, c *modules.Call) (any, error) {
	lang, ok := c.Value("lang").(string)
	if !ok {
		return nil, modules.NoAttribute(c.Value("lang"), "lower")
	}
	ext, flags := "", []any{}
	if strings.HasPrefix(strings.ToLower(lang), "powershell") {
		ext, flags = ".ps1", []any{"-File"}
	}
	file, err := copyTemp(strings.NewReader(pytext.Str(c.Value("code"))), "", ext)
	if err != nil {
		return nil, err
	}
	defer os.Remove(file)
	o, err := readOptions(c)
	if err != nil {
		return nil, err
	}
	if runas := o.text("runas"); runas != "" {
		if err := chown(c, file, runas); err != nil {
			return nil, err
		}
	}
	cmd := append(append([]any{lang}, flags...), filepath.Clean(file))
	switch args := c.Value("args").(type) {
	case string:
		cmd = append(cmd, args)
	case []any:
		cmd = append(cmd, args...)
	}
	o.cmd, o.pythonShell = cmd, false
	return o.all(ctx)
}
