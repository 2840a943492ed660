package ini_manage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// file is an ini file.
type file struct {
	*section
	c        *modules.Call
	path     string
	encoding string
	regexes  *regexes
}

// maxSize bounds the file.
const maxSize = 64 << 20

// open reads the file that the arguments name. A missing file counts as empty.
func open(c *modules.Call) (*file, error) {
	path, ok := c.Value("file_name").(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "stat: path should be string, bytes, os.PathLike or integer, not " + modules.TypeName(pyobj.Plain(c.Value("file_name")))}
	}
	f := &file{c: c, path: path, encoding: "utf-8"}
	if e, ok := c.Value("encoding").(string); ok {
		f.encoding = e
	}
	var err error
	if f.regexes, err = compileAll(); err != nil {
		return nil, err
	}
	if f.section, err = newSection(path, pytext.Str(c.Value("separator")), c.Bool("no_spaces")); err != nil {
		return nil, err
	}
	text, err := f.content()
	if err != nil || text == "" {
		return f, err
	}
	return f, f.parse(strings.Join(pytext.SplitLines(text, false), "\n"))
}

func (f *file) content() (string, error) {
	info, err := os.Stat(f.c.Path(f.path))
	if err != nil {
		return "", nil
	}
	if info.Size() > maxSize {
		return "", modules.Errorf("cannot read %q: %d bytes are more than %d", f.path, info.Size(), maxSize)
	}
	b, err := os.ReadFile(f.c.Path(f.path))
	if err != nil {
		if f.c.Opt("test") == any(true) {
			return "", nil
		}
		return "", modules.Errorf("Unable to open file '%s'. Exception: %s", f.path, errorText(err, f.path))
	}
	return pycodec.Decode(b, f.encoding)
}

func errorText(err error, path string) string {
	var p *os.PathError
	if errors.As(err, &p) {
		err = &os.PathError{Op: p.Op, Path: path, Err: p.Err}
	}
	if s, _ := modules.OSErrorText(err); s != "" {
		return s
	}
	return err.Error()
}

func (f *file) parse(text string) error {
	parts, err := f.regexes.header.Split(text)
	if err != nil {
		return err
	}
	if err := f.read(parts[0], f.regexes); err != nil {
		return err
	}
	for i := 1; i+1 < len(parts); i += 2 {
		s, err := newSection(parts[i], f.sep, false)
		if err != nil {
			return err
		}
		if err := s.read(parts[i+1], f.regexes); err != nil {
			return err
		}
		if _, err := f.update([]item{{parts[i], s}}); err != nil {
			return err
		}
	}
	return nil
}

// flush writes the file. It keeps its owner and mode.
func (f *file) flush() error {
	var out []string
	if err := f.write(&out, f.regexes); err != nil {
		return err
	}
	if out = out[1:]; len(out) > 0 {
		out[0] = strings.TrimLeft(out[0], "\n")
	}
	b, err := pycodec.Encode(strings.Join(out, ""), f.encoding, "strict")
	if err != nil {
		return err
	}
	name := f.c.Path(f.path)
	made, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		err = made.Close()
	} else if errors.Is(err, fs.ErrExist) {
		err = nil
		if info, serr := os.Stat(name); serr == nil && info.IsDir() {
			_, err = os.OpenFile(name, os.O_WRONLY, 0)
		}
	}
	if err == nil {
		err = atomicfile.Replace(name, b, 0o644)
	}
	if err != nil {
		return modules.Errorf("Unable to write file '%s'. Exception: %s", f.path, errorText(err, f.path))
	}
	return nil
}

// itemsOf converts an argument to options and sections.
func itemsOf(v any, depth int) ([]item, error) {
	d, ok := v.(*pyobj.Dict)
	if !ok {
		return nil, &modules.PythonError{Type: "AttributeError", Msg: "'" + pyobj.TypeName(v) + "' object has no attribute 'items'"}
	}
	if depth > 100 {
		return nil, modules.Errorf("sections are nested too deep")
	}
	var list []item
	for k, v := range d.All() {
		key := pyobj.Str(k)
		if _, ok := v.(*pyobj.Dict); !ok {
			list = append(list, item{key, pyobj.Str(v)})
			continue
		}
		inner, err := itemsOf(v, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, item{key, &section{name: key, items: inner}})
	}
	return list, nil
}

func setOption(_ context.Context, c *modules.Call) (any, error) {
	f, err := open(c)
	if err != nil {
		return nil, err
	}
	var wanted []item
	if v := c.Value("sections"); pyobj.Truth(v) {
		if wanted, err = itemsOf(v, 0); err != nil {
			return nil, err
		}
	}
	changes, err := f.update(wanted)
	if err != nil {
		return nil, err
	}
	return changes, f.flush()
}

// shown returns a value in the form in which functions return it: a section as a dict.
func shown(v any) any {
	if s, ok := v.(*section); ok {
		return s.plain()
	}
	return v
}

func getOption(_ context.Context, c *modules.Call) (any, error) {
	f, err := open(c)
	if err != nil {
		return nil, err
	}
	name, option := c.Str("section"), c.Str("option")
	if !c.Bool("section") {
		v, _ := f.get(option)
		return shown(v), nil
	}
	v, _ := f.get(name)
	if s, ok := v.(*section); ok {
		v, _ := s.get(option)
		return shown(v), nil
	}
	return nil, nil
}

func removeOption(_ context.Context, c *modules.Call) (any, error) {
	f, err := open(c)
	if err != nil {
		return nil, err
	}
	where := f.section
	if v, _ := f.get(c.Str("section")); v != nil {
		if s, ok := v.(*section); ok {
			where = s
		}
	}
	v, _ := where.pop(c.Str("option"))
	return shown(v), f.flush()
}

func getSection(_ context.Context, c *modules.Call) (any, error) {
	f, err := open(c)
	if err != nil {
		return nil, err
	}
	v, ok := f.get(c.Str("section"))
	if !ok {
		return pyobj.NewDict(), nil
	}
	s, ok := v.(*section)
	if !ok {
		return nil, noItems()
	}
	return s.visible(), nil
}

func noItems() error {
	return modules.NoAttribute("", "items")
}

// visible returns the section's options, and its subsections with all their contents.
func (s *section) visible() *pyobj.Dict {
	d := pyobj.NewDict()
	for _, it := range s.items {
		if !strings.HasPrefix(it.key, "#") {
			_ = d.Set(it.key, shown(it.value))
		}
	}
	return d
}

func removeSection(_ context.Context, c *modules.Call) (any, error) {
	f, err := open(c)
	if err != nil {
		return nil, err
	}
	v, ok := f.pop(c.Str("section"))
	if !ok {
		return nil, nil
	}
	if err := f.flush(); err != nil {
		return nil, err
	}
	s, ok := v.(*section)
	if !ok {
		return nil, noItems()
	}
	return s.visible(), nil
}

func getINI(_ context.Context, c *modules.Call) (any, error) {
	f, err := open(c)
	if err != nil {
		return nil, err
	}
	return f.options(), nil
}
