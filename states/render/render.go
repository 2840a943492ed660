// Package render turns the text of state files, pillar files and templates into data, by Salt's renderers: a pipe of names
// ("jinja|yaml") each of which takes what the one before it made. Programs hand [Render] to the functions they run:
//
//	env.Templates = render.Render
//
// and state files are rendered by
//
//	v, err := c.Template(ctx, modules.Template{Text: text, Shebang: true, Path: path, SaltEnv: "base", SLS: "web.nginx", IsSLS: true,
//		Vars: map[string]any{…}})
//	high, ok := v.(*pyobj.Dict) // an OrderedDict; lists are *pyobj.List
//
// An error is a *modules.RenderError if the text is at fault, with stock's words and excerpt.
//
// Salt's sources: salt/template.py, salt/utils/templates.py, salt/renderers.
package render

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// renderer is one of the renderers. arg is what stands after its name in the pipe.
type renderer func(ctx context.Context, c *modules.Call, t *modules.Template, in any, arg string) (any, error)

// named gives a renderer by its name, nil if there is none.
func named(name string) renderer {
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

// Names are the renderers that there are, sorted.
func Names() []string { return []string{"gpg", "jinja", "json", "pass", "stateconf", "yaml", "yamlex"} }

// step is one renderer of a pipe.
type step struct {
	run renderer
	arg string
}

// Render sends a text through renderers. It is what [modules.Env].Templates takes.
func Render(ctx context.Context, c *modules.Call, t modules.Template) (any, error) {
	if t.Engine {
		run := named(t.Pipe)
		if run == nil || t.Pipe != "jinja" {
			return nil, modules.ErrEngine
		}
		return run(ctx, c, &t, t.Text, "")
	}
	if t.Data != nil {
		run := named(t.Pipe)
		if run == nil {
			return nil, modules.ErrEngine
		}
		return run(ctx, c, &t, t.Data, "")
	}
	t.IsSLS = true // renderers, unlike engines, always have the name of a state file, if only an empty one
	steps, err := pipe(c, &t)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(t.Text) == "" || len(steps) == 0 { // the latter if all renderers are disallowed
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
	if out, ok := data.(string); ok && strings.Contains(t.Text, "\r\n") && !strings.Contains(out, "\r\n") {
		return strings.ReplaceAll(out, "\n", "\r\n"), nil
	}
	return data, nil
}

// pipe finds the renderers for a text: those that its first line names, else the given ones, else Salt's default.
func pipe(c *modules.Call, t *modules.Template) ([]step, error) {
	spec := t.Pipe
	if spec == "" {
		spec = "jinja|yaml"
	}
	if first, _, _ := strings.Cut(t.Text, "\n"); t.Shebang && strings.HasPrefix(first, "#!") && !strings.HasPrefix(first, "#!/") {
		spec = strings.TrimSpace(first)[2:]
	}
	switch spec {
	case "yaml_jinja":
		spec = "jinja|yaml"
	case "json_jinja":
		spec = "jinja|json"
	case "yamlex_jinja":
		spec = "jinja|yamlex"
	}
	var steps []step
	for part := range strings.SplitSeq(spec, "|") {
		name, arg, _ := strings.Cut(strings.TrimSpace(part), " ")
		if banned(c, name) {
			c.Logger().Warn("The renderer is disallowed by configuration and will be skipped.", "renderer", name)
			continue
		}
		run, why := own(c, name)
		if run == nil {
			run = named(name)
		}
		if run == nil {
			// Salt logs this and goes on with the text, which then is no data.
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

// own finds a renderer that the host's owner has put there. reason tells why one that is there cannot be used.
func own(c *modules.Call, name string) (run renderer, reason string) {
	m, reason := modules.FindIn(modules.KindRenderers, c.Env, name)
	if m == nil {
		return nil, reason
	}
	d := m.Def("render")
	return func(ctx context.Context, c *modules.Call, t *modules.Template, in any, arg string) (any, error) {
		with := *t
		with.Data, with.Pipe = in, arg
		sub, err := c.Foreign(c.Env, nil, d, name+".render", []any{&with}, nil)
		if err != nil {
			return nil, err
		}
		return d.Run(ctx, sub)
	}, ""
}

// banned tells whether the configuration forbids a renderer.
func banned(c *modules.Call, name string) bool {
	listed := func(option string) (in, set bool) {
		list, _ := c.Opt(option).([]any)
		for _, x := range list {
			if pytext.Str(x) == name {
				in = true
			}
		}
		return in, len(list) > 0
	}
	if in, set := listed("renderer_whitelist"); set && !in {
		return true
	}
	in, _ := listed("renderer_blacklist")
	return in
}
