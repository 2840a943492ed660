package render

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// renderer is one step of a pipe. in is the output of the previous step, arg the text after the renderer's name in
// the pipe.
type renderer func(ctx context.Context, c *modules.Call, t *modules.Template, in any, arg string) (any, error)

// rendererOf returns a built-in renderer, or nil.
func rendererOf(name string) renderer {
	switch name {
	case "jinja":
		return renderJinja
	case "yaml":
		return renderYAML
	case "json":
		return renderJSON
	case "gpg":
		return renderGPG
	case "pass":
		return renderPass
	case "stateconf":
		return renderStateconf
	case "yamlex":
		return renderYAMLEX
	}
	return nil
}

// Names returns the names of the built-in renderers, sorted.
func Names() []string { return []string{"gpg", "jinja", "json", "pass", "stateconf", "yaml", "yamlex"} }

// step is one renderer of a pipe with its argument.
type step struct {
	run renderer
	arg string
}

// Render passes a text through renderers. It has the signature of [modules.Env].Templates. The error is
// [modules.ErrEngine] for an unknown engine, a *modules.RenderError for an error in the text, or the context's.
func Render(ctx context.Context, c *modules.Call, t modules.Template) (any, error) {
	// An engine renders a managed file: one step, and the result is text.
	if t.Engine {
		run := rendererOf(t.Pipe)
		if run == nil || t.Pipe != "jinja" {
			return nil, modules.ErrEngine
		}
		return run(ctx, c, &t, t.Text, "")
	}
	// Data from a caller is passed to one renderer, for example to decrypt it.
	if t.Data != nil {
		run := rendererOf(t.Pipe)
		if run == nil {
			return nil, modules.ErrEngine
		}
		return run(ctx, c, &t, t.Data, "")
	}
	t.IsSLS = true // renderers, unlike engines, always have the name of a state file, which may be empty
	steps, err := pipeSteps(c, &t)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(t.Text) == "" || len(steps) == 0 { // there are no steps if all renderers are disallowed
		return pyobj.NewDict(), nil
	}
	var data any = t.Text
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if data, err = s.run(ctx, c, &t, data, s.arg); err != nil {
			return nil, err
		}
	}
	// A text with CRLF keeps its line ends, because stock restores them after the last step.
	if out, ok := data.(string); ok && strings.Contains(t.Text, "\r\n") && !strings.Contains(out, "\r\n") {
		return strings.ReplaceAll(out, "\n", "\r\n"), nil
	}
	return data, nil
}

// pipeSteps returns the renderers for a text: those that its first line names, else the given ones, else Salt's
// default.
func pipeSteps(c *modules.Call, t *modules.Template) ([]step, error) {
	spec := t.Pipe
	if spec == "" {
		spec = "jinja|yaml"
	}
	// "#!/" begins the path of a program, as in scripts, and not a pipe.
	if first, _, _ := strings.Cut(t.Text, "\n"); t.Shebang && strings.HasPrefix(first, "#!") && !strings.HasPrefix(first, "#!/") {
		spec = strings.TrimSpace(first)[2:]
	}
	// These are Salt's combined renderers, which no longer exist as modules.
	switch spec {
	case "yaml_jinja":
		spec = "jinja|yaml"
	case "json_jinja":
		spec = "jinja|json"
	case "yamlex_jinja":
		spec = "jinja|yamlex"
	}
	var steps []step
	// Blanks around a step are ignored. Its argument follows the name.
	for part := range strings.SplitSeq(spec, "|") {
		name, arg, _ := strings.Cut(strings.TrimSpace(part), " ")
		if isBanned(c, name) {
			c.Logger().Warn("The renderer is disallowed by configuration and will be skipped.", "renderer", name)
			continue
		}
		run, why := ownRenderer(c, name)
		if run == nil {
			run = rendererOf(name)
		}
		if run == nil {
			// Salt logs this and continues with the text, which then is not data.
			text := "The renderer \"" + spec + "\" is not available"
			if why != "" {
				text += ": " + why
			}
			return nil, &modules.RenderError{Msg: text, Text: text}
		}
		steps = append(steps, step{run, strings.TrimSpace(arg)})
	}
	return steps, nil
}

// ownRenderer returns a renderer that the host's owner has installed as a module. reason explains why an installed
// one cannot be used.
func ownRenderer(c *modules.Call, name string) (run renderer, reason string) {
	m, reason := modules.FindIn(modules.KindRenderers, c.Env, name)
	if m == nil {
		return nil, reason
	}
	d := m.Def("render")
	return func(ctx context.Context, c *modules.Call, t *modules.Template, in any, arg string) (any, error) {
		// The renderer sees the text as t.Data and its argument as t.Pipe.
		with := *t
		with.Data, with.Pipe = in, arg
		sub, err := c.Foreign(c.Env, nil, d, name+".render", []any{&with}, nil)
		if err != nil {
			return nil, err
		}
		return d.Run(ctx, sub)
	}, ""
}

// isBanned reports whether renderer_whitelist or renderer_blacklist forbids a renderer.
func isBanned(c *modules.Call, name string) bool {
	// listed reports whether an option's list has the name, and whether there is such a list.
	listed := func(option string) (in, set bool) {
		list, _ := c.Opt(option).([]any)
		for _, x := range list {
			if pytext.Str(x) == name {
				in = true
			}
		}
		return in, len(list) > 0
	}
	// If there is a whitelist, it forbids everything else.
	if in, set := listed("renderer_whitelist"); set && !in {
		return true
	}
	in, _ := listed("renderer_blacklist")
	return in
}
