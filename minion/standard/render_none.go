//go:build custom && !states && !render

package standard

import (
	"context"

	"github.com/brine-salt/brine/modules"
)

// templates are none: this build does without renderers.
func templateRenderer() func(context.Context, *modules.Call, modules.Template) (any,
	error) {
	return nil
}
