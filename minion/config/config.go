// Package config reads Salt's configuration files for programs that embed a minion: the file with its includes and
// drop-in directory, Salt's defaults, and the minion id. A program that has its configuration from elsewhere sets
// [minion.Options].Opts itself, and is smaller.
package config

import "github.com/brine-salt/brine/internal/conf"

// Load reads a minion's configuration file, such as "/etc/salt/minion". A missing file means defaults; an empty
// path reads no file. settings override the files as if they were written there; root_dir, for example, moves
// all directories.
func Load(path string, settings map[string]any) (map[string]any, error) {
	c, err := conf.LoadMinionWith(path, conf.Options{Settings: settings})
	if err != nil {
		return nil, err
	}
	if _, err := conf.MinionID(c); err != nil {
		return nil, err
	}
	return c.Opts, nil
}
