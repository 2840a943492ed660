// Package deb_apache is Salt's execution module "apache" on Debian's family: sites, modules and pieces of configuration of Apache that are enabled
// and disabled by Debian's programs. Salt's source: salt/modules/deb_apache.py.
package deb_apache

import (
	"context"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// apache.config, apache.directives, apache.fullversion, apache.modules, apache.server_status, apache.servermods are absent: of them public states use none.
// apache.signal, apache.useradd, apache.userdel, apache.version, apache.vhosts are absent: of them public states use none.
// apache.a2ensite, apache.a2dissite, apache.a2enmod, apache.a2dismod, apache.a2enconf, apache.a2disconf differ: a program that cannot be started is an error; stock returns the exception as the result.

func available(e *modules.Env) (bool, string) {
	family, _ := e.GrainData()["os_family"].(string)
	return family == "Debian" && e.Which("apache2ctl") != "", "apache execution module not loaded: apache not installed."
}

// change is a function that runs one of Debian's programs.
type change struct {
	program, title, field string
	missing               int // the exit code that stock takes for an unknown name
	done                  string
	needs                 bool // stock looks for the program first
}

func (x change) run(ctx context.Context, c *modules.Call) (any, error) {
	if x.needs {
		if err := saltcmd.Needs(c, x.program); err != nil {
			return nil, err
		}
	}
	name := c.Str(strings.ToLower(x.field))
	code, err := saltcmd.Retcode(ctx, c, x.program, name)
	if err != nil {
		return nil, err
	}
	var status any = int64(code)
	switch code {
	case x.missing:
		status = x.field + " " + name + " Not found"
	case 0:
		status = x.field + " " + name + " " + x.done
	}
	return map[string]any{"Name": x.title, x.field: name, "Status": status}, nil
}

// notFoundDisabling is the exit code by which stock knows that there is nothing to disable. No program ends with it, so the code is the status.
const notFoundDisabling = 256

func enableConf(ctx context.Context, c *modules.Call) (any, error) {
	return change{program: "a2enconf", title: "Apache2 Enable Conf", field: "Conf", missing: 1, done: "enabled", needs: true}.run(ctx, c)
}

func disableConf(ctx context.Context, c *modules.Call) (any, error) {
	return change{program: "a2disconf", title: "Apache2 Disable Conf", field: "Conf", missing: notFoundDisabling, done: "disabled", needs: true}.run(ctx, c)
}

func enableMod(ctx context.Context, c *modules.Call) (any, error) {
	return change{program: "a2enmod", title: "Apache2 Enable Mod", field: "Mod", missing: 1, done: "enabled"}.run(ctx, c)
}

func disableMod(ctx context.Context, c *modules.Call) (any, error) {
	return change{program: "a2dismod", title: "Apache2 Disable Mod", field: "Mod", missing: notFoundDisabling, done: "disabled"}.run(ctx, c)
}

func enableSite(ctx context.Context, c *modules.Call) (any, error) {
	return change{program: "a2ensite", title: "Apache2 Enable Site", field: "Site", missing: 1, done: "enabled"}.run(ctx, c)
}

func disableSite(ctx context.Context, c *modules.Call) (any, error) {
	return change{program: "a2dissite", title: "Apache2 Disable Site", field: "Site", missing: notFoundDisabling, done: "disabled"}.run(ctx, c)
}

// enabled reports whether there is a link in a directory of /etc/apache2. The name may lack its ending.
func enabled(c *modules.Call, dir, name string, endings ...string) bool {
	for _, e := range endings {
		if strings.HasSuffix(name, e) {
			return isLink(c, dir, name)
		}
	}
	return isLink(c, dir, name+endings[0])
}

func isLink(c *modules.Call, dir, name string) bool {
	info, err := os.Lstat(c.Path("/etc/apache2/" + dir + "/" + name))
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

func confEnabled(_ context.Context, c *modules.Call) (any, error) {
	return enabled(c, "conf-enabled", c.Str("conf"), ".conf"), nil
}

func modEnabled(_ context.Context, c *modules.Call) (any, error) {
	return enabled(c, "mods-enabled", c.Str("mod"), ".load", ".conf"), nil
}

func siteEnabled(_ context.Context, c *modules.Call) (any, error) {
	site := c.Str("site")
	return enabled(c, "sites-enabled", site, ".conf") || site == "default" && isLink(c, "sites-enabled", "000-default.conf"), nil
}
