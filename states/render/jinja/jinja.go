// Package jinja is Jinja2 3.1 with Python's values: templates are parsed into a tree whose names have fixed places, and the
// tree is walked. Lists and dicts are those of package pyobj, ordered and shared as in Python; None, tuples, integers of any
// size, undefined values, Markup and the methods of str, list and dict behave as templates written for Python expect.
//
//	env := jinja.NewEnv()
//	t, err := env.Compile("hello", "", "Hello {{ name }}!")
//	out, err := t.Render(ctx, map[string]any{"name": "world"})
//
// The sandbox is that of jinja2.sandbox: attributes that begin with an underscore are out of reach. A render is bounded: 64 MiB
// of output and of any text, [MaxSteps] rounds of loops, [MaxDepth] calls within calls, ranges of 100,000.
//
// It knows nothing of Salt; package states/render adds its filters, tags and loader. Not there: trans (i18n), async, bytecode
// caches, template code in Python.
package jinja

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/brine-salt/brine/internal/pyobj"
)

// Limits of one render.
const (
	// MaxDepth is how deep macros, includes and imports may call each other.
	MaxDepth = 200
	// MaxSteps is how many rounds all loops may make.
	MaxSteps = 50_000_000
)

// Filter is a filter: it gets the value and the arguments.
type Filter func(r *Run, v any, a Args) (any, error)

// Test is a test.
type Test func(r *Run, v any, a Args) (bool, error)

// Source is the text of a template.
type Source struct {
	Text string
	// File is the path that errors show.
	File string
}

// Env is a set of options and templates, Jinja's environment. Fill it before the first use; then it is safe for concurrent use.
type Env struct {
	Syntax     Syntax
	Undefined  undefinedKind
	Autoescape bool
	// AutoescapeFor decides by the name of a template, if set.
	AutoescapeFor func(name string) bool
	// Filters, Tests and Globals are looked up before the built-in ones.
	Filters func(name string) Filter
	Tests   func(name string) Test
	Globals map[string]any
	// Data is for filters and tests, which find it by [Run.Env]. They must keep nothing of one environment to themselves, as a
	// [Cache] may give what was compiled with them to another one.
	Data any
	// Finalize changes what {{ }} prints.
	Finalize func(v any) (any, error)
	// Load finds a template for extends, include and import. ok false means that there is none. It may change r's globals.
	Load func(r *Run, name string) (s Source, ok bool, err error)
	// Serializers adds Salt's tags load_yaml, import_yaml and so on; the filters of these names must be there.
	Serializers bool
	cache       *Cache
}

// NewEnv is an environment with Jinja's defaults.
func NewEnv() *Env { return &Env{Syntax: DefaultSyntax()} }

// UseCache makes compiled templates be looked up in and added to a cache, which may be shared by environments that differ in
// nothing that the compiler sees (syntax, names of filters and tests, tags).
func (e *Env) UseCache(c *Cache) { e.cache = c }

// Cache keeps compiled templates by their text.
type Cache struct {
	mu    sync.Mutex
	items map[string]*code // guarded by mu
	bytes int              // guarded by mu
}

// maxCache bounds the texts of which a cache keeps the templates.
const maxCache = 512 << 10

func (c *Cache) get(text string) *code {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.items[text]
}

func (c *Cache) put(text string, k *code) {
	if c == nil || len(text) > maxCache/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes += len(text); c.bytes > maxCache || c.items == nil {
		c.items, c.bytes = map[string]*code{}, len(text)
	}
	c.items[text] = k
}

// code is a compiled template.
type code struct {
	body    []stmt
	scope   *scope
	blocks  map[string]*blockStmt
	order   []string
	extends bool
	self    bool
}

// Template is a compiled template under a name.
type Template struct {
	Name, File string
	text       string
	env        *Env
	code       *code
}

// Compile compiles a text. name and file show in errors; both may be "".
func (e *Env) Compile(name, file, text string) (*Template, error) {
	t := &Template{Name: name, File: file, text: text, env: e}
	if t.code = e.cache.get(text); t.code != nil {
		return t, nil
	}
	c, err := e.compile(normalize(text, e.Syntax.KeepTrailingNewline))
	if err != nil {
		return nil, t.place(err, err.Line)
	}
	t.code = c
	e.cache.put(text, c)
	return t, nil
}

func (e *Env) compile(src string) (c *code, err *Error) { return e.parse(src, nil) }

// parse compiles a text. With uses it collects what the text names, and filters and tests that do not exist are no error.
func (e *Env) parse(src string, uses *[]Use) (c *code, err *Error) {
	if !e.Syntax.valid() {
		return nil, raise("AssertionError", "block, variable and comment start strings must be different")
	}
	p := &parser{env: e, toks: lex(&e.Syntax, src), uses: uses}
	defer func() {
		if x := recover(); x != nil {
			b, ok := x.(bail)
			if !ok {
				panic(x)
			}
			c, err = nil, b.err
		}
	}()
	root := &scope{isolated: true}
	p.scope = root
	p.check(0)
	body := p.subparse(nil)
	if len(p.missing) > 0 && uses == nil {
		return nil, p.missing[0]
	}
	for _, l := range p.loads {
		l.n.refs = l.s.refs(l.n.name)
	}
	return &code{body: body, scope: root, blocks: p.blocks, order: p.blockOrder, extends: p.extends, self: p.usesSelf}, nil
}

// place notes where in a template an error was raised, unless it has a place already.
func (t *Template) place(err error, line int) error {
	e := as(err)
	if e.placed {
		return e
	}
	if e.Line == 0 || e.Kind != "TemplateSyntaxError" && e.Kind != "TemplateAssertionError" {
		e.Line = line
	}
	e.placed, e.Name, e.File, e.Source = true, t.Name, t.File, t.text
	return e
}

func (e *Env) filter(name string) Filter {
	if e.Filters != nil {
		if f := e.Filters(name); f != nil {
			return f
		}
	}
	return builtinFilter(name)
}

func (e *Env) test(name string) Test {
	if e.Tests != nil {
		if t := e.Tests(name); t != nil {
			return t
		}
	}
	return builtinTest(name)
}

// Run is one render: the templates it has loaded and what it has used of its limits.
type Run struct {
	env *Env
	ctx context.Context
	// Globals are what templates that are imported without context see.
	globals    map[string]any
	templates  map[string]*Template
	modules    map[*Template]*Module
	autoescape bool
	depth      int
	steps      int
	written    int
	bytes      int // what it has made, see made
	frame      *frame
}

// Context ends the render when it ends.
func (r *Run) Context() context.Context { return r.ctx }

// Env is the environment.
func (r *Run) Env() *Env { return r.env }

// SetGlobal changes a global for templates that are loaded from now on.
func (r *Run) SetGlobal(name string, v any) { r.globals[name] = v }

// Global is a global as it is now.
func (r *Run) Global(name string) (any, bool) {
	v, ok := r.globals[name]
	return v, ok
}

// Names are all names that the running template sees, the environment's among them.
func (r *Run) Names() map[string]any {
	out := map[string]any{}
	if r.frame != nil {
		maps.Copy(out, r.frame.ctx.all())
	}
	return out
}

// Lazy is a variable that is computed when a template first uses it.
type Lazy struct {
	mu   sync.Mutex
	load func() (any, error)
	v    any
	done bool
}

// NewLazy makes a lazy variable.
func NewLazy(load func() (any, error)) *Lazy { return &Lazy{load: load} }

// Value computes it.
func (l *Lazy) Value() (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.done {
		v, err := l.load()
		if err != nil {
			return nil, err
		}
		l.v, l.done = v, true
	}
	return l.v, nil
}

// Context are the names that a template sees: its own and those it was given.
type Context struct {
	vars     map[string]any
	exported map[string]bool
	parent   map[string]any
	blocks   map[string][]blockImpl
	name     string
}

// blockImpl is one template's version of a block.
type blockImpl struct {
	t *Template
	b *blockStmt
}

func (c *Context) lookup(name string) (any, bool) {
	if v, ok := c.vars[name]; ok {
		return v, true
	}
	v, ok := c.parent[name]
	return v, ok
}

func (c *Context) resolve(r *Run, name string) (any, error) {
	v, ok := c.lookup(name)
	if !ok {
		if v = builtinGlobal(name); v == nil {
			return r.undefinedName(name), nil
		}
	}
	if l, ok := v.(*Lazy); ok {
		return l.Value()
	}
	return v, nil
}

// all are the names of the context in one map.
func (c *Context) all() map[string]any {
	if len(c.vars) == 0 {
		return c.parent
	}
	out := maps.Clone(c.parent)
	if out == nil {
		out = map[string]any{}
	}
	maps.Copy(out, c.vars)
	return out
}

func newContext(t *Template, parent map[string]any) *Context {
	c := &Context{parent: parent, name: t.Name}
	if len(t.code.blocks) > 0 {
		c.blocks = map[string][]blockImpl{}
		for name, b := range t.code.blocks {
			c.blocks[name] = []blockImpl{{t, b}}
		}
	}
	return c
}

func (c *Context) export(name string, v any, public bool) {
	if c.vars == nil {
		c.vars = map[string]any{}
	}
	c.vars[name] = v
	if strings.HasPrefix(name, "_") {
		return
	}
	if !public {
		delete(c.exported, name)
		return
	}
	if c.exported == nil {
		c.exported = map[string]bool{}
	}
	c.exported[name] = true
}

// derived is the context of a scoped block: with the names of the scopes around it.
func (c *Context) derived(f *frame, s *scope) *Context {
	return &Context{parent: withLocals(c.all(), f, s), blocks: c.blocks, name: c.name}
}

// withLocals adds what the scopes around a place hold.
func withLocals(names map[string]any, f *frame, s *scope) map[string]any {
	type local struct {
		s *scope
		f *frame
	}
	var chain []local
	for ; s != nil && f != nil; s, f = s.parent, f.parent {
		chain = append(chain, local{s, f})
		if s.isolated {
			break
		}
	}
	cloned := false
	for _, l := range slices.Backward(chain) {
		for i, name := range l.s.names {
			if v := l.f.slots[i]; v != missing {
				if !cloned {
					out := make(map[string]any, len(names)+8)
					maps.Copy(out, names)
					names, cloned = out, true
				}
				names[name] = v
			}
		}
	}
	return names
}

// output is where a template writes.
type output struct {
	b strings.Builder
}

func (f *frame) write(s string) error {
	if f.r.written += len(s); f.r.written > MaxText {
		return raise("MemoryError", "more than %d bytes of output", MaxText)
	}
	f.out.b.WriteString(s)
	return nil
}

func (f *frame) writeBytes(s []byte) error {
	if f.r.written += len(s); f.r.written > MaxText {
		return raise("MemoryError", "more than %d bytes of output", MaxText)
	}
	f.out.b.Write(s)
	return nil
}

// step counts a round of a loop.
func (r *Run) step() error {
	if r.steps++; r.steps%1024 == 0 {
		if err := r.ctx.Err(); err != nil {
			return &Error{Kind: "TimeoutError", Msg: err.Error(), Err: err}
		}
		if r.steps > MaxSteps {
			return raise("RuntimeError", "more than %d rounds of loops", MaxSteps)
		}
	}
	return nil
}

func (r *Run) enter() error {
	if r.depth++; r.depth > MaxDepth {
		return raise("RecursionError", "maximum recursion depth exceeded")
	}
	return nil
}

// Render renders the template with variables, which imported templates do not see. Values are those of package pyobj;
// *[Lazy] ones are computed when they are used.
func (t *Template) Render(ctx context.Context, vars map[string]any) (string, error) {
	r := &Run{env: t.env, ctx: ctx, globals: maps.Clone(t.env.Globals)}
	if r.globals == nil {
		r.globals = map[string]any{}
	}
	parent := maps.Clone(r.globals)
	maps.Copy(parent, vars)
	r.autoescape = t.env.escapes(t.Name)
	return t.run(r, newContext(t, parent))
}

func (e *Env) escapes(name string) bool {
	if e.AutoescapeFor != nil {
		return e.AutoescapeFor(name)
	}
	return e.Autoescape
}

// run runs the main body and gives what it wrote.
func (t *Template) run(r *Run, c *Context) (string, error) {
	out := &output{}
	if err := t.into(r, c, out); err != nil {
		return "", err
	}
	return out.b.String(), nil
}

func (t *Template) into(r *Run, c *Context, out *output) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer func() { r.depth-- }()
	f := &frame{r: r, slots: newSlots(len(t.code.scope.names)), ctx: c, out: out, t: t, main: &mainRun{}}
	if _, ok := c.lookup("self"); t.code.self && !ok {
		if c.parent = maps.Clone(c.parent); c.parent == nil {
			c.parent = map[string]any{}
		}
		c.parent["self"] = &templateRef{c, f}
	}
	if _, err := execAll(f, t.code.body); err != nil {
		return err
	}
	if p := f.main.parent; p != nil {
		return p.into(r, c, out)
	}
	return nil
}

// template loads a template by name.
func (r *Run) template(name string) (*Template, error) {
	if t := r.templates[name]; t != nil {
		return t, nil
	}
	if r.env.Load == nil {
		return nil, typeError("no loader for this environment specified")
	}
	s, ok, err := r.env.Load(r, name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &Error{Kind: "TemplateNotFound", Msg: name, names: []string{name}}
	}
	t, err := r.env.Compile(name, s.File, s.Text)
	if err != nil {
		return nil, err
	}
	if r.templates == nil {
		r.templates = map[string]*Template{}
	}
	r.templates[name] = t
	return t, nil
}

// pick loads a template by its name, or the first of several.
func (r *Run) pick(v any) (*Template, error) {
	switch v := v.(type) {
	case *Undefined:
		return nil, v.fail()
	case *templateValue:
		return v.t, nil
	}
	if name, ok := isText(v); ok {
		return r.template(name)
	}
	names, err := Collect(v)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, &Error{Kind: "TemplatesNotFound", Msg: "Tried to select from an empty list of templates."}
	}
	for _, n := range names {
		t, err := r.pick(n)
		if e, ok := err.(*Error); ok && (e.Kind == "TemplateNotFound" || e.Kind == "UndefinedError") {
			continue
		}
		return t, err
	}
	var list []string
	for _, n := range names {
		list = append(list, pyobj.Str(n))
	}
	return nil, &Error{Kind: "TemplatesNotFound", Msg: "none of the templates given were found: " + strings.Join(list, ", ")}
}

// templateValue is a compiled template as a variable.
type templateValue struct{ t *Template }

// Value is the template as a value that templates can include, import or extend.
func (t *Template) Value() any { return &templateValue{t} }

func (*templateValue) TypeName() string { return "Template" }
func (t *templateValue) Repr() string   { return "<Template " + pyobj.Repr(t.t.Name) + ">" }
