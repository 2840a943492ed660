//go:build custom && !viper

package saltcli

import (
	"os"
	"strings"
)

// plainLayers replaces viper in builds for small machines. Viper and its dependencies take two megabytes.
type plainLayers struct {
	set   map[string]any
	bound map[string]bool
}

func newLayers() layers { return &plainLayers{set: map[string]any{}, bound: map[string]bool{}} }

// BindEnv allows options to be set by the environment.
func (l *plainLayers) BindEnv(names ...string) error {
	for _, name := range names {
		l.bound[name] = true
	}
	return nil
}

// Set sets an option. It takes precedence over the environment.
func (l *plainLayers) Set(name string, value any) { l.set[name] = value }

// IsSet reports whether an option has a value. As in viper, an empty variable counts as not set.
func (l *plainLayers) IsSet(name string) bool { return l.Get(name) != nil }

// Get returns the value of an option, or nil if it is not set.
func (l *plainLayers) Get(name string) any {
	if v, ok := l.set[name]; ok {
		return v
	}
	if text := os.Getenv(envPrefix + "_" + strings.ToUpper(name)); l.bound[name] && text != "" {
		return text
	}
	return nil
}
