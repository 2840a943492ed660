// Package jobenv is the process environment as one job sees it: that of the program with the job's own changes. Jobs share a
// process, so none may change the real one.
package jobenv

import (
	"os"
	"strings"
)

// Map returns the environment of this process after changes. A change is "name=value", or a bare name for a variable
// to remove, as modules.Context.Environ lists them.
func Map(changes []string) map[string]string {
	env := map[string]string{}
	for _, line := range append(os.Environ(), changes...) {
		name, value, ok := strings.Cut(line, "=")
		switch {
		case name == "":
			// Windows keeps the current directories of drives in names that begin with "=".
		case ok:
			env[name] = value
		default:
			delete(env, name)
		}
	}
	return env
}
