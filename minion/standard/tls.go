//go:build !custom || transports.tls

package standard

import (
	"context"
	"net"

	"github.com/brine-salt/brine/protocol/transport/tlsconf"
)

// TLS returns the TLS layer for connections, or nil if the option ssl is not set. zeromq ignores it, as stock
// does.
func TLS(opts map[string]any) (func(context.Context, net.Conn, string) (net.Conn, error), error) {
	ssl, on, err := tlsconf.Options(opts["ssl"])
	if err != nil || !on || opts["transport"] == "zeromq" {
		return nil, err
	}
	config, err := tlsconf.Client(ssl)
	if err != nil {
		return nil, err
	}
	return tlsconf.Wrap(config), nil
}
