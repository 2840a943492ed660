package debian_ip

import (
	"context"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/ifcfg"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

const (
	networkingFile = "/etc/default/networking"
	hostnameFile   = "/etc/hostname"
	resolvFile     = "/etc/resolv.conf"
)

// global are the settings of the whole host.
type global struct {
	networking, hostname, domain string
	search                       any  // "" or a list
	resolv                       bool // there is a resolv.conf
}

// readGlobal reads the settings of the whole host.
func readGlobal(c *modules.Call) (*global, error) {
	g := &global{search: ""}
	if lines, ok := file(c, networkingFile); ok {
		for _, x := range lines {
			line := x.(string)
			if strings.HasPrefix(line, "CONFIGURE_INTERFACES") {
				_, value, found := strings.Cut(line, "=")
				if !found {
					return nil, modules.IndexError()
				}
				g.networking = pytext.Strip(value)
			}
		}
	}
	g.readNames(c)
	return g, nil
}

// readNames reads the names of the host and its domain.
func (g *global) readNames(c *modules.Call) {
	if lines, ok := file(c, hostnameFile); ok && len(lines) > 0 {
		g.hostname = strings.TrimSuffix(lines[0].(string), "\n")
	}
	lines, ok := file(c, resolvFile)
	if g.resolv = ok; !ok {
		return
	}
	g.search = []any{}
	for _, x := range lines {
		f := strings.Fields(x.(string))
		if len(f) == 0 {
			continue
		}
		var args []any
		for _, w := range f[1:] {
			if w[0] == '#' || w[0] == ';' {
				break
			}
			args = append(args, w)
		}
		switch strings.ToLower(f[0]) {
		case "domain":
			if len(args) > 0 {
				g.domain = args[0].(string)
			}
		case "search":
			g.search = append([]any{}, args...)
		}
	}
}

// modern reports whether the system has no /etc/default/networking to look at.
func modern(c *modules.Call) bool {
	if c.Grain("osfullname") != "Ubuntu" {
		return false
	}
	major, _, _ := strings.Cut(pytext.Str(c.Grain("osrelease")), ".")
	n, err := modules.ToInt(major)
	return err == nil && n >= 12
}

// display returns the network settings as lines.
func display(networking, hostname, domain, search any) []any {
	text := ""
	for _, x := range [...]struct {
		name  string
		value any
	}{{"NETWORKING", networking}, {"HOSTNAME", hostname}, {"DOMAIN", domain}, {"SEARCH", search}} {
		if pytext.Truth(x.value) {
			text += x.name + "=" + pytext.Str(x.value) + "\n"
		}
	}
	return ended(text)
}

func getNetworkSettings(ctx context.Context, c *modules.Call) (any, error) {
	if !modern(c) {
		g, err := readGlobal(c)
		if err != nil {
			return nil, err
		}
		return display(g.networking, g.hostname, g.domain, g.search), nil
	}
	g := &global{networking: "no"}
	there, err := c.Exec(ctx, "service.available", "networking")
	if err != nil {
		return nil, err
	}
	if pytext.Truth(there) {
		runs, err := c.Exec(ctx, "service.status", "networking")
		if err != nil {
			return nil, err
		}
		if pytext.Truth(runs) {
			g.networking = "yes"
		}
	}
	g.readNames(c)
	return display(g.networking, g.hostname, g.domain, ""), nil
}

func buildNetworkSettings(ctx context.Context, c *modules.Call) (any, error) {
	now, err := readGlobal(c)
	if err != nil {
		return nil, err
	}
	opts := map[string]any{}
	for k, v := range c.Keywords {
		opts[strings.ToLower(k)] = v
	}
	enabled, ok := opts["enabled"]
	if !ok {
		enabled = now.networking
	}
	on, valid := ifcfg.Truth(enabled)
	if !valid {
		return nil, ifcfg.InvalidNetwork("networking", ifcfg.YesNo)
	}
	networking := map[bool]string{true: "yes", false: "no"}[on]
	hostname, ok := opts["hostname"]
	if !ok {
		hostname = now.hostname
	}
	if !pytext.Truth(hostname) {
		return nil, ifcfg.InvalidNetwork("hostname", "server1.example.com")
	}
	test := pytext.Truth(c.Keywords["test"])
	if modern(c) {
		if err := enable(ctx, c, on); err != nil {
			return nil, err
		}
	} else {
		text := "# Configuration for networking init script being run during\n# the boot sequence\n\n" +
			"# Set to 'no' to skip interfaces configuration on boot\nCONFIGURE_INTERFACES=" + networking + "\n\n" +
			"# Don't configure these interfaces. Shell wildcards supported/\n#EXCLUDE_INTERFACES=\n\n" +
			"# Set to 'yes' to enable additional verbosity\n#VERBOSE=no"
		if test {
			return ended(text), nil
		}
		if err := atomicfile.Replace(c.Path(networkingFile), []byte(text), 0o644); err != nil {
			return nil, modules.OSError(err)
		}
	}
	full, isText := hostname.(string)
	if !isText {
		return nil, modules.NoAttribute(hostname, "split")
	}
	short, domain, hasDomain := strings.Cut(full, ".")
	newDomain := hasDomain && domain != now.domain
	if !hasDomain {
		domain = now.domain
	}
	search, given := opts["search"]
	newSearch := given && !nested.Equal(search, now.search)
	if !given {
		search = now.search
	}
	if newDomain || newSearch {
		if err := writeResolv(c, now, domain, search, test); err != nil {
			return nil, err
		}
	}
	return display(networking, short, domain, search), nil
}

// enable enables or disables the services of the network.
func enable(ctx context.Context, c *modules.Call, on bool) error {
	fun := map[bool]string{true: "service.enable", false: "service.disable"}[on]
	for _, service := range [...]string{"NetworkManager", "networking"} {
		there, err := c.Exec(ctx, "service.available", service)
		if err == nil && pytext.Truth(there) {
			_, err = c.Exec(ctx, fun, service)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeResolv puts the domain and the domains to search into resolv.conf. As in Salt, lines that stay get a second line end.
func writeResolv(c *modules.Call, now *global, domain string, search any, test bool) error {
	lines, _ := file(c, resolvFile)
	var out []string
	if !now.resolv {
		out = append(out, "search "+pytext.Str(search), "domain "+domain)
	}
	for _, x := range lines {
		line := x.(string)
		switch {
		case begins(line, "domain"):
			line = "domain " + domain
		case begins(line, "search"):
			line = "search " + pytext.Str(search)
		}
		out = append(out, line)
	}
	if test {
		return nil
	}
	if _, err := os.Stat(c.Path(resolvFile)); err != nil {
		return ifcfg.AttributeError(resolvFile + " cannot be written. " + resolvFile + " does not exist and create is setto False")
	}
	if err := atomicfile.Replace(c.Path(resolvFile), []byte(strings.Join(out, "\n")), 0o644); err != nil {
		return modules.OSError(err)
	}
	return nil
}

// begins reports whether a line begins with a word.
func begins(line, word string) bool {
	rest, ok := strings.CutPrefix(line, word)
	return ok && rest != "" && pytext.StripLeft(rest) != rest
}
