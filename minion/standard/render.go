//go:build !custom || states || render

package standard

import (
	"context"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states/render"
)

// templates are the renderers.
func templates() func(context.Context, *modules.Call, modules.Template) (any, error) {
	return render.Render
}
