package target_test

import (
	"fmt"

	"github.com/brine-salt/brine/protocol/target"
)

// A minion checks whether a target matches it.
func ExampleMatch() {
	minion := target.Subject{
		ID:     "web1.example.org",
		Grains: func() map[string]any { return map[string]any{"os": "Debian", "roles": []any{"web", "cache"}} },
	}
	for _, expr := range []string{"web* and G@roles:cache", "not G@os:Deb*"} {
		ok, err := target.Match(target.TypeCompound, expr, "", minion)
		fmt.Println(expr, ok, err)
	}
	// Output:
	// web* and G@roles:cache true <nil>
	// not G@os:Deb* false <nil>
}

// A master estimates which minions match, from cached data.
func ExampleSelect() {
	cache := map[string]target.Cached{
		"db1":  {Grains: map[string]any{"os": "SUSE"}},
		"web1": {Grains: map[string]any{"os": "Debian"}},
	}
	s, err := target.Select(target.TypeGrain, "os:Debian", "", nil, []string{"db1", "new", "web1"}, func(id string) target.Cached { return cache[id] })
	fmt.Println(s.Matched, s.Unknown, err)
	// Output: [web1] [new] <nil>
}
