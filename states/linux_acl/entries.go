package linux_acl

import (
	"context"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// lists are access control lists, by file, and what a state looks for in them.
type lists struct {
	all       map[string]any
	file      map[string]any // of the state's own file
	current   map[string]any // the entries of the file, or its defaults
	kind      string         // user, group …
	isDefault bool
}

// look reads the lists. ok is false if there is no such file; that is then the result.
func look(ctx context.Context, c *states.Call, ret *states.Result, kw map[string]any) (l *lists, ok bool, err error) {
	name := c.Str("name")
	if _, err := os.Stat(c.Path(name)); err != nil {
		ret.Comment = name + " does not exist"
		return nil, false, nil
	}
	v, err := c.ExecKw(ctx, "acl.getfacl", []any{c.Value("name")}, kw)
	if err != nil {
		return nil, false, err
	}
	kind, text := c.Value("acl_type").(string)
	if !text {
		return nil, false, modules.NoAttribute(c.Value("acl_type"), "startswith")
	}
	l = &lists{kind: kind}
	l.all, _ = v.(map[string]any)
	if l.file, ok = l.all[name].(map[string]any); !ok {
		return nil, false, keyError(name)
	}
	l.current = l.file
	if strings.HasPrefix(kind, "d:") || strings.HasPrefix(kind, "default:") {
		l.isDefault = true
		_, l.kind, _ = strings.Cut(kind, ":")
		l.current, _ = l.file["defaults"].(map[string]any)
	}
	return l, true, nil
}

func keyError(key string) error { return &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(key)} }

// known reports whether there can be entries of the kind.
func (l *lists) known() bool { return l.isDefault || pytext.Truth(l.current[l.kind]) }

// owner returns the file's owner under the key at which Salt looks for it. It finds groups only: the key of a user
// has another name.
func (l *lists) owner() string {
	comment, _ := l.file["comment"].(map[string]any)
	s, _ := comment[l.kind].(string)
	return s
}

// find returns the last entry with a name, or nil if it is missing.
func find(entries any, name string) map[string]any {
	list, _ := entries.([]any)
	for i := len(list) - 1; i >= 0; i-- {
		if e, ok := list[i].(map[string]any)[name].(map[string]any); ok {
			return e
		}
	}
	return nil
}

// octal returns the sum of permissions, calculated as by Salt. letters are the permissions that count.
func octal(perms any, letters string) (int64, error) {
	sum := int64(0)
	list, err := iterate(perms)
	if err != nil {
		return 0, err
	}
	for _, p := range list {
		switch p := p.(type) {
		case int64:
			sum += p
			continue
		case string:
			if i := strings.Index(letters, p); len(p) == 1 && i >= 0 {
				sum += [...]int64{4, 2, 1, 0, 1}[i]
				continue
			}
		}
		return 0, &modules.TypeError{Msg: "unsupported operand type(s) for +: 'int' and '" + modules.TypeName(p) + "'"}
	}
	return sum, nil
}

// The letters of permissions that functions know.
const (
	letters     = "rwx-"
	lettersAndX = "rwx-X"
)

// iterate returns the elements of a list, or the characters of a text.
func iterate(v any) ([]any, error) {
	if list, ok := pyobj.Iterate(v); ok {
		return list, nil
	}
	return nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not iterable"}
}

// text returns earlier permissions in the form of Salt's comments. Salt up to 3008 exchanges r and x there.
func text(octal int64) string {
	b := []byte("---")
	for i, c := range []byte("rwx") {
		if octal&(1<<i) != 0 {
			b[i] = c
		}
	}
	return string(b)
}

// set sets an entry for each of the names.
func set(ctx context.Context, c *states.Call, names []any) error {
	if pytext.Truth(c.Value("force")) {
		if _, err := c.ExecKw(ctx, "acl.wipefacls", []any{c.Value("name")}, map[string]any{"recursive": c.Value("recurse"), "raise_err": true}); err != nil {
			return err
		}
	}
	for _, name := range names {
		_, err := c.ExecKw(ctx, "acl.modfacl", []any{c.Value("acl_type"), name, c.Value("perms"), c.Value("name")},
			map[string]any{"recursive": c.Value("recurse"), "raise_err": true})
		if err != nil {
			return err
		}
	}
	return nil
}
