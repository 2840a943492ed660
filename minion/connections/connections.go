// Package connections queries the minion's daemon on this host for the state of its connections, through its event
// sockets. "brine-minion doctor" and brine-update use it; package minion answers. It is a separate package, so that
// programs that only query do not link the minion.
package connections

import (
	"context"
	"time"

	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
)

// Tag is the tag of the query event, AnswerTag of the answer.
const (
	Tag       = "brine/connections"
	AnswerTag = Tag + "/answer"
)

// Connected is the state of a connection that is signed in and subscribed.
const Connected = "connected"

// Connection describes the daemon's connection to one master. Times are in seconds since 1970; 0 means never.
type Connection struct {
	Master string
	State  string
	Since  int64 // time of the last change of State
	// Answered is the time of the master's last authentic reply. Pinged is the time when it last acknowledged the
	// return of a test.ping.
	Answered, Pinged int64
	Err              string // why it is not connected
}

// again is how long Ask waits for an answer before it repeats the query.
const again = 300 * time.Millisecond

// Ask queries the daemon behind these sockets. It returns an error if no daemon answers before ctx ends.
func Ask(ctx context.Context, sockets ipc.Sockets) (pid int, list []Connection, err error) {
	var data map[string]any
	for data == nil {
		// The daemon may receive the query before it has accepted this listener, so the query is repeated.
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

// askOnce fires the query once and returns the data of the answer.
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
