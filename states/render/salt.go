package render

import (
	"errors"
	"slices"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// saltObject is the variable salt: salt["m.f"] and salt.m.f. It behaves like the loader's dict, so "in", for and
// get work.
type saltObject struct{ s *session }

// TypeName implements [pyobj.Object].
func (*saltObject) TypeName() string { return "salt.utils.templates.AliasedLoader" }

// Repr implements [pyobj.Object].
func (*saltObject) Repr() string { return "<salt.utils.templates.AliasedLoader object>" }

// isAvailable reports whether the minion has a function and the caller may run it.
func (o *saltObject) isAvailable(fun string) bool {
	_, err := o.s.c.Registry().Lookup(fun, o.s.c.Env)
	return err == nil
}

// GetItem implements [jinja.Items].
func (o *saltObject) GetItem(_ *jinja.Run, key any) (any, bool, error) {
	name := pyobj.Str(key)
	// The registry decides by the minion's options, for example disable_modules.
	_, err := o.s.c.Registry().Lookup(name, o.s.c.Env)
	switch {
	case modules.IsRefused(err):
		return nil, false, err // a refusal must not look like a missing key
	case err != nil:
		return nil, false, nil
	}
	return o.functionOf(name), true, nil
}

// GetAttr implements [jinja.Attributes]: the method get of a dict, or a module.
func (o *saltObject) GetAttr(_ *jinja.Run, name string) (any, bool, error) {
	if name == "get" {
		return &jinja.Func{Name: "get", Fn: func(_ *jinja.Run, a jinja.Args) (any, error) {
			args, err := a.Bind("get", []string{"key", "default"}, nil)
			if err != nil {
				return nil, err
			}
			if fun := pyobj.Str(args[0]); o.isAvailable(fun) {
				return o.functionOf(fun), nil
			}
			return args[1], nil
		}}, true, nil
	}
	// A module is an attribute only if it is available on this minion.
	for _, m := range o.s.c.Registry().Modules(o.s.c.Env) {
		if m.Called() == name {
			return &saltModule{o, name}, true, nil
		}
	}
	return nil, false, nil
}

// Contains implements [jinja.Container].
func (o *saltObject) Contains(v any) bool { return o.isAvailable(pyobj.Str(v)) }

// Iterate implements [jinja.Iterable]: the names of all functions.
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

// functionOf returns a function of the registry as a value. Undefined arguments fail here as they fail inside Salt's
// functions, because the functions of the registry never see them.
func (o *saltObject) functionOf(fun string) *jinja.Func {
	return &jinja.Func{Name: fun, Fn: func(_ *jinja.Run, a jinja.Args) (any, error) {
		var kwargs map[string]any
		// Functions that match targets return here, before an undefined argument raises an error.
		if targetUndefined(fun, a) {
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
		// Positional arguments have no name, and a few functions treat one of them specially.
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
			return nil, asException(err)
		}
		return v, nil
	}}
}

// targetUndefined reports whether a function that matches the minion against a target was given an undefined one.
// Salt's functions then fail, log the error, and return that the minion does not match.
func targetUndefined(fun string, a jinja.Args) bool {
	second := "delimiter"
	switch fun {
	case "match.compound", "match.list", "match.pcre", "match.glob":
		second = "minion_id" // these functions use minion_id first
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

// isUndefined reports whether a value is undefined, of whatever class.
func isUndefined(v any) bool {
	_, ok := v.(*jinja.Undefined)
	return ok
}

// undefinedArg returns the error of a function that is given an undefined argument. Nearly all functions of Salt use
// their arguments and so raise UndefinedError. The ones listed here only pass a default on, or fail with their own
// error.
func undefinedArg(fun, name string, v any) error {
	if fun == "slsutil.serialize" && name == "yaml" && undefinedIn(v) != nil {
		return &jinja.Error{Kind: "SerializationError", Msg: "('cannot represent an object', Undefined)"}
	}
	u, ok := v.(*jinja.Undefined)
	if !ok {
		return nil
	}
	// These functions never use the value.
	switch fun {
	case "test.echo", "slsutil.merge", "defaults.merge":
		return nil
	case "config.get", "grains.get", "grains.filter_by", "match.filter_by", "pillar.filter_by":
		if name == "default" { // filter_by looks it up only if nothing else was found
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

// asException returns the error of a function as the exception that a template sees, with Salt's class.
func asException(err error) error {
	e := &jinja.Error{Kind: "Exception", Msg: err.Error(), Err: err}
	var (
		py   *modules.PythonError
		typ  *modules.TypeError
		used *modules.UsageError
		exec *modules.ExecError
		in   *jinja.Error
	)
	// The class decides which message the renderer shows.
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

// saltModule is salt.m, the functions of one module.
type saltModule struct {
	o    *saltObject
	name string
}

// TypeName implements [pyobj.Object].
func (*saltModule) TypeName() string { return "salt.loader.lazy.LoadedMod" }

// Repr implements [pyobj.Object].
func (m *saltModule) Repr() string {
	return "<LoadedMod module='salt.loaded.int.module." + m.name + "'>"
}

// GetAttr implements [jinja.Attributes].
func (m *saltModule) GetAttr(_ *jinja.Run, name string) (any, bool, error) {
	fun := m.name + "." + name
	if !m.o.isAvailable(fun) {
		return nil, false, nil
	}
	return m.o.functionOf(fun), true, nil
}

// raiseError implements the global raise, which ends the template with a message.
func raiseError(_ *jinja.Run, a jinja.Args) (any, error) {
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

// showFullContext returns the names that the template sees. Values that are not plain data are shown as text. The
// names are sorted, because a Go map has no order.
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
		_ = d.Set(k, simpleTypes(v, 0))
	}
	return d, nil
}

// simpleTypes returns data unchanged and everything else as text (salt.utils.data.simple_types_filter).
func simpleTypes(v any, depth int) any {
	// A value may contain itself.
	if depth > 200 {
		return nil
	}
	switch v := v.(type) {
	case *pyobj.Dict:
		out := &pyobj.Dict{}
		for k, x := range v.All() {
			_ = out.Set(simpleTypes(k, depth+1), simpleTypes(x, depth+1))
		}
		return out
	case *pyobj.List:
		out := &pyobj.List{}
		for _, x := range v.Items {
			out.Items = append(out.Items, simpleTypes(x, depth+1))
		}
		return out
	case pyobj.Tuple:
		out := &pyobj.List{}
		for _, x := range v {
			out.Items = append(out.Items, simpleTypes(x, depth+1))
		}
		return out
	// Objects are returned as repr shows them.
	case pyobj.Object:
		return v.Repr()
	}
	return v
}

// ifelse implements match.ifelse: the value after the first target that matches this minion, else the last
// argument. A text is a compound target, anything else a condition.
func (s *session) ifelse(_ *jinja.Run, a jinja.Args) (any, error) {
	args := a.Pos
	if len(args)%2 == 0 {
		return nil, raiseAs("ValueError", "The ifelse function must have an odd number of arguments!")
	}
	byDefault := args[len(args)-1]
	args = args[:len(args)-1]
	// Pairs of a condition and a value.
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
