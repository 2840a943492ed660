// Package jobenv is the environment that one job sees: the process's environment with the job's changes. Jobs share a
// process, so they must not change the real environment.
package jobenv

import (
	"os"
	"strings"
)

// Map returns the environment of this process with changes. A change is "name=value", or a name alone to remove a
// variable, as in modules.Context.Environ.
func Map(changes []string) map[string]string {
	env := map[string]string{}
	for _, line := range append(os.Environ(), changes...) {
		name, value, ok := strings.Cut(line, "=")
		switch {
		case name == "":
			// Windows stores the current directories of drives in names that begin with "=".
		case ok:
			env[name] = value
		default:
			delete(env, name)
		}
	}
	return env
}
