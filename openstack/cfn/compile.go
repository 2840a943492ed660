package cfn

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// slsName and slsEnv are the SLS file and environment that the states of the metadata show.
const (
	slsName = "cfn"
	slsEnv  = "base"
)

// maxSteps limits the states of one run: configSets can include each other many times.
const maxSteps = 10000

// Host holds the facts about the host that the compiler needs.
type Host struct {
	// Family is the grain os_family. If it is "", the host is unknown and any package manager is accepted.
	Family string
	// CreateHome reports whether useradd creates home directories by default (CREATE_HOME in login.defs).
	CreateHome bool
	// Group reports whether the host has a group with the name. nil means that it has no groups.
	Group func(name string) bool
	// Dir is the working directory of commands without cwd.
	Dir string
	// Home is the directory for "~".
	Home string
}

// Step is a state that was compiled from the metadata.
type Step struct {
	// ID is the state's id in the high data.
	ID string
	// Config, Section and Name are its place in the metadata: "config", "files", "/etc/motd".
	Config, Section, Name string
}

// Compiled is metadata compiled to states.
type Compiled struct {
	// High is Salt's high data. Each id has one state, which requires the previous one.
	High *pyobj.Dict
	// Steps lists the states in the order in which they run.
	Steps []Step
	// Warnings describe parts of the metadata without effect.
	Warnings []string
}

// compiler converts metadata to high data.
type compiler struct {
	host Host
	out  Compiled
	errs []error

	config, section string
	last            *ref
	// made holds the states of the current configuration by section and name, for the triggers of services.
	made map[[2]string][]ref
	// dirs holds the directories that a state creates already.
	dirs map[string]bool
}

// ref is a state that others require or watch.
type ref struct{ state, id string }

func (r ref) dict() *pyobj.Dict { return pyobj.NewDict(r.state, r.id) }

// arg is an argument of a state.
type arg struct {
	key   string
	value any
}

// Compile converts metadata (an ordered or plain map) to states. sets is a list of configSets, separated by commas.
// If it is "", the set "default" is used or, without configSets, the configuration "config". The error joins a
// [*DocumentError] for each invalid value.
func Compile(metadata any, sets string, host Host) (*Compiled, error) {
	root, ok := node{"", pyobj.From(metadata)}.child(initKey)
	if !ok || !pyobj.Truth(root.v) {
		return nil, fmt.Errorf("the metadata has no %s", initKey)
	}
	root.path = ""
	if _, ok := root.v.(*pyobj.Dict); !ok {
		return nil, node{initKey, root.v}.mustBe("a map")
	}
	names, err := configNames(root, sets)
	if err != nil {
		return nil, err
	}
	c := &compiler{host: host, out: Compiled{High: pyobj.NewDict()}, dirs: map[string]bool{}}
	for _, name := range names {
		n, ok := root.child(name)
		if !ok {
			return nil, fmt.Errorf("the metadata has no configuration %q; configSets or -c may have to name another one", name)
		}
		c.oneConfig(name, n)
		if len(c.out.Steps) > maxSteps {
			return nil, fmt.Errorf("the metadata has more than %d steps", maxSteps)
		}
	}
	if len(c.errs) > 0 {
		return nil, fmt.Errorf("cannot use the metadata: %w", joined(c.errs))
	}
	return &c.out, nil
}

// joined is like errors.Join, but the error's text is one line.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return oneLine{errors.Join(errs...)}
}

type oneLine struct{ error }

func (e oneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }
func (e oneLine) Unwrap() error { return e.error }

// fail records an error, and reports whether there was one.
func (c *compiler) fail(err error) bool {
	if err != nil {
		c.errs = append(c.errs, err)
	}
	return err != nil
}

func (c *compiler) warn(n node, format string, args ...any) {
	c.out.Warnings = append(c.out.Warnings, n.path+" "+fmt.Sprintf(format, args...))
}

// oneConfig compiles one configuration, with its sections in the order of heat-cfntools.
func (c *compiler) oneConfig(name string, n node) {
	if _, err := n.entries(); c.fail(err) {
		return
	}
	c.config, c.made = name, map[[2]string][]ref{}
	known := map[string]bool{}
	for _, s := range [...]struct {
		name    string
		compile func(node)
	}{
		{"packages", c.packages}, {"sources", c.sources}, {"groups", c.groups}, {"users", c.users},
		{"files", c.files}, {"commands", c.commands}, {"services", c.services},
	} {
		known[s.name] = true
		if section, ok := n.child(s.name); ok {
			c.section = s.name
			s.compile(section)
		}
	}
	list, _ := n.entries()
	for _, e := range list {
		if !known[e.key] {
			c.warn(e.node, "is not a section that cfn-init knows")
		}
	}
}

// add appends a state that requires the previous one.
func (c *compiler) add(name, state, fun string, args ...arg) {
	id := fmt.Sprintf("cfn-%04d %s %s", len(c.out.Steps)+1, c.section, plainID(name))
	list := pyobj.NewList(fun)
	for _, a := range args {
		list.Items = append(list.Items, pyobj.NewDict(a.key, a.value))
	}
	if c.last != nil {
		list.Items = append(list.Items, pyobj.NewDict("require", pyobj.NewList(c.last.dict())))
	}
	body := pyobj.NewDict(state, list, "__sls__", slsName, "__env__", slsEnv)
	if err := c.out.High.Set(id, body); c.fail(err) {
		return
	}
	c.out.Steps = append(c.out.Steps, Step{ID: id, Config: c.config, Section: c.section, Name: name})
	c.last = &ref{state, id}
	key := [2]string{c.section, name}
	c.made[key] = append(c.made[key], *c.last)
}

// plainID replaces control characters, and those that requisites interpret as patterns.
func plainID(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune("*?[]", r) {
			return '_'
		}
		return r
	}, name)
}

// unknown adds a warning for each key of an entry that has no effect. It returns an error if the entry is not a map.
func (c *compiler) unknown(n node, known ...string) error {
	list, err := n.entries()
	for _, e := range list {
		if !slices.Contains(known, e.key) {
			c.warn(e.node, "has no effect")
		}
	}
	return err
}
