package jinja

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/brine-salt/brine/modules/pyobj"
)

// Limits of one render. The package comment lists the others in the section Limits.
const (
	// MaxDepth is how deep macros, blocks, includes and imports may call each other. Python's own limit is 1,000
	// frames, of which Jinja needs several per call.
	MaxDepth = 200
	// MaxSteps is how many rounds all loops of a render may make together.
	MaxSteps = 50_000_000
)

// Filter is a filter: it receives the value and the arguments in parentheses, and returns the new value.
type Filter func(r *Run, v any, a Args) (any, error)

// Test is a test, as in "x is odd". It returns whether the value passes.
type Test func(r *Run, v any, a Args) (bool, error)

// Source is the text of a template, as a loader returns it.
type Source struct {
	Text string
	// File is the path that errors show.
	File string
}

// Env is a set of options and templates, Jinja's environment. Fill it before the first use; then it is safe for
// concurrent use.
type Env struct {
	Syntax     Syntax
	Undefined  undefinedKind
	Autoescape bool
	// AutoescapeFor, if set, decides by the name of a template, and Autoescape is ignored.
	AutoescapeFor func(name string) bool
	// Filters, Tests and Globals are looked up before the built-in ones. The functions return nil for an unknown
	// name.
	Filters func(name string) Filter
	Tests   func(name string) Test
	Globals map[string]any
	// Data is for filters and tests, which find it by [Run.Env]. They must not keep anything of one environment, as
	// a [Cache] may pass what was compiled with them to another one.
	Data any
	// Finalize changes what {{ }} prints, if set.
	Finalize func(v any) (any, error)
	// Load finds a template for extends, include and import. ok is false if there is no such template. It may
	// change r's globals.
	Load func(r *Run, name string) (s Source, ok bool, err error)
	// Serializers adds Salt's tags load_yaml, import_yaml and so on. The filters of these names must exist.
	Serializers bool
	cache       *Cache
}

// NewEnv returns an environment with Jinja's defaults.
func NewEnv() *Env { return &Env{Syntax: DefaultSyntax()} }

// UseCache makes the environment look compiled templates up in c and add them to it. Environments may share a cache
// if the compiler sees no difference between them: same syntax, names of filters and tests, and tags.
func (e *Env) UseCache(c *Cache) { e.cache = c }

// Cache keeps compiled templates by their text. It is safe for concurrent use; a nil one keeps nothing.
type Cache struct {
	mu    sync.Mutex
	items map[string]*code // guarded by mu
	bytes int              // guarded by mu
}

// maxCache bounds the texts of the templates in a cache, in bytes.
const maxCache = 512 << 10

// getCode returns the compiled template of a text, or nil.
func (c *Cache) getCode(text string) *code {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.items[text]
}

// putCode adds a compiled template. A full cache is emptied, which is cheaper than tracking the use of each entry. A
// text that would fill a quarter of the cache is not added.
func (c *Cache) putCode(text string, k *code) {
	if c == nil || len(text) > maxCache/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// Concurrent renders may have added the same text. It is then counted twice, which does no harm.
	if c.bytes += len(text); c.bytes > maxCache || c.items == nil {
		c.items, c.bytes = map[string]*code{}, len(text)
	}
	c.items[text] = k
}

// code is a compiled template. It is never changed after it was parsed, so renders share it.
type code struct {
	body  []stmt
	scope *scope
	// the template's own blocks; inherited ones are added per render
	blocks map[string]*blockStmt
	order  []string
	// whether extends occurs anywhere
	extends bool
	// whether the name self is used, which costs a map otherwise
	self bool
}

// Template is a compiled template under a name. It is safe for concurrent use.
type Template struct {
	Name, File string
	text       string
	env        *Env
	code       *code
}

// Compile compiles a text. name and file appear in errors; both may be "". The error is an [*Error] of class
// TemplateSyntaxError or TemplateAssertionError, with its line.
func (e *Env) Compile(name, file, text string) (*Template, error) {
	t := &Template{Name: name, File: file, text: text, env: e}
	// The cache holds code under its text alone; name and file belong to the template.
	if t.code = e.cache.getCode(text); t.code != nil {
		return t, nil
	}
	c, err := e.compileText(normalize(text, e.Syntax.KeepTrailingNewline))
	if err != nil {
		return nil, t.placeError(err, err.Line)
	}
	t.code = c
	e.cache.putCode(text, c)
	return t, nil
}

// compileText parses a text for rendering.
func (e *Env) compileText(src string) (c *code, err *Error) { return e.parseText(src, nil) }

// parseText converts a text to code. If uses is not nil it collects the names that the text uses, and unknown filters
// and tests are not errors.
func (e *Env) parseText(src string, uses *[]Use) (c *code, err *Error) {
	if !e.Syntax.valid() {
		return nil, raise("AssertionError", "block, variable and comment start strings must be different")
	}
	p := &parser{env: e, toks: lex(&e.Syntax, src), uses: uses}
	// At the first error the parser panics with bail, which saves an error check for each token. Any other panic is a
	// bug and is not caught.
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
	p.checkToken(0)
	body := p.parseUntil(nil)
	// Jinja finds unknown filters when it generates code, so these errors come after all syntax errors.
	if len(p.missing) > 0 && uses == nil {
		return nil, p.missing[0]
	}
	// The scopes have all their names only now.
	for _, l := range p.loads {
		l.n.refs = l.s.refs(l.n.name)
	}
	return &code{body: body, scope: root, blocks: p.blocks, order: p.blockOrder, extends: p.extends, self: p.usesSelf}, nil
}

// placeError notes where in a template an error was raised. If it has a place already, that is the innermost one and
// stays.
func (t *Template) placeError(err error, line int) error {
	e := asError(err)
	if e.placed {
		return e
	}
	// A syntax error has its own line, which the line of the tag that loaded the template must not replace.
	if e.Line == 0 || e.Kind != "TemplateSyntaxError" && e.Kind != "TemplateAssertionError" {
		e.Line = line
	}
	e.placed, e.Name, e.File, e.Source = true, t.Name, t.File, t.text
	return e
}

// findFilter returns the environment's filter, else Jinja's, else nil.
func (e *Env) findFilter(name string) Filter {
	if e.Filters != nil {
		if f := e.Filters(name); f != nil {
			return f
		}
	}
	return builtinFilter(name)
}

// findTest returns the environment's test, else Jinja's, else nil.
func (e *Env) findTest(name string) Test {
	if e.Tests != nil {
		if t := e.Tests(name); t != nil {
			return t
		}
	}
	return builtinTest(name)
}

// Run is one render: the templates it has loaded and what it has used of its limits. It is not safe for concurrent
// use.
type Run struct {
	env *Env
	ctx context.Context
	// globals are the names that templates imported without context see.
	globals map[string]any
	// loaded templates by name: a template is loaded once per render, even if the file changes
	templates map[string]*Template
	// modules of templates imported without context, which run once
	modules    map[*Template]*Module
	autoescape bool
	// how many calls are running, for MaxDepth
	depth int
	steps int
	// bytes of output, for MaxText
	written int
	bytes   int // bytes of all values created, for MaxMade
	// the frame that called the running function
	frame *frame
}

// Context returns the context of the render. A filter that waits for something must obey it.
func (r *Run) Context() context.Context { return r.ctx }

// Env returns the environment.
func (r *Run) Env() *Env { return r.env }

// SetGlobal changes a global for templates that are loaded later. The running template keeps its own.
func (r *Run) SetGlobal(name string, v any) { r.globals[name] = v }

// Global returns the current value of a global.
func (r *Run) Global(name string) (any, bool) {
	v, ok := r.globals[name]
	return v, ok
}

// Names returns all names that the running template sees, including those of the environment.
func (r *Run) Names() map[string]any {
	out := map[string]any{}
	if r.frame != nil {
		maps.Copy(out, r.frame.ctx.allNames())
	}
	return out
}

// Lazy is a variable that is computed when a template first uses it: grains and pillar are large, and most
// templates use few of them.
type Lazy struct {
	mu   sync.Mutex
	load func() (any, error)
	v    any
	done bool
}

// NewLazy returns a lazy variable.
func NewLazy(load func() (any, error)) *Lazy { return &Lazy{load: load} }

// Value returns the variable, computing it on the first call. An error is not kept; the next call tries again.
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

// Context holds the names that a template sees: its own top-level ones in vars, and those it was given in parent.
type Context struct {
	vars map[string]any
	// those of vars that an importing template may use
	exported map[string]bool
	parent   map[string]any
	// per block, its versions from the most derived to the base
	blocks map[string][]blockImpl
	name   string
}

// blockImpl is one template's version of a block.
type blockImpl struct {
	t *Template
	b *blockStmt
}

// lookupName returns a name of the context, the template's own first.
func (c *Context) lookupName(name string) (any, bool) {
	if v, ok := c.vars[name]; ok {
		return v, true
	}
	v, ok := c.parent[name]
	return v, ok
}

// resolveName returns the value of a name, or an undefined value. Jinja's own globals come last, so any variable
// hides them.
func (c *Context) resolveName(r *Run, name string) (any, error) {
	v, ok := c.lookupName(name)
	if !ok {
		if v = builtinGlobal(name); v == nil {
			return r.undefinedName(name), nil
		}
	}
	// Lazy values are computed at most once per variable.
	if l, ok := v.(*Lazy); ok {
		return l.Value()
	}
	return v, nil
}

// allNames returns the names of the context in one map, which the caller must not change: it may be the context's
// own.
func (c *Context) allNames() map[string]any {
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

// newContext returns the context for a run of a template's main body.
func newContext(t *Template, parent map[string]any) *Context {
	// The template's own blocks come first; extends appends those of its parent.
	c := &Context{parent: parent, name: t.Name}
	if len(t.code.blocks) > 0 {
		c.blocks = map[string][]blockImpl{}
		for name, b := range t.code.blocks {
			c.blocks[name] = []blockImpl{{t, b}}
		}
	}
	return c
}

// exportName sets a top-level name. public is false for imports, which a module does not pass on, like names with
// an underscore.
func (c *Context) exportName(name string, v any, public bool) {
	if c.vars == nil {
		c.vars = map[string]any{}
	}
	c.vars[name] = v
	// Names with an underscore are private to the template.
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

// withScope returns the context of a scoped block, with the names of the scopes around it.
func (c *Context) withScope(f *frame, s *scope) *Context {
	return &Context{parent: withLocals(c.allNames(), f, s), blocks: c.blocks, name: c.name}
}

// withLocals returns names with the names of the scopes around a place added, so that inner scopes override outer
// ones. names itself is not changed.
func withLocals(names map[string]any, f *frame, s *scope) map[string]any {
	type local struct {
		s *scope
		f *frame
	}
	var chain []local
	for ; s != nil && f != nil; s, f = s.parent, f.parent {
		// Frames and scopes run in parallel: a frame's parent is the frame of its scope's parent.
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

// output is the text that a template writes. A frame that captures a body has its own.
type output struct {
	b strings.Builder
}

// writeText appends output. Captured text counts each time it is written, so the limit also bounds the work.
func (f *frame) writeText(s string) error {
	if f.r.written += len(s); f.r.written > MaxText {
		return raise("MemoryError", "more than %d bytes of output", MaxText)
	}
	f.out.b.WriteString(s)
	return nil
}

// writeBytes is like writeText for bytes, without a conversion.
func (f *frame) writeBytes(s []byte) error {
	if f.r.written += len(s); f.r.written > MaxText {
		return raise("MemoryError", "more than %d bytes of output", MaxText)
	}
	f.out.b.Write(s)
	return nil
}

// countStep counts a round of a loop. The context and the limit are checked every 1,024 rounds only, since neither
// needs to be exact.
func (r *Run) countStep() error {
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

// enterCall counts a call. The caller must decrease depth when the call ends.
func (r *Run) enterCall() error {
	if r.depth++; r.depth > MaxDepth {
		return raise("RecursionError", "maximum recursion depth exceeded")
	}
	return nil
}

// Render renders the template with variables, which templates imported without context do not see. Values are those
// of package pyobj; [*Lazy] ones are computed when they are used. The error is an [*Error] with the innermost
// template and line.
func (t *Template) Render(ctx context.Context, vars map[string]any) (string, error) {
	// The globals are copied, since loaders change them during a render.
	r := &Run{env: t.env, ctx: ctx, globals: maps.Clone(t.env.Globals)}
	if r.globals == nil {
		r.globals = map[string]any{}
	}
	parent := maps.Clone(r.globals)
	maps.Copy(parent, vars)
	r.autoescape = t.env.escapesFor(t.Name)
	return t.runMain(r, newContext(t, parent))
}

// escapesFor reports whether a template of this name begins with autoescape on.
func (e *Env) escapesFor(name string) bool {
	if e.AutoescapeFor != nil {
		return e.AutoescapeFor(name)
	}
	return e.Autoescape
}

// runMain runs the main body and returns what it wrote.
func (t *Template) runMain(r *Run, c *Context) (string, error) {
	out := &output{}
	if err := t.runInto(r, c, out); err != nil {
		return "", err
	}
	return out.b.String(), nil
}

// runInto runs the main body, and then that of the parent if it has extended one.
func (t *Template) runInto(r *Run, c *Context, out *output) error {
	if err := r.enterCall(); err != nil {
		return err
	}
	defer func() { r.depth-- }()
	// The main body runs in a frame of the template's own scope.
	f := &frame{r: r, slots: newSlots(len(t.code.scope.names)), ctx: c, out: out, t: t, main: &mainRun{}}
	// self is in the context only if the text uses it, since it costs a copy of the map.
	if _, ok := c.lookupName("self"); t.code.self && !ok {
		if c.parent = maps.Clone(c.parent); c.parent == nil {
			c.parent = map[string]any{}
		}
		c.parent["self"] = &templateRef{c, f}
	}
	if _, err := execAll(f, t.code.body); err != nil {
		return err
	}
	// The parent's main body writes the output, with the blocks of this template.
	if p := f.main.parent; p != nil {
		return p.runInto(r, c, out)
	}
	return nil
}

// loadTemplate returns the template of a name. It is loaded and compiled on first use in the render.
func (r *Run) loadTemplate(name string) (*Template, error) {
	if t := r.templates[name]; t != nil {
		return t, nil
	}
	if r.env.Load == nil {
		return nil, typeError("no loader for this environment specified")
	}
	// The loader may look at the globals for relative names.
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

// pickTemplate returns the template for the expression of a tag: a name, a list of names of which the first existing
// one is used, or a compiled template.
func (r *Run) pickTemplate(v any) (*Template, error) {
	switch v := v.(type) {
	case *Undefined:
		return nil, v.fail()
	case *templateValue:
		return v.t, nil
	}
	if name, ok := isText(v); ok {
		return r.loadTemplate(name)
	}
	names, err := Collect(v)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, &Error{Kind: "TemplatesNotFound", Msg: "Tried to select from an empty list of templates."}
	}
	// The first template that exists is used. A missing name in the list is skipped as well.
	for _, n := range names {
		t, err := r.pickTemplate(n)
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

// Value returns the template as a value that templates can include, import or extend.
func (t *Template) Value() any { return &templateValue{t} }

func (*templateValue) TypeName() string { return "Template" }
func (t *templateValue) Repr() string   { return "<Template " + pyobj.Repr(t.t.Name) + ">" }
