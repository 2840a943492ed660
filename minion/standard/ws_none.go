//go:build custom && !transports.ws

package standard

import "github.com/brine-salt/brine/protocol/transport"

// addWS does nothing: this build has no HTTP.
func addWS(map[string]transport.Dialer) {}
