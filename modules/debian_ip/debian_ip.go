// Package debian_ip is Salt's execution module "ip" of Debian and its kin: /etc/network/interfaces and what belongs to it. Salt's
// source: salt/modules/debian_ip.py and the templates in salt/templates/debian_ip, whose output ours equals byte by byte.
package debian_ip

import (
	"context"
	"maps"
	"os"
	"path"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/ifcfg"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// ip.build_bond differs: nothing is done for Debian 5.
// ip.build_interface differs: where two settings mean the same option, the later one by name counts, in stock the later one of the call.

func available(e *modules.Env) (bool, string) {
	if e.GrainData()["os_family"] != "Debian" {
		return false, "The debian_ip module could not be loaded: unsupported OS family"
	}
	if info, err := os.Stat(e.Path("/etc/netplan")); e.Which("netplan") != "" && err == nil && info.IsDir() {
		return false, "The debian_ip module is not loaded: netplan is the active renderer; the netplan_ip provider handles the 'ip' virtual instead"
	}
	return true, ""
}

const (
	modprobeDir = "/etc/modprobe.d/"
	upDir       = "/etc/network/if-up.d/"
	downDir     = "/etc/network/if-down.d/"
	peersDir    = "/etc/ppp/peers/"
)

// settings returns a copy of the call's keyword arguments, which the function may modify.
func settings(c *modules.Call) map[string]any {
	s := maps.Clone(c.Keywords)
	if s == nil {
		s = map[string]any{}
	}
	return s
}

// name returns the interface that the call is for.
func name(c *modules.Call) string { return pytext.Str(c.Value("iface")) }

// file reads the lines of a file. ok is false if it cannot be read.
func file(c *modules.Call, path string) ([]any, bool) {
	text, err := os.ReadFile(c.Path(path))
	if err != nil {
		return nil, false
	}
	return ended(string(text)), true
}

// contents returns the lines of a file, or "" if there is no such file, as Salt does.
func contents(c *modules.Call, path string) any {
	if list, ok := file(c, path); ok {
		return list
	}
	return ""
}

// write replaces a file in a directory that must be there; problem is the error if it is not.
func write(c *modules.Call, file, text, problem string) error {
	if _, err := os.Stat(c.Path(path.Dir(file))); err != nil {
		return ifcfg.AttributeError(problem)
	}
	if err := atomicfile.Replace(c.Path(file), []byte(text), 0o644); err != nil {
		return modules.OSError(err)
	}
	return nil
}

func getInterface(_ context.Context, c *modules.Call) (any, error) {
	all, err := read(c)
	if err != nil {
		return nil, err
	}
	a := all.find(name(c))
	if a == nil {
		return []any{}, nil
	}
	return lines(a.text(a.name == "source")), nil
}

func buildInterface(ctx context.Context, c *modules.Call) (any, error) {
	s, iface := settings(c), name(c)
	kind, ok := c.Value("iface_type").(string)
	if !ok {
		return nil, modules.NoAttribute(c.Value("iface_type"), "lower")
	}
	kind = strings.ToLower(kind)
	if err := prepare(ctx, c, kind, s); err != nil {
		return nil, err
	}
	var a *adapter
	switch kind {
	case "eth", "bond", "bridge", "slave", "vlan", "pppoe":
		var err error
		if a, err = wanted(c, s, kind, iface, c.Bool("enabled")); err != nil {
			return nil, err
		}
	case "source":
		from, ok := s["source"]
		if !ok {
			return nil, ifcfg.KeyError("source")
		}
		a = &adapter{name: iface, source: true, sources: []any{from}}
	default:
		return nil, &modules.PythonError{Type: "UnboundLocalError", Msg: "cannot access local variable 'opts' where it is not associated with a value"}
	}
	if pytext.Truth(s["test"]) {
		return lines(a.text(false)), nil
	}
	if err := save(c, a, s); err != nil {
		return nil, err
	}
	if kind == "pppoe" {
		inet, _ := a.families["inet"].(map[string]any)
		provider, ok := inet["provider"]
		if !ok {
			return nil, ifcfg.KeyError("provider")
		}
		if err := write(c, peersDir+"/"+pytext.Str(provider), peer(inet), peersDir+" cannot be written."); err != nil {
			return nil, err
		}
	}
	return lines(a.text(a.source)), nil
}

// prepare looks for what a kind of interface must have, and installs the package it needs.
func prepare(ctx context.Context, c *modules.Call, kind string, s map[string]any) error {
	need := func(option, text string) error {
		if _, ok := s[option]; !ok {
			return ifcfg.AttributeError(text)
		}
		return nil
	}
	install := func(name string) error {
		_, err := c.Exec(ctx, "pkg.install", name)
		return err
	}
	switch kind {
	case "slave":
		return need("master", "master is a required setting for slave interfaces")
	case "vlan":
		return install("vlan")
	case "pppoe":
		have, err := c.Exec(ctx, "pkg.version", "ppp")
		if err != nil || pytext.Truth(have) {
			return err
		}
		return install("ppp")
	case "bond":
		return need("slaves", "slaves is a required setting for bond interfaces")
	case "bridge":
		if err := need("ports", "ports is a required setting for bridge interfaces on Debian or Ubuntu based systems"); err != nil {
			return err
		}
		return install("bridge-utils")
	case "eth", "alias", "clone", "ipsec", "dialup", "source":
		return nil
	}
	return ifcfg.Invalid(name(c), kind, "eth|bond|alias|clone|ipsec|dialup|bridge|slave|vlan|pppoe|source")
}

// save writes the interface to its own file, or with all others to the common file.
func save(c *modules.Call, a *adapter, s map[string]any) error {
	all, err := read(c)
	if err != nil {
		return err
	}
	all.put(a)
	to, text := interfacesFile, ""
	for _, x := range *all {
		text += x.text(x.source)
	}
	if v, ok := s["filename"]; ok {
		own, isText := v.(string)
		if !isText {
			return modules.NoAttribute(v, "startswith")
		}
		if to = own; !strings.HasPrefix(own, "/") {
			to = interfacesDir + "/" + own
		}
		text = a.text(a.source)
	}
	return write(c, to, text, strings.TrimRight(path.Dir(to)+"/", "/")+" cannot be written.")
}

func getBond(_ context.Context, c *modules.Call) (any, error) {
	return contents(c, modprobeDir+name(c)+".conf"), nil
}

func buildBond(ctx context.Context, c *modules.Call) (any, error) {
	s, iface := settings(c), name(c)
	options, err := bonding(c, s, iface)
	if err != nil {
		return nil, err
	}
	text := "alias " + iface + " bonding\noptions " + iface + " "
	for k, v := range options.All() {
		text += pytext.Str(k) + "=" + pytext.Str(v) + " "
	}
	if pytext.Truth(s["test"]) {
		return ended(text), nil
	}
	to := modprobeDir + iface + ".conf"
	if err := write(c, to, text, to+" cannot be written. "+modprobeDir+" does not exist"); err != nil {
		return nil, err
	}
	if _, err := c.Exec(ctx, "kmod.load", "bonding"); err != nil {
		return nil, err
	}
	if _, err := c.Exec(ctx, "pkg.install", "ifenslave"); err != nil {
		return nil, err
	}
	return contents(c, to), nil
}

// scripts returns the lines of two scripts. A missing second script is ignored. If only the first is missing it
// returns the TypeError of Python, which cannot append a list to "".
func scripts(c *modules.Call, first, second string) (any, error) {
	a, okA := file(c, first)
	b, okB := file(c, second)
	switch {
	case okA && okB:
		return append(a, b...), nil
	case okA:
		return a, nil
	case okB:
		return nil, &modules.TypeError{Msg: `can only concatenate str (not "list") to str`}
	}
	return "", nil
}

func getRoutes(_ context.Context, c *modules.Call) (any, error) {
	return scripts(c, upDir+"route-"+name(c), downDir+"route-"+name(c))
}

func buildRoutes(ctx context.Context, c *modules.Call) (any, error) {
	opts := map[string]any{}
	for k, v := range c.Keywords {
		opts[strings.ToLower(k)] = v
	}
	v, ok := opts["routes"]
	if !ok {
		return nil, ifcfg.InvalidRoutes(name(c))
	}
	routes, isList := v.([]any)
	if !isList && pytext.Truth(v) {
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not iterable"}
	}
	up, err := routeScript("add", name(c), routes)
	if err != nil {
		return nil, err
	}
	down, err := routeScript("del", name(c), routes)
	if err != nil {
		return nil, err
	}
	if pytext.Truth(c.Keywords["test"]) {
		return ended(up + down), nil
	}
	// ifup runs only scripts without dots in their names.
	script := "route-" + strings.ReplaceAll(name(c), ".", "_")
	for _, s := range [...]struct{ dir, text string }{{upDir, up}, {downDir, down}} {
		if err := write(c, s.dir+script, s.text, s.dir+script+" cannot be written. "+s.dir+" does not exist"); err != nil {
			return nil, err
		}
		if _, err := c.Exec(ctx, "file.set_mode", s.dir+script, "0755"); err != nil {
			return nil, err
		}
	}
	return scripts(c, upDir+script, downDir+script)
}

func up(ctx context.Context, c *modules.Call) (any, error)   { return bring(ctx, c, "ifup") }
func down(ctx context.Context, c *modules.Call) (any, error) { return bring(ctx, c, "ifdown") }

// bring starts or stops an interface; slaves are their master's business.
func bring(ctx context.Context, c *modules.Call, program string) (any, error) {
	if kind := c.Value("iface_type"); kind == "slave" || kind == "source" {
		return nil, nil
	}
	return saltcmd.Text(ctx, c, program, c.Value("iface"))
}

func applyNetworkSettings(ctx context.Context, c *modules.Call) (any, error) {
	s, named := c.Keywords, any(true)
	if yes, _ := ifcfg.Truth(s["apply_hostname"]); yes {
		named = false
		if v, ok := s["hostname"]; ok {
			var err error
			if named, err = c.Exec(ctx, "network.mod_hostname", v); err != nil {
				return nil, err
			}
		} else {
			c.Logger().Warn("The network state sls is trying to apply hostname changes but no hostname is defined.")
		}
	}
	done := any(true)
	if yes, _ := ifcfg.Truth(s["require_reboot"]); yes {
		c.Logger().Warn("The network state sls is requiring a reboot of the system to properly apply network configuration.")
	} else {
		var err error
		if done, err = c.Exec(ctx, "service.stop", "networking"); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(2 * time.Second):
		}
		if pytext.Truth(done) {
			if done, err = c.Exec(ctx, "service.start", "networking"); err != nil {
				return nil, err
			}
		}
	}
	if !pytext.Truth(named) {
		return named, nil
	}
	return done, nil
}
