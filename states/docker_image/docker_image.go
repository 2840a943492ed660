// Package docker_image is Salt's state module "docker_image": images of a Docker daemon (salt/states/docker_image.py). It works through
// the execution module docker.
package docker_image

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// Compatibility.
//
// docker_image.present differs: sls is an error, for it runs Salt's own Python code in a container.

func init() { states.Register(Module) }

// Module is Salt's "docker_image".
var Module = &states.Module{Name: "docker_image", Doc: "Images of Docker.", Needs: "docker.version", Funcs: []states.Def{
	{Name: "absent", Doc: "Have no such image, or none of several.\n\nname, images\n    the image, or a list of them\nforce\n    whether to remove images that something " +
		"uses\n", Params: []modules.Param{{Name: "name", Optional: true}, {Name: "images", Optional: true}, {Name: "force", Default: false}}, Run: absent},
	{Name: "mod_watch", Doc: "Pull, build or load the image again, since something that the state watches has changed.\n", Params: []modules.Param{
		{Name: "name"}, {Name: "sfun", Optional: true},
	}, Kwargs: "kwargs", Run: watched},
	{Name: "present", Doc: `Have an image: pulled from its registry, built or loaded.

name, tag
    the image
build, dockerfile
    a directory to build it in, and the file that says how
load
    an archive to load it from
force
    whether to do so with an image that is there
sls
    cannot be used: it runs Salt's own Python code in a container
`, Params: []modules.Param{
		{Name: "name"}, {Name: "tag", Optional: true}, {Name: "build", Optional: true}, {Name: "load", Optional: true}, {Name: "force", Default: false},
		{Name: "insecure_registry", Default: false}, {Name: "client_timeout", Default: int64(60)}, {Name: "dockerfile", Optional: true},
		{Name: "sls", Optional: true}, {Name: "base", Default: "opensuse/python"}, {Name: "saltenv", Default: "base"},
		{Name: "pillarenv", Optional: true}, {Name: "pillar", Optional: true},
	}, Kwargs: "kwargs", Run: present},
}}

// inspect returns the daemon's description of an image, or nil if there is no such image.
func inspect(ctx context.Context, c *states.Call, image string) (map[string]any, error) {
	v, err := c.Exec(ctx, "docker.inspect_image", image)
	if err != nil && modules.IsExecError(err) && strings.Contains(err.Error(), "404") {
		return nil, nil
	}
	m, _ := v.(map[string]any)
	return m, err
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name, full, tag := c.Name(), c.Name(), ""
	if v := c.Value("tag"); pytext.Truth(v) {
		tag = pytext.Str(v)
	}
	given := 0
	for _, arg := range [...]string{"build", "load", "sls"} {
		if c.Value(arg) != nil {
			given++
		}
	}
	switch {
	case given > 1:
		return ret.As(states.False, "Only one of 'build', 'load', or 'sls' is permitted.")
	case given == 1 && tag == "":
		return ret.As(states.False, "The 'tag' argument is required if any one of 'build', 'load', or 'sls' is used.")
	case tag != "":
		full = name + ":" + tag
	}
	info, err := inspect(ctx, c, full)
	if err != nil {
		if modules.IsExecError(err) {
			return ret.As(states.False, err.Error())
		}
		return nil, err
	}
	if info != nil && !c.Bool("force") {
		return ret.As(states.True, "Image "+full+" already present")
	}
	g := &getter{c, name, full, tag}
	action := "pulled"
	switch {
	case c.Bool("build") || c.Bool("sls"):
		action = "built"
	case c.Bool("load"):
		action = "loaded"
	}
	if c.Test() {
		return ret.As(states.None, "Image "+full+" will be "+action)
	}
	update, problem, err := g.get(ctx)
	if err != nil {
		return ret.As(states.False, problem+": "+modules.ExceptionText(err))
	}
	if info == nil || g.isNew(info, update) {
		ret.Changes = update
	}
	if _, err := inspect(ctx, c, full); err != nil {
		if !modules.IsExecError(err) {
			return nil, err
		}
		return ret.As(states.False, "Failed to inspect image '"+full+"' after it was "+action+": "+err.Error())
	}
	if len(ret.Changes) == 0 {
		if given == 0 {
			name = full // the tag has become a part of the name
		}
		return ret.As(states.True, "Image '"+name+"' was "+action+", but there were no changes")
	}
	return ret.As(states.True, "Image '"+full+"' was "+action)
}

// getter gets an image from where the arguments say.
type getter struct {
	*states.Call
	name, full, tag string
}

// get returns what the function said that built, loaded or pulled the image; problem begins the text of an error.
func (g *getter) get(ctx context.Context) (update map[string]any, problem string, err error) {
	var v any
	switch {
	case g.Bool("build"):
		problem = "Encountered error building " + g.Str("build") + " as " + g.full
		kw := map[string]any{}
		if more, ok := g.Keywords["kwargs"].(map[string]any); ok {
			for _, k := range [...]string{"cache", "rm", "api_response", "fileobj", "buildargs"} {
				if x, ok := more[k]; ok {
					kw[k] = x
				}
			}
		}
		kw["path"], kw["repository"], kw["tag"], kw["dockerfile"] = g.Value("build"), g.name, g.tag, g.Value("dockerfile")
		v, err = g.ExecKw(ctx, "docker.build", nil, kw)
	case g.Bool("sls"):
		problem = "Encountered error using SLS " + g.Str("sls") + " for building " + g.full
		err = modules.Errorf("docker.sls_build is not supported, it runs Salt's own Python code in a container")
	case g.Bool("load"):
		problem = "Encountered error loading " + g.Str("load") + " as " + g.full
		v, err = g.ExecKw(ctx, "docker.load", nil, map[string]any{"path": g.Value("load"), "repository": g.name, "tag": g.tag})
	default:
		problem = "Encountered error pulling " + g.full
		v, err = g.ExecKw(ctx, "docker.pull", []any{g.full}, map[string]any{"insecure_registry": g.Value("insecure_registry"), "client_timeout": g.Value("client_timeout")})
	}
	update, _ = v.(map[string]any)
	return update, problem, err
}

// isNew reports whether an existing image has changed.
func (g *getter) isNew(info, update map[string]any) bool {
	layers, _ := update["Layers"].(map[string]any)
	switch {
	case g.Bool("build"):
		id := pytext.Str(info["Id"])
		return update["Id"] != id[:min(12, len(id))]
	case g.Bool("load"):
		return pytext.Truth(update["Layers"])
	}
	return pytext.Truth(layers["Pulled"])
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name := c.Value("name")
	targets, isList := c.Value("images").([]any)
	switch {
	case !pytext.Truth(name) && !pytext.Truth(c.Value("images")):
		return ret.As(states.False, "One of 'name' and 'images' must be provided")
	case !isList:
		targets = []any{name}
	}
	var remove []any
	for _, x := range targets {
		tag, err := c.Exec(ctx, "docker.resolve_tag", x)
		if err != nil {
			return nil, err
		}
		if tag != false {
			remove = append(remove, tag)
		}
	}
	all := joined(remove)
	switch {
	case len(remove) == 0 && len(targets) == 1:
		return ret.As(states.True, "Image "+pytext.Str(name)+" is not present")
	case len(remove) == 0:
		return ret.As(states.True, "All specified images are not present")
	case c.Test() && len(remove) == 1:
		return ret.As(states.None, "Image "+all+" will be removed")
	case c.Test():
		return ret.As(states.None, "The following images will be removed: "+all)
	}
	v, err := c.ExecKw(ctx, "docker.rmi", remove, map[string]any{"force": c.Value("force")})
	if err != nil {
		return nil, err
	}
	result, _ := v.(map[string]any)
	left, err := c.Exec(ctx, "docker.list_tags")
	if err != nil {
		return nil, err
	}
	tags, _ := left.([]any)
	var failed []any
	for _, x := range remove {
		for _, tag := range tags {
			if tag == x {
				failed = append(failed, x)
			}
		}
	}
	switch {
	case len(failed) == len(remove):
		text := "None of the specified images were removed"
		if errs, ok := result["Errors"].([]any); ok {
			text += ". The following errors were encountered: "
			for i, e := range errs {
				if i > 0 {
					text += "; "
				}
				text += pytext.Str(e)
			}
		}
		return ret.As(states.False, text)
	case len(failed) > 0:
		ret.Changes = result
		return ret.As(states.False, "The following image(s) failed to be removed: "+joined(failed))
	}
	ret.Changes = result
	if len(remove) == 1 {
		return ret.As(states.True, "Image "+all+" was removed")
	}
	return ret.As(states.True, "The following images were removed: "+all)
}

func joined(list []any) string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = pytext.Str(x)
	}
	return strings.Join(out, ", ")
}

func watched(ctx context.Context, c *states.Call) (*states.Result, error) {
	if c.Value("sfun") != "present" {
		return c.Result().As(states.False, "watch requisite is not implemented for "+pytext.Str(c.Value("sfun")))
	}
	kw := c.OwnKeywords()
	kw["name"], kw["force"] = c.Value("name"), true
	return c.State(ctx, "docker_image.present", kw)
}
