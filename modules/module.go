// Package modules is the contract between execution modules and the programs that run them. A module is data ([Module],
// [Def], [Param]). A [Registry] holds the modules of a program. A [Call] is what a running function sees.
//
// A function is declared once. The declaration determines how arguments are bound (positional, keyword, *args,
// **kwargs), the error texts of a wrong call, sys.doc, sys.argspec and the JSON Schema of the arguments:
//
//	var Module = &modules.Module{Name: "test", Funcs: []modules.Def{
//		{Name: "echo", Doc: "Return the text.", Params: []modules.Param{{Name: "text"}}, Run: echo},
//	}}
//
//	func echo(ctx context.Context, c *modules.Call) (any, error) { return c.Value("text"), nil }
//
// Results are plain values: nil, bool, int64, float64, string, []byte, []any, map[string]any.
//
// The package does not depend on masters, sockets or configuration files. Functions reach those through [Env].
// Salt's sources: salt/loader, salt/utils/args.py, salt/minion.py (load_args_and_kwargs, _thread_return).
package modules

import (
	"context"
	"iter"
	"maps"
)

// Func is the body of an execution function. It must return soon after ctx ends.
type Func func(ctx context.Context, c *Call) (any, error)

// Module is one Salt execution module. Declare it as a package variable that consists of constants and functions only,
// so that no code runs when a program starts.
type Module struct {
	// Name is the name of the file in Salt's modules directory ("aptpkg", "cmdmod").
	Name string
	// Virtual is the name by which functions are called ("pkg", "cmd"), if it differs from Name.
	Virtual string
	// Doc describes the module (sys.doc of the bare module name).
	Doc string
	// Available reports whether this host can use the module, and if not why, like Salt's __virtual__. nil means
	// always. If several modules have the same Virtual name, the first available one is used.
	Available func(e *Env) (ok bool, reason string)
	// Funcs are the module's functions.
	Funcs []Def
	// Docs is the content of docs.txt.gz, which holds the documentation of the functions that have no Doc. It stays
	// compressed until somebody asks for documentation. nil means that every function has its Doc.
	Docs *string
	// Discover returns functions that programs on this host define, in addition to Funcs. An error makes the module
	// unavailable. It is called after Available when the module is first looked up, and again after [Registry.Reset].
	// It must limit its own run time. nil means that there are only Funcs.
	Discover func(e *Env) (Found, error)

	found []Found   // what Discover returned
	docs  []*string // Docs of other modules, from which it has functions
}

// Found holds functions that programs of a host define. There may be thousands, so each declaration is created on
// demand.
type Found interface {
	// Names yields the names of all functions.
	Names() iter.Seq[string]
	// Def returns the declaration of a function, or nil if it does not exist.
	Def(name string) *Def
}

// Names yields the names of the module's functions, including those that it found on the host.
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

// Def returns the declaration of a function, or nil if the module does not have it.
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
	// Python is the name of Salt's Python function, if it differs (true_ for test.true). Error texts contain it.
	Python string
	// Doc says what the function does and describes its arguments. It is empty if Docs of the module has it.
	Doc string
	// Example is a command line that calls the function, or several, each in a line of its own.
	Example string
	// Params are the named parameters in Salt's order.
	Params []Param
	// Args is the name of the parameter for additional positional arguments (*args), or empty.
	Args string
	// Kwargs is the name of the parameter for additional keyword arguments (**kwargs), or empty. Such functions also
	// receive the fields of the published job as __pub_<field>.
	Kwargs string
	// Out is the outputter that the caller should use; empty means the default.
	Out string
	// Ordered means that the function works with ordered values (package modules/pyobj). Collections in its arguments
	// are *Dict and *List, shared with a template that calls it, and its result may contain them. For other functions
	// the registry converts to plain values.
	Ordered bool
	// Run is the body.
	Run Func
}

// Param is a named parameter. It is required unless it has a Default or Optional is set.
type Param struct {
	Name string
	// Default is the value if the caller does not pass the argument.
	Default any
	// Optional marks a parameter whose default is nil (None).
	Optional bool
	// KeywordOnly marks a parameter after *args or a bare *.
	KeywordOnly bool
	// Type describes the value for documentation and JSON Schema. Calls do not check it, as in Python.
	Type Type
	// Secret masks the value in logs and in the job journal.
	Secret bool
	// Schema holds additional keywords of the value's JSON Schema. It may be nil.
	Schema map[string]any
}

// Required reports whether a call must pass the parameter.
func (p Param) Required() bool { return !p.Optional && p.Default == nil }

// Type is the kind of a parameter's value.
type Type uint8

// The types of parameters.
const (
	Any Type = iota
	String
	Int
	Float
	Bool
	List
	Map
)

// schema returns JSON Schema's name of the type, or "" for any value.
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
