// Package rh_ip is Salt's execution module "ip" of Red Hat and its kin: the scripts in /etc/sysconfig/network-scripts and what belongs
// to them. Salt's source: salt/modules/rh_ip.py and the templates in salt/templates/rh_ip, whose output ours equals byte by byte.
package rh_ip

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/ifcfg"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

const (
	scriptDir   = "/etc/sysconfig/network-scripts"
	networkFile = "/etc/sysconfig/network"
)

func available(e *modules.Env) (bool, string) {
	g := e.GrainData()
	if g["os_family"] != "RedHat" {
		return false, "The rh_ip execution module cannot be loaded: this module is only available on RHEL/Fedora based distributions."
	}
	if major, _ := g["osmajorrelease"].(int64); g["os"] == "Amazon" && major < 2 {
		return false, "The rh_ip execution module cannot be loaded: unsupported Amazon Linux release."
	}
	info, err := os.Stat(e.Path("/run/NetworkManager"))
	if e.Which("nmcli") != "" && err == nil && info.IsDir() && (e.Which("ifup") == "" || e.Which("ifdown") == "") {
		return false, "The rh_ip execution module is deferring to nm_ip: this system is managed by NetworkManager without the legacy ifup/ifdown tooling."
	}
	return true, ""
}

// settings returns a copy of the call's keyword arguments, which the function may modify.
func settings(c *modules.Call) map[string]any {
	s := maps.Clone(c.Keywords)
	if s == nil {
		s = map[string]any{}
	}
	return s
}

// lowered returns settings with their names in lower case.
func lowered(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out[strings.ToLower(k)] = m[k]
	}
	return out
}

// name returns the interface that the call is for.
func name(c *modules.Call) string { return pytext.Str(c.Value("iface")) }

// kind returns the type of interface of the call, in lower case.
func kind(c *modules.Call) (string, error) {
	s, ok := c.Value("iface_type").(string)
	if !ok {
		return "", modules.NoAttribute(c.Value("iface_type"), "lower")
	}
	return strings.ToLower(s), nil
}

// major returns the major release of the operating system.
func major(c *modules.Call) (float64, error) {
	switch v := c.Grain("osmajorrelease").(type) {
	case int64:
		return float64(v), nil
	case float64:
		return v, nil
	case nil:
		return 0, ifcfg.KeyError("osmajorrelease")
	default:
		return 0, &modules.TypeError{Msg: "'<' not supported between instances of '" + modules.TypeName(v) + "' and 'int'"}
	}
}

// shown returns the lines of a text in the form of these functions: without the first empty line.
func shown(text string) []any {
	list := pytext.SplitLines(text, false)
	if i := slices.Index(list, ""); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// contents returns the lines of files. A file that cannot be read contributes none.
func contents(c *modules.Call, paths ...string) []any {
	out := []any{}
	for _, p := range paths {
		if text, err := os.ReadFile(c.Path(p)); err == nil {
			out = append(out, shown(string(text))...)
		}
	}
	return out
}

// script writes a file among the scripts.
func script(c *modules.Call, file, text string) error {
	if _, err := os.Stat(c.Path(scriptDir)); err != nil {
		return ifcfg.AttributeError(file + " cannot be written. " + scriptDir + " does not exist")
	}
	return write(c, file, text)
}

func write(c *modules.Call, file, text string) error {
	if err := atomicfile.Replace(c.Path(file), []byte(text), 0o644); err != nil {
		return modules.OSError(&os.PathError{Op: "open", Path: file, Err: cause(err)})
	}
	return nil
}

// cause returns the innermost error, without the names of temporary files around it.
func cause(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok || inner.Unwrap() == nil {
			return err
		}
		err = inner.Unwrap()
	}
}

func ifcfgFile(iface string) string  { return scriptDir + "/ifcfg-" + iface }
func routeFile(iface string) string  { return scriptDir + "/route-" + iface }
func route6File(iface string) string { return scriptDir + "/route6-" + iface }

func getInterface(_ context.Context, c *modules.Call) (any, error) {
	return contents(c, ifcfgFile(name(c))), nil
}

func getRoutes(_ context.Context, c *modules.Call) (any, error) {
	return contents(c, routeFile(name(c)), route6File(name(c))), nil
}

func getNetworkSettings(_ context.Context, c *modules.Call) (any, error) {
	return contents(c, networkFile), nil
}

// hasTemplate reports whether stock has a template for this release.
func hasTemplate(c *modules.Call) (bool, error) {
	switch c.Grain("os") {
	case "Fedora":
		_, err := major(c)
		return true, err
	case "Amazon":
		return true, nil
	case nil:
		return false, ifcfg.KeyError("os")
	}
	release, ok := c.Grain("osrelease").(string)
	if !ok {
		return false, ifcfg.KeyError("osrelease")
	}
	return release != "" && strings.Contains("789", release[:1]), nil
}

func buildInterface(ctx context.Context, c *modules.Call) (any, error) {
	known, err := hasTemplate(c)
	if err != nil {
		return nil, err
	}
	kind, err := kind(c)
	if err != nil {
		return nil, err
	}
	s, iface := settings(c), name(c)
	if err := prepare(ctx, c, kind, s); err != nil {
		return nil, err
	}
	switch kind {
	case "clone", "ipsec", "dialup":
		return nil, &modules.PythonError{Type: "UnboundLocalError", Msg: "cannot access local variable 'ifcfg' where it is not associated with a value"}
	}
	o := &options{c: c, opts: s, iface: iface, out: map[string]any{"name": c.Value("iface")}}
	if err := o.interfaceOf(ctx, kind, c.Bool("enabled")); err != nil {
		return nil, err
	}
	if !known {
		c.Logger().Error("There is no template for interfaces of this release", "osrelease", c.Grain("osrelease"))
		return "", nil
	}
	text, err := interfaceText(o.out)
	if err != nil {
		return nil, err
	}
	if pytext.Truth(s["test"]) {
		return shown(text), nil
	}
	if err := script(c, ifcfgFile(iface), text); err != nil {
		return nil, err
	}
	return contents(c, ifcfgFile(iface)), nil
}

// prepare looks for what a kind of interface must have, and installs the package it needs.
func prepare(ctx context.Context, c *modules.Call, kind string, s map[string]any) error {
	_, master := s["master"]
	switch kind {
	case "slave":
		s["slave"] = "yes"
		if !master {
			return ifcfg.AttributeError("master is a required setting for slave interfaces")
		}
	case "bond":
		mode, ok := s["mode"]
		if !ok {
			return ifcfg.AttributeError("mode is required for bond interfaces")
		}
		s["mode"] = pytext.Str(mode)
	case "teamport":
		_, team := s["team_master"]
		if !master && !team {
			return ifcfg.AttributeError("master or team_master is a required setting for teamport interfaces")
		}
		if !team {
			s["team_master"] = s["master"]
		}
		delete(s, "master")
	case "vlan":
		s["vlan"] = "yes"
	case "bridge":
		return install(ctx, c, "bridge-utils")
	case "team":
		return install(ctx, c, "teamd")
	case "eth", "alias", "clone", "ipsec", "dialup", "ipip", "ib":
	default:
		return ifcfg.Invalid(name(c), kind, "eth|bond|team|alias|clone|ipsec|dialup|bridge|slave|teamport|vlan|ipip|ib")
	}
	return nil
}

func install(ctx context.Context, c *modules.Call, name string) error {
	have, err := c.Exec(ctx, "pkg.version", name)
	if err == nil && !pytext.Truth(have) {
		_, err = c.Exec(ctx, "pkg.install", name)
	}
	return err
}

func buildRoutes(_ context.Context, c *modules.Call) (any, error) {
	release, ok := c.Grain("osrelease").(string)
	if !ok {
		return nil, ifcfg.KeyError("osrelease")
	}
	if release == "" {
		return nil, &modules.PythonError{Type: "IndexError", Msg: "string index out of range"}
	}
	old := release[0] >= '0' && release[0] < '6'
	routes, ok := lowered(c.Keywords)["routes"]
	if !ok {
		return nil, ifcfg.InvalidRoutes(name(c))
	}
	v4, v6, err := split(routes)
	if err != nil {
		return nil, err
	}
	text, text6 := routesText(old, name(c), v4), routesText(old, name(c), v6)
	test, ok := c.Keywords["test"]
	switch {
	case !ok:
		return nil, ifcfg.KeyError("test")
	case pytext.Truth(test):
		return append(shown(text), shown(text6)...), nil
	}
	if err := script(c, routeFile(name(c)), text); err != nil {
		return nil, err
	}
	if err := script(c, route6File(name(c)), text6); err != nil {
		return nil, err
	}
	return contents(c, routeFile(name(c)), route6File(name(c))), nil
}

// split divides routes by the family of their addresses.
func split(routes any) (v4, v6 []map[string]any, err error) {
	list, ok := routes.([]any)
	if !ok {
		switch r := routes.(type) {
		case string:
			if r == "" {
				return nil, nil, nil
			}
			list = []any{r[:1]}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(r)) {
				list = append(list, k)
			}
		default:
			return nil, nil, &modules.TypeError{Msg: "'" + modules.TypeName(routes) + "' object is not iterable"}
		}
	}
	for _, x := range list {
		r, _ := x.(map[string]any)
		switch x.(type) {
		case map[string]any:
		case string:
			return nil, nil, &modules.TypeError{Msg: "string indices must be integers, not 'str'"}
		case []any:
			return nil, nil, &modules.TypeError{Msg: "list indices must be integers or slices, not str"}
		default:
			return nil, nil, &modules.TypeError{Msg: "'" + modules.TypeName(x) + "' object is not subscriptable"}
		}
		addr, ok := r["ipaddr"]
		if !ok {
			return nil, nil, ifcfg.KeyError("ipaddr")
		}
		if ifcfg.IsAddr(addr, false) {
			v6 = append(v6, r)
		} else {
			v4 = append(v4, r)
		}
	}
	return v4, v6, nil
}

func up(ctx context.Context, c *modules.Call) (any, error)   { return bring(ctx, c, "ifup") }
func down(ctx context.Context, c *modules.Call) (any, error) { return bring(ctx, c, "ifdown") }

// bring starts or stops an interface; slaves are their master's business.
func bring(ctx context.Context, c *modules.Call, program string) (any, error) {
	kind, err := kind(c)
	if err != nil || kind == "slave" || kind == "teamport" {
		return nil, err
	}
	return saltcmd.Text(ctx, c, program, c.Value("iface"))
}

func applyNetworkSettings(ctx context.Context, c *modules.Call) (any, error) {
	named := any(true)
	if yes, _ := ifcfg.Truth(c.Keywords["apply_hostname"]); yes {
		named = false
		if v, ok := c.Keywords["hostname"]; ok {
			var err error
			if named, err = c.Exec(ctx, "network.mod_hostname", v); err != nil {
				return nil, err
			}
		} else {
			c.Logger().Warn("The network state sls is trying to apply hostname changes but no hostname is defined.")
		}
	}
	done := any(true)
	if yes, _ := ifcfg.Truth(c.Keywords["require_reboot"]); yes {
		c.Logger().Warn("The network state sls is requiring a reboot of the system to properly apply network configuration.")
	} else {
		release, err := major(c)
		if err != nil {
			return nil, err
		}
		service := "network"
		if release >= 8 {
			service = "NetworkManager"
		}
		if done, err = c.Exec(ctx, "service.restart", service); err != nil {
			return nil, err
		}
	}
	if !pytext.Truth(named) {
		return named, nil
	}
	return done, nil
}
