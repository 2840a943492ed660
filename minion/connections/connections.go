// Package connections asks the minion's daemon on this host, through its event sockets, how it is connected to its
// masters. "brine-minion doctor" and brine-update do; the daemon is package minion. It is small, so that a program that
// only asks needs nothing of the minion.
package connections

import (
	"context"
	"time"

	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
)

// Tag is the event of the question, AnswerTag that of the answer.
const (
	Tag       = "brine/connections"
	AnswerTag = Tag + "/answer"
)

// Connected is the state of a connection that is signed in and subscribed.
const Connected = "connected"

// Connection is how the daemon on this host is connected to a master. Times are in seconds since 1970; 0 is never.
type Connection struct {
	Master string
	State  string
	Since  int64 // when the state began
	// Answered is when the master last answered an authentic request. Pinged is when it last took the daemon's return of
	// a test.ping.
	Answered, Pinged int64
	Err              string // why it is not connected
}

// again is how long Ask waits for an answer before it asks again.
const again = 300 * time.Millisecond

// Ask asks the daemon that has these sockets. The error says that there is no daemon, or none that answers before ctx
// ends.
func Ask(ctx context.Context, sockets ipc.Sockets) (pid int, list []Connection, err error) {
	var data map[string]any
	for data == nil {
		// The daemon may notice only after the question that this process listens: it is asked again.
		part, stop := context.WithTimeout(ctx, again)
		data, err = askOnce(part, sockets)
		late := part.Err() != nil
		stop()
		if err != nil && (!late || ctx.Err() != nil) {
			return 0, nil, err
		}
	}
	n, _ := payload.Int(data["pid"])
	all, _ := data["connections"].([]any)
	for _, v := range all {
		m, _ := payload.Map(v)
		var c Connection
		c.Master, _ = payload.Text(m["master"])
		c.State, _ = payload.Text(m["state"])
		c.Err, _ = payload.Text(m["error"])
		c.Since, _ = payload.Int(m["since"])
		c.Answered, _ = payload.Int(m["answered"])
		c.Pinged, _ = payload.Int(m["pinged"])
		list = append(list, c)
	}
	return int(n), list, nil
}

// askOnce returns the data of an answer, or nil with an error.
func askOnce(ctx context.Context, sockets ipc.Sockets) (data map[string]any, err error) {
	c, err := ipc.Dial(ctx, sockets)
	if err != nil {
		return nil, err
	}
	for err = ipc.Fire(ctx, sockets, Tag, map[string]any{}); err == nil && data == nil; {
		var e events.Event
		if e, err = c.Next(ctx); e.Tag == AnswerTag {
			data = e.Data
		}
	}
	c.Close()
	return data, err
}
