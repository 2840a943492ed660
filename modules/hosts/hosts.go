//go:build unix

package hosts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// entry is the file's entry for an address, or a comment line.
type entry struct {
	// address is "" for a comment line, which is text.
	address, text string
	aliases       []string
	comment       any // nil for none
}

// table is a hosts file.
type table struct {
	c       *modules.Call
	path    string
	entries []*entry
}

// fileName asks the configuration where the file is.
func fileName(ctx context.Context, c *modules.Call) (string, error) {
	v, err := c.Exec(ctx, "config.option", "hosts.file")
	if err != nil || v == nil {
		return "", err
	}
	return pytext.Str(v), nil
}

// maxSize bounds the file.
const maxSize = 256 << 20

func load(ctx context.Context, c *modules.Call) (*table, error) {
	path, err := fileName(ctx, c)
	if err != nil {
		return nil, err
	}
	t := &table{c: c, path: path}
	text, err := t.read()
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, readError(path, err)
	}
	t.parse(text)
	return t, nil
}

func readError(path string, err error) error {
	var errno unix.Errno
	switch {
	case errors.Is(err, unix.EACCES):
		return modules.Errorf("Permission denied reading from %s", path)
	case errors.As(err, &errno):
		return modules.Errorf("Error %d encountered reading from %s: %s", int(errno), path, strings.ToUpper(errno.Error()[:1])+errno.Error()[1:])
	}
	return err
}

func (t *table) read() (string, error) {
	info, err := os.Stat(t.c.Path(t.path))
	if err != nil || t.path == "" {
		return "", fs.ErrNotExist
	}
	if info.Size() > maxSize {
		return "", modules.Errorf("cannot read %q: %d bytes are more than %d", t.path, info.Size(), maxSize)
	}
	b, err := os.ReadFile(t.c.Path(t.path))
	return string(b), err
}

// parse reads the lines. Those of one address are one entry, at the place of the first.
func (t *table) parse(text string) {
	known := map[string]*entry{}
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = pytext.Strip(line)
		if line == "" {
			continue
		}
		if line[0] == '#' {
			t.entries = append(t.entries, &entry{text: line})
			continue
		}
		line, comment, has := strings.Cut(line, "#")
		words := strings.Fields(line)
		e := known[words[0]]
		if e == nil {
			e = &entry{address: words[0]}
			known[words[0]] = e
			t.entries = append(t.entries, e)
		}
		e.aliases = append(e.aliases, words[1:]...)
		if comment = strings.TrimLeft(comment, " \t\n\r\v\f"); has && comment != "" {
			e.comment = comment
		}
	}
}

func (t *table) find(address string) *entry {
	for _, e := range t.entries {
		if e.address == address && address != "" {
			return e
		}
	}
	return nil
}

func listHosts(ctx context.Context, c *modules.Call) (any, error) {
	t, err := load(ctx, c)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	comments := 0
	for _, e := range t.entries {
		if e.address == "" {
			out[fmt.Sprintf("comment-%d", comments)] = []any{e.text}
			comments++
			continue
		}
		m := map[string]any{"aliases": nested.Anys(e.aliases)}
		if e.comment != nil {
			m["comment"] = e.comment
		}
		out[e.address] = m
	}
	return out, nil
}

func getIP(ctx context.Context, c *modules.Call) (any, error) {
	t, err := load(ctx, c)
	if err != nil {
		return nil, err
	}
	host, ok := c.Value("host").(string)
	for _, e := range t.entries {
		if ok && slices.Contains(e.aliases, host) {
			return e.address, nil
		}
	}
	return "", nil
}

func getAlias(ctx context.Context, c *modules.Call) (any, error) {
	t, err := load(ctx, c)
	if err != nil {
		return nil, err
	}
	ip, _ := c.Value("ip").(string)
	if e := t.find(ip); e != nil {
		return nested.Anys(e.aliases), nil
	}
	return []any{}, nil
}

func hasPair(ctx context.Context, c *modules.Call) (any, error) {
	t, err := load(ctx, c)
	if err != nil {
		return nil, err
	}
	ip, _ := c.Value("ip").(string)
	return t.has(ip, c.Value("alias")), nil
}

// has reports whether an address has an alias, or all of a list of them.
func (t *table) has(ip string, alias any) bool {
	e := t.find(ip)
	if e == nil {
		return false
	}
	all, ok := alias.([]any)
	if !ok {
		all = []any{alias}
	}
	for _, a := range all {
		if s, ok := a.(string); !ok || !slices.Contains(e.aliases, s) {
			return false
		}
	}
	return true
}

// open returns the path of the hosts file for a change, and creates the file if it is missing. ok is false if the
// path is not a regular file.
func open(ctx context.Context, c *modules.Call) (path string, ok bool, err error) {
	if path, err = fileName(ctx, c); err != nil {
		return "", false, err
	}
	info, err := os.Stat(c.Path(path))
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		f, err := os.OpenFile(c.Path(path), os.O_WRONLY|os.O_CREATE, 0o666)
		if path == "" {
			err = &os.PathError{Op: "open", Path: "", Err: unix.ENOENT}
		}
		if err != nil {
			return "", false, modules.OSError(named(err, path))
		}
		return path, true, f.Close()
	}
	return path, err == nil && info.Mode().IsRegular(), nil
}

func named(err error, path string) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return &os.PathError{Op: p.Op, Path: path, Err: p.Err}
	}
	return err
}

// texts returns arguments that must be texts. Any other type is an error.
func texts(c *modules.Call, names ...string) ([]string, error) {
	var out []string
	for _, n := range names {
		s, ok := c.Value(n).(string)
		if !ok {
			return nil, &modules.TypeError{Msg: fmt.Sprintf(`can only concatenate str (not "%s") to str`, modules.TypeName(c.Value(n)))}
		}
		out = append(out, s)
	}
	return out, nil
}

// lines returns the lines of the file with their line ends.
func lines(c *modules.Call, path string) ([]string, error) {
	t := &table{c: c, path: path}
	text, err := t.read()
	if err != nil {
		return nil, modules.OSError(named(err, path))
	}
	var out []string
	for l := range strings.Lines(text) {
		out = append(out, l)
	}
	return out, nil
}

func write(c *modules.Call, path, text string) error {
	return modules.OSError(named(atomicfile.Replace(c.Path(path), []byte(text), 0o644), path))
}

func setHost(ctx context.Context, c *modules.Call) (any, error) {
	path, ok, err := open(ctx, c)
	if err != nil || !ok {
		return false, err
	}
	args, err := texts(c, "ip", "alias")
	if err != nil {
		return nil, err
	}
	line := args[0] + "\t\t" + args[1]
	if c.Bool("comment") {
		line += "\t\t# " + c.Str("comment")
	}
	if line += "\n"; pytext.Strip(args[1]) == "" {
		line = ""
	}
	all, err := lines(c, path)
	if err != nil {
		return nil, err
	}
	done := false
	for i, l := range all {
		words := strings.Fields(l)
		if len(words) == 0 || words[0][0] == '#' || words[0] != args[0] {
			continue
		}
		if all[i] = ""; !done {
			all[i], done = line, true
		}
	}
	if !done {
		if n := len(all); n > 0 && !strings.HasSuffix(all[n-1], "\n") {
			all[n-1] += "\n"
		}
		all = append(all, line)
	}
	return true, write(c, path, strings.Join(all, ""))
}

func rmHost(ctx context.Context, c *modules.Call) (any, error) {
	t, err := load(ctx, c)
	if err != nil {
		return nil, err
	}
	ip, _ := c.Value("ip").(string)
	if !t.has(ip, c.Value("alias")) {
		return true, nil
	}
	alias, ok := c.Value("alias").(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "expected str, bytes, or bytearray not <class '" + modules.TypeName(c.Value("alias")) + "'>"}
	}
	all, err := lines(c, t.path)
	if err != nil {
		return nil, err
	}
	for i, l := range all {
		words := strings.Fields(l)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		info, comment, _ := strings.Cut(pytext.Strip(l), "#")
		if words = strings.Fields(info); len(words) == 0 || words[0] != ip {
			continue
		}
		rest := slices.DeleteFunc(words[1:], func(w string) bool { return w == alias })
		comment = strings.TrimLeft(comment, " \t\r\v\f")
		switch {
		case len(rest) == 0:
			all[i] = ""
		case comment != "":
			all[i] = ip + "\t\t" + strings.Join(rest, " ") + " # " + comment + "\n"
		default:
			all[i] = ip + "\t\t" + strings.Join(rest, " ") + " \n"
		}
	}
	return true, write(c, t.path, strings.Join(all, ""))
}

func addHost(ctx context.Context, c *modules.Call) (any, error) {
	path, ok, err := open(ctx, c)
	if err != nil || !ok {
		return false, err
	}
	t, err := load(ctx, c)
	if err != nil {
		return nil, err
	}
	ip, isText := c.Value("ip").(string)
	if isText && t.has(ip, c.Value("alias")) {
		return true, nil
	}
	args, err := texts(c, "ip", "alias")
	if err != nil {
		return nil, err
	}
	e := t.find(ip)
	if e == nil {
		e = &entry{address: ip}
		t.entries = append(t.entries, e)
	}
	e.aliases = append(e.aliases, args[1])
	return true, write(c, path, t.String())
}

func setComment(ctx context.Context, c *modules.Call) (any, error) {
	path, ok, err := open(ctx, c)
	if err != nil || !ok {
		return false, err
	}
	t, err := load(ctx, c)
	if err != nil {
		return nil, err
	}
	ip, _ := c.Value("ip").(string)
	e := t.find(ip)
	if e == nil {
		return false, nil
	}
	comment := pytext.Str(c.Value("comment"))
	if e.comment == any(comment) {
		return true, nil
	}
	e.comment = comment
	return true, write(c, path, t.String())
}

// String returns the file in Salt's format: one line for each address, and no empty lines.
func (t *table) String() string {
	var s strings.Builder
	for _, e := range t.entries {
		line := e.text
		if e.address != "" {
			line = e.address + "\t\t" + strings.Join(e.aliases, " ")
			if e.comment != nil {
				line += "\t\t# " + pytext.Str(e.comment)
			}
		}
		if line = pytext.Strip(line); line != "" {
			s.WriteString(line + "\n")
		}
	}
	return s.String()
}
