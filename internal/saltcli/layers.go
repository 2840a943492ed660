package saltcli

import (
	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/python/yaml"
)

// envPrefix is the prefix of environment variables that set options: BRINE_MASTER is the option master. Stock has
// no such variables; containers need them.
const envPrefix = "BRINE"

// layers hold options: those that were set go over those of the environment that were bound.
type layers interface {
	BindEnv(name ...string) error
	Set(name string, value any)
	IsSet(name string) bool
	Get(name string) any
}

// overrides returns the options that replace those of the configuration files: the command line's over the
// environment's. Only options with a single value can come from the environment, typed as YAML.
//
// viper keeps these layers, in builds that have it (newLayers). It never sees a configuration file: it would fold
// the case of every key in it (package conf reads the files).
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

// typed converts a value of the command line to the option's type: a boolean written as a word becomes a bool. Any
// other word stays text, which counts as true, as in stock's process_state_verbose.
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
