// Package acks contains the errors for requests that get no reply: the connection closes, and the minion tries
// again.
package acks

import "errors"

var (
	// ErrDropped is returned for a request that must not be acknowledged, such as a return that could not be stored.
	ErrDropped = errors.New("request is not acknowledged")
	// ErrLater is ErrDropped without a line in the log for each try.
	ErrLater = errors.New("request is not acknowledged yet")
)
