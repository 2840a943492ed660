// Package execplugin makes programs execution modules: an executable file in a directory of the host is a module, its file name
// is the module's name, and it may be written in any language. "program describe" prints what functions there are, "program call
// <function>" runs one: arguments come as JSON on standard input, the result goes as JSON to standard output, standard error is
// the log, the exit status is the return code. Functions that ask for it talk in messages instead, one JSON object a line, and may
// report progress and call other functions. The protocol is laid down in docs/plugins.md; package conformance checks a program
// against it.
//
// The same protocol is spoken with a program of ours, host.py, in which Salt execution modules run that are installed on the host
// ([Python]).
//
// Only programs that nobody but root, or the user the agent runs as, can change are run. Nothing here ever comes from a master.
//
// Both kinds are a [modules.Source]: files that come, change or go are noticed without a restart.
package execplugin

import "github.com/brine-salt/brine/modules"

func init() {
	modules.RegisterSource(&Source{})
	modules.RegisterSourceOf(modules.KindStates, &Source{kind: modules.KindStates})
	modules.RegisterSourceOf(modules.KindBeacons, &Source{kind: modules.KindBeacons})
	modules.RegisterSourceOf(modules.KindReturners, &Source{kind: modules.KindReturners})
	modules.RegisterSourceOf(modules.KindGrains, &grainSource{Source{kind: modules.KindGrains}})
	modules.RegisterSourceOf(modules.KindRenderers, &renderSource{Source{kind: modules.KindRenderers}})
}
