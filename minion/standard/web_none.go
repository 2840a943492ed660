//go:build custom && !fileclient.web

package standard

import (
	"context"
	"io"
)

// fetcher is none: this build does without HTTP, and such addresses are refused.
func fetcher(map[string]any) func(context.Context, string, io.Writer) error { return nil }
