package cfn

import (
	"path"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/modules/pyobj"
)

// manager is a package manager in the section packages.
type manager struct {
	name string
	// families are the values of os_family for hosts that have it. Empty means any host.
	families []string
	compile  func(c *compiler, m manager, n node)
	// newer compares two versions. The result is positive if the first one is newer.
	newer func(a, b string) int
}

// managers are in the order in which they are applied. Those after dnf are applied in the order of their names.
var managers = [...]manager{
	{"dpkg", []string{"Debian"}, fromURL, debVersion},
	{"rpm", []string{"RedHat", "Suse"}, fromURL, pkgversion.RPM},
	{"apt", []string{"Debian"}, fromRepository, debVersion},
	{"yum", []string{"RedHat"}, fromRepository, pkgversion.RPM},
	{"dnf", []string{"RedHat"}, fromRepository, pkgversion.RPM},
	{"python", nil, fromPyPI, pkgversion.Python},
	{"rubygems", nil, fromGems, looseVersion},
	{"zypper", []string{"Suse"}, fromRepository, pkgversion.RPM},
}

func debVersion(a, b string) int {
	n, ok := pkgversion.Deb(a, b)
	if !ok {
		return strings.Compare(a, b)
	}
	return n
}

func looseVersion(a, b string) int {
	n, ok := pkgversion.Loose(a, b)
	if !ok {
		return strings.Compare(a, b)
	}
	return n
}

func (c *compiler) packages(n node) {
	list, err := n.entries()
	if c.fail(err) {
		return
	}
	for _, m := range managers {
		if section, ok := n.child(m.name); ok && pyobj.Truth(section.v) {
			if c.host.Family != "" && m.families != nil && !slices.Contains(m.families, c.host.Family) {
				c.fail(section.wrong("cannot be applied: this host is of the family %s, which has no %s", c.host.Family, m.name))
				continue
			}
			m.compile(c, m, section)
		}
	}
	for _, e := range list {
		if !slices.ContainsFunc(managers[:], func(m manager) bool { return m.name == e.key }) {
			c.warn(e.node, "is not a package manager that cfn-init knows; its packages are skipped")
		}
	}
}

// newest returns the newest of the requested versions, or "" for any version.
func (c *compiler) newest(m manager, n node) string {
	versions, err := n.texts()
	if c.fail(err) || len(versions) == 0 {
		return ""
	}
	return slices.MaxFunc(versions, m.newer)
}

// fromRepository installs the packages of a manager with one state, since they may depend on each other.
func fromRepository(c *compiler, m manager, n node) {
	list, err := n.entries()
	if c.fail(err) {
		return
	}
	pkgs := pyobj.NewList()
	for _, e := range list {
		version := c.newest(m, e.node)
		switch {
		case version == "":
			pkgs.Items = append(pkgs.Items, e.key)
			continue
		case m.name != "apt" && !strings.Contains(version, "-"):
			version += "-*" // Salt also compares the release
		}
		pkgs.Items = append(pkgs.Items, pyobj.NewDict(e.key, version))
	}
	c.add(m.name, "pkg", "installed", arg{"pkgs", pkgs}, arg{"refresh", false})
	for _, e := range list {
		c.made[[2]string{m.name, e.key}] = []ref{*c.last}
	}
}

// fromURL installs package files from the places in the values.
func fromURL(c *compiler, m manager, n node) {
	list, err := n.entries()
	if c.fail(err) {
		return
	}
	sources := pyobj.NewList()
	for _, e := range list {
		places, err := e.texts()
		if err == nil && len(places) != 1 {
			err = e.wrong("must be the place of one package file")
		}
		if c.fail(err) {
			continue
		}
		sources.Items = append(sources.Items, pyobj.NewDict(e.key, places[0]))
	}
	c.add(m.name, "pkg", "installed", arg{"sources", sources}, arg{"refresh", false})
	for _, e := range list {
		c.made[[2]string{m.name, e.key}] = []ref{*c.last}
	}
}

func fromGems(c *compiler, m manager, n node) {
	list, err := n.entries()
	if c.fail(err) {
		return
	}
	for _, e := range list {
		args := []arg{{"name", e.key}}
		if v := c.newest(m, e.node); v != "" {
			args = append(args, arg{"version", v})
		}
		c.add(path.Join(m.name, e.key), "gem", "installed", args...)
		c.made[[2]string{m.name, e.key}] = []ref{*c.last}
	}
}

func fromPyPI(c *compiler, m manager, n node) {
	list, err := n.entries()
	if c.fail(err) {
		return
	}
	for _, e := range list {
		name := e.key
		if v := c.newest(m, e.node); v != "" {
			name += "==" + v
		}
		// The template requests a system-wide package. On newer distributions pip installs it only with this variable.
		c.add(path.Join(m.name, e.key), "pip", "installed", arg{"name", name},
			arg{"env_vars", pyobj.NewDict("PIP_BREAK_SYSTEM_PACKAGES", "1")})
		c.made[[2]string{m.name, e.key}] = []ref{*c.last}
	}
}
