//go:build custom && !states && !render

package standard

import (
	"context"

	"github.com/brine-salt/brine/modules"
)

// templateRenderer returns nil: this build has no renderers.
func templateRenderer() func(context.Context, *modules.Call, modules.Template) (any,
	error) {
	return nil
}
