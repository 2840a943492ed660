package modules

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Template is a text for the renderers (package states/render, which programs put into [Env.Templates]).
type Template struct {
	// Text is the text to render. Data, if not nil, is passed to the renderer that Pipe names instead: values to
	// decrypt.
	Text string
	Data any
	// Pipe names the renderers; empty means "jinja|yaml". If Shebang is set, a first line like "#!jinja|json" of the
	// text takes precedence.
	Pipe    string
	Shebang bool
	// Engine means that Pipe is a template engine of file.managed and the like ("jinja", "py"), not a renderer. The
	// result is then a string, and the error for an unknown engine is [ErrEngine].
	Engine bool
	// Path is the local file that contains the text, for errors and the variable tplpath. It is empty if there is no
	// file.
	Path string
	// SaltEnv is the environment from which templates include and import. If it is empty, they do so from the
	// directory of Path.
	SaltEnv string
	// SLS is the name of the state or pillar file. IsSLS means that the text is one, which adds variables such as
	// slspath.
	SLS   string
	IsSLS bool
	// PillarRoots makes templates come from pillar_roots instead of the file server.
	PillarRoots bool
	// Vars are additional variables of the template. Values may be plain or ordered.
	Vars map[string]any
	// Memory holds what renderers keep from one file to the next of the same run. If it is nil they keep nothing.
	Memory map[string]any
	// Verify, if not nil, returns the problems of high data that a renderer cannot work with.
	Verify func(high any) []string
}

// RenderError means that a template or data file cannot be rendered. Error returns the text of stock's
// SaltRenderError, with the excerpt of the source.
type RenderError struct {
	// Msg is the text without the excerpt. Line is the line of the error, or 0 if unknown.
	Msg  string
	Line int
	// Text is the whole text, as Error returns it.
	Text string
	// Type is the name of stock's exception; empty means SaltRenderError.
	Type string
	Err  error
}

func (e *RenderError) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *RenderError) Unwrap() error { return e.Err }

// Template renders a text. The result is a string, or data (*pyobj.Dict, *pyobj.List, scalars).
func (c *Call) Template(ctx context.Context, t Template) (any, error) {
	if c.Templates == nil {
		return nil, ErrEngine
	}
	return c.Templates(ctx, c, t)
}

// Render renders a text with a template engine such as "jinja". vars are added to the variables of every template. It
// returns [ErrEngine] if the program does not have the engine.
func (c *Call) Render(ctx context.Context, engine, text string, vars map[string]any) (string, error) {
	env, _ := vars["saltenv"].(string)
	v, err := c.Template(ctx, Template{Text: text, Pipe: engine, Engine: true, SaltEnv: env, Vars: vars})
	s, _ := v.(string)
	return s, err
}

// Decrypt decrypts every text in data with a renderer, and changes ordered values in place. If the option
// decrypt_pillar_renderers is not empty, it must list the renderer. If newlines is set, "\n" written as two characters
// becomes a line break.
func (c *Call) Decrypt(ctx context.Context, data any, renderer string, newlines bool) (any, error) {
	if valid, _ := c.Opt("decrypt_pillar_renderers").([]any); len(valid) > 0 {
		names := make([]string, len(valid))
		for i, v := range valid {
			names[i] = pytext.Str(v)
		}
		if !slices.Contains(names, renderer) {
			return nil, Usagef("'%s' is not a valid decryption renderer. Valid choices are: %s", renderer, strings.Join(names, ", "))
		}
	}
	if data == nil {
		return nil, nil
	}
	v, err := c.Template(ctx, Template{Data: data, Pipe: renderer, Vars: map[string]any{"translate_newlines": newlines}})
	if errors.Is(err, ErrEngine) {
		return nil, Usagef("Decryption renderer '%s' is not available", renderer)
	}
	return v, err
}

// ExecOrdered is like ExecKw for callers with ordered values (package modules/pyobj), such as templates. Arguments
// may be ordered, and collections in the result are *pyobj.Dict and *pyobj.List. A function whose [Def] is Ordered
// receives the same objects, not copies.
func (c *Call) ExecOrdered(ctx context.Context, fun string, args []any, kwargs map[string]any) (any, error) {
	v, err := c.ExecAsGiven(ctx, fun, args, kwargs)
	return pyobj.From(v), err
}

// OrderedPillar returns this job's pillar in the order of its source. Changes that templates make to it are visible
// to the rest of the job, but not to other jobs.
func (c *Call) OrderedPillar() *pyobj.Dict {
	return c.job.orderedPillar(func() *pyobj.Dict {
		if c.Env.OrderedPillar != nil {
			if d := c.Env.OrderedPillar(); d != nil {
				return pyobj.DeepCopy(d).(*pyobj.Dict)
			}
		}
		return pyobj.FromMap(c.Env.PillarData())
	})
}

// OrderedGrains returns the grains with this job's changes, including those by templates.
func (c *Call) OrderedGrains() *pyobj.Dict {
	grains := pyobj.FromMapIn(c.GrainData(), orders(c.GrainsOrder))
	c.job.orderGrains(grains)
	return grains
}

// OrderedGrain returns one of [Call.OrderedGrains], and whether it is set.
func (c *Call) OrderedGrain(name string) (any, bool) {
	if v, ok := c.job.orderedGrain(name); ok {
		return v, true
	}
	return inOrder(c.GrainData(), c.GrainsOrder, name)
}

// PillarData returns the job's pillar, which may be overridden. Callers must not modify it.
func (c *Call) PillarData() map[string]any {
	if d := c.job.pillarOverride(); d != nil {
		return d
	}
	return c.Env.PillarData()
}

// SetPillar replaces the pillar that the job's functions and templates see from now on, like state.apply pillar={…};
// nil removes the replacement. restore restores the previous pillar.
func (x *Context) SetPillar(d *pyobj.Dict) (restore func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	ordered, plain := x.pillar, x.plainPillar
	x.pillar, x.plainPillar = d, nil
	if d != nil {
		x.plainPillar = pyobj.PlainMap(d)
	}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.pillar, x.plainPillar = ordered, plain
	}
}

func (x *Context) orderedPillar(load func() *pyobj.Dict) *pyobj.Dict {
	x.mu.Lock()
	d := x.pillar
	x.mu.Unlock()
	if d != nil {
		return d
	}
	d = load() // it may wait for the master
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pillar == nil {
		x.pillar = d
	}
	return x.pillar
}

func (x *Context) pillarOverride() map[string]any {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.plainPillar
}

// NewCall creates a call that belongs to no function, for programs that render templates or compile states
// themselves. Fun is the name in errors. If job is nil the call gets a new one.
func (r *Registry) NewCall(e *Env, fun, jid string, job *Context) *Call {
	if job == nil {
		job = &Context{}
	}
	return &Call{Env: e, Fun: fun, JID: jid, registry: r, job: job}
}
