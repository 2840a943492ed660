package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// missingType is the type of missing, so that no value of a template is ever equal to it.
type missingType struct{}

// missing is the value of an empty slot. A template never sees it.
var missing any = missingType{}

// Args are the evaluated arguments of a call. A function must not change Pos: it may be shared by all calls.
type Args struct {
	Pos []any
	Kw  []KW
	// Before is how many arguments Python counts before those in the template: a filter's value, and the
	// environment that some receive. Errors about the number of arguments include them.
	Before int
}

// KW is a keyword argument. A slice keeps their order, which **kwargs show.
type KW struct {
	Name  string
	Value any
}

// None fails if there are arguments; fn is the name of the function in errors.
func (a *Args) None(fn string) error {
	if len(a.Pos)+len(a.Kw) == 0 {
		return nil
	}
	_, err := a.Bind(fn, nil)
	return err
}

// refuseOne fails if there are arguments, with the words of Python's functions that are written in C.
func (a *Args) refuseOne(fn string) error {
	if len(a.Kw) > 0 {
		return typeError("%s() takes no keyword arguments", fn)
	}
	if len(a.Pos) > 0 {
		return typeError("%s() takes exactly one argument (%d given)", fn, 1+len(a.Pos))
	}
	return nil
}

// Get returns a keyword argument.
func (a *Args) Get(name string) (any, bool) {
	for i := range a.Kw {
		if a.Kw[i].Name == name {
			return a.Kw[i].Value, true
		}
	}
	return nil, false
}

// Bind assigns the arguments to parameters by Python's rules: the first ones are required, the last ones have the
// defaults. fn is the function's name in errors. The result may be the arguments' own list and must not be changed.
func (a *Args) Bind(fn string, params []string, defaults ...any) ([]any, error) {
	if len(a.Pos) == len(params) && len(a.Kw) == 0 {
		return a.Pos, nil
	}
	return a.bind(make([]any, len(params)), fn, params, defaults...)
}

// bind is like Bind, but writes into out, which is as long as params. A filter in a loop passes an array on its stack.
func (a *Args) bind(out []any, fn string, params []string, defaults ...any) ([]any, error) {
	required := len(params) - len(defaults)
	// Python's wording: "takes from 1 to 3 positional arguments but 4 were given".
	if len(a.Pos) > len(params) {
		// Python counts the value of a filter as an argument.
		least, most, given := required+a.Before, len(params)+a.Before, len(a.Pos)+a.Before
		takes, plural, were := fmt.Sprint(most), "s", "were"
		if least != most {
			takes = fmt.Sprintf("from %d to %d", least, most)
		} else if most == 1 {
			plural = ""
		}
		if given == 1 {
			were = "was"
		}
		return nil, typeError("%s() takes %s positional argument%s but %d %s given", fn, takes, plural, given, were)
	}
	for i := range out {
		out[i] = missing
	}
	copy(out, a.Pos)
	// Keywords fill the parameters that the positional arguments have not filled.
next:
	for _, kw := range a.Kw {
		for i, p := range params {
			if p == kw.Name {
				if i < len(a.Pos) {
					return nil, typeError("%s() got multiple values for argument '%s'", fn, p)
				}
				out[i] = kw.Value
				continue next
			}
		}
		return nil, typeError("%s() got an unexpected keyword argument '%s'", fn, kw.Name)
	}
	// All missing parameters are listed in one error.
	var lacking []string
	for i := range out {
		if out[i] == missing {
			if i >= required {
				out[i] = defaults[i-required]
			} else {
				lacking = append(lacking, "'"+params[i]+"'")
			}
		}
	}
	if lacking != nil {
		plural, list := "", lacking[0]
		if n := len(lacking); n == 2 {
			plural, list = "s", lacking[0]+" and "+lacking[1]
		} else if n > 2 {
			plural, list = "s", strings.Join(lacking[:n-1], ", ")+", and "+lacking[n-1]
		}
		return nil, typeError("%s() missing %d required positional argument%s: %s", fn, len(lacking), plural, list)
	}
	return out, nil
}

// Callable is an object that templates may call.
type Callable interface {
	Call(r *Run, a Args) (any, error)
}

// Attributes is an object with attributes of its own. Names with a leading underscore never reach it.
type Attributes interface {
	GetAttr(r *Run, name string) (v any, ok bool, err error)
}

// Items is an object with obj[key]. If ok is false the key is missing: a KeyError.
type Items interface {
	GetItem(r *Run, key any) (v any, ok bool, err error)
}

// Container is an object that answers "x in obj" itself, instead of being searched.
type Container interface {
	Contains(v any) bool
}

// Lener is an object with a length, which also decides whether it is true.
type Lener interface{ Len() int }

// Iterable is an object that loops and filters can iterate over. Each call of Iterate begins again, unless the object
// is an iterator.
type Iterable interface {
	Iterate() func() (any, bool, error)
}

// Func is a Go function as a value.
type Func struct {
	Name string
	Fn   func(r *Run, a Args) (any, error)
	// unsafe functions may not be called from templates.
	unsafe bool
}

// TypeName implements [pyobj.Object].
func (*Func) TypeName() string { return "function" }

// Repr implements [pyobj.Object].
func (f *Func) Repr() string { return "<function " + f.Name + ">" }

// Call implements [Callable].
func (f *Func) Call(r *Run, a Args) (any, error) { return f.Fn(r, a) }

// method is a method of a built-in type, bound to its object. It exists only if a template does not call it at
// once.
type method struct {
	obj  any
	name string
}

func (*method) TypeName() string { return "builtin_function_or_method" }

func (m *method) Repr() string {
	return "<built-in method " + m.name + " of " + pyobj.TypeName(m.obj) + " object>"
}

func (m *method) Call(r *Run, a Args) (any, error) {
	v, known, err := r.callMethod(m.obj, m.name, a)
	if !known && err == nil {
		return nil, attributeError(m.obj, m.name)
	}
	return v, err
}

// undefinedKind is a class of undefined values. Salt renders with Strict, and with Default if the option
// allow_undefined is set.
type undefinedKind uint8

// The classes of undefined values.
const (
	// empty when printed, false, an empty sequence; fails for attributes and calls
	Default undefinedKind = iota
	// fails on every use but "is defined"
	Strict
	// like Default, but attributes and items of it are undefined again
	Chainable
	// prints what is missing
	Debug
)

// Undefined is the value of a name, attribute or item that does not exist.
type Undefined struct {
	kind undefinedKind
	// the message, if it is not made from obj and name
	hint string
	// obj is missing for a name, else the object without the attribute
	obj, name any
	// the exception's class if it is not UndefinedError
	exc string
}

// Undefined returns an undefined value with a custom message.
func (r *Run) Undefined(hint string) *Undefined {
	return &Undefined{kind: r.env.Undefined, hint: hint, obj: missing}
}

// undefinedName returns the value of an unknown name.
func (r *Run) undefinedName(name string) *Undefined {
	return &Undefined{kind: r.env.Undefined, obj: missing, name: name}
}

// undefinedAttr returns the value of an unknown attribute or item.
func (r *Run) undefinedAttr(obj, name any) *Undefined {
	return &Undefined{kind: r.env.Undefined, obj: obj, name: name}
}

// TypeName implements [pyobj.Object].
func (u *Undefined) TypeName() string {
	switch u.kind {
	case Strict:
		return "StrictUndefined"
	case Chainable:
		return "ChainableUndefined"
	case Debug:
		return "DebugUndefined"
	}
	return "Undefined"
}

// Repr implements [pyobj.Object].
func (u *Undefined) Repr() string { return "Undefined" }

// Equal implements pyobj's comparison: undefined values of one class are equal.
func (u *Undefined) Equal(other any) bool {
	o, ok := other.(*Undefined)
	return ok && o.kind == u.kind
}

// Hash implements pyobj's hash. A strict undefined value cannot be a key.
func (u *Undefined) Hash() (any, error) {
	if u.kind == Strict {
		return nil, u.fail()
	}
	return u.kind, nil
}

// Plain implements pyobj's conversion to data: there is no undefined in YAML or JSON.
func (u *Undefined) Plain() any { return nil }

// objectType returns a type as Jinja's messages name it (jinja2.utils.object_type_repr).
func objectType(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case *pyobj.Dict:
		if v.Ordered {
			return "collections.OrderedDict object"
		}
	case *Loop:
		return "jinja2.runtime.LoopContext object"
	case *Undefined:
		return "jinja2.runtime." + v.TypeName() + " object"
	case *Namespace:
		return "jinja2.utils.Namespace object"
	case *Module:
		return "jinja2.environment.TemplateModule object"
	case pyobj.Markup:
		return "markupsafe.Markup object"
	case *Macro:
		return "jinja2.runtime.Macro object"
	}
	return pyobj.TypeName(v) + " object"
}

// Message returns the text of the UndefinedError that a use of the value raises.
func (u *Undefined) Message() string {
	if u.hint != "" {
		return u.hint
	}
	if u.obj == missing {
		return pyobj.Repr(u.name) + " is undefined"
	}
	if _, text := u.name.(string); !text {
		return objectType(u.obj) + " has no element " + pyobj.Repr(u.name)
	}
	return pyobj.Repr(objectType(u.obj)) + " has no attribute " + pyobj.Repr(u.name)
}

// fail returns the exception of a use.
func (u *Undefined) fail() error {
	if u.exc != "" {
		return raise(u.exc, "%s", u.Message())
	}
	return raise("UndefinedError", "%s", u.Message())
}

// undefinedText is str() of an undefined value.
func (u *Undefined) undefinedText() (string, error) {
	switch u.kind {
	case Strict:
		return "", u.fail()
	case Debug:
		msg := ""
		switch {
		case u.hint != "":
			msg = "undefined value printed: " + u.hint
		case u.obj == missing:
			msg = pyobj.Str(u.name)
		default:
			msg = "no such element: " + objectType(u.obj) + "[" + pyobj.Repr(u.name) + "]"
		}
		return "{{ " + msg + " }}", nil
	}
	return "", nil
}

// Str implements Python's str(v). It fails for a strict undefined value, and for texts over [MaxText].
func Str(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case pyobj.Markup:
		return string(v), nil
	case *Undefined:
		return v.undefinedText()
	case *Module:
		return v.body, nil
	}
	s, ok := pyobj.StrWithin(v, MaxText)
	if !ok {
		return "", TooLong()
	}
	return s, nil
}

// Truth implements Python's bool(v). It fails for a strict undefined value.
func Truth(v any) (bool, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case string:
		return v != "", nil
	case *Undefined:
		if v.kind == Strict {
			return false, v.fail()
		}
		return false, nil
	case Lener:
		return v.Len() > 0, nil
	}
	return pyobj.Truth(v), nil
}

// isText returns the text of a str, Markup or not. ok is false for any other value.
func isText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case pyobj.Markup:
		return string(v), true
	}
	return "", false
}

// toInteger returns an int that fits 64 bits, or a bool as 0 or 1.
//
//go:noinline
func toInteger(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int:
		return int64(v), true
	}
	return 0, false
}

// toIndex returns an int as an index or count, where Python calls __index__. A large one becomes half the largest
// int, which is out of any range and can still be added to.
func toIndex(v any) (int, error) {
	n, ok := toInteger(v)
	if !ok {
		if b, big := v.(*big.Int); big {
			if b.Sign() < 0 {
				return -math.MaxInt / 2, nil
			}
			return math.MaxInt / 2, nil
		}
		if u, ok := v.(*Undefined); ok {
			return 0, u.fail()
		}
		return 0, typeError("'%s' object cannot be interpreted as an integer", pyobj.TypeName(v))
	}
	return int(n), nil
}

// isNumber reports whether a value is an int, a bool or a float.
//
//go:noinline
func isNumber(v any) bool {
	switch v.(type) {
	case int64, bool, float64, *big.Int, int:
		return true
	}
	return false
}
