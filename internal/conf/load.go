package conf

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Options control LoadMinionWith and LoadMasterWith. The zero value means the behaviour of Salt's daemons, without
// environment variables.
type Options struct {
	// Overrides replace effective options at the very end, as command line flags do in Salt.
	Overrides map[string]any
	// Settings override the files before defaults are derived and root_dir is applied. They are the configuration of a
	// program that embeds a minion.
	Settings map[string]any
	// Tool treats a broken included file as empty, and a main file without read permission as missing, as stock does.
	// Without Tool both are errors, since a daemon would run without the restrictions in these files.
	Tool bool
	// CacheID writes a guessed id to the minion_id file.
	CacheID bool
	// ReadOnly leaves a broken _schedule.conf in place.
	ReadOnly bool
	// CLI is the value of the option __cli: the name of the program.
	CLI string
	// Getenv reads the environment: SALT_MINION_CONFIG, SALT_MASTER_CONFIG and SALT_CONFIG_DIR. nil means an empty
	// environment.
	Getenv func(string) string
	// Trust, if set, checks every file before it is read; see OwnerPolicy.
	Trust func(path string) error
	// Host answers questions about the host, to guess an id; nil uses the real host.
	Host *Host
}

// LoadMinion returns the effective options of a minion: defaults, the file at path, its includes, then overrides. A
// missing file means defaults. If path is "", no file is read.
func LoadMinion(path string, overrides map[string]any) (*Config, error) {
	return LoadMinionWith(path, Options{Overrides: overrides})
}

// LoadMaster is like LoadMinion for a master.
func LoadMaster(path string, overrides map[string]any) (*Config, error) {
	return LoadMasterWith(path, Options{Overrides: overrides, Tool: true})
}

// LoadMinionWith is like LoadMinion with all options (salt.config.minion_config).
func LoadMinionWith(path string, o Options) (*Config, error) {
	l := &loader{Options: o, Config: &Config{Path: path}, defaults: MinionDefaults(), name: "minion"}
	return l.load((*loader).applyMinion)
}

// LoadMasterWith is like LoadMaster with all options (salt.config.master_config).
func LoadMasterWith(path string, o Options) (*Config, error) {
	l := &loader{Options: o, Config: &Config{Path: path}, defaults: MasterDefaults(), name: "master"}
	return l.load((*loader).applyMaster)
}

type loader struct {
	Options
	*Config
	defaults map[string]any
	name     string // minion or master
}

func (l *loader) load(apply func(*loader, map[string]any) error) (*Config, error) {
	files := map[string]any{}
	if l.Path != "" {
		main, err := l.main()
		if err != nil {
			return nil, err
		}
		files = main
		defaultInclude, ok := files["default_include"]
		if !ok {
			defaultInclude = l.defaults["default_include"]
		}
		include := files["include"]
		for i, inc := range []any{defaultInclude, include} {
			more, err := l.include(inc, l.Path, i == 1, 0)
			if err != nil {
				return nil, err
			}
			override(files, more)
		}
	}
	override(files, l.Settings)
	l.takeOrder(files)
	l.Given = make(map[string]bool, len(files))
	for k := range files {
		l.Given[k] = true
	}
	if err := apply(l, files); err != nil {
		return nil, err
	}
	l.validateTypes()
	l.validateValues()
	if l.name == "master" {
		l.nodegroups()
	}
	for k, v := range l.Overrides {
		l.Opts[k] = v
	}
	return l.Config, nil
}

// main reads the main file (salt.config.load_config). Environment variables replace the path only if it is the
// default.
func (l *loader) main() (map[string]any, error) {
	path := l.Path
	if l.Getenv != nil && path == l.defaults["conf_file"] {
		env := l.Getenv("SALT_" + strings.ToUpper(l.name) + "_CONFIG")
		if env == "" {
			if dir := l.Getenv("SALT_CONFIG_DIR"); dir != "" {
				env = filepath.Join(dir, l.name)
			}
		}
		if env != "" && isFile(env) {
			path = env
		}
	}
	fi, err := os.Stat(path)
	switch {
	case err == nil && fi.IsDir():
		// Stock uses the defaults: a master would listen on all addresses, and a minion might have another id.
		return nil, &Error{Path: path, Msg: "it is a directory"}
	case errors.Is(err, os.ErrPermission):
		return l.unreadable(path, err)
	case err != nil || !fi.Mode().IsRegular():
		l.note(slog.LevelDebug, "Missing configuration file: %s", path)
		return map[string]any{}, nil
	}
	opts, err := l.file(path)
	if errors.Is(err, os.ErrPermission) {
		return l.unreadable(path, err)
	}
	if err != nil {
		return nil, err
	}
	opts["conf_file"] = path
	return opts, nil
}

// unreadable returns empty options for a tool, and an error otherwise.
func (l *loader) unreadable(path string, err error) (map[string]any, error) {
	// guard: lost-configuration TestLostConfiguration
	if !l.Tool {
		return nil, &Error{Path: path, Msg: err.Error()}
	}
	l.note(slog.LevelWarn, "The configuration file %s may not be read: the defaults are used", path)
	return map[string]any{}, nil
}

func isFile(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}

// file reads one file (salt.config._read_conf_file).
func (l *loader) file(path string) (map[string]any, error) {
	if l.Trust != nil {
		if err := l.Trust(path); err != nil {
			return nil, err
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read configuration file: %w", err)
	}
	l.Files, l.Sets = append(l.Files, path), append(l.Sets, nil)
	v, err := yaml.Parse(b, path)
	if err != nil {
		bad := &Error{Path: path, Msg: err.Error()}
		var at *yaml.Error
		if errors.As(err, &at) {
			bad.Line = at.Line
			if at.FirstLine > 0 {
				key := strings.TrimPrefix(at.Problem, "found conflicting ID ")
				bad.Msg += fmt.Sprintf("\nThe key %s is duplicate: it is set in line %d already", key, at.FirstLine)
			}
		}
		if !strings.HasSuffix(path, "_schedule.conf") {
			return nil, bad
		}
		// The minion writes this file; a broken one must not prevent its start.
		l.note(slog.LevelError, "%s", bad.Error())
		if l.ReadOnly {
			return map[string]any{}, nil
		}
		l.note(slog.LevelError, "Renaming to %sYAMLError", path)
		if err := os.Rename(path, path+"YAMLError"); err != nil {
			return nil, fmt.Errorf("cannot rename broken configuration file: %w", err)
		}
		return map[string]any{}, nil
	}
	if !pytext.Truth(v) {
		v = map[string]any{}
	}
	opts := textMap(v)
	if opts == nil {
		return nil, &Error{Path: path, Line: 1, Msg: "conf should be a document, not <class '" + pyType(v) + "'>."}
	}
	l.Sets[len(l.Sets)-1] = slices.Sorted(maps.Keys(opts))
	noteOrder(opts, b, path)
	if id, ok := opts["id"]; ok {
		if _, text := id.(string); !text {
			opts["id"] = pytext.Str(id)
		}
	}
	return opts, nil
}

// maxIncludeDepth stops files that include each other. Salt recurses until Python's stack overflows.
const maxIncludeDepth = 32

// include reads the files of an include option (salt.config.include_config). Their mappings are merged deeply and
// their lists are concatenated. The caller replaces whole options of the main file by the result.
func (l *loader) include(include any, orig string, verbose bool, depth int) (map[string]any, error) {
	if depth > maxIncludeDepth {
		return nil, &Error{Path: orig, Msg: fmt.Sprintf("files include each other more than %d levels deep", maxIncludeDepth)}
	}
	var patterns []any
	switch v := include.(type) {
	case string:
		if v != "" {
			patterns = []any{v}
		}
	case []any:
		patterns = v
	}
	merged := map[string]any{}
	for _, p := range patterns {
		pattern, ok := p.(string)
		if !ok {
			return nil, &Error{Path: orig, Msg: "include must name files, not " + pytext.Repr(p)}
		}
		pattern = expandUser(pattern)
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(filepath.Dir(orig), pattern)
		}
		matches := glob(pattern)
		if len(matches) == 0 && verbose {
			l.note(slog.LevelWarn, "Warning parsing configuration file: \"include\" path/glob '%s' matches no files", pattern)
		}
		for _, path := range matches {
			opts, err := l.file(path)
			if err != nil {
				// guard: lost-configuration TestLostConfiguration
				if !l.Tool || !errors.As(err, new(*Error)) {
					return nil, err
				}
				l.note(slog.LevelError, "%s", err.Error())
				opts = map[string]any{}
			}
			if schedule, ok := opts["schedule"].(map[string]any); ok && len(schedule) > 0 {
				if have, ok := merged["schedule"].(map[string]any); ok {
					for k, v := range schedule {
						have[k] = v
					}
				}
			}
			if pytext.Truth(opts["include"]) {
				more, err := l.include(opts["include"], path, verbose, depth+1)
				if err != nil {
					return nil, err
				}
				override(opts, more)
			}
			mergeInto(merged, opts)
		}
	}
	return merged, nil
}

// mergeInto implements salt.utils.dictupdate.update with merge_lists: mappings are merged deeply, lists without
// duplicates.
func mergeInto(dest, upd map[string]any) {
	for k, v := range upd {
		switch have := dest[k].(type) {
		case map[string]any:
			if more, ok := v.(map[string]any); ok {
				mergeInto(have, more)
				continue
			}
		case []any:
			if more, ok := v.([]any); ok {
				dest[k] = union(have, more)
				continue
			}
		case *pyobj.Dict:
			dest[k] = mergeOrder(have, v.(*pyobj.Dict))
			continue
		case map[any]any:
			if more := anyMap(v); more != nil {
				for mk, mv := range more {
					have[mk] = mv
				}
				continue
			}
		}
		dest[k] = v
	}
}

func anyMap(v any) map[any]any {
	switch v := v.(type) {
	case map[any]any:
		return v
	case map[string]any:
		m := make(map[any]any, len(v))
		for k, e := range v {
			m[k] = e
		}
		return m
	}
	return nil
}

func union(have, more []any) []any {
	out := append([]any(nil), have...)
	for _, v := range more {
		// Salt compares with the list as it was, so duplicates within the second list stay.
		found := false
		for _, h := range have {
			if pyEqual(h, v) {
				found = true
				break
			}
		}
		if !found {
			out = append(out, v)
		}
	}
	return out
}
