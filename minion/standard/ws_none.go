//go:build custom && !transports.ws

package standard

import "github.com/brine-salt/brine/protocol/transport"

// addWS adds nothing: this build does without HTTP.
func addWS(map[string]transport.Dialer) {}
