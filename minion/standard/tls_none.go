//go:build custom && !transports.tls

package standard

import (
	"context"
	"errors"
	"net"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// TLS returns an error if the option ssl is set, because this build has no TLS. zeromq ignores it, as stock
// does.
func TLS(opts map[string]any) (func(context.Context, net.Conn, string) (net.Conn, error), error) {
	if pytext.Truth(opts["ssl"]) && opts["transport"] != "zeromq" {
		return nil, errors.New("cannot use the option ssl: this program was built without TLS")
	}
	return nil, nil
}
