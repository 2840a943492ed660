package modules_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/brine-salt/brine/modules"
)

// greet is a module of one's own. Its declaration gives the rules of calling, the documentation and the errors.
var greet = &modules.Module{Name: "greet", Doc: "Greetings.", Funcs: []modules.Def{
	{Name: "hello", Doc: "Greet somebody.", Example: "salt '*' greet.hello Ada loud=True",
		Params: []modules.Param{{Name: "name", Type: modules.String}, {Name: "loud", Default: false, Type: modules.Bool}}, Run: hello},
}}

func hello(_ context.Context, c *modules.Call) (any, error) {
	if c.Str("name") == "" {
		return nil, modules.Usagef("name must not be empty")
	}
	text := "Hello " + c.Str("name") + " from " + c.ID
	if c.Bool("loud") {
		text = strings.ToUpper(text)
	}
	return text, nil
}

// A module of one's own, called as a master would have it called.
func Example() {
	registry := modules.NewRegistry(greet)
	minion := &modules.Env{ID: "web1"}
	for _, q := range []modules.Request{
		{Fun: "greet.hello", Args: []any{"Ada"}},
		{Fun: "greet.hello", Args: []any{"Ada"}, Kwargs: map[string]any{"loud": true}},
		{Fun: "greet.hello", Args: []any{""}},
		{Fun: "greet.hello", Args: []any{"Ada"}, Kwargs: map[string]any{"lout": true}},
	} {
		res := registry.Run(context.Background(), minion, q)
		fmt.Println(res.Retcode, res.Return)
	}
	// Output:
	// 0 Hello Ada from web1
	// 0 HELLO ADA FROM WEB1
	// 1 ERROR executing 'greet.hello': name must not be empty
	// 1 ERROR executing 'greet.hello': The following keyword arguments are not valid: lout=True
}
