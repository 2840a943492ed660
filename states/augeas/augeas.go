// Package augeas is Salt's state module "augeas": changes of configuration files by Augeas (salt/states/augeas.py).
package augeas

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/difflib"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/augeas_cfg"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "augeas".
var Module = &states.Module{Name: "augeas", Doc: "Changes of configuration files by Augeas.",
	Needs: "augeas.execute", Otherwise: "augeas module could not be loaded", Funcs: []states.Def{
		{Name: "change", Doc: `Have commands of augeas.execute run. Without a context all of them must name the same path.

context
    the file, with /files before it
changes
    the commands
lens
    the lens to read the file with
load_path
    further directories of lenses`, Params: []modules.Param{
			{Name: "name"}, {Name: "context", Optional: true}, {Name: "changes", Optional: true}, {Name: "lens", Optional: true},
			{Name: "load_path", Optional: true},
		}, Kwargs: "kwargs", Run: change},
	}}

// maxFile bounds the file whose changes are shown.
const maxFile = 64 << 20

func change(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	changes, ok := c.Value("changes").([]any)
	if !ok || len(changes) == 0 {
		return ret.As(states.False, "'changes' must be specified as a list")
	}
	loadPath := c.Value("load_path")
	if loadPath != nil {
		dirs, ok := loadPath.([]any)
		if !ok {
			return ret.As(states.False, "'load_path' must be specified as a list")
		}
		texts, err := allTexts(dirs)
		if err != nil {
			return nil, err
		}
		loadPath = strings.Join(texts, ":")
	}
	var file string
	if c.Value("context") == nil {
		var text string
		var err error
		if file, text, err = changedFile(c, changes); err != nil {
			return nil, err
		}
		if text != "" {
			return ret.As(states.False, "Error: "+text)
		}
	} else {
		file = fileOf(c.Str("context"))
	}
	if c.Test() {
		texts, err := allTexts(changes)
		if err != nil {
			return nil, err
		}
		text := "Executing commands"
		if context := c.Value("context"); pytext.Truth(context) {
			text += " in file \"" + c.Str("context") + "\":\n"
		}
		return ret.As(states.True, text+strings.Join(texts, "\n"))
	}
	before, _, err := readLines(c, file)
	if err != nil {
		return nil, err
	}
	v, err := c.ExecKw(ctx, "augeas.execute", nil, map[string]any{
		"context": c.Value("context"), "lens": c.Value("lens"), "commands": changes, "load_path": loadPath,
	})
	if err != nil {
		return nil, err
	}
	answer, _ := v.(map[string]any)
	if answer["retval"] != true {
		return ret.As(states.False, "Error: "+pytext.Str(answer["error"]))
	}
	after, exists, err := readLines(c, file)
	switch {
	case err != nil:
		return nil, err
	case !exists:
		ret.Changes["updates"] = changes
		return ret.As(states.True, "Changes have been saved")
	}
	diff := strings.Join(difflib.UnifiedContext(before, after, "", "", 0), "")
	if diff == "" {
		return ret.As(states.True, "No changes made")
	}
	ret.Changes["diff"] = diff
	return ret.As(states.True, "Changes have been saved")
}

// allTexts returns the elements of a list, which must all be texts, as Python's join requires.
func allTexts(list []any) ([]string, error) {
	out := make([]string, len(list))
	for i, v := range list {
		s, ok := v.(string)
		if !ok {
			return nil, &modules.TypeError{Msg: "sequence item " + pytext.Str(int64(i)) + ": expected str instance, " + modules.TypeName(v) + " found"}
		}
		out[i] = s
	}
	return out, nil
}

// fileOf returns a path of Augeas without its prefix /files and a final slash.
func fileOf(path string) string { return strings.TrimSuffix(strings.TrimPrefix(path, "/files"), "/") }

// changedFile returns the file that changes apply to, or "" if they name none. If they are invalid, text is the
// reason (_check_filepath).
func changedFile(c *states.Call, changes []any) (file, text string, err error) {
	for i, v := range changes {
		change, ok := v.(string)
		if !ok {
			return "", "", &modules.PythonError{Type: "AttributeError", Msg: "'" + modules.TypeName(v) + "' object has no attribute 'split'"}
		}
		malformed := "Invalid formatted command, see debug log for details: " + change
		command, arg, ok := strings.Cut(change, " ")
		if !ok {
			return "", malformed, nil
		}
		method := augeas_cfg.Method(command)
		if method == "" {
			return "", "Command " + command + " is not supported (yet)", nil
		}
		parts, err := shlex.Split(arg)
		at := 0
		if method == "insert" {
			at = 2
		}
		if err != nil || len(parts) <= at || method == "insert" && len(parts) != 3 {
			return "", malformed, nil
		}
		path := parts[at]
		if !strings.HasPrefix(path, "/files") {
			return "", "Changes should be prefixed with /files if no context is provided, change: " + change, nil
		}
		path = fileOf(path)
		if i > 0 && file != path {
			return "", "Changes should be made to one file at a time, detected changes to " + file + " and " + path, nil
		}
		file = path
	}
	// The path goes on in the file's tree.
	for file != "/" && !isFile(c, file) {
		if file == "" {
			return "", "", &modules.PythonError{Type: "RecursionError", Msg: "maximum recursion depth exceeded"}
		}
		file = posixpath.Dir(file)
	}
	if file == "/" {
		return "", "", nil
	}
	return file, "", nil
}

func isFile(c *states.Call, path string) bool {
	info, err := os.Stat(c.Path(path))
	return path != "" && err == nil && info.Mode().IsRegular()
}

// readLines returns the lines of a file, if it exists.
func readLines(c *states.Call, path string) (lines []string, exists bool, err error) {
	if !isFile(c, path) {
		return nil, false, nil
	}
	f, err := os.Open(c.Path(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, modules.Errorf("cannot read %s: %s", path, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, false, modules.Errorf("cannot read %s: %s", path, err)
	}
	if len(b) > maxFile {
		return nil, false, modules.Errorf("cannot show changes of %s: it is larger than %d MB", path, maxFile>>20)
	}
	return splitLines(string(b)), true, nil
}

// splitLines splits at \n, \r\n and \r, which stay, as Python's files do where line ends are not translated.
func splitLines(text string) (lines []string) {
	for text != "" {
		n := strings.IndexAny(text, "\r\n") + 1
		if n == 0 {
			n = len(text)
		} else if strings.HasPrefix(text[n-1:], "\r\n") {
			n++
		}
		lines, text = append(lines, text[:n]), text[n:]
	}
	return lines
}
