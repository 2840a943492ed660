package trove

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Groups of overrides. Their names determine the order of the files (trove.guestagent.common.configuration).
const (
	systemBefore = "10-system"
	userGroup    = "20-user"
	systemAfter  = "50-system"

	commonChange  = "common"
	masterChange  = "master-replication"
	replicaChange = "slave-replication"

	serverSection = "mysqld"
)

// override is a file <group>-<number>-<change>.<extension> in the directory that the server's configuration includes.
type override struct {
	file, group, change string
	number              int
}

// overrides returns the files of a group, or of all groups for "", in the order in which the server reads them.
func (g *guest) overrides(group string) ([]override, error) {
	entries, err := os.ReadDir(g.c.Path(g.includeDir))
	if err != nil && !missing(err) {
		return nil, modules.Errorf("cannot read the directory %s: %v", g.includeDir, err)
	}
	pattern := regexp.MustCompile(`^(10-system|20-user|50-system)-([0-9]+)-(.+)\.` + g.syntax.extension() + `$`)
	var list []override
	for _, e := range entries {
		m := pattern.FindStringSubmatch(e.Name())
		if m == nil || group != "" && m[1] != group {
			continue
		}
		n, _ := strconv.Atoi(m[2])
		list = append(list, override{path.Join(g.includeDir, e.Name()), m[1], m[3], n})
	}
	slices.SortFunc(list, func(a, b override) int { return cmp.Compare(a.file, b.file) })
	return list, nil
}

// findOverride returns the file of a change, or nil if it is missing.
func (g *guest) findOverride(group, change string) (*override, error) {
	list, err := g.overrides(group)
	for i := range list {
		if list[i].change == change {
			return &list[i], err
		}
	}
	return nil, err
}

// applyOverride writes the values of a change. It keeps other values that the change had.
func (g *guest) applyOverride(group, change string, values map[string]any) error {
	if err := g.ensureDir(g.includeDir, 0o755); err != nil {
		return err
	}
	found, err := g.findOverride(group, change)
	if err != nil {
		return err
	}
	text := ""
	if found == nil {
		list, err := g.overrides(group)
		if err != nil {
			return err
		}
		n := 1
		if len(list) > 0 {
			n = list[len(list)-1].number + 1
		}
		found = &override{file: path.Join(g.includeDir, fmt.Sprintf("%s-%03d-%s.%s", group, n, change, g.syntax.extension()))}
	} else {
		b, err := os.ReadFile(g.c.Path(found.file))
		if err != nil {
			return modules.Errorf("cannot read %s: %v", found.file, err)
		}
		text = string(b)
	}
	var set []iniKey
	for _, key := range slices.Sorted(maps.Keys(values)) {
		k, err := g.syntax.option(key, values[key])
		if err != nil {
			return err
		}
		set = append(set, k)
	}
	return g.writeFile(found.file, []byte(g.syntax.merge(text, set)), g.overrideMode)
}

// removeOverride removes a change.
func (g *guest) removeOverride(group, change string) error {
	found, err := g.findOverride(group, change)
	if err != nil || found == nil {
		return err
	}
	if err := os.Remove(g.c.Path(found.file)); err != nil {
		return modules.Errorf("cannot remove %s: %v", found.file, err)
	}
	return atomicfile.SyncDir(g.c.Path(g.includeDir))
}

// configured returns an option's value in the configuration files. The last file takes precedence.
func (g *guest) configured(name string) (string, error) {
	list, err := g.overrides("")
	if err != nil {
		return "", err
	}
	value := ""
	for _, file := range append([]override{{file: g.configFile}}, list...) {
		b, err := os.ReadFile(g.c.Path(file.file))
		if missing(err) {
			continue
		}
		if err != nil {
			return "", modules.Errorf("cannot read %s: %v", file.file, err)
		}
		if v := g.syntax.value(string(b), name); v != "" {
			value = v
		}
	}
	return value, nil
}

// resetConfiguration writes the base configuration.
func (g *guest) resetConfiguration(v any) error {
	text, ok := v.(string)
	if !ok {
		return modules.Usagef("config_contents must be a text, not %s", modules.TypeName(v))
	}
	if err := g.ensureDir(path.Dir(g.configFile), 0o755); err != nil {
		return err
	}
	return g.writeFile(g.configFile, []byte(text), 0o644)
}

func (g *guest) resetConfigurationCall() error {
	m, err := g.c.Map("configuration")
	if err != nil {
		return err
	}
	return g.resetConfiguration(m["config_contents"])
}

// userOverrides writes the values of a configuration group.
func (g *guest) userOverrides(v any) error {
	if !pytext.Truth(v) {
		return nil
	}
	values, ok := v.(map[string]any)
	if !ok {
		return modules.Usagef("overrides must be a dictionary, not %s", modules.TypeName(v))
	}
	return g.applyOverride(userGroup, commonChange, values)
}

func (g *guest) updateOverrides() error {
	if g.c.Bool("remove") {
		if err := g.removeOverride(userGroup, commonChange); err != nil {
			return err
		}
	}
	return g.userOverrides(g.c.Value("overrides"))
}
