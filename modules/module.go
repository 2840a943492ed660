// Package modules is the contract between execution modules and the programs that run them: a module is data ([Module],
// [Def], [Param]), a [Registry] holds the modules a program chose, and a [Call] is what a running function sees.
//
// A function is declared once. From the declaration come Python's calling rules (positional, keyword, *args, **kwargs),
// the error texts of a wrong call, sys.doc, sys.argspec and the JSON Schema of the arguments:
//
//	var Module = &modules.Module{Name: "test", Funcs: []modules.Def{
//		{Name: "echo", Doc: "Return the text.", Params: []modules.Param{{Name: "text"}}, Run: echo},
//	}}
//
//	func echo(ctx context.Context, c *modules.Call) (any, error) { return c.Value("text"), nil }
//
// Results are plain values: nil, bool, int64, float64, string, []byte, []any, map[string]any.
//
// The package knows nothing of masters, sockets or configuration files; what a function may ask of its program is in [Env].
// Salt's sources: salt/loader, salt/utils/args.py, salt/minion.py (load_args_and_kwargs, _thread_return).
package modules

import (
	"context"
	"iter"
	"maps"
	"strings"
)

// Func is the body of an execution function. It must return soon after ctx ends.
type Func func(ctx context.Context, c *Call) (any, error)

// Module is one Salt execution module. Declare it as a package variable of constants and functions, so that nothing runs
// when a program starts.
type Module struct {
	// Name is the name of the file in Salt's modules directory ("aptpkg", "cmdmod").
	Name string
	// Virtual is the name its functions are called by, if it is another ("pkg", "cmd").
	Virtual string
	// Doc describes the module (sys.doc of the bare module name).
	Doc string
	// Available reports whether this host can use the module, and why not; nil means always. Salt's __virtual__.
	// Of several modules with one Virtual name the first available one is used.
	Available func(e *Env) (ok bool, reason string)
	// Funcs are the module's functions.
	Funcs []Def
	// Discover returns the functions that programs of this host define, which the module has beside Funcs; an error refuses
	// the host. It is called when the module is first asked for, after Available, and again after [Registry.Reset]. It must
	// bound the time that it takes. nil means that Funcs are all.
	Discover func(e *Env) (Found, error)

	found []Found // what Discover returned
}

// Found are functions that programs of a host define. There may be thousands, so each is declared when it is asked for.
type Found interface {
	// Names yields the names of all functions.
	Names() iter.Seq[string]
	// Def returns the declaration of a function, or nil if nothing has that name.
	Def(name string) *Def
}

// Names yields the names of the module's functions, those that it found on the host among them.
func (m *Module) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range m.Funcs {
			if !yield(m.Funcs[i].Name) {
				return
			}
		}
		for i, f := range m.found {
			before := Module{Funcs: m.Funcs, found: m.found[:i]}
			for name := range f.Names() {
				if before.Def(name) == nil && !yield(name) {
					return
				}
			}
		}
	}
}

// Def returns the declaration of a function, or nil if the module has none of that name.
func (m *Module) Def(name string) *Def {
	for i := range m.Funcs {
		if m.Funcs[i].Name == name {
			return &m.Funcs[i]
		}
	}
	for _, f := range m.found {
		if d := f.Def(name); d != nil {
			return d
		}
	}
	return nil
}

// Called returns the name by which the module's functions are called.
func (m *Module) Called() string {
	if m.Virtual != "" {
		return m.Virtual
	}
	return m.Name
}

// Def declares one function.
type Def struct {
	// Name is the name after the dot.
	Name string
	// Python is the name of Salt's Python function, where it differs (true_ for test.true); it shows in error texts.
	Python string
	// Doc says what the function does and describes its arguments.
	Doc string
	// Example is a command line that calls the function, or several, each in a line of its own.
	Example string
	// Params are the named parameters in Salt's order.
	Params []Param
	// Args names the parameter for further positional arguments (*args), or is "".
	Args string
	// Kwargs names the parameter for further keyword arguments (**kwargs), or is "". Such functions also receive the
	// fields of the published job as __pub_<field>.
	Kwargs string
	// Out is the outputter that the caller should use, "" for the default.
	Out string
	// Ordered functions get and give ordered values (package modules/pyobj): collections among their arguments are *Dict and
	// *List, shared with a template that calls them, and their results may be such. For all others the registry converts.
	Ordered bool
	// Run is the body.
	Run Func
}

// Param is a named parameter. It is required unless it has a Default or Optional is set.
type Param struct {
	Name string
	// Default is the value when the caller gives none.
	Default any
	// Optional marks a parameter whose default is nil (None).
	Optional bool
	// KeywordOnly marks a parameter after *args or a bare *.
	KeywordOnly bool
	// Type describes the value for documentation and JSON Schema; Python's functions do not check it and neither does Bind.
	Type Type
	// Secret values are masked in logs and in the job journal.
	Secret bool
	// Schema are further keywords of the value's JSON Schema; nil for functions that check their values themselves.
	Schema map[string]any
}

// Required reports whether a call must give the parameter.
func (p Param) Required() bool { return !p.Optional && p.Default == nil }

// Type is the kind of a parameter's value.
type Type uint8

// The kinds of values a parameter takes.
const (
	Any Type = iota
	String
	Int
	Float
	Bool
	List
	Map
)

// schema is JSON Schema's name of the type, "" for any value.
func (t Type) schema() string {
	switch t {
	case String:
		return "string"
	case Int:
		return "integer"
	case Float:
		return "number"
	case Bool:
		return "boolean"
	case List:
		return "array"
	case Map:
		return "object"
	}
	return ""
}

// Help returns the text of sys.doc: Doc, with the example below it.
func (d *Def) Help() string {
	if d.Example == "" {
		return d.Doc
	}
	lines := strings.ReplaceAll(d.Example, "\n", "\n    ")
	return strings.TrimRight(d.Doc, "\n") + "\n\nCLI Example:\n\n    " + lines + "\n"
}

func (d *Def) python() string {
	if d.Python != "" {
		return d.Python
	}
	return d.Name
}

// index returns the position of a parameter, or -1 if nothing has that name or d is nil.
func (d *Def) index(name string) int {
	if d == nil {
		return -1
	}
	for i := range d.Params {
		if d.Params[i].Name == name {
			return i
		}
	}
	return -1
}

// Schema returns the JSON Schema of the function's keyword arguments.
func (d *Def) Schema() map[string]any {
	props := map[string]any{}
	required := []any{}
	for _, p := range d.Params {
		prop := maps.Clone(p.Schema)
		if prop == nil {
			prop = map[string]any{}
		}
		if name := p.Type.schema(); name != "" {
			prop["type"] = name
		}
		if p.Default != nil {
			prop["default"] = p.Default
		}
		if p.Secret {
			prop["writeOnly"] = true
		}
		props[p.Name] = prop
		if p.Required() {
			required = append(required, p.Name)
		}
	}
	return map[string]any{
		"type": "object", "properties": props, "required": required, "additionalProperties": d.Kwargs != "",
	}
}

// Argspec returns the function's entry in sys.argspec: args (including those that are keyword only), defaults,
// varargs, kwargs.
func (d *Def) Argspec() map[string]any {
	args, defaults := []any{}, []any{}
	for _, p := range d.Params {
		args = append(args, p.Name)
		if !p.Required() {
			defaults = append(defaults, p.Default)
		}
	}
	spec := map[string]any{"args": nil, "defaults": nil, "varargs": nil, "kwargs": nil}
	if len(args) > 0 {
		spec["args"] = args
	}
	if len(defaults) > 0 {
		spec["defaults"] = defaults
	}
	if d.Args != "" {
		spec["varargs"] = true
	}
	if d.Kwargs != "" {
		spec["kwargs"] = true
	}
	return spec
}
