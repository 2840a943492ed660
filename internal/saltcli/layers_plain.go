//go:build custom && !viper

package saltcli

import (
	"os"
	"strings"
)

// plainLayers replaces viper in builds for small machines: viper and its dependencies take two megabytes.
type plainLayers struct {
	set   map[string]any
	bound map[string]bool
}

func newLayers() layers { return &plainLayers{set: map[string]any{}, bound: map[string]bool{}} }

// BindEnv lets options come from the environment.
func (l *plainLayers) BindEnv(names ...string) error {
	for _, name := range names {
		l.bound[name] = true
	}
	return nil
}

// Set sets an option; it overrides the environment.
func (l *plainLayers) Set(name string, value any) { l.set[name] = value }

// IsSet reports whether an option has a value. An empty variable counts as not set, as with viper.
func (l *plainLayers) IsSet(name string) bool { return l.Get(name) != nil }

// Get returns the value of an option, or nil if it has none.
func (l *plainLayers) Get(name string) any {
	if v, ok := l.set[name]; ok {
		return v
	}
	if text := os.Getenv(envPrefix + "_" + strings.ToUpper(name)); l.bound[name] && text != "" {
		return text
	}
	return nil
}
