package pkglist

import (
	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/sorting"
)

// Repos maps repositories to their packages.
type Repos map[string]List

// Add adds a version of a package.
func (r Repos) Add(repo, name, version string) {
	if r[repo] == nil {
		r[repo] = List{}
	}
	r[repo].Add(name, version)
}

// Together returns the packages of all repositories in one list, with the newest versions first.
func (r Repos) Together() List {
	ret := List{}
	for _, list := range r {
		for name, versions := range list {
			ret[name] = append(ret[name], versions...)
		}
	}
	ret.newestFirst()
	return ret
}

func (l List) newestFirst() {
	for name := range l {
		sorting.Stable(l[name], func(a, b string) int { n, _ := pkgversion.Loose(b, a); return n })
	}
}

// Answer returns the result of pkg.list_repo_pkgs.
func (r Repos) Answer(byRepo bool) map[string]any {
	if !byRepo {
		return r.Together().Plain(true)
	}
	ret := map[string]any{}
	for repo, list := range r {
		list.newestFirst()
		ret[repo] = list.Plain(true)
	}
	return ret
}
