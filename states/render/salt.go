package render

import (
	"errors"
	"slices"

	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states/render/jinja"
)

// saltObject is the variable salt: salt["m.f"] and salt.m.f.
type saltObject struct{ s *session }

// TypeName implements pyobj.Object.
func (*saltObject) TypeName() string { return "salt.utils.templates.AliasedLoader" }

// Repr implements pyobj.Object.
func (*saltObject) Repr() string { return "<salt.utils.templates.AliasedLoader object>" }

// available tells whether there is such a function.
func (o *saltObject) available(fun string) bool {
	_, err := o.s.c.Registry().Lookup(fun, o.s.c.Env)
	return err == nil
}

// GetItem implements jinja.Items.
func (o *saltObject) GetItem(_ *jinja.Run, key any) (any, bool, error) {
	name := pyobj.Str(key)
	_, err := o.s.c.Registry().Lookup(name, o.s.c.Env)
	switch {
	case modules.IsRefused(err):
		return nil, false, err // and not a variable that is missing
	case err != nil:
		return nil, false, nil
	}
	return o.function(name), true, nil
}

// GetAttr implements jinja.Attributes.
func (o *saltObject) GetAttr(_ *jinja.Run, name string) (any, bool, error) {
	if name == "get" {
		return &jinja.Func{Name: "get", Fn: func(_ *jinja.Run, a jinja.Args) (any, error) {
			args, err := a.Bind("get", []string{"key", "default"}, nil)
			if err != nil {
				return nil, err
			}
			if fun := pyobj.Str(args[0]); o.available(fun) {
				return o.function(fun), nil
			}
			return args[1], nil
		}}, true, nil
	}
	for _, m := range o.s.c.Registry().Modules(o.s.c.Env) {
		if m.Called() == name {
			return &saltModule{o, name}, true, nil
		}
	}
	return nil, false, nil
}

// Contains implements jinja.Container.
func (o *saltObject) Contains(v any) bool { return o.available(pyobj.Str(v)) }

// Iterate implements jinja.Iterable: the names of all functions.
func (o *saltObject) Iterate() func() (any, bool, error) {
	list := o.s.c.Registry().Functions(o.s.c.Env)
	return func() (any, bool, error) {
		if len(list) == 0 {
			return nil, false, nil
		}
		name := list[0]
		list = list[1:]
		return name, true, nil
	}
}

func (o *saltObject) function(fun string) *jinja.Func {
	return &jinja.Func{Name: fun, Fn: func(_ *jinja.Run, a jinja.Args) (any, error) {
		var kwargs map[string]any
		if unmatched(fun, a) {
			return false, nil
		}
		for _, kw := range a.Kw {
			if err := undefinedArg(fun, kw.Name, kw.Value); err != nil {
				return nil, err
			}
			if kwargs == nil {
				kwargs = map[string]any{}
			}
			kwargs[kw.Name] = kw.Value
		}
		for i, v := range a.Pos {
			name := ""
			switch {
			case fun == "slsutil.serialize" && i == 1:
				name = pyobj.Str(a.Pos[0])
			case fun == "match.filter_by" && i == 5, (fun == "grains.filter_by" || fun == "pillar.filter_by") && i == 3,
				(fun == "config.get" || fun == "grains.get") && i == 1:
				name = "default"
			}
			if err := undefinedArg(fun, name, v); err != nil {
				return nil, err
			}
		}
		v, err := o.s.c.ExecOrdered(o.s.ctx, fun, a.Pos, kwargs)
		if err != nil {
			return nil, exception(err)
		}
		return v, nil
	}}
}

// unmatched tells whether a function that asks if the minion is in a target is given an undefined one. Salt's fail over it and say that
// the minion does not match.
func unmatched(fun string, a jinja.Args) bool {
	second := "delimiter"
	switch fun {
	case "match.compound", "match.list", "match.pcre", "match.glob":
		second = "minion_id" // which they look at before
	case "match.data", "match.grain", "match.grain_pcre", "match.ipcidr", "match.pillar", "match.pillar_pcre":
	default:
		return false
	}
	args, err := a.Bind(fun, []string{"tgt", second}, nil)
	if err != nil || second == "minion_id" && isUndefined(args[1]) {
		return false
	}
	return isUndefined(args[0]) || isUndefined(args[1])
}

func isUndefined(v any) bool {
	_, ok := v.(*jinja.Undefined)
	return ok
}

// undefinedArg is the error of a function that is given an undefined argument, which nearly all look at. Salt's have it for a default
// that they only give back, and some fail because it is no text or dictionary.
func undefinedArg(fun, name string, v any) error {
	if fun == "slsutil.serialize" && name == "yaml" && undefinedIn(v) != nil {
		return &jinja.Error{Kind: "SerializationError", Msg: "('cannot represent an object', Undefined)"}
	}
	u, ok := v.(*jinja.Undefined)
	if !ok {
		return nil
	}
	switch fun {
	case "test.echo", "slsutil.merge", "defaults.merge":
		return nil
	case "config.get", "grains.get", "grains.filter_by", "match.filter_by", "pillar.filter_by":
		if name == "default" { // which filter_by looks up only where nothing else was found
			return nil
		}
	case "slsutil.serialize":
		if name == "json" {
			return &jinja.Error{Kind: "SerializationError", Msg: "Object of type " + u.TypeName() + " is not JSON serializable"}
		}
	case "file.join":
		return &jinja.Error{Kind: "TypeError", Msg: "join() argument must be str, bytes, or os.PathLike object, not '" + u.TypeName() + "'"}
	case "file.dirname", "file.basename", "file.file_exists", "file.directory_exists":
		return &jinja.Error{Kind: "TypeError", Msg: "expected str, bytes or os.PathLike object, not " + u.TypeName()}
	}
	_, err := jinja.Truth(u)
	return err
}

// exception is the error of a function as an exception in a template.
func exception(err error) error {
	e := &jinja.Error{Kind: "Exception", Msg: err.Error(), Err: err}
	var (
		py   *modules.PythonError
		typ  *modules.TypeError
		used *modules.UsageError
		exec *modules.ExecError
		in   *jinja.Error
	)
	switch {
	case errors.As(err, &in):
		return in
	case errors.As(err, &py):
		e.Kind, e.Msg = py.Type, py.Msg
	case errors.As(err, &typ):
		e.Kind = "TypeError"
	case errors.As(err, &used):
		e.Kind = "SaltInvocationError"
	case errors.As(err, &exec):
		e.Kind = "CommandExecutionError"
	}
	return e
}

// saltModule is salt.m.
type saltModule struct {
	o    *saltObject
	name string
}

// TypeName implements pyobj.Object.
func (*saltModule) TypeName() string { return "salt.loader.lazy.LoadedMod" }

// Repr implements pyobj.Object.
func (m *saltModule) Repr() string {
	return "<LoadedMod module='salt.loaded.int.module." + m.name + "'>"
}

// GetAttr implements jinja.Attributes.
func (m *saltModule) GetAttr(_ *jinja.Run, name string) (any, bool, error) {
	fun := m.name + "." + name
	if !m.o.available(fun) {
		return nil, false, nil
	}
	return m.o.function(fun), true, nil
}

func raise(_ *jinja.Run, a jinja.Args) (any, error) {
	args, err := a.Bind("jinja_raise", []string{"msg"})
	if err != nil {
		return nil, err
	}
	s, err := jinja.Str(args[0])
	if err != nil {
		return nil, err
	}
	return nil, &jinja.Error{Kind: "TemplateError", Msg: s}
}

// showFullContext gives the names that the template sees, without what is no data.
func showFullContext(r *jinja.Run, _ jinja.Args) (any, error) {
	names := r.Names()
	keys := make([]string, 0, len(names))
	for k := range names {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	d := &pyobj.Dict{}
	for _, k := range keys {
		v := names[k]
		if l, ok := v.(*jinja.Lazy); ok {
			x, err := l.Value()
			if err != nil {
				return nil, err
			}
			v = x
		}
		_ = d.Set(k, simple(v, 0))
	}
	return d, nil
}

// simple keeps data and shows everything else as text (salt.utils.data.simple_types_filter).
func simple(v any, depth int) any {
	if depth > 200 {
		return nil
	}
	switch v := v.(type) {
	case *pyobj.Dict:
		out := &pyobj.Dict{}
		for k, x := range v.All() {
			_ = out.Set(simple(k, depth+1), simple(x, depth+1))
		}
		return out
	case *pyobj.List:
		out := &pyobj.List{}
		for _, x := range v.Items {
			out.Items = append(out.Items, simple(x, depth+1))
		}
		return out
	case pyobj.Tuple:
		out := &pyobj.List{}
		for _, x := range v {
			out.Items = append(out.Items, simple(x, depth+1))
		}
		return out
	case pyobj.Object:
		return v.Repr()
	}
	return v
}

// ifelse is match.ifelse: the value after the first target that this minion is in.
func (s *session) ifelse(_ *jinja.Run, a jinja.Args) (any, error) {
	args := a.Pos
	if len(args)%2 == 0 {
		return nil, raised("ValueError", "The ifelse function must have an odd number of arguments!")
	}
	byDefault := args[len(args)-1]
	args = args[:len(args)-1]
	for i := 0; i+1 < len(args); i += 2 {
		yes, err := jinja.Truth(args[i])
		if err != nil {
			return nil, err
		}
		if expr, ok := args[i].(string); ok {
			if s.c.Match == nil {
				return nil, &jinja.Error{Kind: "KeyError", Msg: "'match.compound'"}
			}
			if yes, err = s.c.Match("compound", expr, ""); err != nil {
				return nil, err
			}
		}
		if yes {
			return args[i+1], nil
		}
	}
	return byDefault, nil
}
