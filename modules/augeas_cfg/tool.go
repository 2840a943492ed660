package augeas_cfg

import (
	"context"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/modules"
)

// maxOutput bounds what augtool prints. The tree of everything that a host has takes a few megabytes.
const maxOutput = 64 << 20

// tool is augtool as a call uses it.
type tool struct {
	*modules.Call
	dirs       []string // further directories of lenses
	lens, file string   // of the only file to read; "" reads all
}

// newTool returns augtool with further directories of lenses: those of the list that exist (_check_load_paths).
func newTool(c *modules.Call, loadPath any) *tool {
	t := &tool{Call: c}
	list, ok := loadPath.(string)
	if !ok {
		return t
	}
	for _, dir := range strings.Split(list, ":") {
		if info, err := os.Stat(c.Path(dir)); posixpath.IsAbs(dir) && err == nil && info.IsDir() {
			t.dirs = append(t.dirs, dir)
		} else {
			c.Logger().Info("Invalid augeas_cfg load_path entry: " + dir + " removed")
		}
	}
	return t
}

// answer is the output of augtool.
type answer struct {
	out  string
	errs []string // by command, "" where it worked
}

// saved returns the error of the last command, save, or "" if it succeeded.
func (a answer) saved() string {
	text := a.errs[len(a.errs)-1]
	if text == "" {
		return ""
	}
	if strings.HasPrefix(text, commandFailed) {
		text = "No error" // which is all that Python's library knows
	}
	return "Augeas.save() failed: " + text
}

const (
	commandFailed = "Failed to execute command"
	// between is no command. It comes after each one, so that what augtool says of it shows where the errors of a command end.
	between = "="
	unknown = "error: " + commandFailed + "\nUnknown command '" + between + "'\n"
)

// run runs commands. Each has its error; that augtool cannot run is err.
func (t *tool) run(ctx context.Context, lines ...string) (answer, error) {
	args := []string{"augtool", "-f", "/dev/stdin"}
	if t.Root != "" {
		args = append(args, "-r", t.Root)
	}
	for _, dir := range t.dirs {
		args = append(args, "-I", dir)
	}
	script := strings.Join(lines, "\n"+between+"\n") + "\n" + between + "\n"
	if t.lens != "" {
		args = append(args, "-A")
		script = "transform " + quote(t.lens) + " incl " + quote(t.file) + "\nload\n" + script
	}
	if strings.IndexByte(script, 0) >= 0 {
		return answer{}, modules.Usagef("cannot give augtool a null byte")
	}
	res, err := t.Cmd(ctx, modules.Command{Args: args, Stdin: strings.NewReader(script), Limit: maxOutput})
	if err != nil {
		return answer{}, err
	}
	if res.Truncated {
		return answer{}, modules.Errorf("augtool printed more than %d MB", maxOutput>>20)
	}
	parts := strings.Split(string(res.Stderr), unknown)
	if len(parts) != len(lines)+1 {
		return answer{}, modules.Errorf("augtool failed: %s", strings.TrimSpace(string(res.Stderr)))
	}
	a := answer{out: string(res.Stdout), errs: parts[:len(lines)]}
	for i, text := range a.errs {
		a.errs[i] = oneLine(text)
	}
	return a, nil
}

// oneLine converts an error that augtool prints to that of Python's library: the message, the minor message and the
// details.
func oneLine(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "error: ")
	}
	return strings.Join(lines, ": ")
}

// quote makes a word of augtool's commands. A backslash before these characters stays as it is, before others it is doubled.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch s[i] {
		case '\\':
			if i+1 == len(s) || strings.IndexByte("][|/=()!,", s[i+1]) < 0 {
				b.WriteByte('\\')
			}
			b.WriteByte('\\')
		case '"':
			b.WriteString(`\"`)
		case '\n':
			b.WriteString(`\n`)
		case '\t':
			b.WriteString(`\t`)
		default:
			b.WriteByte(s[i])
		}
	}
	b.WriteByte('"')
	return b.String()
}

// parseGot reads the value of a node, nil if it has none.
func parseGot(path, out string) (value any, exists bool, err error) {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(out, "\n"), path+" ")
	if !ok {
		return nil, false, modules.Errorf("cannot read what augtool says: %q", out)
	}
	if s, ok := strings.CutPrefix(rest, "= "); ok {
		return s, true, nil
	}
	return nil, rest == "(none)", nil
}

// node is one of a tree. value is nil if it has none.
type node struct {
	path  string
	value any
}

// print returns the nodes that a path matches, each with all below it. A path that is wrong matches nothing.
func (t *tool) print(ctx context.Context, path string) ([]node, error) {
	nodes, _, err := t.printAnd(ctx, path)
	return nodes, err
}

// noMatch is augtool's output for noNode. No output line of the command print begins with a blank.
const (
	noNode  = "match /augeas/none"
	noMatch = "  (no matches)\n"
)

// printAnd is like print with further commands in the same run of augtool. The returned answer is that of the further
// commands only.
func (t *tool) printAnd(ctx context.Context, path string, lines ...string) ([]node, answer, error) {
	said, err := t.run(ctx, append([]string{"print " + quote(path), noNode}, lines...)...)
	if err != nil {
		return nil, answer{}, err
	}
	printed, rest, ok := strings.Cut(said.out, noMatch)
	if !ok {
		return nil, answer{}, modules.Errorf("cannot read what augtool says: %q", said.out[:min(len(said.out), 200)])
	}
	nodes, err := parsePrinted(printed)
	return nodes, answer{out: rest, errs: said.errs[2:]}, err
}

// parsePrinted reads lines of path = "value", in which the value has escapes.
func parsePrinted(out string) ([]node, error) {
	var nodes []node
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		path, value, ok := cutPath(line)
		n := node{path: path}
		if ok {
			if len(value) < 2 || value[0] != '"' {
				return nil, modules.Errorf("cannot read what augtool says: %q", line)
			}
			n.value = unescape(value[1 : len(value)-1])
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// cutPath cuts a line at the equals sign; one in a path has a backslash before it.
func cutPath(line string) (path, value string, ok bool) { return strings.Cut(line, " = ") }

// unescape reads what augtool prints of a value.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		ch := s[i]
		if ch == '\\' && i+1 < len(s) {
			i++
			ch = s[i]
			if at := strings.IndexByte("abtnvfr", ch); at >= 0 {
				ch = "\a\b\t\n\v\f\r"[at]
			}
		}
		b.WriteByte(ch)
	}
	return b.String()
}

// pickMatched returns the nodes that the command match prints. It prints values as they are, lines in them too, so that they are
// known from the command print.
func pickMatched(nodes []node, out string) ([]node, error) {
	values := make(map[string]any, len(nodes))
	for _, n := range nodes {
		values[n.path] = n.value
	}
	var matched []node
	for out != "" {
		path, rest, ok := cutPath(out)
		value, known := values[path]
		text, isText := value.(string)
		if !isText {
			text = "(none)"
		}
		rest, whole := strings.CutPrefix(rest, text+"\n")
		if !ok || !known || !whole {
			return nil, modules.Errorf("cannot read what augtool says: %q", out[:min(len(out), 200)])
		}
		matched, out = append(matched, node{path, value}), rest
	}
	return matched, nil
}
