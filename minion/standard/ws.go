//go:build !custom || transports.ws

package standard

import (
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/ws"
)

// addWS adds the transport over WebSockets.
func addWS(all map[string]transport.Dialer) { all["ws"] = ws.New() }
