package ansiblegate

import (
	"context"
	"iter"
	"strings"

	"github.com/brine-salt/brine/modules"
)

// listing are the modules of the host's Ansible as functions. Debian's package has 7,700, so they share one text, with a line for
// each: its name as a function, the module unless that is the same, and the documentation, with tabs between them.
type listing string

// newListing keeps what can be called: a name with an underscore in front is private.
func newListing(list []callable) listing {
	var b strings.Builder
	line := strings.NewReplacer("\n", " ", "\t", " ")
	for _, m := range list {
		if strings.HasPrefix(m.name, "_") || strings.ContainsAny(m.module, "\n\t") {
			continue
		}
		module := m.module
		if module == m.name {
			module = ""
		}
		b.WriteString(m.name + "\t" + module + "\t" + line.Replace(m.doc) + "\n")
	}
	return listing(strings.Clone(b.String()))
}

// Names implements modules.Found.
func (l listing) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(string(l)) {
			if name, _, _ := strings.Cut(line, "\t"); !yield(name) {
				return
			}
		}
	}
}

// Def implements modules.Found.
func (l listing) Def(name string) *modules.Def {
	_, rest, ok := strings.Cut("\n"+string(l), "\n"+name+"\t")
	if !ok || strings.ContainsAny(name, "\n\t") {
		return nil
	}
	module, rest, _ := strings.Cut(rest, "\t")
	doc, _, _ := strings.Cut(rest, "\n")
	if module == "" {
		module = name
	}
	return &modules.Def{Name: name, Python: "_cmd", Doc: doc, Args: "args", Kwargs: "kwargs",
		Run: func(ctx context.Context, c *modules.Call) (any, error) { return invoke(ctx, c, module) }}
}
