package saltcli

import (
	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/python/yaml"
)

// envPrefix is the prefix of environment variables that set options: BRINE_MASTER sets the option master. Stock has
// no such variables; they are for containers.
const envPrefix = "BRINE"

// layers hold options. Set options take precedence over those that are bound to the environment.
type layers interface {
	BindEnv(name ...string) error
	Set(name string, value any)
	IsSet(name string) bool
	Get(name string) any
}

// overrides returns the options that replace those of the configuration files: first the command line's, then the
// environment's. Only options with a single value can be set by the environment; the value is parsed as YAML.
//
// In builds with viper (newLayers), it manages these layers. It never reads a configuration file, since it would
// convert all keys to lower case; package conf reads the files.
func overrides(role Role, p *optparse.Parser, values *optparse.Values) (map[string]any, error) {
	defaults := conf.MinionDefaults()
	if role == Master {
		defaults = conf.MasterDefaults()
	}
	l := newLayers()
	for name, def := range defaults {
		switch def.(type) {
		case map[string]any, []any:
			continue
		}
		if err := l.BindEnv(name); err != nil {
			return nil, err
		}
	}
	for _, dest := range p.Dests() {
		if values.IsSet(dest) {
			values.Put(dest, typed(values.Get(dest), defaults[dest]))
			l.Set(dest, values.Get(dest))
		}
	}
	over := map[string]any{}
	for name := range defaults {
		if !l.IsSet(name) {
			continue
		}
		value := l.Get(name)
		if text, ok := value.(string); ok && !values.IsSet(name) {
			value = yaml.ParseValue(text)
		}
		over[name] = value
	}
	return over, nil
}

// typed converts a value of the command line to the option's type: the words for booleans become a bool. Any other
// word remains text, which counts as true, as in stock's process_state_verbose.
func typed(value, def any) any {
	text, ok := value.(string)
	if _, boolean := def.(bool); !ok || !boolean {
		return value
	}
	switch text {
	case "True", "true":
		return true
	case "False", "false":
		return false
	}
	return value
}
