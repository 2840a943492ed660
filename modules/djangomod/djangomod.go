// Package djangomod is Salt's execution module "django": commands of django-admin. Salt's source:
// salt/modules/djangomod.py.
package djangomod

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// django.command differs: further keyword arguments come in the order of their names.

// admin returns the path of django-admin for a call.
func admin(c *modules.Call) (string, error) {
	v := c.Value("bin_env")
	if !pytext.Truth(v) {
		for _, name := range []string{"django-admin.py", "django-admin"} {
			if c.Which(name) != "" {
				return name, nil
			}
		}
		return "", modules.Errorf("django-admin or django-admin.py not found on PATH")
	}
	dir := pytext.Str(v)
	program := filepath.Join(dir, "bin", "django-admin.py")
	if _, err := os.Stat(c.Path(program)); err == nil {
		return program, nil
	}
	return dir, nil
}

// option is an argument that django-admin gets after two dashes, with a value unless that is nil.
type option struct {
	name  string
	value any
}

// flags returns the options without a value whose parameter is true. The parameter's name has underscores in place of
// hyphens.
func flags(c *modules.Call, names ...string) (list []option) {
	for _, name := range names {
		if pytext.Truth(c.Value(strings.ReplaceAll(name, "-", "_"))) {
			list = append(list, option{name: name})
		}
	}
	return list
}

// values returns the options with a value, for those parameters that are set.
func values(c *modules.Call, names ...string) (list []option) {
	for _, name := range names {
		if v := c.Value(name); pytext.Truth(v) {
			list = append(list, option{name, pytext.Str(v)})
		}
	}
	return list
}

// run runs a command of django-admin, without a shell.
func run(ctx context.Context, c *modules.Call, command string, options ...option) (any, error) {
	program, err := admin(c)
	if err != nil {
		return nil, err
	}
	line := program + " " + command + " --settings=" + pytext.Str(c.Value("settings_module"))
	if v := c.Value("pythonpath"); pytext.Truth(v) {
		line += " --pythonpath=" + pytext.Str(v)
	}
	for _, o := range options {
		line += " --" + o.name
		if o.value != nil {
			line += "=" + pytext.Str(o.value)
		}
	}
	return c.ExecKw(ctx, "cmd.run", []any{line},
		map[string]any{"env": c.Value("env"), "runas": c.Value("runas"), "python_shell": false})
}

func command(ctx context.Context, c *modules.Call) (any, error) {
	var options []option
	for _, v := range c.Extra {
		options = append(options, option{name: pytext.Str(v)})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Keywords)) {
		if !strings.HasPrefix(name, "__") {
			options = append(options, option{name, pytext.Str(c.Keywords[name])})
		}
	}
	return run(ctx, c, pytext.Str(c.Value("command")), options...)
}

func syncDB(ctx context.Context, c *modules.Call) (any, error) {
	return run(ctx, c, "syncdb", append(flags(c, "migrate", "noinput"), values(c, "database")...)...)
}

func migrate(ctx context.Context, c *modules.Call) (any, error) {
	line := "migrate"
	if app := c.Value("app_label"); pytext.Truth(app) {
		line += " " + pytext.Str(app)
		if name := c.Value("migration_name"); pytext.Truth(name) {
			line += " " + pytext.Str(name)
		}
	}
	return run(ctx, c, line, append(flags(c, "noinput"), values(c, "database")...)...)
}

func createSuperuser(ctx context.Context, c *modules.Call) (any, error) {
	options := []option{{name: "noinput"}, {"email", pytext.Str(c.Value("email"))}, {"username", pytext.Str(c.Value("username"))}}
	return run(ctx, c, "createsuperuser", append(options, values(c, "database")...)...)
}

func loadData(ctx context.Context, c *modules.Call) (any, error) {
	return run(ctx, c, "loaddata "+strings.Join(strings.Split(c.Str("fixtures"), ","), " "), values(c, "database")...)
}

func collectStatic(ctx context.Context, c *modules.Call) (any, error) {
	options := append([]option{{name: "noinput"}}, flags(c, "no-post-process", "dry-run", "clear", "link", "no-default-ignore")...)
	return run(ctx, c, "collectstatic", append(options, values(c, "ignore")...)...)
}
