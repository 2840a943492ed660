// Package jinja is Salt's execution module "jinja": it loads the maps of formulas and data files as their templates do, to look at the result.
// Salt's source: salt/modules/jinja.py.
package jinja

import (
	"cmp"
	"context"
	"errors"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is Salt's "jinja".
var Module = &modules.Module{Name: "jinja", Doc: "Loading the maps and data files of formulas as templates do.", Funcs: []modules.Def{
	{Name: "import_json", Doc: `Return the data of a JSON file of the file server, which is rendered first, as import_json does in a template.

path
    The file, without salt://.`,
		Example: "salt '*' jinja.import_json myformula/foo.json", Params: []modules.Param{{Name: "path"}}, Run: importJSON},
	{Name: "import_yaml", Doc: `Return the data of a YAML file of the file server, which is rendered first, as import_yaml does in a template.

path
    The file, without salt://.`,
		Example: "salt '*' jinja.import_yaml myformula/foo.yaml", Params: []modules.Param{{Name: "path"}}, Run: importYAML},
	{Name: "load_map", Doc: `Return a variable of a template of the file server, as a state file sees it that imports it with context.

path
    The file, without salt://.
value
    The name of the variable.`,
		Example: "salt '*' jinja.load_map myformula/map.jinja myformula", Params: []modules.Param{{Name: "path"}, {Name: "value"}}, Run: loadMap},
}}

func loadMap(ctx context.Context, c *modules.Call) (any, error) {
	value := pytext.Str(c.Value("value"))
	return shown(ctx, c, `{% from "`+pytext.Str(c.Value("path"))+`" import `+value+" with context %}\n{{ "+value+" | tojson }}\n")
}

func importJSON(ctx context.Context, c *modules.Call) (any, error) {
	return imported(ctx, c, "import_json")
}

func importYAML(ctx context.Context, c *modules.Call) (any, error) {
	return imported(ctx, c, "import_yaml")
}

func imported(ctx context.Context, c *modules.Call, tag string) (any, error) {
	return shown(ctx, c, "{% "+tag+` "`+pytext.Str(c.Value("path"))+"\" as imported %}\n{{ imported | tojson }}\n")
}

// shown renders a text as a state file of the minion would be.
func shown(ctx context.Context, c *modules.Call, text string) (any, error) {
	pipe, _ := c.Opt("renderer").(string)
	v, err := c.Template(ctx, modules.Template{Text: text, Pipe: pipe, Shebang: true, SaltEnv: "base"})
	var failed *modules.RenderError
	switch {
	case errors.Is(err, modules.ErrEngine):
		return nil, modules.Errorf("cannot render: this program has no renderers")
	case errors.As(err, &failed):
		return nil, &modules.PythonError{Type: cmp.Or(failed.Type, "SaltRenderError"), Msg: failed.Error()}
	}
	return v, err
}
