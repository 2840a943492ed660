//go:build custom && !transports.ws

package main

import "github.com/brine-salt/brine/protocol/transport"

// addWS adds nothing: this build does without HTTP.
func addWS(map[string]transport.Dialer) {}
