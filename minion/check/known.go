package check

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/modkit/owncode"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners"
	"github.com/brine-salt/brine/states/render"
)

// known holds the names that the program supports.
type known struct {
	functions, states map[string]map[string]bool // by module; a nil inner map means any function
	returners         map[string]bool
	renderers         map[string]bool
	custom            map[string]bool // the host owner's modules, by name
	own               map[string]bool // the owner's other code, as directory of the tree and name
}

func knownFunctions(o Options) *known {
	c := o.Config
	k := &known{functions: declaredFunctions(o.Registry.All()), returners: map[string]bool{},
		renderers: map[string]bool{}, custom: map[string]bool{}, own: map[string]bool{}}
	has := func(fun string) bool { return hasFunction(k.functions, fun) }
	k.states = declaredFunctions(o.States.Reachable(has))
	for _, m := range returners.All() {
		k.returners[m.Called()] = true
	}
	for _, name := range render.Names() {
		k.renderers[name] = true
	}
	if c == nil {
		return k
	}
	e := &modules.Env{Opts: func() map[string]any { return c.Opts }}
	k.ownStates(e)
	for _, dirs := range [][]string{owncode.Dirs(e, "modules"), c.Strings("brine_modules_dirs")} {
		for _, dir := range dirs {
			entries, err := os.ReadDir(dir)
			if err != nil {
				continue // the doctor reports missing directories
			}
			for _, e := range entries {
				name := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name()))
				k.custom[name] = true
				k.functions[name] = nil
				if b, err := readSmall(filepath.Join(dir, e.Name())); err == nil &&
					strings.HasSuffix(e.Name(), ".py") {
					if virtual := definitionsIn(b).virtual; virtual != "" &&
						k.functions[virtual] == nil {
						k.functions[virtual] = nil
					}
				}
			}
		}
	}
	return k
}

// ownStates records the host owner's states, returners and renderers. All their functions count as present.
func (k *known) ownStates(e *modules.Env) {
	for _, kind := range []string{modules.KindStates, modules.KindReturners, modules.KindRenderers,
		modules.KindGrains} {
		for _, dir := range owncode.Dirs(e, kind) {
			entries, err := os.ReadDir(dir)
			if err != nil {
				continue
			}
			for _, entry := range entries {
				names := []string{strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name()))}
				if b, err := readSmall(filepath.Join(dir, entry.Name())); err == nil &&
					strings.HasSuffix(entry.Name(), ".py") {
					if virtual := definitionsIn(b).virtual; virtual != "" {
						names = append(names, virtual)
					}
				}
				for _, name := range names {
					switch kind {
					case modules.KindStates:
						k.states[name] = nil
					case modules.KindReturners:
						k.returners[name] = true
					case modules.KindRenderers:
						k.renderers[name] = true
					}
				}
				k.own["_"+kind+"/"+names[0]] = true
			}
		}
	}
}

func declaredFunctions(list []*modules.Module) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, m := range list {
		if m.Discover != nil {
			out[m.Called()] = nil
			continue
		}
		funs, there := out[m.Called()]
		if there && funs == nil {
			continue
		}
		if funs == nil {
			funs = map[string]bool{}
			out[m.Called()] = funs
		}
		for _, d := range m.Funcs {
			funs[d.Name] = true
		}
	}
	return out
}

// hasFunction reports whether in contains a function by its full name.
func hasFunction(in map[string]map[string]bool, fun string) bool {
	mod, name, _ := strings.Cut(fun, ".")
	funs, ok := in[mod]
	return ok && (funs == nil || funs[name])
}

// nearestName returns the function with the most similar name, or "" if none is similar.
func nearestName(in map[string]map[string]bool, fun string) string {
	mod, name, _ := strings.Cut(fun, ".")
	if funs, ok := in[mod]; ok {
		var list []string
		for f := range funs {
			list = append(list, f)
		}
		if n := conf.Near(name, list); n != "" {
			return mod + "." + n
		}
		return ""
	}
	var list []string
	for m, funs := range in {
		if funs[name] {
			list = append(list, m)
		}
	}
	if n := conf.Near(mod, list); n != "" {
		return n + "." + name
	}
	return ""
}

func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", name)
}

// quiet lists the execution functions that a rendering may call, because they only read and start no programs. A name
// that ends in a dot means a whole module.
var quiet = []string{"pillar.", "grains.get", "grains.has_value", "grains.filter_by", "grains.item",
	"grains.items", "grains.fetch", "grains.ls",
	"grains.equals", "config.", "defaults.", "slsutil.merge", "slsutil.merge_all", "slsutil.update",
	"slsutil.boolstr", "slsutil.deserialize",
	"slsutil.serialize", "match.", "log.", "environ.get", "environ.has_value", "environ.item",
	"environ.items", "hashutil.", "random.",
	"test.echo", "test.ping", "test.true", "test.false", "test.arg", "test.version",
	"test.provider", "file.dirname", "file.basename", "file.join",
	"file.file_exists", "file.directory_exists", "file.path_exists_glob", "file.is_link",
	"file.readlink", "file.readdir", "file.read", "file.stats",
	"file.access", "file.contains", "file.contains_regex", "file.search", "file.find",
	"file.get_user", "file.get_group", "file.get_mode",
	"file.get_hash", "network.interfaces", "network.ip_addrs", "network.ip_addrs6",
	"network.ipaddrs", "network.ipaddrs6", "network.ip_in_subnet",
	"network.calc_net", "network.subnets", "network.hw_addr", "network.is_loopback",
	"network.is_private", "network.in_subnet", "user.info",
	"user.list_users", "user.list_groups", "user.getent", "group.info", "group.getent", "cmd.which",
	"cmd.has_exec", "cp.list_states",
	"cp.list_master", "cp.list_master_dirs", "cp.list_master_symlinks", "cp.envs",
	"pkg.version_cmp", "status.time", "minion.list", "sys.list_modules",
	"sys.list_functions", "state.show_top", "brine.check"}

// isQuiet reports whether a rendering may call a function.
func isQuiet(fun string) bool {
	mod, name, _ := strings.Cut(fun, ".")
	return slices.ContainsFunc(quiet, func(q string) bool {
		return q == fun || q == mod+"." && name != "set" && !strings.HasPrefix(name, "setval")
	})
}

// A definition is what a site's Python file defines.
type definition struct {
	virtual   string
	functions []string
}

var (
	pyDef     = regexp.MustCompile(`(?m)^def +([A-Za-z][A-Za-z0-9_]*) *\(`)
	pyVirtual = regexp.MustCompile(`(?m)^__virtualname__ *= *['"]([A-Za-z0-9_]+)['"]`)
)

// definitionsIn finds the functions in a Python file without running it.
func definitionsIn(b []byte) definition {
	var d definition
	if m := pyVirtual.FindSubmatch(b); m != nil {
		d.virtual = string(m[1])
	}
	for _, m := range pyDef.FindAllSubmatch(b, -1) {
		d.functions = append(d.functions, string(m[1]))
	}
	return d
}

// maxFile is the size in bytes of the largest file to read. Larger files are not templates.
const maxFile = 4 << 20

func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("cannot read %s: it is not a file, or has more than %d bytes",
			path, maxFile)
	}
	return os.ReadFile(path)
}
