//go:build !custom || states || render

package standard

import (
	"context"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states/render"
)

// templateRenderer returns the function that renders templates.
func templateRenderer() func(context.Context, *modules.Call, modules.Template) (any, error) {
	return render.Render
}
