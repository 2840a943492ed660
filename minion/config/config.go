// Package config reads Salt's configuration files for programs that embed a minion: the file with its includes and drop-in directory,
// Salt's defaults, and the id. A program that has its configuration from elsewhere gives [minion.Options].Opts a map instead, and
// is smaller.
package config

import "github.com/brine-salt/brine/internal/conf"

// Load reads the configuration of a minion ("/etc/salt/minion"). A file that is missing means defaults; path "" reads no file.
// The settings replace what the files say, as if they were written there: root_dir, for instance, moves all directories.
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
