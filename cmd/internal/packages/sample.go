package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/brine-salt/brine/internal/conf"
)

// computed are options whose default depends on the host or on other options, so that a sample would say something
// wrong.
var computed = []string{"conf_file", "id", "ipc_mode", "open_mode_warning", "saltversion", "user",
	"worker_threads", "max_open_files"}

// sampleConfig is the configuration file of a package: pkg/<side>/head.conf, then every further option that has an
// effect, with its default, as comments.
func sampleConfig(side string) (string, error) {
	head, err := os.ReadFile("pkg/" + side + "/head.conf")
	if err != nil {
		return "", err
	}
	defaults := conf.MinionDefaults()
	if side == "master" {
		defaults = conf.MasterDefaults()
	}
	idle := conf.WithoutEffect(side)
	var b strings.Builder
	b.Write(head)
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		if slices.Contains(idle, name) || slices.Contains(computed, name) ||
			strings.Contains(string(head), "\n#"+name+":") ||
			strings.Contains(string(head), "\n"+name+":") {
			continue
		}
		text, err := yaml.Marshal(map[string]any{name: defaults[name]})
		if err != nil {
			return "", fmt.Errorf("cannot print the default of %s: %w", name, err)
		}
		for line := range strings.Lines(string(text)) {
			b.WriteString("#" + line)
		}
	}
	return b.String(), nil
}
