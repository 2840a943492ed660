package trove

import (
	"cmp"
	"context"
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

// The groups of overrides, by which their files sort (trove.guestagent.common.configuration).
const (
	systemBefore = "10-system"
	userGroup    = "20-user"
	systemAfter  = "50-system"

	commonChange  = "common"
	masterChange  = "master-replication"
	replicaChange = "slave-replication"

	serverSection = "mysqld"
)

// override is a file <group>-<number>-<change>.cnf in the directory that the server's configuration includes.
type override struct {
	file, group, change string
	number              int
}

// overrides are the files of a group, of all groups for "", in the order in which the server reads them.
func (g *guest) overrides(group string) ([]override, error) {
	entries, err := os.ReadDir(g.c.Path(g.includeDir))
	if err != nil && !missing(err) {
		return nil, modules.Errorf("cannot read the directory %s: %v", g.includeDir, err)
	}
	pattern := regexp.MustCompile(`^(10-system|20-user|50-system)-([0-9]+)-(.+)\.cnf$`)
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

// findOverride is the file of a change, nil if there is none.
func (g *guest) findOverride(group, change string) (*override, error) {
	list, err := g.overrides(group)
	for i := range list {
		if list[i].change == change {
			return &list[i], err
		}
	}
	return nil, err
}

// applyOverride writes a change, over what the change had before.
func (g *guest) applyOverride(group, change string, values map[string]any) error {
	if err := g.ensureDir(g.includeDir, 0o755); err != nil {
		return err
	}
	found, err := g.findOverride(group, change)
	if err != nil {
		return err
	}
	var file iniFile
	if found == nil {
		list, err := g.overrides(group)
		if err != nil {
			return err
		}
		n := 1
		if len(list) > 0 {
			n = list[len(list)-1].number + 1
		}
		found = &override{file: path.Join(g.includeDir, fmt.Sprintf("%s-%03d-%s.cnf", group, n, change))}
	} else {
		b, err := os.ReadFile(g.c.Path(found.file))
		if err != nil {
			return modules.Errorf("cannot read %s: %v", found.file, err)
		}
		file = parseINI(string(b))
	}
	file.section(serverSection)
	s := &file[len(file)-1]
	for _, key := range slices.Sorted(maps.Keys(values)) {
		k, err := iniValue(key, values[key])
		if err != nil {
			return err
		}
		s.set(k)
	}
	return g.writeFile(found.file, []byte(file.String()), 0o644)
}

// iniValue is an option as Trove's codec writes it: None has no "=". A line break would begin another option.
func iniValue(name string, v any) (iniKey, error) {
	k := iniKey{name: foldOption(name), has: v != nil}
	if k.has {
		k.value = pytext.Str(v)
	}
	for _, r := range k.name + k.value {
		if r < ' ' {
			return k, modules.Errorf("cannot write the option %s: it has a line break or another control character", pytext.Repr(name))
		}
	}
	if k.name == "" || k.name[0] == '[' || k.name[0] == '!' {
		return k, modules.Errorf("cannot write the option %s: this is not an option's name", pytext.Repr(name))
	}
	return k, nil
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

// configured is an option's value in the configuration files: the last one counts.
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
		if v := parseINI(string(b)).get(serverSection, name); v != "" {
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

// userOverrides writes a configuration group's values.
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

// applyOverrides sets variables of the running server. As in Trove, one that the server refuses is only said in the log.
func (m *mysqlServer) applyOverrides(ctx context.Context) error {
	values, err := m.c.Map("overrides")
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !isVariable(key) {
			return modules.Errorf("cannot set the variable %s: this is not a variable's name", pytext.Repr(key))
		}
		err := m.exec(ctx, "SET GLOBAL "+key+variable(values[key]))
		var refused *sqlError
		if err != nil && !as(err, &refused) {
			return err
		}
		if err != nil {
			m.c.Logger().Error("Unable to set a variable of the server", "variable", key, "err", err)
		}
	}
	return nil
}

func isVariable(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '.' {
			return false
		}
	}
	return name != ""
}

// variable is "=value" in a statement. Numbers with K, M or G are bytes (trove.guestagent.common.guestagent_utils.to_bytes).
func variable(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return "=1"
		}
		return "=0"
	case string:
		if n := len(v); n > 1 {
			if factor := map[byte]int64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}[v[n-1]]; factor != 0 {
				if x, err := strconv.ParseInt(v[:n-1], 10, 64); err == nil && x >= 0 && x < 1<<32 {
					return "=" + strconv.FormatInt(x*factor, 10)
				}
			}
		}
		return "=" + quote(v)
	case int64, float64, int:
		return "=" + pytext.Str(v)
	}
	return "=" + quote(pytext.Str(v))
}

func (m *mysqlServer) makeReadOnly(ctx context.Context) error {
	value := "0"
	if m.c.Bool("read_only") {
		value = "1"
	}
	return m.exec(ctx, "SET GLOBAL read_only = "+value)
}
