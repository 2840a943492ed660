// Package logrotate is Salt's execution module "logrotate": the configuration of logrotate(8). Salt's source:
// salt/modules/logrotate.py.
package logrotate

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// logrotate.* differ: included files are read in the order of their names; Salt takes them as the directory has them.

const (
	maxFile  = 16 << 20 // bytes of a file
	maxDepth = 50       // files that include each other
)

func available(*modules.Env) (bool, string) {
	if runtime.GOOS == "windows" {
		return false, "The logrotate execution module cannot be loaded: only available on non-Windows systems."
	}
	return true, ""
}

// number returns a text as an integer if it is one, and unchanged otherwise.
func number(s string) any {
	if n, err := modules.ToInt(s); err == nil {
		return n
	}
	return s
}

// script reports whether a directive is the first line of a script.
func script(name string) bool {
	switch name {
	case "firstaction", "lastaction", "prerotate", "postrotate", "preremove":
		return true
	}
	return false
}

// logFile reports whether a word names log files.
func logFile(word string) bool {
	return strings.ContainsAny(word[:1], `/~"'`) || strings.ContainsAny(word, "*?[")
}

// parser reads a file.
type parser struct {
	c     *modules.Call
	depth int

	out   *pyobj.Dict
	block *pyobj.Dict // the block that the line is in, nil outside of blocks
	names []string    // whose block it is
	next  []string    // names that a block may follow
}

// parse reads a file and what it includes.
func parse(c *modules.Call, path string, depth int) (*pyobj.Dict, error) {
	if depth > maxDepth {
		return nil, &modules.PythonError{Type: "RecursionError", Msg: "maximum recursion depth exceeded"}
	}
	f, err := os.Open(c.Path(path))
	if err != nil {
		return nil, modules.OSError(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, modules.OSError(&os.PathError{Op: "open", Path: path, Err: errnoOf(err)})
	}
	if len(b) > maxFile {
		return nil, modules.Errorf("cannot read %s: it is larger than %d bytes", path, maxFile)
	}
	text, err := pycodec.UTF8(b)
	if err != nil {
		return nil, err
	}
	p := &parser{c: c, depth: depth, out: pyobj.NewDict()}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	directive := ""
	var body *pyobj.List
	for line := range strings.SplitSeq(text, "\n") {
		line = pytext.Strip(line)
		if body != nil {
			if line == "endscript" {
				_ = p.here().Set(directive, body)
				body = nil
			} else {
				body.Items = append(body.Items, line)
			}
			continue
		}
		words := strings.Fields(line)
		if len(words) == 0 || line[0] == '#' {
			continue
		}
		begins, err := p.line(line, words)
		if err != nil {
			return nil, err
		}
		if begins {
			directive, body = words[0], pyobj.NewList()
		}
	}
	for _, name := range p.next {
		_ = p.out.Set(name, true)
	}
	return p.out, nil
}

// here returns the dictionary to which the next directives belong: that of the open block, or the top level.
func (p *parser) here() *pyobj.Dict {
	if p.block != nil {
		return p.block
	}
	return p.out
}

// line reads a line; a script may begin with it.
func (p *parser) line(line string, words []string) (begins bool, err error) {
	switch {
	case strings.Contains(line, "{") && !strings.Contains(line, "}"):
		// A nested block replaces the outer one, with the directives read so far.
		if p.block == nil {
			p.block = pyobj.NewDict()
		}
		p.names = p.next
		p.next = nil
		for _, w := range words {
			if w != "{" {
				p.names = append(p.names, w)
			}
		}
		return false, nil
	case strings.Contains(line, "}"):
		if p.block == nil {
			p.block = pyobj.NewDict()
		}
		for _, name := range p.names {
			_ = p.out.Set(name, p.block)
		}
		p.names, p.block = nil, nil
		return false, nil
	case p.block == nil && len(words) == 1:
		if logFile(words[0]) {
			p.next = append(p.next, words[0])
		} else {
			_ = p.out.Set(words[0], true)
		}
		return false, nil
	}
	if words[0] == "include" {
		if len(words) == 1 {
			return false, modules.IndexError()
		}
		if err := p.include(words[1]); err != nil {
			return false, err
		}
	}
	switch {
	case script(words[0]) && len(words) == 1:
		return true, nil
	case len(words) > 2:
		_ = p.here().Set(words[0], strings.Join(words[1:], " "))
	case len(words) > 1:
		_ = p.here().Set(words[0], number(words[1]))
	default:
		_ = p.here().Set(words[0], true)
	}
	return false, nil
}

// include reads the files of a directory.
func (p *parser) include(dir string) error {
	_ = p.out.Set("include", dir)
	files, ok := p.out.Value("include files").(*pyobj.Dict)
	if !ok {
		files = pyobj.NewDict()
		_ = p.out.Set("include files", files)
	}
	entries, err := os.ReadDir(p.c.Path(dir))
	if err != nil {
		return modules.OSError(&os.PathError{Op: "open", Path: dir, Err: errnoOf(err)})
	}
	for _, e := range entries {
		name := e.Name()
		keys, ok := files.Value(name).(*pyobj.List)
		if !ok {
			keys = pyobj.NewList()
			_ = files.Set(name, keys)
		}
		more, err := parse(p.c, posixpath.Join(dir, name), p.depth+1)
		if err != nil {
			return err
		}
		for k, v := range more.All() {
			_ = p.out.Set(k, v)
			keys.Items = append(keys.Items, k)
		}
	}
	return nil
}

// errnoOf returns the cause of an error about a path, without operation and path.
func errnoOf(err error) error {
	if pe, ok := err.(*os.PathError); ok {
		return pe.Err
	}
	return err
}

func showConf(_ context.Context, c *modules.Call) (any, error) {
	conf, err := parse(c, c.Str("conf_file"), 0)
	if err != nil {
		return nil, err
	}
	return pyobj.Plain(conf), nil
}

// valueOf returns the value of a directive, or False if it is not set.
func valueOf(d *pyobj.Dict, key any) any {
	if v, ok := d.Get(key); ok {
		return v
	}
	return false
}

// within returns the value of a directive inside a block.
func within(block any, key any) (any, error) {
	d, ok := block.(*pyobj.Dict)
	if !ok {
		return nil, &modules.PythonError{Type: "AttributeError", Msg: "'" + pyobj.TypeName(block) + "' object has no attribute 'get'"}
	}
	return valueOf(d, key), nil
}

func get(_ context.Context, c *modules.Call) (any, error) {
	conf, err := parse(c, c.Str("conf_file"), 0)
	if err != nil {
		return nil, err
	}
	block := valueOf(conf, c.Value("key"))
	if c.Bool("value") && pyobj.Truth(block) {
		v, err := within(block, c.Value("value"))
		return pyobj.Plain(v), err
	}
	return pyobj.Plain(block), nil
}

func set(ctx context.Context, c *modules.Call) (any, error) {
	file := c.Str("conf_file")
	conf, err := parse(c, file, 0)
	if err != nil {
		return nil, err
	}
	key, value, setting := c.Str("key"), c.Value("value"), c.Value("setting")
	if files, ok := conf.Value("include files").(*pyobj.Dict); ok {
		for name, keys := range files.All() {
			for _, k := range keys.(*pyobj.List).Items {
				if k == any(key) {
					file = posixpath.Join(pyobj.Str(conf.Value("include")), pyobj.Str(name))
				}
			}
		}
	}
	line := ""
	kw := map[string]any{"flags": int64(8), "backup": false, "path": file, "pattern": "^" + key + ".*", "show_changes": false}
	if setting == nil {
		current := valueOf(conf, key)
		if _, ok := current.(*pyobj.Dict); ok {
			return nil, modules.Usagef("Error: %s includes a dict, and a specific setting inside the dict was not declared", key)
		}
		if pyobj.Equal(pyobj.From(value), current) {
			return true, nil
		}
		if value == any(true) {
			line = key
		} else if pytext.Truth(value) {
			line = key + " " + pytext.Str(value)
		}
		kw["prepend_if_not_found"] = true
	} else {
		block := any(pyobj.NewDict())
		if v, ok := conf.Get(key); ok {
			block = v
		}
		if _, ok := block.(*pyobj.Dict); !ok && pyobj.Truth(block) {
			return nil, modules.Usagef("Error: A setting for a dict was declared, but the configuration line given is not a dict")
		}
		current, err := within(block, value)
		if err != nil {
			return nil, err
		}
		if pyobj.Equal(pyobj.From(setting), current) {
			return true, nil
		}
		d := block.(*pyobj.Dict)
		if pytext.Truth(setting) {
			if err := d.Set(value, pyobj.From(setting)); err != nil {
				return nil, &modules.TypeError{Msg: err.Error()}
			}
		} else if _, had := d.Delete(value); !had {
			return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(value)}
		}
		line = key + " {\n" + lines(d) + "}"
		kw["pattern"], kw["flags"], kw["append_if_not_found"] = "^"+key+".*?{.*?}", int64(24), true
	}
	kw["repl"] = line
	return c.ExecKw(ctx, "file.replace", nil, kw)
}

// lines returns a block as lines of the configuration file.
func lines(d *pyobj.Dict) string {
	var b strings.Builder
	for k, v := range d.All() {
		name := pyobj.Str(k)
		if list, ok := v.(*pyobj.List); ok && script(name) {
			fmt.Fprintf(&b, "    %s\n", name)
			for _, l := range list.Items {
				fmt.Fprintf(&b, "        %s\n", pyobj.Str(l))
			}
			b.WriteString("    endscript\n")
			continue
		}
		if v == any(true) {
			v = ""
		}
		fmt.Fprintf(&b, "    %s %s\n", name, pyobj.Str(v))
	}
	return b.String()
}
