package grains_test

import (
	"context"
	"fmt"

	"github.com/brine-salt/brine/minion/grains"
)

// An embedding program adds grains, which override all but the configuration's.
func Example() {
	rack := grains.Source{Name: "rack", Gather: func(_ context.Context, seen map[string]any) (map[string]any, error) {
		return map[string]any{"rack": fmt.Sprintf("%v-r7", seen["id"])}, nil
	}}
	all := grains.Gather(context.Background(), grains.Options{
		Opts:   map[string]any{"id": "web1", "enable_fqdns_grains": false, "grains": map[string]any{"roles": []any{"web"}}},
		Custom: []grains.Source{rack},
	})
	fmt.Println(all["id"], all["rack"], all["roles"])
	// Output: web1 web1-r7 [web]
}
