package pyobj_test

import (
	"fmt"

	"github.com/brine-salt/brine/modules/pyobj"
)

// A module answers with the keys in the order that the caller is to see.
func ExampleDict() {
	d := pyobj.NewDict("web", int64(1), "app", pyobj.NewList("x", true))
	for k, v := range d.All() {
		fmt.Println(k, pyobj.Repr(v))
	}
	fmt.Println(pyobj.Repr(d))
	// Output:
	// web 1
	// app ['x', True]
	// {'web': 1, 'app': ['x', True]}
}
