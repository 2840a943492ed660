//go:build custom && !fileclient.web

package standard

import (
	"context"
	"io"

	"github.com/brine-salt/brine/minion/fileclient"
)

// webFetcher returns nil: this build has no HTTP, so such addresses are refused.
func webFetcher(map[string]any) func(context.Context, fileclient.WebRequest, io.Writer) (string,
	error) {
	return nil
}
