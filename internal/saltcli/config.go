package saltcli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/python/yaml"
)

// Place is the environment of a program.
type Place struct {
	Env  func(string) string
	Home string // for "~" and ~/.salt/Saltfile
	Dir  string // working directory
}

// Saltfile sets options that the command line did not set from a Saltfile (salt/utils/parsers.py: SaltfileMixIn): the
// file of --saltfile or SALT_SALTFILE, or ./Saltfile or ~/.salt/Saltfile if it exists. It returns the keys that are
// not options; they become configuration.
func Saltfile(p *optparse.Parser, v *optparse.Values, at Place) (map[string]any, error) {
	path := v.String("saltfile")
	if path == "" {
		path = at.Env("SALT_SALTFILE")
	}
	if path == "" {
		for _, try := range []string{filepath.Join(at.Dir, "Saltfile"), filepath.Join(at.Home, ".salt", "Saltfile")} {
			if isFile(try) {
				path = try
				break
			}
		}
	}
	if path == "" {
		return nil, nil
	}
	if !isFile(path) {
		return nil, &optparse.Error{Msg: fmt.Sprintf("'%s' file does not exist.\n", path)}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, &conf.Error{Path: path, Msg: err.Error()}
	}
	val, err := yaml.Parse(b, path)
	if err != nil {
		return nil, &conf.Error{Path: path, Msg: err.Error()}
	}
	all, _ := val.(map[string]any)
	mine, _ := all[p.Prog].(map[string]any)
	known := map[string]bool{}
	for _, dest := range p.Dests() {
		known[dest] = true
	}
	rest := map[string]any{}
	for key, value := range mine {
		switch {
		case !known[key]:
			rest[key] = value
		case !v.IsSet(key):
			v.Put(key, value)
		}
	}
	return rest, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// ConfigDir returns the absolute configuration directory. exists is false if it is missing; Salt logs a warning then.
func ConfigDir(v *optparse.Values, at Place) (dir string, exists bool) {
	dir = Expand(v.String("config_dir"), at)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(at.Dir, dir)
	}
	info, err := os.Stat(dir)
	return filepath.Clean(dir), err == nil && info.IsDir()
}

// Expand replaces a leading "~" by the home directory.
func Expand(path string, at Place) string {
	if path == "~" || len(path) > 1 && path[0] == '~' && os.IsPathSeparator(path[1]) {
		return at.Home + path[1:]
	}
	return path
}

// Merge merges the command line into the configuration. Options on the command line replace values of the
// configuration. Other options are filled in from it, and their defaults are added where it has no value
// (salt/utils/parsers.py: MergeConfigMixIn).
func Merge(p *optparse.Parser, v *optparse.Values, opts map[string]any) {
	for _, dest := range p.Dests() {
		if p.Own(dest) {
			continue
		}
		value := v.Get(dest)
		have, ok := opts[dest]
		switch {
		case value != nil && (!ok || v.IsSet(dest)):
			opts[dest] = value
		case ok:
			v.Fill(dest, have)
		}
	}
}
