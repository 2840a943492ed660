package cmd

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// caught reports whether cmd.script's error becomes the comment of the state: CommandExecutionError, SaltRenderError, OSError.
func caught(err error) bool {
	var (
		exec   *modules.ExecError
		render *modules.RenderError
		python *modules.PythonError
		errno  syscall.Errno
		path   *fs.PathError
	)
	if errors.As(err, &python) {
		return strings.HasPrefix(pytext.Str(python.Msg), "[Errno ")
	}
	return errors.As(err, &exec) || errors.As(err, &render) || errors.As(err, &errno) || errors.As(err, &path)
}

// reinterpret makes changes and comment of a state what its command said of itself: a JSON object, or name=value pairs in the
// last line (_reinterpreted_state).
func reinterpret(ret *states.Result) (*states.Result, error) {
	all := ret.Changes
	ret.Changes, ret.Comment = map[string]any{}, ""
	out, _ := all["stdout"].(string)
	if out == "" {
		if pytext.Truth(all["stderr"]) {
			ret.Comment = pytext.Str(all["stderr"])
		}
		return ret, nil
	}
	v, err := pyjson.ParseObject([]byte(out))
	data, isJSON := v.(*pyobj.Dict)
	end := -1
	switch {
	case err == nil && !isJSON:
		return ret.As(states.False, "script JSON output must be a JSON object (e.g., {})!")
	case err != nil:
		end = strings.LastIndexByte(pytext.StripRight(out), '\n')
		if data = pairs(out[end+1:]); data == nil {
			ret.Changes = all
			return ret.As(states.False, "Failed parsing script output! Stdout must be JSON or a line of name=value pairs.")
		}
	}
	changed, err := isTrue(data)
	if err != nil {
		return nil, err
	}
	ret.Extra = map[string]any{}
	if comment, ok := data.Delete("comment"); ok {
		ret.Comment = pyobj.Str(comment)
		if _, text := comment.(string); !text {
			ret.Extra["comment"] = pyobj.Plain(comment)
		}
	}
	if !changed {
		return ret, nil
	}
	for k, v := range pyobj.Keyed(all, "pid", "retcode", "stdout", "stderr").All() {
		if !data.Has(k) {
			_ = data.Set(k, v)
		}
	}
	stdout, _ := data.Value("stdout").(string)
	switch {
	case isJSON:
		stdout = ""
	case end >= 0:
		stdout = stdout[:min(end, len(stdout))]
	case stdout != "":
		r := []rune(stdout)
		stdout = string(r[:len(r)-1]) // Python's [:-1]
	}
	_ = data.Set("stdout", stdout)
	ret.Changes = pyobj.PlainMap(data)
	ret.Extra["changes"] = data // the same in order
	return ret, nil
}

// pairs parses name=value pairs, or returns nil if the line holds anything else.
func pairs(line string) *pyobj.Dict {
	words, err := shlex.Split(line)
	if err != nil {
		return nil
	}
	data := &pyobj.Dict{}
	for _, w := range words {
		parts := strings.Split(w, "=")
		if len(parts) != 2 {
			return nil
		}
		_ = data.Set(parts[0], parts[1])
	}
	return data
}

// isTrue reports whether the command's output says that it changed something.
func isTrue(data *pyobj.Dict) (bool, error) {
	v, ok := data.Get("changed")
	if !ok {
		v = "no"
	}
	switch strings.ToLower(pyobj.Str(v)) {
	case "true", "yes", "1":
		if pyobj.Truth(v) {
			return true, nil
		}
	case "false", "no", "0":
		return false, nil
	}
	return false, &modules.PythonError{Type: "ValueError", Msg: "Failed parsing boolean value: " + pyobj.Str(v)}
}
