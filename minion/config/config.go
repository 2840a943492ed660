// Package config reads Salt's configuration files for programs that embed a minion: the file with its includes and drop-in directory,
// Salt's defaults, and the id. A program that has its configuration from elsewhere gives [minion.Options].Opts a map instead, and
// is smaller.
package config

import "github.com/brine-salt/brine/internal/conf"

// Load reads the configuration of a minion ("/etc/salt/minion"). A file that is missing means defaults; path "" reads no file.
// The overrides replace what the files say.
func Load(path string, overrides map[string]any) (map[string]any, error) {
	c, err := conf.LoadMinion(path, overrides)
	if err != nil {
		return nil, err
	}
	if _, err := conf.MinionID(c); err != nil {
		return nil, err
	}
	return c.Opts, nil
}
