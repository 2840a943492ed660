package jinja_test

import (
	"context"
	"fmt"

	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

func ExampleEnv_Compile() {
	env := jinja.NewEnv()
	t, err := env.Compile("greeting", "", "{% for name, n in people.items() %}{{ name }} is {{ n }}.\n{% endfor %}")
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := t.Render(context.Background(), map[string]any{"people": pyobj.NewDict("Zoe", int64(7), "Adam", int64(40))})
	fmt.Print(out, err)
	// Output:
	// Zoe is 7.
	// Adam is 40.
	// <nil>
}
